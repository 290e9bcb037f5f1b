//! Limits of a column's type that its printer does not check: digits, bytes and members.
//!
//! The Python equivalent is `cdcfmt_mysql/text_output.py`.

use crate::refusal::Result;
use crate::values::{is_uuid, temporal};
use crate::variant::{Cell, MISFIT};
use crate::write::plan::Printer;

impl Printer {
    /// Refuses a value with more digits or bytes than its column's type.
    pub fn check_limits(&self, cell: Cell) -> Result<()> {
        let fits = match (self, cell) {
            (
                Printer::Decimal {
                    digits: Some(digits),
                },
                Cell::Decimal(value, places),
            ) => is_decimal(value, places.into(), *digits),
            (
                Printer::Decimal {
                    digits: Some(digits),
                },
                Cell::Int(value),
            ) => is_decimal(value.into(), 0, *digits),
            (Printer::DateTime { fsp: Some(fsp) }, Cell::Clock(micros))
            | (Printer::Timestamp { fsp: Some(fsp) }, Cell::Instant(micros))
            | (Printer::Time { fsp: Some(fsp) }, Cell::Duration(micros)) => {
                has_fraction(micros, *fsp)
            }
            (Printer::Time { fsp: Some(fsp) }, Cell::Text(text)) => {
                let text = std::str::from_utf8(text).map_err(|_| MISFIT)?;
                has_fraction(temporal::time(text).ok_or(MISFIT)?, *fsp)
            }
            (
                Printer::Binary {
                    longest: Some(longest),
                },
                Cell::Bytes(data),
            ) => data.len() <= *longest,
            // Other types have no limits, or their printers check them.
            _ => true,
        };
        if fits { Ok(()) } else { Err(MISFIT) }
    }

    /// Refuses names that are not members of a type with known members.
    pub fn check_members(&self, cell: Cell) -> Result<()> {
        match self {
            Printer::Enum { is_named: true, .. } | Printer::Set { is_named: true, .. } => {
                self.integer(cell).map(drop)
            }
            _ => Ok(()),
        }
    }
}

/// The text of a type that has one form for each value; refuses other forms.
pub fn usual<'a>(printer: &Printer, text: &'a [u8]) -> Result<&'a [u8]> {
    let as_str = std::str::from_utf8(text).map_err(|_| MISFIT)?;
    let is_usual = match printer {
        Printer::Uuid => is_uuid(as_str),
        Printer::TimeTz => temporal::is_time_tz(as_str),
        _ => false,
    };
    if is_usual { Ok(text) } else { Err(MISFIT) }
}

/// Whether a decimal with this precision and scale holds a value with `places` after the point.
fn is_decimal(value: i128, places: u32, (precision, scale): (u32, u32)) -> bool {
    // 128 bits have no more digits than a power that overflows.
    let digits = precision.saturating_sub(scale) + places;
    let is_within = 10_u128
        .checked_pow(digits)
        .is_none_or(|limit| value.unsigned_abs() < limit);
    let extra = 10_i128.checked_pow(places.saturating_sub(scale));
    is_within && extra.map_or(value == 0, |unit| value % unit == 0)
}

/// Whether the digits of a fraction of a second suffice.
fn has_fraction(micros: i64, fsp: u32) -> bool {
    micros % 10_i64.pow(6_u32.saturating_sub(fsp)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_decimals() {
        for (value, places, digits, fits) in [
            (99_999, 2, (5, 2), true),
            (-100_000, 2, (5, 2), false),
            (1_000, 0, (5, 2), false),
            (999, 0, (5, 2), true),
            (12_300, 4, (5, 2), true),
            (12_345, 4, (5, 2), false),
            (i128::MAX, 0, (65, 0), true),
            (i128::MAX, 38, (65, 38), true),
            (1, 38, (1, 0), false),
            (0, 38, (1, 0), true),
        ] {
            assert_eq!(is_decimal(value, places, digits), fits, "{value} {places}");
        }
    }

    #[test]
    fn other_limits() {
        let time = Printer::Time { fsp: Some(3) };
        assert!(time.check_limits(Cell::Text(b"10:00:00.120")).is_ok());
        assert!(time.check_limits(Cell::Duration(-1_500)).is_err());
        assert!(time.check_limits(Cell::Text(b"10:00:00.1234")).is_err());
        let binary = Printer::Binary { longest: Some(3) };
        assert!(binary.check_limits(Cell::Bytes(b"abcd")).is_err());
        let date_time = Printer::DateTime { fsp: Some(0) };
        assert!(date_time.check_limits(Cell::Clock(1_000_000)).is_ok());
        assert!(date_time.check_limits(Cell::Clock(1)).is_err());
    }
}
