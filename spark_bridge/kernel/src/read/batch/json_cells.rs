//! Cells of JSON images, with the same text as `pyspark_cdcfmt/rows/json_values.py`.

use std::io::Write;

use crate::json::{Cursor, Kind, Token, find_special, plain};
use crate::plan::Form;
use crate::read::batch::json_numbers;
use crate::read::batch::json_times::{Day, reprint_datetime};
use crate::refusal::{Refusal, Result};
use crate::text::append;
use crate::text::bytes::{decode_base64, encode_base64, latin1};
use crate::values::scalars;
use crate::values::temporal;
use crate::values::{Cells, NameOrder, members_of};
use crate::variant::Variants;
use crate::variant::encode::MAX_UNSCALED;

const RANGE: Refusal = Refusal::new("decimal has more than 38 digits", 0);

/// Writes cells into an image.
pub struct JsonCells<'a> {
    pub out: &'a mut Vec<u8>,
    pub form: Form,
    /// Whether the document is JSON, whose texts need no further escapes.
    pub is_json: bool,
    pub scratch: &'a mut Scratch,
}

#[derive(Default)]
pub struct Scratch {
    bytes: Vec<u8>,
    day: Day,
}

impl JsonCells<'_> {
    fn quoted(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(b'"');
        write(self.out);
        self.out.push(b'"');
    }
}

impl JsonCells<'_> {
    /// A value with all inner ones, the members of objects sorted by name.
    fn push_value(&mut self, token: Token, text: &str) -> Result<()> {
        match token.kind {
            Kind::Array => {
                self.out.push(b'[');
                let mut cursor = Cursor::at(text, token.start + 1)?;
                if !cursor.take(b']') {
                    loop {
                        self.push_value(cursor.value()?, text)?;
                        if !cursor.more(b']')? {
                            break;
                        }
                        self.out.push(b',');
                    }
                }
                self.out.push(b']');
                Ok(())
            }
            Kind::Object => {
                let mut members = members_of(token, text)?;
                members.sort_unstable_by(|one, other| one.0.cmp(&other.0));
                let mut before = b'{';
                for (name, value) in &members {
                    self.out.push(before);
                    self.push_text(name)?;
                    self.out.push(b':');
                    self.push_value(*value, text)?;
                    before = b',';
                }
                if members.is_empty() {
                    self.out.push(b'{');
                }
                self.out.push(b'}');
                Ok(())
            }
            // Numbers keep the form that the reference prints, which is not always the text of the
            // document.
            _ => {
                let (mut scratch, mut variants) = (Vec::new(), Variants::default());
                scalars::any(token, text, &mut self.plain(), &mut scratch, &mut variants)
            }
        }
    }

    /// For values within a column's value.
    fn plain(&mut self) -> JsonCells<'_> {
        JsonCells {
            out: self.out,
            form: Form::Plain,
            is_json: true,
            scratch: self.scratch,
        }
    }
}

impl Cells for JsonCells<'_> {
    fn is_text(&self) -> bool {
        false
    }

    fn is_image(&self) -> bool {
        true
    }

    fn push_null(&mut self) -> Result<()> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn push_integer(&mut self, value: i128) -> Result<()> {
        if self.form == Form::Boolean {
            return self.push_boolean(value != 0);
        }
        self.form.check(value)?;
        json_numbers::print(value, 0, self.out);
        Ok(())
    }

    fn push_decimal(&mut self, value: i128, scale: u8) -> Result<()> {
        if value.abs() >= MAX_UNSCALED || scale > 38 {
            return Err(RANGE);
        }
        json_numbers::print(value, scale, self.out);
        Ok(())
    }

    fn push_float(&mut self, value: f64) -> Result<()> {
        if !value.is_finite() {
            return Err(Refusal::new("number is not finite", 0));
        }
        // As in orjson: the shortest digits that read back.
        let mut digits = zmij::Buffer::new();
        let digits = digits.format_finite(value);
        self.out.extend_from_slice(digits.as_bytes());
        Ok(())
    }

    fn push_number_text(&mut self, value: i128, scale: Option<u8>, text: &str) -> Result<()> {
        // -0 and 0.00 are printed as 0.
        let printed = json_numbers::printed(text).filter(|_| value != 0);
        match (printed, scale) {
            (Some(printed), Some(_)) => self.out.extend_from_slice(printed),
            (Some(printed), None) if self.form != Form::Boolean => {
                self.form.check(value)?;
                self.out.extend_from_slice(printed);
            }
            (_, None) => return self.push_integer(value),
            (_, Some(scale)) => return self.push_decimal(value, scale),
        }
        Ok(())
    }

    fn push_float_text(
        &mut self,
        text: &str,
        read: impl FnOnce(&str) -> Result<f64>,
    ) -> Result<()> {
        // Parsing and printing a double costs more than to see that the text is already its
        // shortest.
        if !json_numbers::is_shortest(text) {
            return self.push_float(read(text)?);
        }
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn push_boolean(&mut self, value: bool) -> Result<()> {
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn push_text(&mut self, text: &str) -> Result<()> {
        self.quoted(|out| escape(text, out));
        Ok(())
    }

    fn push_string(&mut self, token: Token, document: &str, scratch: &mut Vec<u8>) -> Result<()> {
        let text = token.text(document).as_bytes();
        let stands = match token.kind {
            // Texts of Avro have no escapes, and may need some in JSON.
            Kind::Text => self.is_json || find_special(text).is_none(),
            _ => has_short_escapes(text),
        };
        if !stands {
            return self.push_text(plain(token, document, scratch));
        }
        let (start, end) = token.whole_span();
        append(document.as_bytes(), start, end, self.out);
        Ok(())
    }

    fn push_bytes(&mut self, data: &[u8]) -> Result<()> {
        self.quoted(|out| encode_base64(data, out));
        Ok(())
    }

    fn push_latin1(&mut self, text: &str, padded: usize) -> Result<()> {
        let bytes = &mut self.scratch.bytes;
        bytes.clear();
        latin1(text, padded, bytes)?;
        self.out.push(b'"');
        encode_base64(bytes, self.out);
        self.out.push(b'"');
        Ok(())
    }

    fn push_base64(&mut self, text: &str) -> Result<()> {
        self.scratch.bytes.clear();
        decode_base64(text, &mut self.scratch.bytes)?;
        // Equal bytes have equal text.
        self.quoted(|out| out.extend_from_slice(text.as_bytes()));
        Ok(())
    }

    fn push_date(&mut self, days: i32) -> Result<()> {
        self.quoted(|out| temporal::print_date(i64::from(days), out));
        Ok(())
    }

    fn push_datetime(&mut self, micros: i64) -> Result<()> {
        temporal::check_instant(micros)?;
        self.out.push(b'"');
        self.scratch.day.print_datetime(micros, self.out);
        self.out.push(b'"');
        Ok(())
    }

    fn push_instant(&mut self, micros: i64) -> Result<()> {
        temporal::check_instant(micros)?;
        self.out.push(b'"');
        self.scratch.day.print_datetime(micros, self.out);
        self.out.extend_from_slice(b"+00:00\"");
        Ok(())
    }

    fn push_datetime_text(&mut self, _: i64, text: &str) -> Result<()> {
        self.quoted(|out| reprint_datetime(text, out));
        Ok(())
    }

    fn push_instant_text(&mut self, _: i64, text: &str) -> Result<()> {
        self.quoted(|out| {
            reprint_datetime(text, out);
            out.extend_from_slice(b"+00:00");
        });
        Ok(())
    }

    fn push_time(&mut self, micros: i64, _: Option<u32>, scratch: &mut String) -> Result<()> {
        scratch.clear();
        temporal::print_time(micros, Some(6), scratch);
        self.quoted(|out| out.extend_from_slice(scratch.as_bytes()));
        Ok(())
    }

    fn begin_list(&mut self) -> Result<()> {
        self.out.push(b'[');
        Ok(())
    }

    fn item(&mut self, form: Form) -> Result<&mut Self> {
        // No item ends with an opening bracket.
        if self.out.last() != Some(&b'[') {
            self.out.push(b',');
        }
        self.form = form;
        Ok(self)
    }

    fn end_list(&mut self) -> Result<()> {
        self.out.push(b']');
        Ok(())
    }

    fn order_of_names(&self) -> NameOrder {
        NameOrder::Bytes
    }

    fn begin_object(&mut self, _: &[&str]) -> Result<()> {
        self.out.push(b'{');
        Ok(())
    }

    fn member(&mut self, place: usize, name: &str, form: Form) -> Result<&mut Self> {
        if place > 0 {
            self.out.push(b',');
        }
        self.push_text(name)?;
        self.out.push(b':');
        self.form = form;
        Ok(self)
    }

    fn end_object(&mut self) -> Result<()> {
        self.out.push(b'}');
        Ok(())
    }

    fn push_nested(&mut self, text: &str, _: &mut Variants) -> Result<()> {
        let token = Cursor::new(text)?.value()?;
        self.push_value(token, text)
    }

    fn push_json(&mut self, text: &str, _: &mut Variants) -> Result<()> {
        // Copied as it is, so it must be valid; numbers beyond 38 digits are the reference's.
        Cursor::exact(text)?.check()?;
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Whether all escapes have the form that orjson writes.
fn has_short_escapes(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let letter = rest.get(at + 1);
        if !letter.is_some_and(|letter| b"\"\\bfnrt".contains(letter)) {
            return false;
        }
        rest = &rest[at + 2..];
    }
    true
}

/// Appends text between quotes, with orjson's escapes.
fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some(at) = find_special(rest) {
        out.extend_from_slice(&rest[..at]);
        let short = match rest[at] {
            b'"' => b'"',
            b'\\' => b'\\',
            0x8 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0xc => b'f',
            b'\r' => b'r',
            other => {
                let _ = write!(out, "\\u{other:04x}");
                0
            }
        };
        if short != 0 {
            out.extend_from_slice(&[b'\\', short]);
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let mut out = Vec::new();
        escape("a\"b\\c\n\u{1}\u{7f}é", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a\\\"b\\\\c\\n\\u0001\u{7f}é"
        );
    }
}
