//! A value of a row to write, from Arrow columns or variants.

use crate::refusal::Refusal;
use crate::variant::Variant;

pub const MISFIT: Refusal = Refusal::new("value does not plainly have its column's type", 0);

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
    /// A value that no printer supports.
    Other,
}

impl Cell<'_> {
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
