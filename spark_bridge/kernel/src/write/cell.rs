//! One value of a row that is written, as Arrow columns and variants have it.

use crate::refusal::Refusal;
use crate::write::variants::Variant;

pub const MISFIT: Refusal = Refusal::new("a value that is not plainly of its column's type", 0);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Unscaled value and scale.
    Decimal(i128, u8),
    Double(f64),
    /// Of a column of 32 bits: its shortest digits are what it is.
    Single(f32),
    /// Perhaps no UTF-8; a message's bytes are looked at as a whole.
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
    /// What no printer takes.
    Other,
}

impl Cell<'_> {
    /// An integer, also where a decimal or a boolean is one.
    pub fn integer(self) -> Option<i128> {
        match self {
            Cell::Int(value) => Some(value.into()),
            Cell::Decimal(value, 0) => Some(value),
            Cell::Bool(value) => Some(value.into()),
            _ => None,
        }
    }
}
