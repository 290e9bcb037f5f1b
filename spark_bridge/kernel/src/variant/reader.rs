//! Reads variants, the inverse of `from_json.rs`.
//!
//! Accepts variants of any writer, with ids and offsets of every width.

use crate::refusal::{Refusal, Result};

const BROKEN: Refusal = Refusal::new("unreadable variant", 0);
const OBJECT: u8 = 2;
const ARRAY: u8 = 3;
const VERSION: u8 = 1;

/// A value, with the names of fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variant<'a> {
    pub value: &'a [u8],
    pub metadata: &'a [u8],
}

impl<'a> Variant<'a> {
    /// The value; refuses bytes that are not a variant.
    pub fn cell(self) -> Result<Cell<'a>> {
        let (header, rest) = self.value.split_first().ok_or(BROKEN)?;
        let info = header >> 2;
        Ok(match (header & 3, info) {
            (1, size) => Cell::Text(rest.get(..usize::from(size)).ok_or(BROKEN)?),
            (0, 0) => Cell::Null,
            (0, 1) => Cell::Bool(true),
            (0, 2) => Cell::Bool(false),
            (0, 3) => Cell::Int(i8::from_le_bytes(fixed(rest)?).into()),
            (0, 4) => Cell::Int(i16::from_le_bytes(fixed(rest)?).into()),
            (0, 5) => Cell::Int(i32::from_le_bytes(fixed(rest)?).into()),
            (0, 6) => Cell::Int(i64::from_le_bytes(fixed(rest)?)),
            (0, 7) => Cell::Double(f64::from_le_bytes(fixed(rest)?)),
            (0, 8..=10) => decimal(info, rest)?,
            (0, 11) => Cell::Date(i32::from_le_bytes(fixed(rest)?)),
            (0, 12) => Cell::Instant(i64::from_le_bytes(fixed(rest)?)),
            (0, 13) => Cell::Clock(i64::from_le_bytes(fixed(rest)?)),
            // Not `Single`: Python's reader returns a double, and both must print the same digits.
            (0, 14) => Cell::Double(f32::from_le_bytes(fixed(rest)?).into()),
            (0, 15) => Cell::Bytes(sized(rest)?),
            (0, 16) => Cell::Text(sized(rest)?),
            (OBJECT | ARRAY, _) => Cell::Nested(self),
            _ => return Err(BROKEN),
        })
    }

    pub fn is_object(self) -> bool {
        self.value
            .first()
            .is_some_and(|header| header & 3 == OBJECT)
    }

    /// Fields of an object or items of an array.
    pub fn items(self) -> Result<Items<'a>> {
        let (header, rest) = self.value.split_first().ok_or(BROKEN)?;
        let info = usize::from(header >> 2);
        let is_object = header & 3 == OBJECT;
        let (large, id_width) = match is_object {
            true => (info >> 4 & 1, (info >> 2 & 3) + 1),
            false => (info >> 2 & 1, 0),
        };
        let width = (info & 3) + 1;
        let (count, at) = match large {
            0 => (usize::from(*rest.first().ok_or(BROKEN)?), 1),
            _ => (u32::from_le_bytes(fixed(rest)?) as usize, 4),
        };
        // So a claimed count is bounded by bytes that exist.
        // Every item has at least one byte.
        if count > rest.len() {
            return Err(BROKEN);
        }
        let offsets_at = at + count * id_width;
        let values_at = offsets_at + (count + 1) * width;
        Ok(Items {
            count,
            ids: rest.get(at..offsets_at).ok_or(BROKEN)?,
            id_width,
            offsets: rest.get(offsets_at..values_at).ok_or(BROKEN)?,
            width,
            values: rest.get(values_at..).ok_or(BROKEN)?,
            metadata: self.metadata,
        })
    }
}

/// The parts of an object or array; arrays have no ids.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    pub count: usize,
    pub ids: &'a [u8],
    id_width: usize,
    offsets: &'a [u8],
    width: usize,
    values: &'a [u8],
    pub metadata: &'a [u8],
}

impl<'a> Items<'a> {
    /// Whether they have names.
    pub fn is_object(&self) -> bool {
        self.id_width > 0
    }

    /// The value of a field or item, by its number.
    pub fn value(&self, number: usize) -> Result<Variant<'a>> {
        let start = little_endian(self.offsets, number, self.width)?;
        Ok(Variant {
            value: self.values.get(start..).ok_or(BROKEN)?,
            metadata: self.metadata,
        })
    }

    /// The name of a field, by its number.
    pub fn name(&self, number: usize) -> Result<&'a [u8]> {
        name(
            self.metadata,
            little_endian(self.ids, number, self.id_width)?,
        )
    }

    /// The value of a named field.
    pub fn find(&self, wanted: &str) -> Result<Option<Variant<'a>>> {
        for number in 0..self.count {
            if self.name(number)? == wanted.as_bytes() {
                return self.value(number).map(Some);
            }
        }
        Ok(None)
    }
}

fn name(metadata: &[u8], id: usize) -> Result<&[u8]> {
    let (header, rest) = metadata.split_first().ok_or(BROKEN)?;
    if header & 0x0f != VERSION {
        return Err(BROKEN);
    }
    let width = usize::from(header >> 6) + 1;
    let size = little_endian(rest, 0, width)?;
    if id >= size {
        return Err(BROKEN);
    }
    let (start, end) = (
        little_endian(rest, 1 + id, width)?,
        little_endian(rest, 2 + id, width)?,
    );
    // Checked, as size and width come from the bytes.
    let names = size
        .checked_add(2)
        .and_then(|count| count.checked_mul(width))
        .and_then(|at| rest.get(at..));
    names.and_then(|names| names.get(start..end)).ok_or(BROKEN)
}

fn little_endian(data: &[u8], number: usize, width: usize) -> Result<usize> {
    let at = number * width;
    let bytes = data.get(at..at + width).ok_or(BROKEN)?;
    Ok(bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | usize::from(*byte)))
}

fn fixed<const N: usize>(data: &[u8]) -> Result<[u8; N]> {
    data.first_chunk().copied().ok_or(BROKEN)
}

fn sized(data: &[u8]) -> Result<&[u8]> {
    let size = u32::from_le_bytes(fixed(data)?) as usize;
    data[4..].get(..size).ok_or(BROKEN)
}

fn decimal(info: u8, data: &[u8]) -> Result<Cell<'_>> {
    let (scale, rest) = data.split_first().ok_or(BROKEN)?;
    let value = match info {
        8 => i32::from_le_bytes(fixed(rest)?).into(),
        9 => i64::from_le_bytes(fixed(rest)?).into(),
        _ => i128::from_le_bytes(fixed(rest)?),
    };
    // 10^39 does not fit into 128 bits.
    if *scale > 38 {
        return Err(BROKEN);
    }
    Ok(Cell::Decimal(value, *scale))
}

pub const MISFIT: Refusal = Refusal::new("value does not plainly have its column's type", 0);

/// A value of any column, or in a variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Unscaled value and scale.
    Decimal(i128, u8),
    Double(f64),
    /// From a 32-bit column: its value is its shortest digits.
    Single(f32),
    /// Possibly invalid UTF-8; each message's bytes are checked as a whole.
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// Days since 1970.
    Date(i32),
    /// Microseconds since 1970 by a wall clock.
    Clock(i64),
    /// Microseconds since 1970 in UTC.
    Instant(i64),
    /// Microseconds.
    Duration(i64),
    /// An object or an array.
    Nested(Variant<'a>),
    /// A list, map or struct.
    Row(NestedRow<'a>),
    /// A value that no printer supports.
    Other,
}

/// A column of lists, maps or structs.
pub trait Nested {
    /// Whether the parts have names.
    fn is_object(&self) -> bool;
    fn count(&self, row: usize) -> usize;
    /// The name of a part, by its number.
    fn name(&self, row: usize, number: usize) -> Result<&[u8]>;
    fn cell(&self, row: usize, number: usize) -> Result<Cell<'_>>;
}

/// A value of such a column.
#[derive(Clone, Copy)]
pub struct NestedRow<'a> {
    pub column: &'a dyn Nested,
    pub row: usize,
}

impl std::fmt::Debug for NestedRow<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "row {} of a column", self.row)
    }
}

impl PartialEq for NestedRow<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.row == other.row && std::ptr::addr_eq(self.column, other.column)
    }
}

/// The parts of a nested value.
#[derive(Clone, Copy)]
pub enum Parts<'a> {
    Variant(Items<'a>),
    Row(NestedRow<'a>),
}

impl<'a> Parts<'a> {
    /// Whether they have names.
    pub fn is_object(self) -> bool {
        match self {
            Self::Variant(items) => items.is_object(),
            Self::Row(nested) => nested.column.is_object(),
        }
    }

    pub fn count(self) -> usize {
        match self {
            Self::Variant(items) => items.count,
            Self::Row(nested) => nested.column.count(nested.row),
        }
    }

    /// The name of a part, by its number.
    pub fn name(self, number: usize) -> Result<&'a [u8]> {
        match self {
            Self::Variant(items) => items.name(number),
            Self::Row(nested) => nested.column.name(nested.row, number),
        }
    }

    /// A part, by its number.
    pub fn cell(self, number: usize) -> Result<Cell<'a>> {
        match self {
            Self::Variant(items) => items.value(number)?.cell(),
            Self::Row(nested) => nested.column.cell(nested.row, number),
        }
    }
}

impl<'a> Cell<'a> {
    /// The parts of a nested value.
    pub fn parts(self) -> Result<Parts<'a>> {
        match self {
            Cell::Nested(variant) => Ok(Parts::Variant(variant.items()?)),
            Cell::Row(nested) => Ok(Parts::Row(nested)),
            _ => Err(MISFIT),
        }
    }

    /// The value as an integer, including integral decimals and booleans.
    pub fn integer(self) -> Option<i128> {
        match self {
            Cell::Int(value) => Some(value.into()),
            Cell::Decimal(value, 0) => Some(value),
            Cell::Bool(value) => Some(value.into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::from_json::Variants;

    #[test]
    fn objects_are_read_back() {
        let (mut value, mut metadata) = (Vec::new(), Vec::new());
        let text = r#"{"b": [1, "x"], "a": -300}"#;
        Variants::default()
            .append(text, &mut value, &mut metadata)
            .unwrap();
        let variant = Variant {
            value: &value,
            metadata: &metadata,
        };
        let items = variant.items().unwrap();
        assert!(variant.is_object() && items.count == 2);
        let a = items.find("a").unwrap().unwrap();
        assert_eq!(a.cell(), Ok(Cell::Int(-300)));
        let list = items.find("b").unwrap().unwrap().items().unwrap();
        assert_eq!(list.value(1).unwrap().cell(), Ok(Cell::Text(b"x")));
        assert_eq!(items.find("c"), Ok(None));
    }

    #[test]
    fn cut_bytes_are_refused() {
        for value in [
            &[][..],
            &[2],
            &[2, 9, 0],
            &[6 << 2, 1],
            &[16 << 2, 9, 0, 0, 0],
        ] {
            let variant = Variant {
                value,
                metadata: &[1, 0, 0],
            };
            assert!(variant.cell().and_then(|_| variant.items()).is_err());
        }
    }
}
