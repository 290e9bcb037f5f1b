//! The ends of text.

use crate::json::Kind;
use crate::json::escapes::escape;
use crate::json::words::special;

/// Bytes after which text is searched for its end by vectors.
const LONG: usize = 64;

/// The end of text that continues at a position, and its kind.
#[inline]
pub(super) fn end_of_string(data: &[u8], mut at: usize) -> Option<(usize, Kind)> {
    let long = at + LONG;
    while let Some(word) = data.get(at..).and_then(<[u8]>::first_chunk) {
        let found = special(u64::from_le_bytes(*word));
        if found == 0 {
            at += 8;
            if at == long {
                return end_of_long(data, at);
            }
            continue;
        }
        at += (found.trailing_zeros() / 8) as usize;
        if data.get(at) == Some(&b'"') {
            return Some((at, Kind::Text));
        }
        break;
    }
    end_of_escaped(data, at)
}

/// Like [`end_of_string`], for long text.
#[inline(never)]
fn end_of_long(data: &[u8], at: usize) -> Option<(usize, Kind)> {
    let end = at + memchr::memchr2(b'"', b'\\', &data[at..])?;
    let least = data[at..end]
        .iter()
        .fold(u8::MAX, |least, byte| least.min(*byte));
    match data[end] {
        _ if least < b' ' => None,
        b'"' => Some((end, Kind::Text)),
        _ => end_of_escaped(data, end),
    }
}

/// Like [`end_of_string`], with escapes.
#[inline(never)]
fn end_of_escaped(data: &[u8], mut at: usize) -> Option<(usize, Kind)> {
    let mut kind = Kind::Text;
    'words: while let Some(word) = data.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*word);
        let mut found = special(word);
        while found != 0 {
            let bits = found.trailing_zeros() - 7;
            let place = at + (bits / 8) as usize;
            match (word >> bits) as u8 {
                b'"' => return Some((place, kind)),
                b'\\' => kind = Kind::Escaped,
                _ => return None,
            }
            let length = escape(data, place)?;
            if length > 2 || bits == 56 {
                at = place + length;
                continue 'words;
            }
            // The letter may be a quote or backslash, too.
            found &= !(0xffff << bits);
        }
        at += 8;
    }
    loop {
        match data.get(at)? {
            b'"' => return Some((at, kind)),
            b'\\' => {
                kind = Kind::Escaped;
                at += escape(data, at)?;
            }
            0x20.. => at += 1,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_lengths() {
        for length in 0..3 * LONG {
            let plain = "é".repeat(length / 2) + &"x".repeat(length % 2);
            let of = |text: String| end_of_string(format!("{text}\" ").as_bytes(), 0);
            assert_eq!(of(plain.clone()), Some((length, Kind::Text)));
            assert_eq!(
                of(format!("{plain}\\\"{plain}")),
                Some((2 * length + 2, Kind::Escaped))
            );
            assert_eq!(of(format!("{plain}\n{plain}")), None);
            assert_eq!(end_of_string(plain.as_bytes(), 0), None);
        }
    }
}
