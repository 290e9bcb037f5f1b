//! Cells of JSON images; the texts are those of `pyspark_cdcfmt/rows/json_values.py`.

use std::io::Write;

use crate::cells::{Cells, Form};
use crate::json::{Cursor, find_special};
use crate::refusal::{Refusal, Step};
use crate::temporal;
use crate::text_bytes::{decode_base64, encode_base64, latin1};
use crate::variant::Variants;
use crate::variant_bytes::MAX_UNSCALED;

const RANGE: Refusal = Refusal::new("a decimal of more than 38 digits", 0);

/// Writes cells into an image.
pub struct JsonCells<'a> {
    pub out: &'a mut Vec<u8>,
    pub form: Form,
    pub scratch: &'a mut Vec<u8>,
}

impl JsonCells<'_> {
    fn quoted(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(b'"');
        write(self.out);
        self.out.push(b'"');
    }
}

impl Cells for JsonCells<'_> {
    fn is_text(&self) -> bool {
        false
    }

    fn push_null(&mut self) -> Step<()> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn push_integer(&mut self, value: i128) -> Step<()> {
        if self.form == Form::Boolean {
            return self.push_boolean(value != 0);
        }
        self.form.check(value)?;
        print_integer(value, self.out);
        Ok(())
    }

    fn push_decimal(&mut self, value: i128, scale: u8) -> Step<()> {
        if value.abs() >= MAX_UNSCALED || scale > 38 {
            return Err(RANGE);
        }
        self.scratch.clear();
        print_integer(value.abs(), self.scratch);
        print_decimal(value < 0, self.scratch, usize::from(scale), self.out);
        Ok(())
    }

    fn push_float(&mut self, value: f64) -> Step<()> {
        if !value.is_finite() {
            return Err(Refusal::new("a number that is not finite", 0));
        }
        // As orjson: the shortest digits that read back.
        serde_json::to_writer(&mut *self.out, &value)
            .map_err(|_| Refusal::new("a number that cannot be printed", 0))
    }

    fn push_boolean(&mut self, value: bool) -> Step<()> {
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn push_text(&mut self, text: &str) -> Step<()> {
        self.quoted(|out| escape(text, out));
        Ok(())
    }

    fn push_bytes(&mut self, data: &[u8]) -> Step<()> {
        self.quoted(|out| encode_base64(data, out));
        Ok(())
    }

    fn push_latin1(&mut self, text: &str, padded: usize) -> Step<()> {
        self.scratch.clear();
        latin1(text, padded, self.scratch)?;
        self.out.push(b'"');
        encode_base64(self.scratch, self.out);
        self.out.push(b'"');
        Ok(())
    }

    fn push_base64(&mut self, text: &str) -> Step<()> {
        self.scratch.clear();
        decode_base64(text, self.scratch)?;
        // There is one such text of these bytes.
        self.quoted(|out| out.extend_from_slice(text.as_bytes()));
        Ok(())
    }

    fn push_date(&mut self, days: i32) -> Step<()> {
        self.quoted(|out| temporal::print_date(i64::from(days), out));
        Ok(())
    }

    fn push_datetime(&mut self, micros: i64) -> Step<()> {
        temporal::check_instant(micros)?;
        self.quoted(|out| temporal::print_datetime(micros, out));
        Ok(())
    }

    fn push_instant(&mut self, micros: i64) -> Step<()> {
        temporal::check_instant(micros)?;
        self.quoted(|out| {
            temporal::print_datetime(micros, out);
            out.extend_from_slice(b"+00:00");
        });
        Ok(())
    }

    fn push_time(&mut self, micros: i64, _: Option<u32>, scratch: &mut String) -> Step<()> {
        scratch.clear();
        temporal::print_time(micros, Some(6), scratch);
        self.quoted(|out| out.extend_from_slice(scratch.as_bytes()));
        Ok(())
    }

    fn push_json(&mut self, text: &str, _: &mut Variants) -> Step<()> {
        Cursor::exact(text)?.document()?;
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

fn print_integer(value: i128, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let text = match i64::try_from(value) {
        Ok(value) => digits.format(value),
        Err(_) => digits.format(value),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Plain digits, without zeros at the end of a fraction.
fn print_decimal(negative: bool, digits: &[u8], scale: usize, out: &mut Vec<u8>) {
    if digits == b"0" {
        out.push(b'0');
        return;
    }
    if negative {
        out.push(b'-');
    }
    let point = digits.len().saturating_sub(scale);
    let (whole, fraction) = digits.split_at(point);
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    let zeros = scale - fraction.len();
    let end = fraction.iter().rposition(|digit| *digit != b'0');
    if let Some(end) = end {
        out.push(b'.');
        out.resize(out.len() + zeros, b'0');
        out.extend_from_slice(&fraction[..=end]);
    }
}

/// Text between quotes, as orjson escapes it.
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

    fn printed(value: i128, scale: u8) -> String {
        let (mut out, mut scratch) = (Vec::new(), Vec::new());
        let mut cells = JsonCells {
            out: &mut out,
            form: Form::Plain,
            scratch: &mut scratch,
        };
        cells.push_decimal(value, scale).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals() {
        assert_eq!(printed(-1_2340, 3), "-12.34");
        assert_eq!(printed(5, 3), "0.005");
        assert_eq!(printed(-500, 3), "-0.5");
        assert_eq!(printed(1_000, 3), "1");
        assert_eq!(printed(0, 9), "0");
        assert_eq!(printed(1_000, 0), "1000");
    }

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
