//! Bytes written as text; the Python readers are in `cdcfmt_core/toolkit/byte_texts.py`.
//!
//! Other text leaves the message to the reference.

use crate::refusal::{Refusal, Step};

/// Appends the bytes of text with one byte per character, padded with zeros.
pub fn latin1(text: &str, padded: usize, out: &mut Vec<u8>) -> Step<()> {
    let start = out.len();
    if text.is_ascii() {
        out.extend_from_slice(text.as_bytes());
    } else {
        out.resize(start + text.len(), 0);
        let (mut length, mut before, mut most) = (start, 0, 0);
        for byte in text.bytes() {
            // Branchless, as the next byte is unpredictable.
            let of_two = before << 6 | byte & 0x3f;
            out[length] = if byte < 0x80 { byte } else { of_two };
            length += usize::from(byte < 0xc0);
            (before, most) = (byte, byte.max(most));
        }
        // Characters up to U+00FF have at most two bytes in UTF-8.
        if most > 0xc3 {
            return Err(Refusal::new("a character that is no byte", 0));
        }
        out.truncate(length);
    }
    out.resize(out.len().max(start + padded), 0);
    Ok(())
}

/// Appends the bytes of padded base64.
pub fn decode_base64(text: &str, out: &mut Vec<u8>) -> Step<()> {
    const BROKEN: Refusal = Refusal::new("text that is no base64", 0);
    let digits = text.as_bytes();
    let padding = digits
        .iter()
        .rev()
        .take_while(|digit| **digit == b'=')
        .count();
    if digits.len() % 4 != 0 || padding > 2 {
        return Err(BROKEN);
    }
    let (whole, last) = digits.split_at(digits.len() - if padding > 0 { 4 } else { 0 });
    let start = out.len();
    out.resize(start + whole.len() / 4 * 3, 0);
    let mut wrong = 0;
    for (group, bytes) in whole.chunks_exact(4).zip(out[start..].chunks_exact_mut(3)) {
        let sextet = |place: usize| SEXTETS[usize::from(group[place])];
        let [first, second, third, fourth] = [sextet(0), sextet(1), sextet(2), sextet(3)];
        wrong |= first | second | third | fourth;
        bytes.copy_from_slice(&[
            first << 2 | second >> 4,
            second << 4 | third >> 2,
            third << 6 | fourth,
        ]);
    }
    if !last.is_empty() {
        let mut bits = 0_u32;
        for digit in &last[..4 - padding] {
            let sextet = SEXTETS[usize::from(*digit)];
            wrong |= sextet;
            bits = bits << 6 | u32::from(sextet);
        }
        bits <<= 6 * padding;
        if bits.trailing_zeros() < 8 * padding as u32 {
            // Unused bits of the last character must be 0.
            return Err(BROKEN);
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    if wrong & NO_SEXTET == 0 {
        Ok(())
    } else {
        Err(BROKEN)
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const NO_SEXTET: u8 = 0x80;
const SEXTETS: [u8; 256] = {
    let mut sextets = [NO_SEXTET; 256];
    let mut place = 0;
    while place < DIGITS.len() {
        sextets[DIGITS[place] as usize] = place as u8;
        place += 1;
    }
    sextets
};

/// Appends padded base64.
pub fn encode_base64(data: &[u8], out: &mut Vec<u8>) {
    let digit = |bits: u32| DIGITS[(bits & 63) as usize];
    let groups = data.chunks_exact(3);
    let rest = groups.remainder();
    let start = out.len();
    out.resize(start + data.len().div_ceil(3) * 4, b'=');
    let mut digits = out[start..].chunks_exact_mut(4);
    for (group, digits) in groups.zip(digits.by_ref()) {
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        let four = [bits >> 18, bits >> 12, bits >> 6, bits];
        digits.copy_from_slice(&four.map(digit));
    }
    if let (Some(digits), [first, second @ ..]) = (digits.next(), rest) {
        let bits = u32::from_be_bytes([0, *first, second.first().map_or(0, |byte| *byte), 0]);
        digits[0] = digit(bits >> 18);
        digits[1] = digit(bits >> 12);
        if !second.is_empty() {
            digits[2] = digit(bits >> 6);
        }
    }
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
pub fn decode_hex(text: &str, out: &mut Vec<u8>) -> Step<()> {
    hex_bytes(text, out).ok_or(Refusal::new("text that is no hexadecimal", 0))
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
) -> Step<()> {
    const OPEN: Refusal = Refusal::new("bytes whose form is open", 0);
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
        (false, as_it_is as Read),
        (false, decode_base64),
        (true, decode_hex),
    ] {
        let mut data = Vec::new();
        let is_read = !(is_hex && has_both_cases(text)) && read(text, &mut data).is_ok();
        if is_read && fits(&data) {
            found.push(data);
        }
    }
    let mut full = found.iter().filter(|data| Some(data.len()) == exact);
    let chosen = match (full.next(), full.next()) {
        (Some(one), None) => Some(one),
        _ => found
            .first()
            .filter(|first| found.iter().all(|data| data == *first)),
    };
    out.extend_from_slice(chosen.ok_or(OPEN)?);
    Ok(())
}

type Read = fn(&str, &mut Vec<u8>) -> Step<()>;

fn as_it_is(text: &str, out: &mut Vec<u8>) -> Step<()> {
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
