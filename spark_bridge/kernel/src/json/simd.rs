//! Bytes of a document, several at a time.

use wide::u8x16;

/// Number of bytes that a vector search looks at.
pub(super) const WIDE: usize = 32;

/// By bits, for which bytes all bits of the result of `find` are set.
#[inline(always)]
fn bits_of(bytes: &[u8; WIDE], find: impl Fn(u8x16) -> u8x16) -> u32 {
    let half = |at: usize| {
        let half = bytes[at..at + 16].try_into().unwrap_or_default();
        find(u8x16::new(half)).move_mask() as u32
    };
    half(0) | half(16) << 16
}

/// By bits, which bytes are quotes, backslashes or control characters.
#[inline(always)]
pub(super) fn specials(bytes: &[u8; WIDE]) -> u32 {
    bits_of(bytes, |bytes| {
        let are = |byte| bytes.cmp_eq(u8x16::splat(byte));
        // Vectors have no unsigned comparison; the minimum is the byte itself if it is not larger.
        let are_controls = bytes.min(u8x16::splat(0x1f)).cmp_eq(bytes);
        are(b'"') | are(b'\\') | are_controls
    })
}

/// By bits, which bytes are digits.
#[inline(always)]
pub(super) fn digits(bytes: &[u8; WIDE]) -> u32 {
    bits_of(bytes, |bytes| {
        let digits = bytes - u8x16::splat(b'0');
        digits.min(u8x16::splat(9)).cmp_eq(digits)
    })
}

pub(super) const LOW_BITS: u64 = 0x0101_0101_0101_0101;
pub(super) const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The high bits of those of eight bytes that are quotes, backslashes or control characters.
pub(super) fn special(word: u64) -> u64 {
    let low = word & !HIGH_BITS;
    let is_other = |byte: u8| (low ^ (LOW_BITS * u64::from(byte))) + !HIGH_BITS;
    let is_printed = low + LOW_BITS * 0x60;
    !(is_other(b'"') & is_other(b'\\') & is_printed | word) & HIGH_BITS
}

/// The lowest set bit marks the first of eight bytes that is not a digit.
fn not_digits(word: u64) -> u64 {
    let digits = word ^ (LOW_BITS * u64::from(b'0'));
    (((digits & !HIGH_BITS) + LOW_BITS * 0x76) | digits) & HIGH_BITS
}

/// The end of the digits at a position.
#[inline]
pub(super) fn digits_end(data: &[u8], mut at: usize) -> usize {
    while let Some(word) = data.get(at..).and_then(<[u8]>::first_chunk) {
        let others = not_digits(u64::from_le_bytes(*word));
        if others != 0 {
            return at + (others.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while data.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

/// Position of the first quote, backslash or control character.
pub fn find_special(data: &[u8]) -> Option<usize> {
    let mut words = data.chunks_exact(8);
    for (place, bytes) in words.by_ref().enumerate() {
        let found = special(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        if found != 0 {
            return Some(place * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let rest = words.remainder();
    let found = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    found.map(|at| data.len() - rest.len() + at)
}
