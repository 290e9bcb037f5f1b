//! A strict reader of Avro's binary encoding; in Python: `cdcfmt_toolkit/wire_avro.py`.
//!
//! Lengths are not trusted: nothing is allocated before the bytes exist.

use std::fmt;
use std::io::Write;

use crate::refusal::{Refusal, Result};
use crate::text::append;
use crate::text::equal;

/// Maximum number of items of an array or a map; the reference has the same limit.
pub const MAX_ITEMS: usize = 1 << 16;

/// Maximum bytes of an encoded long.
const LONGEST: usize = 10;

/// A position in a message; every step refuses what goes beyond its bytes.
#[derive(Clone, Copy)]
pub struct Datum<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Datum<'a> {
    pub fn at(data: &'a [u8], at: usize) -> Self {
        Self { data, at }
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.data.len()
    }

    pub fn refuse<T>(&self, reason: &'static str) -> Result<T> {
        Err(Refusal::new(reason, self.at))
    }

    /// The bytes from a position on.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.data[start..self.at]
    }

    /// A long or an int: zigzag, seven bits per byte, lowest bits first.
    #[inline]
    pub fn long(&mut self) -> Result<i64> {
        match self.data.get(self.at) {
            // Lengths and branches of unions, which are most longs, have one byte.
            Some(byte @ ..0x80) => {
                self.at += 1;
                Ok(i64::from(byte >> 1) ^ -i64::from(byte & 1))
            }
            _ => self.long_of_bytes(),
        }
    }

    fn long_of_bytes(&mut self) -> Result<i64> {
        let byte = self.byte()?;
        let mut value = u64::from(byte & 0x7f);
        for place in 1..LONGEST {
            let byte = self.byte()?;
            // Ten bytes have 70 bits: the last one may have only the 64th.
            if place == LONGEST - 1 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        self.refuse("number exceeds 64 bits")
    }

    pub fn byte(&mut self) -> Result<u8> {
        let Some(byte) = self.data.get(self.at) else {
            return self.refuse("message is truncated");
        };
        self.at += 1;
        Ok(*byte)
    }

    /// 0 or 1.
    pub fn boolean(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            // Avro has two bytes for a boolean; the reference refuses others, too.
            _ => self.refuse("invalid boolean"),
        }
    }

    /// The next `N` bytes.
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.data[self.at..].first_chunk() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => self.refuse("message is truncated"),
        }
    }

    /// The next bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(length);
        match end.and_then(|end| self.data.get(self.at..end)) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => self.refuse("length exceeds the message"),
        }
    }

    /// Bytes after their length.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        // A negative or huge length is a refusal, not a position.
        let length = usize::try_from(self.long()?).unwrap_or(usize::MAX);
        self.take(length)
    }

    /// Appends bytes that follow their length.
    pub fn append_bytes(&mut self, out: &mut Vec<u8>) -> Result<usize> {
        let length = self.bytes()?.len();
        append(self.data, self.at - length, self.at, out);
        Ok(length)
    }

    /// Bytes after their length, which must be UTF-8.
    pub fn text(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| Refusal::new("invalid UTF-8", self.at))
    }

    /// The index of a union's branch or of an enumeration's symbol.
    pub fn choice(&mut self, count: usize) -> Result<usize> {
        match usize::try_from(self.long()?) {
            Ok(number) if number < count => Ok(number),
            _ => self.refuse("branch does not exist"),
        }
    }

    /// The number of items in an array's or map's next block, 0 at the end; `before`: the number
    /// of items in the blocks before it.
    pub fn block(&mut self, before: usize) -> Result<usize> {
        match usize::try_from(self.long()?) {
            // A negative count, followed by the block's size, is valid Avro; the reference reads
            // it.
            Ok(count) if count <= MAX_ITEMS - before => Ok(count),
            _ => self.refuse("block has an unexpected form or too many items"),
        }
    }

    /// Takes these bytes if they are next.
    pub fn take_all(&mut self, bytes: &[u8]) -> bool {
        let end = self.at + bytes.len();
        let next = self.data.get(self.at..end);
        let found = next.is_some_and(|next| equal(next, bytes));
        self.at = if found { end } else { self.at };
        found
    }
}

/// Appends a long in Avro's encoding.
pub fn encode_long(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    loop {
        let byte = rest.to_le_bytes()[0] & 0x7f;
        rest >>= 7;
        if rest == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}

/// The double with the fewest digits, from six to eight, that identify a float, as in JSON.
pub fn shortest_double(value: f32) -> f64 {
    let exact = f64::from(value);
    // Most floats of tables have few digits; printing and parsing them costs ten times as much.
    if let Some(shortest) = fast_shortest(value) {
        return shortest;
    }
    let mut room = [0; 32];
    let mut fewest = 6;
    let is_power_of_two = value.to_bits() << 9 == 0;
    // Rounding to 64 bits and then to 32 may differ from direct rounding outside of this range.
    if (1e-20..1e20).contains(&value.abs()) && !is_power_of_two {
        let text = print(format_args!("{value:e}"), &mut room);
        let digits = text.bytes().take_while(|byte| *byte != b'e');
        // The digits may still differ: of two equally near decimals, it may choose the odd one.
        fewest = digits.filter(u8::is_ascii_digit).count().max(6);
    }
    // Nine digits identify every float: if eight do not, its exact double is used.
    for digits in fewest.min(8)..=8 {
        let behind = digits - 1;
        let text = print(format_args!("{exact:.behind$e}"), &mut room);
        if let Ok(shortest) = text.parse::<f64>()
            && is_of(shortest, value)
        {
            return shortest;
        }
    }
    exact
}

/// Like [`shortest_double`], by exact arithmetic: a float of 24 bits times 10^12 has at most 53
/// bits, and an integer divided by a power of ten is the double nearest to its digits.
fn fast_shortest(value: f32) -> Option<f64> {
    let size = f64::from(value.abs());
    let behind = (0..=10).find(|behind| size * POWERS[*behind] >= 1e5)?;
    if size >= 1e6 {
        return None;
    }
    for power in &POWERS[behind..behind + 3] {
        let digits = (size * power).round_ties_even();
        // Two decimals are equally near: the slow way decides, like the reference.
        if (size * power - digits).abs() == 0.5 {
            return None;
        }
        let shortest = (digits / power).copysign(f64::from(value));
        if is_of(shortest, value) {
            return Some(shortest);
        }
    }
    None
}

const POWERS: [f64; 13] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
];

fn is_of(double: f64, float: f32) -> bool {
    (double as f32).to_bits() == float.to_bits()
}

fn print<'a>(number: fmt::Arguments, room: &'a mut [u8; 32]) -> &'a str {
    let mut rest = &mut room[..];
    let _ = rest.write_fmt(number);
    let left = rest.len();
    std::str::from_utf8(&room[..32 - left]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longs() {
        for value in [0, -1, 1, 63, 64, -64, -65, i64::MAX, i64::MIN, 1 << 40] {
            let mut data = Vec::new();
            encode_long(value, &mut data);
            let mut datum = Datum::at(&data, 0);
            assert_eq!(datum.long(), Ok(value));
            assert!(datum.is_at_end());
            data.pop();
            assert!(Datum::at(&data, 0).long().is_err());
        }
        assert_eq!(Datum::at(b"\x80\x00", 0).long(), Ok(0));
        for data in [&[0xff; 10][..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"] {
            assert!(Datum::at(data, 0).long().is_err());
        }
    }

    #[test]
    fn lengths_are_those_of_the_bytes() {
        assert_eq!(Datum::at(b"\x04ab", 0).bytes(), Ok(&b"ab"[..]));
        for data in [
            &b"\x06ab"[..],
            b"\x03ab",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ] {
            assert!(Datum::at(data, 0).bytes().is_err());
        }
        assert!(Datum::at(b"\x04\xff\xff", 0).text().is_err());
        assert!(Datum::at(b"\x01\x04", 0).block(0).is_err());
    }

    #[test]
    fn floats() {
        assert_eq!(shortest_double(0.1), 0.1);
        assert_eq!(shortest_double(4_938_269.0 / 4.0), 1_234_567.2);
        assert_eq!(shortest_double(f32::from_bits(1)), 1.4013e-45);
        assert_eq!(shortest_double(16_777_216.0), 16_777_216.0);
        assert_eq!(shortest_double(-0.0).to_bits(), (-0.0_f64).to_bits());
        assert!(shortest_double(f32::NAN).is_nan());
    }

    #[test]
    fn digits_of_floats() {
        let slow = |value: f32| {
            let exact = f64::from(value);
            let of_digits = |digits: usize| format!("{exact:.digits$e}").parse().unwrap();
            let mut some = (5..8).map(of_digits);
            some.find(|some| is_of(*some, value)).unwrap_or(exact)
        };
        let mut bits = 1_u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(bits);
            let rounded = (value * 1000.0).round() / 1000.0;
            for value in [value, rounded] {
                if value.is_finite() {
                    assert_eq!(shortest_double(value), slow(value), "{value}");
                }
            }
        }
    }
}
