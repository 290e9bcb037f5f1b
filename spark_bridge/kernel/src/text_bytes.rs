//! Bytes that stand as text; the Python readers are in `cdcfmt_core/byte_texts.py` and
//! `go_quote.py`.
//!
//! What cannot be read leaves the message to the reference.

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

/// Hexadecimal, perhaps behind `0x`.
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

fn hex(digits: &[u8]) -> Option<u32> {
    let mut value = 0;
    for digit in digits {
        value = value << 4 | char::from(*digit).to_digit(16)?;
    }
    Some(value)
}

/// What Go's `strconv.Quote` writes, without the quotes around.
pub fn unquote_go(text: &str, out: &mut Vec<u8>) -> Step<()> {
    let mut rest = text.as_bytes();
    while let Some(special) = rest
        .iter()
        .position(|byte| matches!(byte, b'\\' | b'"' | ..=0x1f | 0x7f))
    {
        out.extend_from_slice(&rest[..special]);
        let broken = Refusal::new("text that Go did not quote", 0);
        rest = escape(&rest[special..], out).ok_or(broken)?;
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Reads the escape at a backslash; what is behind it.
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
            let rune = char::from_u32(hex(rest.get(..digits)?)?)?;
            out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
            return rest.get(digits..);
        }
        _ => return None,
    };
    out.push(byte);
    Some(rest)
}

/// Latin-1, base64 or hexadecimal, where one value alone fits: of `exact` bytes, or of `longest` at
/// most.
pub fn detect(
    text: &str,
    exact: Option<usize>,
    longest: Option<usize>,
    out: &mut Vec<u8>,
) -> Step<()> {
    const OPEN: Refusal = Refusal::new("bytes whose form is open", 0);
    let mut found: Vec<Vec<u8>> = Vec::new();
    let fits = |data: &[u8]| data.len() <= longest.unwrap_or(usize::MAX);
    // Other text is no base64 and no hexadecimal.
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

    fn read(reader: Read, text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        reader(text, &mut out).ok().map(|()| out)
    }

    #[test]
    fn go_quoted_bytes() {
        let some = read(unquote_go, "a\\x00\\n\\u00e9\\U0001f600\\\\é");
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
            assert_eq!(read(unquote_go, text), None, "{text}");
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
