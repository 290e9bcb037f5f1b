//! Escapes in text.

use simdutf8::basic::from_utf8;

use crate::json::simd::{HIGH_BITS, LOW_BITS};
use crate::json::token::{Kind, Token};
use crate::refusal::Result;
use crate::text::bytes::{NO_BYTE, check_latin1, narrow};

/// Meaning of letters after a backslash; 0 for letters without one.
pub(super) const SHORT_ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes[b'/' as usize] = b'/';
    escapes[b'b' as usize] = 0x8;
    escapes[b'f' as usize] = 0xc;
    escapes[b'n' as usize] = b'\n';
    escapes[b'r' as usize] = b'\r';
    escapes[b't' as usize] = b'\t';
    escapes
};

fn hex(data: &[u8], at: usize) -> Option<u32> {
    let digits = data.get(at..at + 4)?;
    let mut value = 0;
    for digit in digits {
        value = value << 4 | (*digit as char).to_digit(16)?;
    }
    Some(value)
}

/// The length of an escape at a backslash; None if broken or a lone surrogate.
#[inline]
pub(super) fn escape(data: &[u8], at: usize) -> Option<usize> {
    match SHORT_ESCAPES[usize::from(*data.get(at + 1)?)] {
        // Apart, so that the short form is inlined.
        0 => long_escape(data, at),
        _ => Some(2),
    }
}

fn long_escape(data: &[u8], at: usize) -> Option<usize> {
    match data.get(at + 1)? {
        b'u' => match hex(data, at + 2)? {
            0xd800..=0xdbff => {
                // Half a pair has no UTF-8; Python's texts can hold it, so the reference reads it.
                let pair = data.get(at + 6..at + 8)? == b"\\u"
                    && (0xdc00..=0xdfff).contains(&hex(data, at + 8)?);
                pair.then_some(12)
            }
            0xdc00..=0xdfff => None,
            _ => Some(6),
        },
        _ => None,
    }
}

/// The text of an escaped token; `bytes` is the buffer.
pub fn unescape<'a>(text: &str, bytes: &'a mut Vec<u8>) -> &'a str {
    bytes.clear();
    append_unescaped(text, bytes);
    from_utf8(bytes).unwrap_or_default()
}

/// Appends the text of an escaped token.
pub fn append_unescaped(text: &str, bytes: &mut Vec<u8>) {
    let data = text.as_bytes();
    let mut length = bytes.len();
    // The text is at most this long, and words are written as a whole.
    bytes.resize(length + data.len() + 8, 0);
    let mut at = 0;
    while at < data.len() {
        // Eight bytes at a time: most of an escaped text is plain.
        let (word, most) = match data.get(at..at + 8) {
            Some(word) => (u64::from_le_bytes(word.try_into().unwrap_or_default()), 8),
            None => {
                let mut word = [0; 8];
                word[..data.len() - at].copy_from_slice(&data[at..]);
                (u64::from_le_bytes(word), data.len() - at)
            }
        };
        bytes[length..length + 8].copy_from_slice(&word.to_le_bytes());
        let slashes = word ^ (LOW_BITS * u64::from(b'\\'));
        // The classic test for a zero byte in a word; the lowest one found is exact.
        let found = slashes.wrapping_sub(LOW_BITS) & !slashes & HIGH_BITS;
        let plain = most.min((found.trailing_zeros() / 8) as usize);
        at += plain;
        length += plain;
        if found == 0 {
            continue;
        }
        let letter = data.get(at + 1).map_or(0, |letter| *letter);
        if letter != b'u' {
            bytes[length] = SHORT_ESCAPES[usize::from(letter)];
            length += 1;
            at += 2;
            continue;
        }
        // Escapes were checked when the token was made, so the defaults are never used.
        let mut code = hex(data, at + 2).unwrap_or(0);
        at += 6;
        if (0xd800..0xdc00).contains(&code) {
            let low = hex(data, at + 2).unwrap_or(0xdc00);
            code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            at += 6;
        }
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        length += character.encode_utf8(&mut bytes[length..]).len();
    }
    bytes.truncate(length);
}

/// The bytes of escaped text with one byte per character.
pub fn unescape_latin1(text: &str, bytes: &mut Vec<u8>) -> Result<()> {
    let data = text.as_bytes();
    // The escapes may stand for more, which is checked one by one below.
    check_latin1(data)?;
    bytes.clear();
    // The result is never longer.
    bytes.resize(data.len(), 0);
    let (mut rest, mut length) = (data.iter(), 0);
    loop {
        let plain = rest.by_ref().take_while(|byte| **byte != b'\\');
        length = narrow(plain, bytes, length);
        let Some(letter) = rest.next() else { break };
        bytes[length] = SHORT_ESCAPES[usize::from(*letter)];
        if *letter == b'u' {
            let code = hex(rest.as_slice(), 0).ok_or(NO_BYTE)?;
            bytes[length] = u8::try_from(code).map_err(|_| NO_BYTE)?;
            rest.nth(3);
        }
        length += 1;
    }
    bytes.truncate(length);
    Ok(())
}

/// The text of a token, without escapes.
#[inline]
pub fn plain<'a>(token: Token, document: &'a str, scratch: &'a mut Vec<u8>) -> &'a str {
    let text = token.text(document);
    if token.kind != Kind::Escaped {
        return text;
    }
    unescape(text, scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_their_escapes() {
        let mut room = b"what was there before, which is longer".to_vec();
        for (text, expected) in [
            ("", ""),
            (r"\n", "\n"),
            (r#"{\"a\": [\"b\"]}"#, r#"{"a": ["b"]}"#),
            (r"caf\u00e9 \ud83d\ude00!", "caf\u{e9} \u{1f600}!"),
            (
                "caf\u{e9} of eight and more \\/",
                "caf\u{e9} of eight and more /",
            ),
        ] {
            assert_eq!(unescape(text, &mut room), expected, "{text}");
        }
    }

    #[test]
    fn lengths_of_escapes() {
        for (text, length) in [
            (r"\n", Some(2)),
            (r"\", None),
            (r"\u0041", Some(6)),
            (r"\ud83d\ude00", Some(12)),
            (r"\ud83d\u0041", None),
            (r"\ude00", None),
            (r"\u00g0", None),
            (r"\x", None),
        ] {
            assert_eq!(escape(text.as_bytes(), 0), length, "{text}");
        }
    }
}
