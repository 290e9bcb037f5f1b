//! The ends of text.

use crate::json::Kind;
use crate::json::escapes::escape;
use crate::json::words::special;

/// The end of text that continues at a position, and its kind.
#[inline]
pub(super) fn end_of_string(data: &[u8], mut at: usize) -> Option<(usize, Kind)> {
    while let Some(word) = data.get(at..).and_then(<[u8]>::first_chunk) {
        let found = special(u64::from_le_bytes(*word));
        if found == 0 {
            at += 8;
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
