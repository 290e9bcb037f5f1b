//! Printing of value encodings, the inverse of `crate::values::Reader`.
//!
//! The Python printers are in `cdcfmt_toolkit/value_printers.py`.

use crate::refusal::Result;
use crate::text::bytes::{encode_base64, encode_hex};
use crate::values::MAX_TIME;
use crate::values::temporal;
use crate::variant::{Cell, MISFIT};
use crate::write::clocks::{self, Offsets};
use crate::write::digits::{self, integer};
use crate::write::go_quote::Printable;
use crate::write::json_text;
use crate::write::plan::{Encoding, Printer, Wire};

/// Settings shared by all values of a message.
#[derive(Clone, Copy)]
pub struct Style<'a> {
    pub wire: Wire,
    /// Time zone of TIMESTAMP texts.
    pub zone: &'a Offsets,
    pub printable: &'a Printable,
}

/// Reusable buffers, and counts for the values of a message.
#[derive(Default)]
pub struct Scratch {
    pub text: Vec<u8>,
    pub other: Vec<u8>,
    /// Number of rounded decimals.
    pub rounded: usize,
    /// Number of generated `commit_ts`.
    pub made: usize,
}

impl Encoding {
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
        match (self, printer, cell) {
            (Encoding::MysqlText, ..) | (Encoding::Text, Printer::Json | Printer::JsonText, _) => {
                printer.quoted(cell, escapes, zone, &mut scratch.text, out)?;
            }
            (Encoding::Text, _, Cell::Text(text)) => {
                printer.check_members(cell)?;
                json_text::string(text, escapes, out);
            }
            (
                Encoding::JsonNumber {
                    exponent_digits, ..
                },
                Printer::Float { bits },
                _,
            ) => {
                float(*bits, *exponent_digits, cell, out)?;
            }
            (
                Encoding::JsonNumber {
                    exponent_digits, ..
                },
                Printer::Decimal { .. },
                _,
            ) => {
                let (value, scale) = match cell {
                    Cell::Decimal(value, scale) => (value, scale),
                    Cell::Int(value) => (value.into(), 0),
                    _ => return Err(MISFIT),
                };
                let (number, is_exact) = digits::nearest_double(value, scale)?;
                scratch.rounded += usize::from(!is_exact);
                digits::go_json(number, *exponent_digits, out);
            }
            (Encoding::JsonNumber { wraps: true, .. }, Printer::Int { low, high }, _) => {
                let value = cell.integer().ok_or(MISFIT)?;
                if value < i128::from(*low) || value > i128::from(*high) {
                    return Err(MISFIT);
                }
                integer(value as i64, out);
            }
            (
                Encoding::JsonNumber { .. },
                Printer::Bool
                | Printer::Int { .. }
                | Printer::Year
                | Printer::Enum { .. }
                | Printer::Set { .. },
                _,
            ) => printer.text(cell, zone, out)?,
            (Encoding::JsonBoolean, Printer::Bool | Printer::Int { .. }, _) => {
                let value = match cell.integer() {
                    Some(value @ (0 | 1)) => value == 1,
                    _ => return Err(MISFIT),
                };
                out.extend_from_slice(if value { b"true" } else { b"false" });
            }
            (Encoding::Base64, _, Cell::Bytes(data))
            | (Encoding::Base64Text, _, Cell::Text(data)) => {
                base64(data, out);
            }
            (Encoding::Hex, _, Cell::Bytes(data)) => {
                out.push(b'"');
                encode_hex(data, out);
                out.push(b'"');
            }
            (Encoding::GoQuoted, _, Cell::Bytes(data)) => {
                scratch.text.clear();
                style.printable.quote(data, &mut scratch.text)?;
                json_text::string(&scratch.text, escapes, out);
            }
            (Encoding::IsoInstant, Printer::Timestamp { fsp }, Cell::Instant(micros)) => {
                out.push(b'"');
                let day = out.len() + "0000-00-00".len();
                clocks::clock(micros, *fsp, out)?;
                out[day] = b'T';
                out.extend_from_slice(b"Z\"");
            }
            (Encoding::EpochDays, Printer::Date, Cell::Date(days)) => {
                clocks::check_day(days)?;
                integer(days.into(), out);
            }
            (_, Printer::DateTime { .. }, Cell::Clock(micros))
            | (_, Printer::Timestamp { .. }, Cell::Instant(micros)) => {
                temporal::check_instant(micros)?;
                self.unit(micros, is_fine, out)?;
            }
            (_, Printer::Time { .. }, _) => {
                let micros = match cell {
                    Cell::Duration(micros) => Some(micros),
                    Cell::Text(text) => std::str::from_utf8(text).ok().and_then(temporal::time),
                    _ => None,
                };
                let micros = micros.filter(|micros| (-MAX_TIME..=MAX_TIME).contains(micros));
                self.unit(micros.ok_or(MISFIT)?, is_fine, out)?;
            }
            (Encoding::LittleEndianBits { bits }, Printer::Int { .. }, _) => {
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

    fn unit(
        &self,
        micros: i64,
        is_fine: impl Fn() -> Result<bool>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let in_micros = match self {
            Encoding::EpochMicros => true,
            Encoding::EpochMillis => false,
            Encoding::EpochGuessed => is_fine()?,
            _ => return Err(MISFIT),
        };
        if in_micros {
            integer(micros, out);
        } else if micros % 1_000 == 0 {
            integer(micros / 1_000, out);
        } else {
            return Err(MISFIT);
        }
        Ok(())
    }
}

fn float(bits: u8, exponent_digits: usize, cell: Cell, out: &mut Vec<u8>) -> Result<()> {
    match cell {
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

fn base64(data: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    encode_base64(data, out);
    out.push(b'"');
}
