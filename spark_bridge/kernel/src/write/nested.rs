//! JSON of values with parts: lists, maps, structs and geometries, and of decimals of any scale.

use crate::refusal::Result;
use crate::text::bytes::encode_base64;
use crate::variant::{Cell, MISFIT, Parts};
use crate::write::digits::integer;
use crate::write::json_text;
use crate::write::plan::{PrintPart, Printer};
use crate::write::style::{Scratch, Style};

impl PrintPart {
    fn print(
        &self,
        cell: Cell,
        style: Style,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match (&self.printer, cell) {
            (_, Cell::Null) if self.has_nulls => {
                out.extend_from_slice(b"null");
                return Ok(());
            }
            // Only columns have the producer's form of 0.
            (Printer::Float { .. }, Cell::Double(0.0) | Cell::Single(0.0)) => {
                let is_negative = match cell {
                    Cell::Single(zero) => zero.is_sign_negative(),
                    Cell::Double(zero) => zero.is_sign_negative(),
                    _ => false,
                };
                out.extend_from_slice(if is_negative { b"-0.0" } else { b"0.0" });
                return Ok(());
            }
            // Python has the double nearest to the float, whose digits are others.
            (_, Cell::Null) | (Printer::Float { bits: 64 }, Cell::Single(_)) => return Err(MISFIT),
            _ => {}
        }
        self.printer.check_limits(cell)?;
        let no_unit = || Err(MISFIT);
        self.encoding
            .print(&self.printer, cell, no_unit, style, scratch, out)
    }
}

pub fn list(
    items: &PrintPart,
    parts: Parts,
    style: Style,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    if parts.is_object() {
        return Err(MISFIT);
    }
    json_text::joined(false, parts.count(), out, |number, out| {
        items.print(parts.cell(number)?, style, scratch, out)
    })
}

pub fn map(
    values: &PrintPart,
    parts: Parts,
    style: Style,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    check_names(parts)?;
    json_text::joined(true, parts.count(), out, |number, out| {
        json_text::string(parts.name(number)?, style.wire.escapes(), out);
        out.push(b':');
        values.print(parts.cell(number)?, style, scratch, out)
    })
}

pub fn object(
    fields: &[PrintPart],
    parts: Parts,
    style: Style,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut found = 0;
    json_text::joined(true, fields.len(), out, |place, out| {
        let field = &fields[place];
        json_text::string(field.name.as_bytes(), style.wire.escapes(), out);
        out.push(b':');
        let cell = part(parts, &field.name)?;
        found += usize::from(cell.is_some());
        field.print(cell.unwrap_or(Cell::Null), style, scratch, out)
    })?;
    check_all(found, parts)
}

/// A geometry of Spark: `wkb` and `srid`; its text is not written.
pub fn geometry(parts: Parts, out: &mut Vec<u8>) -> Result<()> {
    let [srid, wkb, wkt] = ["srid", "wkb", "wkt"].map(|name| part(parts, name));
    let [srid, wkb, wkt] = [srid?, wkb?, wkt?];
    check_all([srid, wkb, wkt].iter().flatten().count(), parts)?;
    let Some(Cell::Bytes(data)) = wkb else {
        return Err(MISFIT);
    };
    out.extend_from_slice(b"{\"wkb\":");
    base64(data, out);
    out.extend_from_slice(b",\"srid\":");
    match srid {
        // Debezium writes SRID 0 as null.
        None | Some(Cell::Null | Cell::Int(0)) => out.extend_from_slice(b"null"),
        Some(Cell::Int(srid)) => integer(srid, out),
        _ => return Err(MISFIT),
    }
    out.push(b'}');
    Ok(())
}

/// Refuses parts without names, and other ones than those found, or two of one name.
fn check_all(found: usize, parts: Parts) -> Result<()> {
    let are_all = parts.is_object() && found == parts.count();
    if are_all { Ok(()) } else { Err(MISFIT) }
}

/// The part with a name.
fn part<'a>(parts: Parts<'a>, name: &str) -> Result<Option<Cell<'a>>> {
    for number in 0..parts.count() {
        if parts.name(number)? == name.as_bytes() {
            return parts.cell(number).map(Some);
        }
    }
    Ok(None)
}

/// Refuses parts without names, and names that repeat: Python keeps the last of them.
fn check_names(parts: Parts) -> Result<()> {
    if !parts.is_object() {
        return Err(MISFIT);
    }
    let mut names = Vec::with_capacity(parts.count());
    for number in 0..parts.count() {
        names.push(parts.name(number)?);
    }
    names.sort_unstable();
    let is_twice = names.windows(2).any(|pair| pair[0] == pair[1]);
    if is_twice { Err(MISFIT) } else { Ok(()) }
}

/// Appends the integer of a decimal, highest byte first, as few bytes as possible.
///
/// Digits beyond the scale are refused.
pub fn connect_decimal(printer: &Printer, cell: Cell, scale: u32, out: &mut Vec<u8>) -> Result<()> {
    let (value, places) = digits_of(printer, cell)?;
    let places = u32::from(places);
    let unscaled = match scale.checked_sub(places) {
        Some(more) => 10_i128
            .checked_pow(more)
            .and_then(|unit| value.checked_mul(unit)),
        None => 10_i128
            .checked_pow(places - scale)
            .filter(|unit| value % unit == 0)
            .map(|unit| value / unit),
    };
    big_endian(unscaled.ok_or(MISFIT)?, out);
    Ok(())
}

/// The same with its scale: an object of both.
pub fn variable_decimal(printer: &Printer, cell: Cell, out: &mut Vec<u8>) -> Result<()> {
    let (value, places) = digits_of(printer, cell)?;
    out.extend_from_slice(b"{\"scale\":");
    integer(places.into(), out);
    out.extend_from_slice(b",\"value\":");
    big_endian(value, out);
    out.push(b'}');
    Ok(())
}

fn big_endian(value: i128, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let is_sign = |pair: &[u8]| match pair {
        [0, next] => *next < 0x80,
        [0xff, next] => *next >= 0x80,
        _ => false,
    };
    let spare = bytes.windows(2).take_while(|pair| is_sign(pair)).count();
    base64(&bytes[spare..], out);
}

/// Unscaled value and scale of a number, or of the text of one without known digits.
fn digits_of(printer: &Printer, cell: Cell) -> Result<(i128, u8)> {
    match (printer, cell) {
        (Printer::Decimal { .. }, Cell::Decimal(value, scale)) => Ok((value, scale)),
        (Printer::Decimal { .. } | Printer::Int { .. }, Cell::Int(value)) => Ok((value.into(), 0)),
        (Printer::Int { .. }, _) => Ok((printer.integer(cell)?, 0)),
        (Printer::Decimal { digits: None }, Cell::Text(text)) => {
            let text = std::str::from_utf8(text).map_err(|_| MISFIT)?;
            let size = text.strip_prefix('-').unwrap_or(text);
            let (whole, fraction) = size.split_once('.').unwrap_or((size, "0"));
            let are_digits =
                |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            // 128 bits hold any 38 digits.
            if size.len() > 38 || !are_digits(whole) || !are_digits(fraction) {
                return Err(MISFIT);
            }
            let places = match size.contains('.') {
                true => u8::try_from(fraction.len()).map_err(|_| MISFIT)?,
                false => 0,
            };
            let digits = text.replace('.', "").parse().map_err(|_| MISFIT)?;
            Ok((digits, places))
        }
        _ => Err(MISFIT),
    }
}

pub fn base64(data: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    encode_base64(data, out);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_decimals() {
        let open = Printer::Decimal { digits: None };
        for (cell, scale, text) in [
            (Cell::Decimal(127, 0), 0, Some("\"fw==\"")),
            (Cell::Decimal(128, 0), 0, Some("\"AIA=\"")),
            (Cell::Decimal(-128, 0), 0, Some("\"gA==\"")),
            (Cell::Decimal(-129, 0), 0, Some("\"/38=\"")),
            (Cell::Decimal(0, 5), 2, Some("\"AA==\"")),
            (Cell::Decimal(15, 1), 2, Some("\"AJY=\"")),
            (Cell::Text(b"-1.50"), 1, Some("\"8Q==\"")),
            (Cell::Decimal(15, 2), 1, None),
            (Cell::Decimal(i128::MAX, 0), 1, None),
            (Cell::Text(b"1e3"), 1, None),
            (Cell::Text(b"1."), 1, None),
        ] {
            let mut out = Vec::new();
            let found = connect_decimal(&open, cell, scale, &mut out);
            let found = found.ok().map(|()| String::from_utf8(out).unwrap());
            assert_eq!(found.as_deref(), text, "{cell:?}");
        }
        let mut out = Vec::new();
        variable_decimal(&open, Cell::Text(b"-0.050"), &mut out).unwrap();
        assert_eq!(out, b"{\"scale\":3,\"value\":\"zg==\"}");
    }
}
