//! Printing of value encodings, the inverse of `crate::values::Reader`.
//!
//! The Python printers are in `cdcfmt_toolkit/value_printers.py`.

use crate::refusal::Result;
use crate::text::bytes::encode_hex;
use crate::values::MAX_TIME;
use crate::values::temporal::{self, Interval};
use crate::variant::{Cell, MISFIT};
use crate::write::digits::{self, integer};
use crate::write::json_text;
use crate::write::limits::usual;
use crate::write::nested::{self, base64};
use crate::write::plan::{PrintEncoding, Printer, Wire};
use crate::write::style::{Scratch, Style};
use crate::write::times;

impl PrintEncoding {
    /// Appends a value that is not NULL; `is_fine`: the row has values finer than milliseconds.
    pub fn print(
        &self,
        printer: &Printer,
        cell: Cell,
        is_fine: impl Fn() -> Result<bool>,
        style: Style,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (escapes, zone) = (style.wire.escapes(), style.zone);
        if style.wire == Wire::Avro {
            return self.binary(printer, cell, zone, &mut scratch.text, out);
        }
        match self {
            Self::MysqlText => printer.quoted(cell, escapes, zone, &mut scratch.text, out),
            Self::Text => match (printer, cell) {
                (Printer::Uuid | Printer::TimeTz, Cell::Text(text)) => {
                    json_text::string(usual(printer, text)?, escapes, out);
                    Ok(())
                }
                (Printer::Json | Printer::JsonText, _) => {
                    printer.quoted(cell, escapes, zone, &mut scratch.text, out)
                }
                (_, Cell::Text(text)) => {
                    printer.check_members(cell)?;
                    json_text::string(text, escapes, out);
                    Ok(())
                }
                _ => Err(MISFIT),
            },
            Self::JsonNumber {
                wraps,
                exponent_digits,
                ..
            } => number(printer, cell, *wraps, *exponent_digits, scratch, out),
            Self::JsonBoolean => boolean(printer, cell, out),
            Self::Base64
            | Self::Base64Text
            | Self::Hex
            | Self::GoQuoted
            | Self::LittleEndianBits { .. } => self.bytes(printer, cell, style, scratch, out),
            Self::IsoInstant
            | Self::IsoText
            | Self::EpochDays
            | Self::EpochMillis
            | Self::EpochMicros
            | Self::EpochNanos
            | Self::EpochGuessed => self.time(printer, cell, is_fine, out),
            Self::IsoDuration => {
                let interval = interval_of(printer, cell)?;
                out.push(b'"');
                out.extend_from_slice(interval.text(&mut String::new()).as_bytes());
                out.push(b'"');
                Ok(())
            }
            Self::ConnectDecimal { scale } => nested::connect_decimal(printer, cell, *scale, out),
            Self::VariableScaleDecimal => nested::variable_decimal(printer, cell, out),
            Self::List { items } => nested::list(items, cell.parts()?, style, scratch, out),
            Self::Map { values } => nested::map(values, cell.parts()?, style, scratch, out),
            Self::Struct { fields } => nested::object(fields, cell.parts()?, style, scratch, out),
            Self::Geometry => nested::geometry(cell.parts()?, out),
            // Forms of Avro alone, or of readers alone.
            Self::MysqlJson
            | Self::CharsetText
            | Self::IntegerText
            | Self::CalendarParts
            | Self::EpochPair
            | Self::Other => Err(MISFIT),
        }
    }

    /// Appends bytes as text between quotes.
    fn bytes(
        &self,
        printer: &Printer,
        cell: Cell,
        style: Style,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match (self, cell) {
            (Self::Base64, Cell::Bytes(data)) | (Self::Base64Text, Cell::Text(data)) => {
                base64(data, out);
            }
            (Self::Hex, Cell::Bytes(data)) => {
                out.push(b'"');
                encode_hex(data, out);
                out.push(b'"');
            }
            (Self::GoQuoted, Cell::Bytes(data)) => {
                scratch.text.clear();
                style.printable.quote(data, &mut scratch.text)?;
                json_text::string(&scratch.text, style.wire.escapes(), out);
            }
            (Self::LittleEndianBits { bits }, _) if matches!(printer, Printer::Int { .. }) => {
                let value = cell.integer().and_then(|value| u64::try_from(value).ok());
                let value = value.filter(|value| *bits > 63 || *value >> *bits == 0);
                let bytes = value.ok_or(MISFIT)?.to_le_bytes();
                let size = bits.div_ceil(8) as usize;
                base64(bytes.get(..size).ok_or(MISFIT)?, out);
            }
            _ => return Err(MISFIT),
        }
        Ok(())
    }

    /// Appends a date or a time: ISO text, or a number of units.
    fn time(
        &self,
        printer: &Printer,
        cell: Cell,
        is_fine: impl Fn() -> Result<bool>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match (self, printer, cell) {
            (Self::IsoInstant, Printer::Timestamp { fsp }, Cell::Instant(micros)) => {
                iso_clock(micros, *fsp, out)
            }
            (Self::IsoText, Printer::Date, Cell::Date(days)) => {
                times::check_day(days)?;
                out.push(b'"');
                temporal::print_date(days.into(), out);
                out.extend_from_slice(b"Z\"");
                Ok(())
            }
            (Self::IsoText, Printer::DateTime { .. }, Cell::Clock(micros)) => {
                iso_clock(micros, None, out)
            }
            (Self::IsoText, Printer::Time { .. }, _) => {
                let micros = micros_of_time(cell)?;
                out.push(b'"');
                let fsp = if micros % 1_000_000 == 0 { 0 } else { 6 };
                times::time(micros, Some(fsp), out)?;
                out.extend_from_slice(b"Z\"");
                Ok(())
            }
            (_, Printer::Interval { .. }, _) => {
                let micros = interval_of(printer, cell)?.only_micros();
                self.unit(micros.ok_or(MISFIT)?, is_fine, out)
            }
            (Self::EpochDays, Printer::Date, Cell::Date(days)) => {
                times::check_day(days)?;
                integer(days.into(), out);
                Ok(())
            }
            (_, Printer::DateTime { .. }, Cell::Clock(micros))
            | (_, Printer::Timestamp { .. }, Cell::Instant(micros)) => {
                temporal::check_instant(micros)?;
                self.unit(micros, is_fine, out)
            }
            (_, Printer::Time { .. }, _) => self.unit(micros_of_time(cell)?, is_fine, out),
            _ => Err(MISFIT),
        }
    }

    /// Appends microseconds in the encoding's unit; digits that it would lose are refused.
    fn unit(
        &self,
        micros: i64,
        is_fine: impl Fn() -> Result<bool>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let in_micros = match self {
            Self::EpochMicros => true,
            Self::EpochMillis => false,
            Self::EpochGuessed => is_fine()?,
            Self::EpochNanos => {
                integer(micros.checked_mul(1_000).ok_or(MISFIT)?, out);
                return Ok(());
            }
            _ => return Err(MISFIT),
        };
        if in_micros {
            integer(micros, out);
        // Digits that milliseconds would lose are refused: the reference counts or rejects them.
        } else if micros % 1_000 == 0 {
            integer(micros / 1_000, out);
        } else {
            return Err(MISFIT);
        }
        Ok(())
    }
}

/// Appends a JSON number.
///
/// `wraps`: integers beyond 63 bits become signed ones; `exponent_digits`: those of a float.
fn number(
    printer: &Printer,
    cell: Cell,
    wraps: bool,
    exponent_digits: usize,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    match printer {
        Printer::Float { bits } => float(*bits, exponent_digits, cell, out)?,
        Printer::Decimal { .. } => {
            let (value, scale) = match cell {
                Cell::Decimal(value, scale) => (value, scale),
                Cell::Int(value) => (value.into(), 0),
                _ => return Err(MISFIT),
            };
            // The producer has no decimals in JSON: its numbers are doubles, so rounding is counted.
            let (number, is_exact) = digits::nearest_double(value, scale)?;
            scratch.rounded += usize::from(!is_exact);
            digits::go_json(number, exponent_digits, out);
        }
        Printer::Int { .. } if wraps => integer(printer.integer(cell)? as i64, out),
        Printer::Bool
        | Printer::Int { .. }
        | Printer::Year
        | Printer::Enum { .. }
        | Printer::Set { .. } => printer.number(cell, out)?,
        _ => return Err(MISFIT),
    }
    Ok(())
}

fn boolean(printer: &Printer, cell: Cell, out: &mut Vec<u8>) -> Result<()> {
    let value = match (printer, cell.integer()) {
        (Printer::Bool | Printer::Int { .. }, Some(value @ (0 | 1))) => value == 1,
        _ => return Err(MISFIT),
    };
    out.extend_from_slice(if value { b"true" } else { b"false" });
    Ok(())
}

fn float(bits: u8, exponent_digits: usize, cell: Cell, out: &mut Vec<u8>) -> Result<()> {
    match cell {
        // Spark may hold a FLOAT as a double; Go prints the digits of the 32 bits.
        Cell::Double(value) if bits == 32 => {
            digits::go_json(digits::shortest(value)?, exponent_digits, out);
        }
        Cell::Double(value) if value.is_finite() => digits::go_json(value, exponent_digits, out),
        Cell::Single(value) if value == 0.0 || value.is_normal() => {
            digits::go_json(value, exponent_digits, out);
        }
        _ => return Err(MISFIT),
    }
    Ok(())
}

/// The microseconds of a TIME.
pub fn micros_of_time(cell: Cell) -> Result<i64> {
    let micros = match cell {
        Cell::Duration(micros) => Some(micros),
        Cell::Text(text) => std::str::from_utf8(text).ok().and_then(temporal::time),
        _ => None,
    };
    let micros = micros.filter(|micros| (-MAX_TIME..=MAX_TIME).contains(micros));
    micros.ok_or(MISFIT)
}

fn interval_of(printer: &Printer, cell: Cell) -> Result<Interval> {
    match (printer, cell) {
        (Printer::Interval { days: true }, Cell::Duration(micros)) => Ok(Interval::of_days(micros)),
        (Printer::Interval { .. }, Cell::Int(micros) | Cell::Duration(micros)) => {
            Ok(Interval::of_micros(micros))
        }
        (Printer::Interval { .. }, Cell::Text(text)) => {
            let text = std::str::from_utf8(text).ok();
            text.and_then(Interval::parse).ok_or(MISFIT)
        }
        _ => Err(MISFIT),
    }
}

/// Appends `"2024-01-01T00:00:00.5Z"`.
fn iso_clock(micros: i64, fsp: Option<u32>, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'"');
    // The place of the blank between date and time.
    let day = out.len() + "0000-00-00".len();
    times::clock(micros, fsp, out)?;
    out[day] = b'T';
    out.extend_from_slice(b"Z\"");
    Ok(())
}
