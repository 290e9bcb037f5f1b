//! Why a message or a row is left to the reference.

use pyo3::prelude::*;

/// What is unusual about a message or a row; the bridge branches on it.
///
/// Texts are for logs only: rewording one changes nothing else.
#[pyclass(
    eq,
    eq_int,
    hash,
    frozen,
    skip_from_py_object,
    rename_all = "SCREAMING_SNAKE_CASE"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The batch must be finished first.
    Full,
    /// No plan has the message's schema key, or the table of the row to write.
    UnknownSchema,
    /// The message names a writer schema that was not added.
    UnknownWriter,
    /// A value has a time zone that was not added.
    UnknownZone,
    /// The value of a column, in a message that otherwise fits.
    Value,
    /// A value that is converted to the declared type of its column, if it fits.
    Target,
    /// A value whose meaning the reference decides, or counts.
    Doubt,
    /// The message, or a row of it, is too large.
    Size,
    /// Anything else: the form of the message, its members, its operation.
    Message,
    /// The encoder must permit the row, or write it.
    NotPermitted,
    /// The printable characters must be set first.
    PrintableUnset,
    /// The kernel panicked, which is a bug.
    Panic,
}

/// The unusual fact, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Three words: a refusal is returned through every step of a value, so its size is a cost of all
// steps.
pub struct Refusal {
    pub text: &'static str,
    /// Byte of the document.
    at: u32,
    /// Index of the column in the plan.
    column: u16,
    pub reason: Reason,
}

const NO_COLUMN: u16 = u16::MAX;
const NO_BYTE: u32 = u32::MAX;

impl Refusal {
    /// A refusal of the message's form, at a byte of the document.
    pub const fn new(text: &'static str, at: usize) -> Self {
        Self::of(Reason::Message, text, at)
    }

    pub const fn of(reason: Reason, text: &'static str, at: usize) -> Self {
        // Documents are shorter than 4 GiB.
        Self {
            text,
            at: at as u32,
            column: NO_COLUMN,
            reason,
        }
    }

    /// The refusal of a whole message or row.
    pub const fn of_whole(reason: Reason, text: &'static str) -> Self {
        Self {
            text,
            at: NO_BYTE,
            column: NO_COLUMN,
            reason,
        }
    }

    /// The refusal of a column's value that begins at this byte; None if that is unknown.
    #[must_use]
    pub fn in_column(self, column: usize, at: Option<u32>) -> Self {
        // A step knows only that a text is wrong; that it was a column's value is known here.
        // Other reasons are more precise than that.
        let is_general = self.reason == Reason::Message;
        Self {
            at: at.unwrap_or(NO_BYTE),
            column: u16::try_from(column).unwrap_or(NO_COLUMN),
            reason: if is_general {
                Reason::Value
            } else {
                self.reason
            },
            ..self
        }
    }

    /// Byte of the document, if known.
    pub fn at(&self) -> Option<usize> {
        // A sentinel, as an `Option` would make every result larger.
        (self.at != NO_BYTE).then_some(self.at as usize)
    }

    /// Index of the column, if it is a value's refusal.
    pub fn column(&self) -> Option<usize> {
        (self.column != NO_COLUMN).then_some(self.column.into())
    }
}

/// The result of a step that may refuse the message or the row.
pub type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Why reading stopped at a message, or writing at a row.
#[pyclass(frozen, get_all, skip_from_py_object)]
#[derive(Clone, Debug)]
pub struct Stop {
    pub reason: Reason,
    pub text: &'static str,
    /// Byte of the message's value, if known.
    pub at: Option<usize>,
    /// The column of a value, and its value encoding.
    pub column: Option<String>,
    pub encoding: Option<&'static str>,
    /// Number of the event in its message.
    pub event: usize,
}

impl Stop {
    pub fn new(reason: Reason, text: &'static str) -> Self {
        Self {
            reason,
            text,
            at: None,
            column: None,
            encoding: None,
            event: 0,
        }
    }
}
