//! JSON strings and documents as written by the reference.

use crate::json::Cursor;
use crate::refusal::{Refusal, Result};
use crate::variant::Cell;
use crate::variant::Variant;
use crate::write::digits::{self, Float};

/// As deep as the kernel reads; printing recurses, too.
const DEEPEST: usize = 100;
const NOT_JSON: Refusal = Refusal::new("unsupported JSON value", 0);

/// Characters that a JSON writer escapes besides quotes, backslashes and control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escapes {
    Few,
    /// Like Go's `encoding/json`: `<`, `>`, `&`, U+2028 and U+2029; without short `\b` and `\f`.
    Go,
    /// Like `jsoniter`: without short `\b` and `\f`.
    NoHtml,
}

const PLAIN: u8 = 0;
const ALWAYS: u8 = 1;
const OF_GO: u8 = 2;

/// By byte: characters that may need an escape.
const CLASSES: [u8; 256] = {
    let mut classes = [PLAIN; 256];
    let mut byte = 0;
    while byte < 0x20 {
        classes[byte] = ALWAYS;
        byte += 1;
    }
    classes[b'"' as usize] = ALWAYS;
    classes[b'\\' as usize] = ALWAYS;
    classes[b'<' as usize] = OF_GO;
    classes[b'>' as usize] = OF_GO;
    classes[b'&' as usize] = OF_GO;
    // The first byte of U+2028 and U+2029 in UTF-8.
    classes[0xe2] = OF_GO;
    classes
};

/// Appends a string with its quotes.
pub fn string(text: &[u8], escapes: Escapes, out: &mut Vec<u8>) {
    out.push(b'"');
    let most = match escapes {
        Escapes::Few | Escapes::NoHtml => ALWAYS,
        Escapes::Go => OF_GO,
    };
    let mut from = 0;
    for (at, byte) in text.iter().enumerate() {
        let class = CLASSES[usize::from(*byte)];
        // Copied in spans between escapes, which are rare.
        if class == PLAIN || class > most {
            continue;
        }
        if *byte == 0xe2 {
            // U+2028 and U+2029.
            let Some([0x80, last @ (0xa8 | 0xa9)]) = text.get(at + 1..at + 3) else {
                continue;
            };
            out.extend_from_slice(&text[from..at]);
            out.extend_from_slice(b"\\u202");
            out.push(last - 0xa8 + b'8');
            from = at + 3;
            continue;
        }
        out.extend_from_slice(&text[from..at]);
        escaped(*byte, escapes, out);
        from = at + 1;
    }
    out.extend_from_slice(&text[from..]);
    out.push(b'"');
}

fn escaped(byte: u8, escapes: Escapes, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        8 if escapes == Escapes::Few => b'b',
        12 if escapes == Escapes::Few => b'f',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(DIGITS[usize::from(byte >> 4)]);
            out.push(DIGITS[usize::from(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends a string with one Latin-1 character per byte.
pub fn latin1_string(data: &[u8], escapes: Escapes, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    for byte in data {
        if *byte < 0x80 {
            scratch.push(*byte);
        } else {
            scratch.extend_from_slice(&[0xc0 | byte >> 6, 0x80 | byte & 0x3f]);
        }
    }
    string(scratch, escapes, out);
}

/// Appends the text of a JSON column.
///
/// A string is refused, as it may be the text of another document.
pub fn document(cell: Cell, out: &mut Vec<u8>) -> Result<()> {
    match cell {
        Cell::Text(_) => Err(NOT_JSON),
        other => value(other, 0, Escapes::Few, out),
    }
}

/// The text of a JSON column, if it is exactly one document.
pub fn checked(text: &[u8]) -> Result<&[u8]> {
    let document = simdutf8::basic::from_utf8(text).map_err(|_| NOT_JSON)?;
    Cursor::new(document)?.document()?;
    Ok(text)
}

/// Appends a value.
pub fn value(cell: Cell, depth: usize, escapes: Escapes, out: &mut Vec<u8>) -> Result<()> {
    match cell {
        Cell::Null => out.extend_from_slice(b"null"),
        Cell::Bool(true) => out.extend_from_slice(b"true"),
        Cell::Bool(false) => out.extend_from_slice(b"false"),
        Cell::Int(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
        Cell::Decimal(number, scale) => digits::decimal(number, scale, out),
        // Outside of this range writers differ in their exponents.
        Cell::Double(number) if number.is_common() || number == 0.0 => {
            out.extend_from_slice(zmij::Buffer::new().format_finite(number).as_bytes());
        }
        Cell::Text(text) => string(text, escapes, out),
        Cell::Nested(variant) if depth < DEEPEST => nested(variant, depth, escapes, out)?,
        _ => return Err(NOT_JSON),
    }
    Ok(())
}

fn nested(variant: Variant, depth: usize, escapes: Escapes, out: &mut Vec<u8>) -> Result<()> {
    let items = variant.items()?;
    let is_object = items.is_object();
    joined(is_object, items.count, out, |number, out| {
        if is_object {
            string(items.name(number)?, escapes, out);
            out.push(b':');
        }
        value(items.value(number)?.cell()?, depth + 1, escapes, out)
    })
}

/// Appends an object or an array of so many parts, which `append` writes by their numbers.
pub fn joined(
    is_object: bool,
    count: usize,
    out: &mut Vec<u8>,
    mut append: impl FnMut(usize, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let (first, last) = if is_object {
        (b'{', b'}')
    } else {
        (b'[', b']')
    };
    out.push(first);
    for number in 0..count {
        if number > 0 {
            out.push(b',');
        }
        append(number, out)?;
    }
    out.push(last);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str, escapes: Escapes) -> String {
        let mut out = Vec::new();
        string(text.as_bytes(), escapes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes() {
        let text = "a\"\\\u{8}\u{c}\n\u{1}\u{7f}<&>\u{2028}\u{2030}é";
        assert_eq!(
            escaped(text, Escapes::Few),
            "\"a\\\"\\\\\\b\\f\\n\\u0001\u{7f}<&>\u{2028}\u{2030}é\""
        );
        assert_eq!(
            escaped(text, Escapes::Go),
            "\"a\\\"\\\\\\u0008\\u000c\\n\\u0001\u{7f}\\u003c\\u0026\\u003e\\u2028\u{2030}é\""
        );
    }
}
