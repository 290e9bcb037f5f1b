//! The bytes of a message.

use std::mem::discriminant;

use crate::avro::encode_long;
use crate::plan::Image;
use crate::refusal::{Refusal, Result};
use crate::variant::Variant;
use crate::variant::{Cell, MISFIT};
use crate::write::digits;
use crate::write::fields::NO_IMAGE;
use crate::write::plan::{Choice, Member, Members, Number, Part, Parts, Table, Wire};
use crate::write::style::{Scratch, Style};

const UNCHANGED: Refusal = Refusal::new("update changes nothing", 0);
const NO_CHOICE: Refusal = Refusal::new("unsupported source of a row", 0);

/// A change: its facts and its images.
pub trait Row {
    fn facts(&self) -> &Facts<'_>;
    fn has(&self, image: Image) -> bool;
    fn cell(&self, image: Image, place: usize) -> Result<Cell<'_>>;
}

/// Facts of a row; times are microseconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    pub commit_ts: Option<i64>,
    pub sequence_commit: Option<i64>,
    pub source_time: Option<i64>,
    pub emit_time: Option<i64>,
    /// An object.
    pub extra: Option<Variant<'a>>,
}

/// Writes messages; buffers are reused.
pub struct Printing<'a> {
    pub table: &'a Table,
    pub style: Style<'a>,
    /// Microseconds since 1970.
    pub now: i64,
    /// Number of the last row with a number.
    pub last_number: i64,
    pub scratch: &'a mut Scratch,
}

impl Printing<'_> {
    /// Appends the parts of a message; refuses rows that need the encoder.
    pub fn append(&mut self, parts: &Parts, row: &impl Row, out: &mut Vec<u8>) -> Result<()> {
        let table = self.table;
        for part in parts {
            match &table.parts[*part] {
                Part::Text(text) => out.extend_from_slice(&text.0),
                Part::Number(name) => {
                    let value = number(*name, row.facts(), self.now)?;
                    self.style.wire.integer(value, out);
                }
                Part::Members(members) if !row.has(members.image) => {
                    out.extend_from_slice(&members.missing.as_ref().ok_or(NO_IMAGE)?.0);
                }
                Part::Members(members) => self.members(members, row, out)?,
                Part::ByLimit {
                    image,
                    place,
                    limit,
                    below,
                    above,
                } => {
                    let value = row.cell(*image, *place)?.integer();
                    // A producer marks large unsigned numbers by another type number, so the text
                    // depends on the value.
                    let is_above = value.is_some_and(|value| value >= i128::from(*limit));
                    let text = if is_above { above } else { below };
                    out.extend_from_slice(&text.0);
                }
                Part::ByPrecision {
                    place,
                    coarse,
                    fine,
                } => {
                    let text = if is_fine(row, *place)? { fine } else { coarse };
                    out.extend_from_slice(&text.0);
                }
                Part::Extra(extra) => extra.append(row, self.style.wire, out)?,
                Part::Texts(texts) => texts.append(row, out)?,
                Part::Choice(choice) => {
                    let chosen = choice.of(row.facts())?.as_ref().ok_or(NO_CHOICE)?;
                    self.append(chosen, row, out)?;
                }
                Part::RowNumber(name) => {
                    self.last_number = match row.facts().of_extra(name)? {
                        Some(Cell::Int(number)) => number,
                        // Possibly an integer of more bits.
                        Some(Cell::Decimal(..)) => return Err(MISFIT),
                        _ => self.last_number.checked_add(1).ok_or(MISFIT)?,
                    };
                    self.style.wire.integer(self.last_number, out);
                }
                Part::Checksum(checksum) => {
                    let text = &mut self.scratch.text;
                    checksum.append(row, self.table, self.style.wire, text, out)?;
                }
            }
        }
        Ok(())
    }

    fn members(&mut self, members: &Members, row: &impl Row, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&members.head.0);
        let start = out.len();
        let table = self.table;
        for member in members.members.iter().map(|number| &table.members[*number]) {
            let before = out.len();
            if before > start {
                out.extend_from_slice(&members.separator.0);
            }
            out.extend_from_slice(&member.label.0);
            let value = out.len();
            self.member(member, members.image, row, out)?;
            // Compared as printed: what the message shows as equal did not change for its readers.
            if members.changed {
                let of_other = match members.image {
                    Image::Before => Image::After,
                    Image::After => Image::Before,
                };
                let mut other = std::mem::take(&mut self.scratch.other);
                other.clear();
                let step = self.member(member, of_other, row, &mut other);
                let is_equal = out[value..] == *other.as_slice();
                self.scratch.other = other;
                step?;
                let [one, two] =
                    [members.image, of_other].map(|image| row.cell(image, member.place));
                // Digits that the encoding drops may be all that changed.
                if is_equal && !(members.by_value && differ(one?, two?)?) {
                    out.truncate(before);
                }
            }
        }
        if members.by_value && out.len() == start {
            return Err(UNCHANGED);
        }
        out.extend_from_slice(&members.tail.0);
        Ok(())
    }

    fn member(
        &mut self,
        member: &Member,
        image: Image,
        row: &impl Row,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.member_value(member, image, row, out)
            .map_err(|refusal| refusal.in_column(member.place, None))
    }

    fn member_value(
        &mut self,
        member: &Member,
        image: Image,
        row: &impl Row,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let cell = row.cell(image, member.place)?;
        if cell == Cell::Null {
            out.extend_from_slice(&member.null.as_ref().ok_or(MISFIT)?.0);
            return Ok(());
        }
        out.extend_from_slice(&member.head.0);
        let printer = &self.table.columns[member.place].printer;
        printer.check_limits(cell)?;
        let is_fine = || is_fine(row, member.place);
        let encoding = &member.encoding;
        encoding.print(printer, cell, is_fine, self.style, self.scratch, out)?;
        out.extend_from_slice(&member.tail.0);
        Ok(())
    }
}

impl Wire {
    /// Appends an integer.
    pub fn integer(self, value: i64, out: &mut Vec<u8>) {
        match self {
            Wire::Avro => encode_long(value, out),
            _ => digits::integer(value, out),
        }
    }
}

impl Choice {
    fn of(&self, facts: &Facts) -> Result<&Option<Parts>> {
        let Some(Cell::Text(text)) = facts.of_extra(&self.name)? else {
            return Ok(&self.default);
        };
        let mut among = self.among.iter();
        let found = among.find(|(texts, _)| texts.iter().any(|one| one.as_bytes() == text));
        Ok(found.map_or(&self.default, |(_, parts)| parts))
    }
}

/// Whether values with equal text differ.
fn differ(one: Cell, other: Cell) -> Result<bool> {
    match (one, other) {
        // Equal text means equal values.
        (Cell::Nested(_) | Cell::Row(_), Cell::Nested(_) | Cell::Row(_)) => Ok(false),
        // Cells of two types have equal values only by Python's rules.
        _ if discriminant(&one) == discriminant(&other) => Ok(one != other),
        _ => Err(MISFIT),
    }
}

/// Whether a wall clock in either image is finer than milliseconds.
fn is_fine(row: &impl Row, place: usize) -> Result<bool> {
    for image in [Image::Before, Image::After] {
        if row.has(image)
            && let Cell::Clock(micros) = row.cell(image, place)?
            && micros % 1_000 != 0
        {
            return Ok(true);
        }
    }
    Ok(false)
}

impl<'a> Facts<'a> {
    /// A member of `extra`.
    pub fn of_extra(&self, name: &str) -> Result<Option<Cell<'a>>> {
        let found = match self.extra {
            Some(extra) => extra.items()?.find(name)?,
            None => None,
        };
        found.map(Variant::cell).transpose()
    }
}

fn number(name: Number, facts: &Facts, now: i64) -> Result<i64> {
    let of_commit = facts.commit_ts.map(|commit_ts| commit_ts >> 18);
    let of_source = facts.source_time.map(|time| time.div_euclid(1_000));
    let of_sequence = facts.sequence_commit.map(|commit| commit >> 18);
    let found = match name {
        Number::CommitTs => facts.commit_ts,
        Number::SourceMillis => of_commit.or(of_source).or(of_sequence),
        Number::ExecutedMillis => of_source.or(of_commit).or(of_sequence),
        Number::ExecutedSeconds => of_source
            .or(of_commit)
            .or(of_sequence)
            .map(|millis| millis.div_euclid(1_000)),
        Number::EmitMillis => Some(facts.emit_time.unwrap_or(now).div_euclid(1_000)),
    };
    found.ok_or(Refusal::new("row has no time", 0))
}
