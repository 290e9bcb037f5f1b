//! Parts of messages from the `extra` of events.

use crate::avro::encode_long;
use crate::refusal::{Refusal, Result};
use crate::variant::Cell;
use crate::write::binary::sized;
use crate::write::json_text::{self, Escapes};
use crate::write::message::Row;
use crate::write::plan::{ColumnOf, ExtraType, ExtraValue, Texts, Wire};

const UNUSUAL: Refusal = Refusal::new("unsupported value in extra", 0);
/// Maximum number of texts of a map in which to look for duplicate names.
const MAX_TEXTS: usize = 64;

impl ExtraValue {
    /// Appends the value, or what stands for a missing one.
    pub fn append(&self, row: &impl Row, wire: Wire, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.extend_from_slice(&self.head.0);
        let found = match (row.facts().of_extra(&self.name)?, self.column) {
            // Rows of changes have no `extra`: a column may have the same number.
            (None | Some(Cell::Null), Some(column)) => Some(number(row, column)?),
            (found, _) => found,
        };
        let instead = match (self.of, found) {
            (ExtraType::Text, Some(Cell::Text(text))) if wire == Wire::Avro => {
                sized(text, out);
                None
            }
            (ExtraType::Text, Some(Cell::Text(text))) => {
                json_text::string(text, Escapes::Few, out);
                None
            }
            (ExtraType::Integer, Some(Cell::Int(value))) => {
                wire.integer(value, out);
                self.zero.as_ref().filter(|_| value == 0)
            }
            // An integer beyond 64 bits is an error of the reference.
            (ExtraType::Integer, Some(Cell::Decimal(..))) => return Err(UNUSUAL),
            (ExtraType::Integers, Some(Cell::Nested(list))) if !list.is_object() => {
                let items = list.items()?;
                block(items.count, out);
                for number in 0..items.count {
                    match items.value(number)?.cell()? {
                        Cell::Int(value) => encode_long(value, out),
                        _ => return Err(UNUSUAL),
                    }
                }
                out.push(0);
                None
            }
            (ExtraType::Json, Some(cell)) if cell != Cell::Null => {
                check(cell)?;
                json_text::value(cell, 0, wire.escapes(), out)?;
                self.zero.as_ref().filter(|_| cell == Cell::Int(0))
            }
            _ => Some(&self.default),
        };
        match instead {
            Some(instead) => {
                out.truncate(start);
                out.extend_from_slice(&instead.0);
            }
            None => out.extend_from_slice(&self.tail.0),
        }
        Ok(())
    }
}

impl Texts {
    /// Appends the map in Avro's encoding.
    pub fn append(&self, row: &impl Row, out: &mut Vec<u8>) -> Result<()> {
        let found = match row.facts().of_extra(&self.name)? {
            Some(Cell::Nested(texts)) if texts.is_object() => Some(texts.items()?),
            _ => None,
        };
        let count = found.map_or(0, |items| items.count);
        // The search for duplicates compares all pairs.
        if count > MAX_TEXTS {
            return Err(UNUSUAL);
        }
        let mut names = Vec::with_capacity(count);
        for number in 0..count {
            let name = found.ok_or(UNUSUAL)?.name(number)?;
            // A variant of another writer may repeat names; Python's dicts do not.
            if std::str::from_utf8(name).is_err() || names.contains(&name) {
                return Err(UNUSUAL);
            }
            names.push(name);
        }
        let is_missing = |(name, _): &&(String, String)| !names.contains(&name.as_bytes());
        let more = self.more.iter().filter(is_missing);
        let size = count + more.clone().count();
        block(size, out);
        for (number, name) in names.iter().enumerate() {
            sized(name, out);
            match found.ok_or(UNUSUAL)?.value(number)?.cell()? {
                Cell::Text(text) => sized(text, out),
                _ => sized(b"", out),
            }
        }
        for (name, text) in more {
            sized(name.as_bytes(), out);
            sized(text.as_bytes(), out);
        }
        out.push(0);
        Ok(())
    }
}

/// Begins an array or a map of Avro, as a single block; a zero ends it.
fn block(count: usize, out: &mut Vec<u8>) {
    if count > 0 {
        encode_long(count as i64, out);
    }
}

/// An integer of a column, as a signed 64-bit value.
fn number(row: &impl Row, column: ColumnOf) -> Result<Cell<'_>> {
    let cell = row.cell(column.image, column.place)?;
    if cell == Cell::Null {
        return Ok(cell);
    }
    let value = cell.integer().ok_or(UNUSUAL)?;
    Ok(Cell::Int(value as i64))
}

/// Refuses everything but integers, text, booleans, NULL, and nested values of these.
fn check(cell: Cell) -> Result<()> {
    match cell {
        Cell::Nested(variant) => {
            let items = variant.items()?;
            (0..items.count).try_for_each(|number| check(items.value(number)?.cell()?))
        }
        Cell::Null | Cell::Bool(_) | Cell::Int(_) | Cell::Text(_) => Ok(()),
        _ => Err(UNUSUAL),
    }
}
