//! A strict reader of Avro's binary encoding; the Python reader is `cdcfmt_core/wire_avro.py`.
//!
//! No length is believed: nothing is made by it before the bytes are there.

use crate::refusal::{Refusal, Step};

/// Of an array or a map; the reference reads no more.
pub const MAX_ITEMS: usize = 1 << 16;

/// Bytes of a long.
const LONGEST: usize = 10;

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

    pub fn refuse<T>(&self, reason: &'static str) -> Step<T> {
        Err(Refusal::new(reason, self.at))
    }

    /// The bytes from a place on.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.data[start..self.at]
    }

    /// A long, or an int: zigzag, seven bits a byte, the lowest first.
    pub fn long(&mut self) -> Step<i64> {
        let byte = self.byte()?;
        if byte < 0x80 {
            return Ok(i64::from(byte >> 1) ^ -i64::from(byte & 1));
        }
        let mut value = u64::from(byte & 0x7f);
        for place in 1..LONGEST {
            let byte = self.byte()?;
            if place == LONGEST - 1 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        self.refuse("a number of more than 64 bits")
    }

    pub fn byte(&mut self) -> Step<u8> {
        let Some(byte) = self.data.get(self.at) else {
            return self.refuse("a message that ends before its end");
        };
        self.at += 1;
        Ok(*byte)
    }

    pub fn boolean(&mut self) -> Step<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.refuse("a boolean that is none"),
        }
    }

    /// So many bytes.
    pub fn fixed<const N: usize>(&mut self) -> Step<[u8; N]> {
        match self.data[self.at..].first_chunk() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => self.refuse("a message that ends before its end"),
        }
    }

    pub fn bytes(&mut self) -> Step<&'a [u8]> {
        let length = usize::try_from(self.long()?);
        let end = length.ok().and_then(|length| self.at.checked_add(length));
        let bytes = end.and_then(|end| self.data.get(self.at..end));
        match (bytes, end) {
            (Some(bytes), Some(end)) => {
                self.at = end;
                Ok(bytes)
            }
            _ => self.refuse("a length beyond the message's end"),
        }
    }

    pub fn text(&mut self) -> Step<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| Refusal::new("bytes that are no UTF-8", self.at))
    }

    /// The number of a union's branch or of an enumeration's symbol.
    pub fn choice(&mut self, count: usize) -> Step<usize> {
        match usize::try_from(self.long()?) {
            Ok(number) if number < count => Ok(number),
            _ => self.refuse("a branch that does not exist"),
        }
    }

    /// The number of items in an array's or map's next block, 0 at the end; `before` are those
    /// of the blocks before it.
    pub fn block(&mut self, before: usize) -> Step<usize> {
        match usize::try_from(self.long()?) {
            Ok(count) if count <= MAX_ITEMS - before => Ok(count),
            _ => self.refuse("a block of another form, or with too many items"),
        }
    }

    /// Whether these bytes are next; they are taken then.
    pub fn take_all(&mut self, bytes: &[u8]) -> bool {
        let found = self.data[self.at..].starts_with(bytes);
        self.at += if found { bytes.len() } else { 0 };
        found
    }
}

/// A long as it is written.
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

/// The double of the fewest digits, up to eight, that make a float, as JSON has it.
pub fn shortest_double(value: f32) -> f64 {
    let exact = f64::from(value);
    for digits in 5..8 {
        let Ok(shortest) = format!("{exact:.digits$e}").parse::<f64>() else {
            break;
        };
        #[allow(clippy::cast_possible_truncation)]
        if (shortest as f32).to_bits() == value.to_bits() {
            return shortest;
        }
    }
    exact
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
        assert_eq!(shortest_double(1_234_567.25), 1_234_567.2);
        assert_eq!(shortest_double(f32::from_bits(1)), 1.4013e-45);
        assert_eq!(shortest_double(16_777_216.0), 16_777_216.0);
        assert_eq!(shortest_double(-0.0).to_bits(), (-0.0_f64).to_bits());
    }
}
