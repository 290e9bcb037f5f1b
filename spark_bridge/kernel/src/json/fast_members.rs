//! Members of an object in a known order and in their usual form, without blanks.
//!
//! Reads most rows; leaves what is unusual to the other readers.

use crate::json::labels::Label;
use crate::json::simd::{WIDE, digits};
use crate::json::strings::end_of_string;
use crate::json::values::MAX_VALUES;
use crate::json::{Cursor, Kind, Token};

impl Cursor<'_> {
    /// Takes a value in its usual form.
    // Not inlined: so it is returned in registers.
    #[inline(never)]
    pub(super) fn fast_value(&mut self) -> Option<Token> {
        if self.values >= MAX_VALUES {
            return None;
        }
        let (token, end) = value_and_end(self.data, self.at)?;
        self.at = end;
        self.values += 1;
        Some(token)
    }

    /// Takes members as long as they are the next ones of `order`, with their commas.
    ///
    /// Their values become tokens, at the places of `order`. Returns the number of members, and
    /// whether a comma followed the last one.
    pub fn fast_members(&mut self, order: &[(Label, u32)], tokens: &mut [Token]) -> (usize, bool) {
        let (data, mut at, mut count) = (self.data, self.at, 0);
        // Counted before, so that the loop has no limit to check.
        if self.exact || self.values as usize + order.len() > MAX_VALUES as usize {
            return (0, true);
        }
        let mut follows = true;
        for (label, place) in order {
            if !label.begins(data.get(at..).unwrap_or_default()) {
                break;
            }
            let Some((token, end)) = value_and_end(data, at + label.len()) else {
                break;
            };
            match tokens.get_mut(*place as usize) {
                // A second member of one name stops here; the slow reader refuses it.
                Some(value) if value.kind == Kind::Missing => *value = token,
                _ => break,
            }
            at = end;
            count += 1;
            if data.get(at) != Some(&b',') {
                follows = false;
                break;
            }
            at += 1;
        }
        self.at = at;
        self.values += count;
        (count as usize, follows)
    }
}

/// A value and its end.
#[inline(always)]
fn value_and_end(data: &[u8], at: usize) -> Option<(Token, usize)> {
    match data.get(at)? {
        b'"' => {
            let (end, kind) = end_of_string(data, at + 1)?;
            Some((Token::new(kind, at + 1, end), end + 1))
        }
        b'-' | b'0'..=b'9' => fast_number(data, at),
        // Booleans, objects and lists are rare in rows: other readers have them.
        b'n' if data.get(at..at + 4) == Some(b"null") => {
            Some((Token::new(Kind::Null, at, at + 4), at + 4))
        }
        _ => None,
    }
}

/// A number without an exponent, not at the end of the document.
#[inline]
fn fast_number(data: &[u8], start: usize) -> Option<(Token, usize)> {
    // Fewer than any limit of numbers.
    let bytes: &[u8; WIDE] = data.get(start..)?.first_chunk()?;
    let sign = usize::from(bytes[0] == b'-');
    // By bits behind the sign; bytes behind these ones are none.
    let others = !u64::from(digits(bytes)) >> sign;
    let whole = others.trailing_zeros() as usize;
    // A number with a leading zero is invalid: the slow reader refuses it, with its place.
    if whole == 0 || whole > 1 && bytes[sign] == b'0' {
        return None;
    }
    let (mut kind, mut length) = (Kind::Integer, sign + whole);
    if bytes.get(length) == Some(&b'.') {
        let fraction = (others >> (whole + 1)).trailing_zeros() as usize;
        if fraction == 0 {
            return None;
        }
        (kind, length) = (Kind::Fraction, length + 1 + fraction);
    }
    let end = start + length;
    // Anything else may continue the number, such as an exponent.
    matches!(bytes.get(length)?, b',' | b'}').then_some((Token::new(kind, start, end), end))
}
