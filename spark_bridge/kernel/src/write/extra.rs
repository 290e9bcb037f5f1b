//! Parts of messages that events have in `extra`.

use crate::refusal::{Refusal, Step};
use crate::write::cell::Cell;
use crate::write::json_text::{self, Escapes};
use crate::write::message::Row;
use crate::write::plan::{ColumnOf, Extra, ExtraType, Wire};

const UNUSUAL: Refusal = Refusal::new("a value of extra that is written otherwise", 0);

impl Extra {
    pub fn append(&self, row: &impl Row, wire: Wire, out: &mut Vec<u8>) -> Step<()> {
        let start = out.len();
        out.extend_from_slice(&self.head.0);
        let found = match (row.facts().of_extra(&self.name)?, self.column) {
            (None | Some(Cell::Null), Some(column)) => Some(number(row, column)?),
            (found, _) => found,
        };
        let instead = match (self.of, found) {
            (ExtraType::Text, Some(Cell::Text(text))) => {
                json_text::string(text, Escapes::Few, out);
                None
            }
            (ExtraType::Integer, Some(Cell::Int(value))) => {
                wire.integer(value, out);
                self.zero.as_ref().filter(|_| value == 0)
            }
            (ExtraType::Integer, Some(Cell::Decimal(..))) => return Err(UNUSUAL),
            (ExtraType::Json, Some(cell)) => {
                check(cell)?;
                json_text::value(cell, 0, wire.escapes(), out)?;
                None
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

/// An integer of a column, with 64 bits and a sign.
fn number<'a>(row: &'a impl Row, column: ColumnOf) -> Step<Cell<'a>> {
    let cell = row.cell(column.image, column.place)?;
    if cell == Cell::Null {
        return Ok(cell);
    }
    let value = cell.integer().ok_or(UNUSUAL)?;
    #[allow(clippy::cast_possible_truncation)]
    Ok(Cell::Int(value as i64))
}

/// Refuses all but integers, text, booleans, NULL and what is made of them.
fn check(cell: Cell) -> Step<()> {
    match cell {
        Cell::Nested(variant) => {
            let items = variant.items()?;
            (0..items.count).try_for_each(|number| check(items.value(number)?.cell()?))
        }
        Cell::Null | Cell::Bool(_) | Cell::Int(_) | Cell::Text(_) => Ok(()),
        _ => Err(UNUSUAL),
    }
}
