//! Cells as MySQL's text; the Python printers are in `cdcfmt_mysql/text_output.py`.
//!
//! A value whose type is not clearly that of its column is refused.

use crate::avro::encode_long;
use crate::refusal::Result;
use crate::values::Offsets;
use crate::values::temporal;
use crate::variant::{Cell, MISFIT};
use crate::write::binary::sized;
use crate::write::digits::{decimal, double, float, integer, single};
use crate::write::json_text::{self, Escapes};
use crate::write::plan::Printer;
use crate::write::times::{check_day, clock, time};

impl Printer {
    /// Appends MySQL's text as a JSON string.
    pub fn quoted(
        &self,
        cell: Cell,
        escapes: Escapes,
        zone: &Offsets,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match (self, cell) {
            (Printer::Text, Cell::Text(text)) => json_text::string(text, escapes, out),
            (Printer::Binary { .. }, Cell::Bytes(data)) => {
                json_text::latin1_string(data, escapes, scratch, out);
            }
            (Printer::JsonText, Cell::Text(text)) => {
                json_text::string(json_text::checked(text)?, escapes, out);
            }
            (Printer::Json, cell) => {
                scratch.clear();
                json_text::document(cell, scratch)?;
                json_text::string(scratch, escapes, out);
            }
            _ => {
                out.push(b'"');
                self.text(cell, zone, out)?;
                out.push(b'"');
            }
        }
        Ok(())
    }

    /// Appends MySQL's text, or bytes, after its length, as in Avro.
    pub fn sized(
        &self,
        cell: Cell,
        zone: &Offsets,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match (self, cell) {
            (Printer::Text, Cell::Text(text)) => {
                simdutf8::basic::from_utf8(text).map_err(|_| MISFIT)?;
                sized(text, out);
            }
            (Printer::Binary { .. }, Cell::Bytes(data)) => sized(data, out),
            _ => {
                scratch.clear();
                self.plain(cell, zone, scratch)?;
                sized(scratch, out);
            }
        }
        Ok(())
    }

    /// Appends MySQL's text, which is UTF-8, or bytes.
    pub fn plain(&self, cell: Cell, zone: &Offsets, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        match (self, cell) {
            (Printer::Text, Cell::Text(text)) => out.extend_from_slice(text),
            (Printer::Binary { .. }, Cell::Bytes(data)) => {
                out.extend_from_slice(data);
                return Ok(());
            }
            (Printer::Json, cell) => json_text::document(cell, out)?,
            (Printer::JsonText, Cell::Text(text)) => {
                out.extend_from_slice(json_text::checked(text)?);
            }
            // Digits are ASCII: nothing to check.
            _ => return self.text(cell, zone, out),
        }
        let checked = simdutf8::basic::from_utf8(&out[start..]);
        checked.map(drop).map_err(|_| MISFIT)
    }

    /// Appends a number as Avro's long, float or double.
    pub fn binary(&self, cell: Cell, out: &mut Vec<u8>) -> Result<()> {
        match (self, cell) {
            (Printer::Float { bits: 32 }, Cell::Double(value)) => {
                let nearest = value as f32;
                // Python fails for values that are rounded to infinity.
                if !nearest.is_finite() {
                    return Err(MISFIT);
                }
                out.extend_from_slice(&nearest.to_le_bytes());
            }
            (Printer::Float { bits: 32 }, Cell::Single(value))
                if value == 0.0 || value.is_normal() =>
            {
                out.extend_from_slice(&value.to_le_bytes());
            }
            (Printer::Float { bits: 64 }, Cell::Double(value)) if value.is_finite() => {
                out.extend_from_slice(&value.to_le_bytes());
            }
            (Printer::Float { .. }, _) => return Err(MISFIT),
            // 64 bits, of which the highest becomes the sign.
            _ => encode_long(self.integer(cell)? as i64, out),
        }
        Ok(())
    }

    /// The number of an integer, a year or a member; signed or unsigned 64 bits.
    pub fn integer(&self, cell: Cell) -> Result<i128> {
        match (self, cell) {
            (Printer::Bool, Cell::Bool(value)) => Ok(value.into()),
            (Printer::Bool, Cell::Int(value @ (0 | 1))) => Ok(value.into()),
            (Printer::Int { low, high }, cell) => {
                let value = cell.integer().ok_or(MISFIT)?;
                if value < i128::from(*low) || value > i128::from(*high) {
                    return Err(MISFIT);
                }
                Ok(value)
            }
            // MySQL's range of YEAR, with the zero year.
            (Printer::Year, Cell::Int(value)) if value == 0 || (1901..=2155).contains(&value) => {
                Ok(value.into())
            }
            (Printer::Enum { members, .. }, Cell::Text(text)) => {
                let text = std::str::from_utf8(text).map_err(|_| MISFIT)?;
                members
                    .get(text)
                    .map(|index| i128::from(*index))
                    .ok_or(MISFIT)
            }
            (Printer::Set { members, .. }, Cell::Text(text)) => {
                let text = std::str::from_utf8(text).map_err(|_| MISFIT)?;
                let mut bits = 0;
                for name in text.split(',').filter(|_| !text.is_empty()) {
                    bits |= members.get(name).ok_or(MISFIT)?;
                }
                Ok(bits.into())
            }
            (Printer::Enum { most, .. } | Printer::Set { most, .. }, cell) => {
                let value = match cell {
                    Cell::Bool(_) => None,
                    other => other.integer(),
                };
                let value = value.filter(|value| (0..=i128::from(*most)).contains(value));
                value.ok_or(MISFIT)
            }
            _ => Err(MISFIT),
        }
    }

    /// Appends MySQL's text of types that need no escapes.
    pub fn text(&self, cell: Cell, zone: &Offsets, out: &mut Vec<u8>) -> Result<()> {
        match (self, cell) {
            (Printer::Float { bits: 32 }, Cell::Double(value)) => float(value, out)?,
            (Printer::Float { .. }, Cell::Double(value)) => double(value, out)?,
            (Printer::Float { .. }, Cell::Single(value)) => single(value, out)?,
            (Printer::Decimal { .. }, Cell::Decimal(value, scale)) => decimal(value, scale, out),
            (Printer::Decimal { .. }, Cell::Int(value)) => integer(value, out),
            (Printer::Date, Cell::Date(days)) => {
                check_day(days)?;
                temporal::print_date(days.into(), out);
            }
            (Printer::DateTime { fsp }, Cell::Clock(micros)) => clock(micros, *fsp, out)?,
            (Printer::Timestamp { fsp }, Cell::Instant(micros)) => {
                clock(zone.wall(micros).ok_or(MISFIT)?, *fsp, out)?;
            }
            (Printer::Time { fsp }, Cell::Duration(micros)) => time(micros, *fsp, out)?,
            (Printer::Time { fsp }, Cell::Text(text)) => {
                let text = std::str::from_utf8(text).map_err(|_| MISFIT)?;
                time(temporal::time(text).ok_or(MISFIT)?, *fsp, out)?;
            }
            _ => self.number(cell, out)?,
        }
        Ok(())
    }

    /// Appends the digits of an integer, a year or a member.
    pub fn number(&self, cell: Cell, out: &mut Vec<u8>) -> Result<()> {
        let value = self.integer(cell)?;
        match i64::try_from(value) {
            Ok(value) => integer(value, out),
            Err(_) => decimal(value, 0, out),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(printer: &Printer, cell: Cell) -> Option<String> {
        let zone = r#"{"starts": [0, 1000000], "offsets": [3600000000]}"#;
        let zone = serde_json::from_str(zone).unwrap();
        let mut out = Vec::new();
        let step = printer.quoted(cell, Escapes::Go, &zone, &mut Vec::new(), &mut out);
        step.ok().and_then(|()| String::from_utf8(out).ok())
    }

    #[test]
    fn values() {
        let int = Printer::Int { low: -8, high: 300 };
        let decimal = Printer::Decimal { digits: None };
        let binary = Printer::Binary { longest: None };
        let date_time = Printer::DateTime { fsp: Some(3) };
        let timestamp = Printer::Timestamp { fsp: None };
        let [float, double] = [32, 64].map(|bits| Printer::Float { bits });
        for (printer, cell, text) in [
            (&Printer::Bool, Cell::Bool(true), "\"1\""),
            (&int, Cell::Int(-8), "\"-8\""),
            (&int, Cell::Decimal(300, 0), "\"300\""),
            (&decimal, Cell::Decimal(-5, 2), "\"-0.05\""),
            (&double, Cell::Double(1e21), "\"1000000000000000000000\""),
            (&double, Cell::Double(-0.0), "\"-0\""),
            (&float, Cell::Double(f64::from(0.1_f32)), "\"0.1\""),
            (&float, Cell::Double(0.010_071_009), "\"0.010071009\""),
            (&float, Cell::Double(0.123_456_789_012), "\"0.12345679\""),
            (&float, Cell::Single(16_777_216.0), "\"16777216\""),
            (&binary, Cell::Bytes(b"\xe9<"), "\"é\\u003c\""),
            (
                &date_time,
                Cell::Clock(1_500_000),
                "\"1970-01-01 00:00:01.500\"",
            ),
            (
                &date_time,
                Cell::Clock(-1),
                "\"1969-12-31 23:59:59.999999\"",
            ),
            (&timestamp, Cell::Instant(0), "\"1970-01-01 01:00:00\""),
        ] {
            assert_eq!(printed(printer, cell).as_deref(), Some(text), "{cell:?}");
        }
        assert_eq!(printed(&int, Cell::Int(301)), None);
        assert_eq!(printed(&timestamp, Cell::Instant(1_000_000)), None);
        assert_eq!(printed(&Printer::Year, Cell::Int(1900)), None);
        let time = Printer::Time { fsp: None };
        let hour = 3_600_000_000;
        assert!(printed(&time, Cell::Duration(838 * hour)).is_some());
        assert_eq!(printed(&time, Cell::Duration(-839 * hour)), None);
    }
}
