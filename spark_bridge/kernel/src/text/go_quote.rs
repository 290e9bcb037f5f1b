//! Bytes as in Go's `strconv.Quote`, without the enclosing quotes: read and written.
//!
//! In Python: `cdcfmt_toolkit/go_quote.py`.  What is not in Go's quotes is left to the reference.

use std::io::Write;

use crate::refusal::{Reason, Refusal, Result};
use crate::text::bytes::{encode_hex, hex};

/// Decodes the output of Go's `strconv.Quote`, without the enclosing quotes.
pub fn unquote_go(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let mut rest = text.as_bytes();
    while let Some(special) = rest
        .iter()
        // Quote escapes all of these: a bare one shows that the text was never quoted.
        .position(|byte| matches!(byte, b'\\' | b'"' | ..=0x1f | 0x7f))
    {
        out.extend_from_slice(&rest[..special]);
        let broken = Refusal::new("text is not in Go's quotes", 0);
        rest = escape(&rest[special..], out).ok_or(broken)?;
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Decodes the escape at a backslash; returns the rest.
fn escape<'a>(data: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let [b'\\', letter, rest @ ..] = data else {
        return None;
    };
    let byte = match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' | b'"' => *letter,
        b'x' => {
            out.push(u8::try_from(hex(rest.get(..2)?)?).ok()?);
            return rest.get(2..);
        }
        b'u' | b'U' => {
            let digits = if *letter == b'u' { 4 } else { 8 };
            // Quote writes bytes that are no character as `\x`, never as a surrogate.
            let rune = char::from_u32(hex(rest.get(..digits)?)?)?;
            out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
            return rest.get(digits..);
        }
        _ => return None,
    };
    out.push(byte);
    Some(rest)
}

/// Go and Python may know different versions of Unicode, so the bridge brings its own characters, once
/// they are needed: they are thousands of spans.
const NO_CHARACTERS: Refusal = Refusal::of(
    Reason::PrintableUnset,
    "printable characters are not set",
    0,
);

/// Printable characters according to Python: spans of code points, ascending.
///
/// If empty, characters beyond ASCII are refused.
#[derive(Default)]
pub struct Printable(pub Vec<(u32, u32)>);

impl Printable {
    fn has(&self, code: u32) -> Result<bool> {
        if self.0.is_empty() {
            return Err(NO_CHARACTERS);
        }
        let behind = self.0.partition_point(|(start, _)| *start <= code);
        Ok(behind > 0 && code < self.0[behind - 1].1)
    }

    /// Appends bytes as quoted by Quote, without the enclosing quotes.
    pub fn quote(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        for chunk in data.utf8_chunks() {
            for character in chunk.valid().chars() {
                let code = character as u32;
                match character {
                    '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
                    ' '..='~' => out.push(character as u8),
                    // The bytes 7 to 13 have letters, in this order.
                    '\x07'..='\x0d' => {
                        out.extend_from_slice(&[b'\\', b"abtnvfr"[character as usize - 7]]);
                    }
                    '\0'..='\x7f' => hexadecimal(character as u8, out),
                    _ if self.has(code)? => {
                        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    '\u{80}'..='\u{ffff}' => drop(write!(out, "\\u{code:04x}")),
                    _ => drop(write!(out, "\\U{code:08x}")),
                }
            }
            // Byte by byte, as Go does for invalid UTF-8.
            for byte in chunk.invalid() {
                hexadecimal(*byte, out);
            }
        }
        Ok(())
    }
}

fn hexadecimal(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    encode_hex(&[byte], out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        unquote_go(text, &mut out).ok().map(|()| out)
    }

    #[test]
    fn go_quoted_bytes() {
        let some = read("a\\x00\\n\\u00e9\\U0001f600\\\\é");
        assert_eq!(some.as_deref(), Some("a\0\né\u{1f600}\\é".as_bytes()));
        for text in [
            "\"",
            "\\",
            "\\x0",
            "\\ud800",
            "\\U00110000",
            "\n",
            "\\'",
            "\\101",
            "\u{7f}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn quotes() {
        let printable = Printable(vec![(0xa1, 0xad), (0xae, 0x378), (0x1f600, 0x1f601)]);
        for (data, quoted) in [
            ("plain é", "plain é"),
            ("a\"\\\n\x07", "a\\\"\\\\\\n\\a"),
            ("\0\x7f\u{80}\u{ad}", "\\x00\\x7f\\u0080\\u00ad"),
            ("\u{378}\u{1f600}\u{1f601}", "\\u0378\u{1f600}\\U0001f601"),
        ] {
            let mut out = Vec::new();
            printable.quote(data.as_bytes(), &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), quoted);
        }
        let mut out = Vec::new();
        let unknown = Printable::default();
        unknown.quote(b"a\xff\xed\xa0\x80", &mut out).unwrap();
        assert_eq!(out, b"a\\xff\\xed\\xa0\\x80");
        assert_eq!(unknown.quote("é".as_bytes(), &mut out), Err(NO_CHARACTERS));
    }
}
