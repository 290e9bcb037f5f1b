//! Bytes that stand as text: Latin-1 and base64.

use crate::refusal::{Refusal, Step};

/// Appends the bytes of text with one character a byte, padded with zeros.
pub fn latin1(text: &str, padded: usize, out: &mut Vec<u8>) -> Step<()> {
    let start = out.len();
    if text.is_ascii() {
        out.extend_from_slice(text.as_bytes());
    } else {
        for character in text.chars() {
            let byte = u8::try_from(u32::from(character));
            out.push(byte.map_err(|_| Refusal::new("a character that is no byte", 0))?);
        }
    }
    let length = (out.len() - start).max(padded);
    out.resize(start + length, 0);
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
    for (place, group) in digits.chunks_exact(4).enumerate() {
        let is_last = (place + 1) * 4 == digits.len();
        let some = if is_last { 4 - padding } else { 4 };
        let mut bits = 0_u32;
        for digit in &group[..some] {
            bits = bits << 6 | u32::from(sextet(*digit).ok_or(BROKEN)?);
        }
        bits <<= 6 * (4 - some);
        if bits.trailing_zeros() < 8 * (4 - some) as u32 {
            // Bits that no byte takes.
            return Err(BROKEN);
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..some]);
    }
    Ok(())
}

fn sextet(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends padded base64.
pub fn encode_base64(data: &[u8], out: &mut Vec<u8>) {
    for group in data.chunks(3) {
        let mut bytes = [0; 4];
        bytes[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bytes);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place > group.len() { b'=' } else { digit });
        }
    }
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
}
