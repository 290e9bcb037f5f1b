//! Values of key columns as in `cdcfmt_core.partitioning.key_text`, for order and partitions.

use crate::refusal::{Refusal, Result};
use crate::values::temporal::{self, DAY_MICROS};
use crate::variant::{Cell, MISFIT};
use crate::write::digits;
use crate::write::limits::usual;
use crate::write::plan::Printer;

pub const NO_TEXT: Refusal = Refusal::new("type of a key column has no plain text", 0);

/// Appends the text of a value.
pub fn append(printer: &Printer, cell: Cell, out: &mut Vec<u8>) -> Result<()> {
    match (printer, cell) {
        // Python's `str` of each value, as the reference may have checked the same key before.
        (_, Cell::Null) => out.extend_from_slice(b"None"),
        (Printer::Bool, Cell::Bool(value)) => {
            out.extend_from_slice(if value { b"True" } else { b"False" });
        }
        (Printer::Int { .. }, cell) => {
            digits::decimal(cell.integer().ok_or(MISFIT)?, 0, out);
        }
        (Printer::Decimal { .. } | Printer::Year, Cell::Int(value)) => digits::integer(value, out),
        (Printer::Decimal { .. }, Cell::Decimal(value, scale)) => {
            digits::decimal(value, scale, out);
            if scale > 0 {
                // Equal values have equal texts.
                while out.last() == Some(&b'0') {
                    out.pop();
                }
                if out.last() == Some(&b'.') {
                    out.pop();
                }
            }
        }
        (Printer::Text | Printer::Enum { .. } | Printer::Set { .. }, Cell::Text(text)) => {
            std::str::from_utf8(text).map_err(|_| MISFIT)?;
            out.extend_from_slice(text);
        }
        (Printer::Uuid, Cell::Text(text)) => out.extend_from_slice(usual(printer, text)?),
        (Printer::Enum { .. } | Printer::Set { .. }, Cell::Int(value)) => {
            digits::integer(value, out);
        }
        (Printer::Date, Cell::Date(days)) => {
            temporal::check_instant(i64::from(days) * DAY_MICROS)?;
            temporal::print_date(days.into(), out);
        }
        (Printer::DateTime { .. }, Cell::Clock(micros)) => clock(micros, out)?,
        (Printer::Timestamp { .. }, Cell::Instant(micros)) => {
            clock(micros, out)?;
            out.extend_from_slice(b"+00:00");
        }
        _ => return Err(NO_TEXT),
    }
    Ok(())
}

/// Appends a datetime as in `str`: without a fraction, or with six digits.
fn clock(micros: i64, out: &mut Vec<u8>) -> Result<()> {
    temporal::check_instant(micros)?;
    let start = out.len();
    temporal::print_datetime(micros, out);
    if micros.rem_euclid(1_000_000) != 0 {
        out.resize(start + "0000-00-00 00:00:00.000000".len(), b'0');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_python_prints() {
        let date_time = Printer::DateTime { fsp: None };
        let decimal = Printer::Decimal { digits: None };
        for (printer, cell, text) in [
            (&decimal, Cell::Decimal(10, 7), Some("0.000001")),
            (&decimal, Cell::Decimal(-150, 2), Some("-1.5")),
            (&decimal, Cell::Decimal(100, 1), Some("10")),
            (&decimal, Cell::Decimal(100, 0), Some("100")),
            (&decimal, Cell::Decimal(0, 6), Some("0")),
            (
                &date_time,
                Cell::Clock(500_000),
                Some("1970-01-01 00:00:00.500000"),
            ),
            (&date_time, Cell::Clock(0), Some("1970-01-01 00:00:00")),
            (&Printer::Text, Cell::Null, Some("None")),
        ] {
            let mut out = Vec::new();
            let found = append(printer, cell, &mut out)
                .ok()
                .map(|()| out.as_slice());
            assert_eq!(found, text.map(str::as_bytes), "{cell:?}");
        }
    }
}
