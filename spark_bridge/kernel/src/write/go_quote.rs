//! Bytes as in Go's `strconv.Quote`; in Python: `cdcfmt_toolkit/go_quote.py`.

use std::io::Write;

use crate::refusal::{Reason, Refusal, Result};
use crate::text::bytes::encode_hex;

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
