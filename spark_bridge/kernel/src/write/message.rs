//! The bytes of one message.

use crate::refusal::{Refusal, Step};
use crate::write::cell::Cell;
use crate::write::digits::integer;
use crate::write::json_text::{self, Escapes};
use crate::write::plan::{Image, Member, Number, Part, Table};
use crate::write::printing::{MISFIT, Offsets};
use crate::write::variants::Variant;

/// A change: when it was, and its images.
pub trait Row {
    fn facts(&self) -> &Facts<'_>;
    fn has(&self, image: Image) -> bool;
    fn cell(&self, image: Image, place: usize) -> Step<Cell<'_>>;
}

/// What a row says of itself; times are microseconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    pub commit_ts: Option<i64>,
    pub sequence_commit: Option<i64>,
    pub source_time: Option<i64>,
    pub emit_time: Option<i64>,
    /// An object.
    pub extra: Option<Variant<'a>>,
}

/// Writes messages; what it allocates is used again.
pub struct Printing<'a> {
    pub table: &'a Table,
    pub zone: &'a Offsets,
    /// Microseconds since 1970.
    pub now: i64,
    pub scratch: &'a mut Scratch,
}

#[derive(Default)]
pub struct Scratch {
    text: Vec<u8>,
    other: Vec<u8>,
}

impl Printing<'_> {
    pub fn append(&mut self, parts: &[Part], row: &impl Row, out: &mut Vec<u8>) -> Step<()> {
        for part in parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Number(name) => integer(self.number(*name, row.facts())?, out),
                Part::Members { image, missing, .. } if !row.has(*image) => {
                    out.extend_from_slice(missing.as_bytes());
                }
                Part::Members {
                    image,
                    members,
                    head,
                    tail,
                    changed,
                    ..
                } => {
                    out.extend_from_slice(head.as_bytes());
                    self.members(*image, members, *changed, row, out)?;
                    out.extend_from_slice(tail.as_bytes());
                }
                Part::Either {
                    image,
                    place,
                    limit,
                    below,
                    above,
                } => {
                    let value = row.cell(*image, *place)?.integer();
                    let is_above = value.is_some_and(|value| value >= i128::from(*limit));
                    let text = if is_above { above } else { below };
                    out.extend_from_slice(text.as_bytes());
                }
                Part::Extra {
                    name,
                    default,
                    is_text,
                } => extra(row.facts(), name, default, *is_text, out)?,
            }
        }
        Ok(())
    }

    fn number(&self, name: Number, facts: &Facts) -> Step<i64> {
        let found = match name {
            Number::CommitTs => facts.commit_ts,
            Number::SourceMillis => facts
                .commit_ts
                .map(|commit_ts| commit_ts >> 18)
                .or(facts.source_time.map(|time| time.div_euclid(1_000)))
                .or(facts.sequence_commit.map(|commit| commit >> 18)),
            Number::EmitMillis => Some(facts.emit_time.unwrap_or(self.now).div_euclid(1_000)),
        };
        found.ok_or(Refusal::new("a row without a time", 0))
    }

    fn members(
        &mut self,
        image: Image,
        members: &[Member],
        changed: bool,
        row: &impl Row,
        out: &mut Vec<u8>,
    ) -> Step<()> {
        let start = out.len();
        for member in members {
            let before = out.len();
            if before > start {
                out.push(b',');
            }
            out.extend_from_slice(member.label.as_bytes());
            let value = out.len();
            let printer = &self.table.columns[member.place].printer;
            let text = &mut self.scratch.text;
            printer.print(row.cell(image, member.place)?, self.zone, text, out)?;
            if changed {
                let of_other = match image {
                    Image::Before => Image::After,
                    Image::After => Image::Before,
                };
                let other = &mut self.scratch.other;
                other.clear();
                printer.print(row.cell(of_other, member.place)?, self.zone, text, other)?;
                if out[value..] == *other.as_slice() {
                    out.truncate(before);
                }
            }
        }
        Ok(())
    }
}

fn extra(facts: &Facts, name: &str, default: &str, is_text: bool, out: &mut Vec<u8>) -> Step<()> {
    let found = match facts.extra {
        Some(extra) => extra.items()?.find(name)?,
        None => None,
    };
    match found.map(Variant::cell).transpose()? {
        Some(Cell::Text(text)) if is_text => json_text::string(text, Escapes::Few, out),
        Some(Cell::Int(value)) if !is_text => integer(value, out),
        Some(Cell::Decimal(..)) if !is_text => return Err(MISFIT),
        _ => out.extend_from_slice(default.as_bytes()),
    }
    Ok(())
}
