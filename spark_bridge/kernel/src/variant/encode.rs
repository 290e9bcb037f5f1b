//! The bytes of variant values.

use crate::json::{Kind, Token};
use crate::refusal::{Reason, Refusal, Result};
use crate::text::numbers;

// A short string has its length in the header's six bits.
const SHORT: usize = 64;
const MAX_SCALE: u8 = 38;
/// Spark's limit for a value, and for its metadata.
const SIZE_LIMIT: usize = 128 << 20;
pub const MAX_UNSCALED: i128 = 10_i128.pow(38);

pub const NULL: u8 = 0;

pub fn boolean(value: bool, out: &mut Vec<u8>) {
    out.push(if value { 1 << 2 } else { 2 << 2 });
}

/// Appends a primitive: its type number and its bytes.
pub fn primitive<const N: usize>(kind: u8, bytes: [u8; N], out: &mut Vec<u8>) {
    out.push(kind << 2);
    out.extend_from_slice(&bytes);
}

pub fn string(data: &[u8], out: &mut Vec<u8>) {
    if data.len() < SHORT {
        out.push((data.len() as u8) << 2 | 1);
    } else {
        out.push(16 << 2);
        push_all(&[data.len()], 4, out);
    }
    out.extend_from_slice(data);
}

/// Appends a JSON number with all its digits; None beyond 38.
pub fn number(token: Token, text: &str, out: &mut Vec<u8>) -> Option<()> {
    let text = token.text(text);
    if token.kind == Kind::Integer {
        integer(numbers::integer(text)?, out);
        return Some(());
    }
    let (value, scale) = numbers::exact(text)?;
    unscaled(value, scale, out);
    Some(())
}

/// Appends an integer of the smallest type; beyond 64 bits, a decimal.
pub fn integer(value: i128, out: &mut Vec<u8>) {
    if let Ok(value) = i8::try_from(value) {
        primitive(3, value.to_le_bytes(), out);
    } else if let Ok(value) = i16::try_from(value) {
        primitive(4, value.to_le_bytes(), out);
    } else if let Ok(value) = i32::try_from(value) {
        primitive(5, value.to_le_bytes(), out);
    } else if let Ok(value) = i64::try_from(value) {
        primitive(6, value.to_le_bytes(), out);
    } else {
        unscaled(value, 0, out);
    }
}

/// Appends a decimal of at most 38 digits.
pub fn unscaled(value: i128, scale: u8, out: &mut Vec<u8>) {
    debug_assert!(value.abs() < MAX_UNSCALED);
    // A zero of any scale is valid in JSON; a variant's decimal has at most 38 digits.
    let scale = if value == 0 && scale > MAX_SCALE {
        0
    } else {
        scale
    };
    let size = value.abs();
    // The smallest type that holds the digits, as in Python: both decoders make the same bytes.
    let (kind, bytes) = if scale <= 9 && size < 1_000_000_000 {
        (8, 4)
    } else if scale <= 18 && size < 1_000_000_000_000_000_000 {
        (9, 8)
    } else {
        (10, 16)
    };
    out.extend_from_slice(&[kind << 2, scale]);
    out.extend_from_slice(&value.to_le_bytes()[..bytes]);
}

/// Bytes per id or offset.
pub fn width(largest: usize) -> u8 {
    match largest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

/// Appends numbers of `width` bytes each.
pub fn push_all(numbers: &[usize], width: u8, out: &mut Vec<u8>) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes()[..usize::from(width)]);
    }
}

/// Refuses a value or metadata that is too large for Spark.
pub fn check_size(size: usize) -> Result<()> {
    if size > SIZE_LIMIT {
        return Err(Refusal::of(Reason::Size, "variant exceeds 128 MiB", 0));
    }
    Ok(())
}

/// Appends an object of `count` values, whose names are the first ones in order.
pub fn object<'a>(values: impl Iterator<Item = &'a [u8]> + Clone, count: usize, out: &mut Vec<u8>) {
    let width = width(values.clone().map(<[u8]>::len).sum());
    let ids: Vec<usize> = (0..count).collect();
    object_head(&ids, width, out);
    let mut end = 0;
    push_all(&[end], width, out);
    for value in values.clone() {
        end += value.len();
        push_all(&[end], width, out);
    }
    values.for_each(|value| out.extend_from_slice(value));
}

/// Header, number of fields and field ids: everything before the offsets.
pub fn object_head(ids: &[usize], offset_width: u8, out: &mut Vec<u8>) {
    // As narrow as possible, as in Python.
    let id_width = width(ids.iter().copied().max().unwrap_or(0));
    let large = u8::from(ids.len() > 0xff);
    out.push(large << 6 | (id_width - 1) << 4 | (offset_width - 1) << 2 | 2);
    let mut head = [0; 5];
    let size = count_into(ids.len(), &mut head);
    out.extend_from_slice(&head[1..size]);
    push_all(ids, id_width, out);
}

/// Writes a count after a header; returns the length of both.
pub fn count_into(count: usize, head: &mut [u8; 5]) -> usize {
    let width = if count < 0x100 { 1 } else { 4 };
    head[1..=width].copy_from_slice(&count.to_le_bytes()[..width]);
    1 + width
}

pub fn insert(bytes: &[u8], at: usize, out: &mut Vec<u8>) {
    let size = out.len();
    out.resize(size + bytes.len(), 0);
    out.copy_within(at..size, at + bytes.len());
    out[at..at + bytes.len()].copy_from_slice(bytes);
}
