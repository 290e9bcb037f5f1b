//! Value encodings printed in Avro's encoding.
//!
//! The Python equivalent of parts for DTS only is `cdcfmt_dts_avro/values_output.py`.

use crate::avro::{encode_long, shortest_double};
use crate::refusal::Result;
use crate::values::Offsets;
use crate::values::temporal::{self, civil};
use crate::variant::{Cell, MISFIT};
use crate::write::digits::decimal;
use crate::write::encodings::micros_of_time;
use crate::write::plan::PrintEncoding;
use crate::write::plan::Printer;
use crate::write::times::check_day;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400;

/// Year, month, day, hour, minute, second and microsecond.
type Parts = [Option<i64>; 7];

impl PrintEncoding {
    /// Appends a value that is not NULL.
    pub fn binary(
        &self,
        printer: &Printer,
        cell: Cell,
        zone: &Offsets,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match (self, printer, cell) {
            (PrintEncoding::MysqlText, ..)
            | (PrintEncoding::Text, Printer::Json | Printer::JsonText, _) => {
                printer.sized(cell, zone, scratch, out)?;
            }
            (PrintEncoding::Text, _, Cell::Text(text)) => {
                printer.check_members(cell)?;
                simdutf8::basic::from_utf8(text).map_err(|_| MISFIT)?;
                sized(text, out);
            }
            // Other characters are left to Python, which has tables of charsets.
            (PrintEncoding::CharsetText, Printer::Text, Cell::Text(text)) if text.is_ascii() => {
                sized(text, out);
            }
            (PrintEncoding::IntegerText, Printer::Decimal { .. }, _) => {
                scratch.clear();
                match cell {
                    // Python's printer of integers takes no booleans.
                    Cell::Bool(_) => return Err(MISFIT),
                    cell => decimal(cell.integer().ok_or(MISFIT)?, 0, scratch),
                }
                sized(scratch, out);
            }
            (PrintEncoding::JsonNumber { doubles: true, .. }, Printer::Float { bits }, _) => {
                out.extend_from_slice(&wide(cell, *bits)?.to_le_bytes());
            }
            (PrintEncoding::MysqlJson | PrintEncoding::JsonNumber { .. }, ..) => {
                printer.binary(cell, out)?;
            }
            (PrintEncoding::CalendarParts, ..) => {
                for part in parts(printer, cell)? {
                    // A union of null and int: its branch, then the value.
                    match part {
                        Some(part) => {
                            out.push(2);
                            encode_long(part, out);
                        }
                        None => out.push(0),
                    }
                }
            }
            (PrintEncoding::EpochPair, Printer::Timestamp { .. }, Cell::Instant(micros)) => {
                temporal::check_instant(micros)?;
                encode_long(micros.div_euclid(SECOND), out);
                encode_long(micros.rem_euclid(SECOND), out);
            }
            _ => return Err(MISFIT),
        }
        Ok(())
    }
}

/// A finite double; for a 32-bit column the double with the float's digits.
fn wide(cell: Cell, bits: u8) -> Result<f64> {
    let is_within = |value: f64| value.is_finite() && (bits > 32 || (value as f32).is_finite());
    let single = match cell {
        Cell::Double(value) if is_within(value) => return Ok(value),
        Cell::Single(value) if value == 0.0 || value.is_normal() => value,
        _ => return Err(MISFIT),
    };
    let (exact, short) = (f64::from(single), shortest_double(single));
    // The digits that JSON would have, as a double.
    if exact.to_bits() != short.to_bits() {
        return Ok(short);
    }
    // Nine digits identify any float.
    format!("{exact:.8e}").parse().map_err(|_| MISFIT)
}

fn parts(printer: &Printer, cell: Cell) -> Result<Parts> {
    match (printer, cell) {
        (Printer::Date, Cell::Date(days)) => {
            check_day(days)?;
            let [year, month, day] = civil(days.into());
            Ok([Some(year), Some(month), Some(day), None, None, None, None])
        }
        (Printer::DateTime { .. }, Cell::Clock(micros))
        | (Printer::Timestamp { .. }, Cell::Instant(micros)) => {
            temporal::check_instant(micros)?;
            let seconds = micros.div_euclid(SECOND);
            let [year, month, day] = civil(seconds.div_euclid(DAY));
            let [hour, minute, second] = clock(seconds.rem_euclid(DAY));
            let fraction = micros.rem_euclid(SECOND);
            let mut parts = [year, month, day, hour, minute, second, fraction].map(Some);
            // DTS has null for no fraction.
            parts[6] = parts[6].filter(|fraction| *fraction != 0);
            Ok(parts)
        }
        (Printer::Time { .. }, _) => {
            let micros = micros_of_time(cell)?;
            // Each part has the sign.
            let [hour, minute, second] = clock(micros / SECOND);
            let fraction = Some(micros % SECOND).filter(|part| *part != 0);
            Ok([
                None,
                None,
                None,
                Some(hour),
                Some(minute),
                Some(second),
                fraction,
            ])
        }
        (Printer::Year, _) => {
            let year = i64::try_from(printer.integer(cell)?).map_err(|_| MISFIT)?;
            Ok([Some(year), None, None, None, None, None, None])
        }
        _ => Err(MISFIT),
    }
}

/// Hours, minutes and seconds, each with the sign.
fn clock(seconds: i64) -> [i64; 3] {
    [seconds / 3600, seconds / 60 % 60, seconds % 60]
}

/// Appends bytes after their length.
pub fn sized(data: &[u8], out: &mut Vec<u8>) {
    encode_long(data.len() as i64, out);
    out.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::MAX_TIME;

    #[test]
    fn parts_of_calendars() {
        let time = Printer::Time { fsp: None };
        let date_time = Printer::DateTime { fsp: None };
        for (printer, cell, text) in [
            (
                &time,
                Cell::Duration(-3_601_000_005),
                "0 0 0 2-1 20 2-1 2-5",
            ),
            (
                &date_time,
                Cell::Clock(-1),
                "21969 212 231 223 259 259 2999999",
            ),
            (&Printer::Date, Cell::Date(0), "21970 21 21 0 0 0 0"),
            (&Printer::Year, Cell::Int(0), "20 0 0 0 0 0 0"),
        ] {
            let found = parts(printer, cell).unwrap();
            let shown = found.map(|part| part.map_or("0".to_owned(), |part| format!("2{part}")));
            assert_eq!(shown.join(" "), text);
        }
        assert!(parts(&time, Cell::Duration(MAX_TIME + 1)).is_err());
        assert!(parts(&Printer::Date, Cell::Clock(0)).is_err());
    }
}
