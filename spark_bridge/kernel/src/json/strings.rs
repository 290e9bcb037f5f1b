//! The ends of text.

use crate::json::Kind;
use crate::json::escapes::{SHORT_ESCAPES, escape};
use crate::json::simd::{WIDE, specials};

/// The end of text that continues at a position, and its kind.
#[inline]
pub(super) fn end_of_string(data: &[u8], mut at: usize) -> Option<(usize, Kind)> {
    // 32 bytes at once: quotes, backslashes and control characters in one mask.
    while let Some(bytes) = data.get(at..).and_then(<[u8]>::first_chunk) {
        let found = specials(bytes);
        if found == 0 {
            at += WIDE;
            continue;
        }
        let place = found.trailing_zeros() as usize;
        if bytes[place] == b'"' {
            return Some((at + place, Kind::Text));
        }
        break;
    }
    end_of_escaped(data, at)
}

/// Like [`end_of_string`], with escapes, or near the end of the document.
#[inline(never)]
fn end_of_escaped(data: &[u8], mut at: usize) -> Option<(usize, Kind)> {
    let mut kind = Kind::Text;
    'chunks: while let Some(bytes) = data.get(at..).and_then(<[u8]>::first_chunk) {
        let mut found = specials(bytes);
        while found != 0 {
            let bit = found.trailing_zeros();
            let place = at + bit as usize;
            match bytes[bit as usize] {
                b'"' => return Some((place, kind)),
                b'\\' => kind = Kind::Escaped,
                _ => return None,
            }
            let letter = *data.get(place + 1)?;
            // The letter behind the last byte is not in this mask.
            if SHORT_ESCAPES[usize::from(letter)] == 0 || bit == 31 {
                at = place + escape(data, place)?;
                continue 'chunks;
            }
            // The letter may be a quote or backslash, too.
            found &= !(3 << bit);
        }
        at += WIDE;
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
        for length in 0..4 * WIDE {
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
