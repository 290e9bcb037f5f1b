//! Bytes written as text; the Python readers are in `cdcfmt_toolkit/scalar_readers.py`.
//!
//! Other text leaves the message to the reference.

use base64_simd::{AsOut, STANDARD};
use serde::Deserialize;

use crate::refusal::{Refusal, Result};

const TOO_MANY: Refusal = Refusal::new("more bytes than the column holds", 0);
const MAY_BE_HEX: Refusal = Refusal::new("bytes may be hexadecimal text", 0);

/// What a binary column's type and its producer's form of bytes allow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Bound {
    longest: Option<usize>,
    /// Bytes are followed by zeros up to this number of bytes.
    padded: usize,
    /// Text of hexadecimal digits may be hexadecimal.
    doubts_hex: bool,
}

impl Bound {
    /// Refuses text with one byte per character.
    pub fn check_text(&self, text: &str) -> Result<()> {
        // Characters are counted only if the bytes are too many: a character has at least one.
        let is_longer = |longest| text.len() > longest && text.chars().count() > longest;
        if self.longest.is_some_and(is_longer) {
            return Err(TOO_MANY);
        }
        self.check_form(text.as_bytes())
    }

    /// Refuses bytes read from such text.
    pub fn check_latin1(&self, data: &[u8]) -> Result<()> {
        self.check_length(data.len())?;
        self.check_form(data)
    }

    /// Refuses more bytes than the column holds.
    pub fn check_length(&self, length: usize) -> Result<()> {
        if self.longest.is_some_and(|longest| length > longest) {
            return Err(TOO_MANY);
        }
        Ok(())
    }

    fn check_form(&self, text: &[u8]) -> Result<()> {
        // Some producers of canal-json write binary values in hexadecimal, without a mark.  The
        // reference decides by all bytes of the message; a single value proves nothing.
        let digits = text.strip_prefix(b"0x").unwrap_or(text);
        if self.doubts_hex && !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(MAY_BE_HEX);
        }
        Ok(())
    }

    pub fn pad(&self, data: &mut Vec<u8>) {
        data.resize(data.len().max(self.padded), 0);
    }
}

pub const NO_BYTE: Refusal = Refusal::new("character beyond U+00FF in text of bytes", 0);

/// Refuses text with a character above U+00FF.
pub fn check_latin1(text: &[u8]) -> Result<()> {
    let most = text.iter().fold(0, |most, byte| most.max(*byte));
    // The maximum is computed without a branch per byte.
    // Characters up to U+00FF have at most two bytes in UTF-8.
    if most > 0xc3 { Err(NO_BYTE) } else { Ok(()) }
}

/// Writes characters up to U+00FF as one byte each, from a position; returns the end.
#[inline]
pub fn narrow<'a>(text: impl Iterator<Item = &'a u8>, out: &mut [u8], at: usize) -> usize {
    let (mut end, mut before) = (at, 0);
    for byte in text {
        // Branchless, as the next byte is unpredictable.
        let of_two = before << 6 | byte & 0x3f;
        out[end] = if *byte < 0x80 { *byte } else { of_two };
        end += usize::from(*byte < 0xc0);
        before = *byte;
    }
    end
}

/// Appends the bytes of text with one byte per character, padded with zeros.
pub fn latin1(text: &str, padded: usize, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    if text.is_ascii() {
        out.extend_from_slice(text.as_bytes());
    } else {
        check_latin1(text.as_bytes())?;
        out.resize(start + text.len(), 0);
        let end = narrow(text.as_bytes().iter(), out, start);
        out.truncate(end);
    }
    // BINARY(n): Canal drops trailing zeros, which MySQL stores.
    out.resize(out.len().max(start + padded), 0);
    Ok(())
}

/// Appends the bytes of padded base64.
pub fn decode_base64(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let broken = |_| Refusal::new("invalid base64", 0);
    // The room follows from the text's length, which exists: no length is claimed here.
    let (text, start) = (text.as_bytes(), out.len());
    out.resize(start + STANDARD.decoded_length(text).map_err(broken)?, 0);
    let decoded = STANDARD.decode(text, out[start..].as_out());
    decoded.map(|_| ()).map_err(broken)
}

/// Appends padded base64.
pub fn encode_base64(data: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + STANDARD.encoded_length(data.len()), 0);
    _ = STANDARD.encode(data, out[start..].as_out());
}

/// Appends bytes in hexadecimal.
pub fn encode_hex(data: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in data {
        let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        out.extend_from_slice(&[high, low]);
    }
}

/// Hexadecimal, optionally after `0x`.
pub fn decode_hex(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let found = match text.strip_prefix(r"\x") {
        // As PostgreSQL prints a bytea.
        // `\x0x…` would otherwise lose two prefixes, and the reference accepts one.
        Some(digits) if !digits.starts_with("0x") => hex_bytes(digits, out),
        _ => hex_bytes(text, out),
    };
    found.ok_or(Refusal::new("invalid hexadecimal", 0))
}

fn hex_bytes(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if digits.len() % 2 != 0 {
        return None;
    }
    for pair in digits.chunks_exact(2) {
        out.push(u8::try_from(hex(pair)?).ok()?);
    }
    Some(())
}

/// The value of hexadecimal digits.
pub fn hex(digits: &[u8]) -> Option<u32> {
    let mut value = 0;
    for digit in digits {
        value = value << 4 | char::from(*digit).to_digit(16)?;
    }
    Some(value)
}

/// Latin-1, base64 or hexadecimal, if only one of them is possible: with `exact` bytes, or at most
/// `longest`.
pub fn detect(
    text: &str,
    exact: Option<usize>,
    longest: Option<usize>,
    out: &mut Vec<u8>,
) -> Result<()> {
    const OPEN: Refusal = Refusal::new("form of bytes is ambiguous", 0);
    let mut found: Vec<Vec<u8>> = Vec::new();
    let fits = |data: &[u8]| data.len() <= longest.unwrap_or(usize::MAX);
    // Text with other characters is neither base64 nor hexadecimal.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    if !text.bytes().all(is_plain) {
        let start = out.len();
        latin1(text, 0, out)?;
        return if fits(&out[start..]) {
            Ok(())
        } else {
            Err(OPEN)
        };
    }
    for (is_hex, read) in [
        // In the order of Python's `BYTE_READERS`; all are tried, since a value that two of them
        // read differently is ambiguous.
        (false, as_it_is as Read),
        (false, decode_base64),
        (true, decode_hex),
    ] {
        let mut data = Vec::new();
        // No producer mixes the cases of hexadecimal digits; base64 has both.
        let is_read = !(is_hex && has_both_cases(text)) && read(text, &mut data).is_ok();
        if is_read && fits(&data) {
            found.push(data);
        }
    }
    let mut full = found.iter().filter(|data| Some(data.len()) == exact);
    let chosen = match (full.next(), full.next()) {
        // The column's length decides if only one form has it.
        (Some(one), None) => Some(one),
        _ => found
            .first()
            .filter(|first| found.iter().all(|data| data == *first)),
    };
    out.extend_from_slice(chosen.ok_or(OPEN)?);
    Ok(())
}

type Read = fn(&str, &mut Vec<u8>) -> Result<()>;

fn as_it_is(text: &str, out: &mut Vec<u8>) -> Result<()> {
    latin1(text, 0, out)
}

fn has_both_cases(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    digits.iter().any(u8::is_ascii_lowercase) && digits.iter().any(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"\x00", "AA=="),
            (b"\xff\xfe", "//4="),
            (b"abc", "YWJj"),
            (b"abcd", "YWJjZA=="),
        ] {
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            encode_base64(bytes, &mut encoded);
            assert_eq!(encoded, text.as_bytes());
            decode_base64(text, &mut decoded).unwrap();
            assert_eq!(decoded, bytes);
        }
        for text in ["AB==", "A", "A===", "AA=A", "AAA*"] {
            assert!(decode_base64(text, &mut Vec::new()).is_err(), "{text}");
        }
    }

    #[test]
    fn detected_bytes() {
        let detect = |text, exact, longest| {
            let mut out = Vec::new();
            detect(text, exact, longest, &mut out).ok().map(|()| out)
        };
        assert_eq!(detect("AP8=", Some(2), Some(2)), Some(vec![0, 255]));
        assert_eq!(detect("abcd", None, None), None);
        assert_eq!(detect("é", None, None), Some(vec![0xe9]));
        assert_eq!(detect("éé", None, Some(1)), None);
        assert_eq!(detect("", None, None), Some(vec![]));
    }
}
