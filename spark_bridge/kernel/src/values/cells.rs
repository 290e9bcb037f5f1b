//! The interface for the output of value encodings: one cell after the other.

use std::cmp::Ordering;

use crate::json::{Token, plain};
use crate::plan::Form;
use crate::refusal::{Reason, Refusal, Result};
use crate::values::temporal::Interval;
use crate::variant::Variants;

const NO_LIST: Refusal = Refusal::of(Reason::Target, "list or object in a column of scalars", 0);

/// An order of the members of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOrder {
    /// That of the message, or of the type's fields.
    Given,
    /// By the bytes of their names.
    Bytes,
    /// By UTF-16, as Spark searches the fields of variants.
    Utf16,
}

impl NameOrder {
    pub fn compare(self, one: &str, other: &str) -> Ordering {
        match self {
            Self::Given => Ordering::Equal,
            Self::Bytes => one.cmp(other),
            // ASCII has the same order in UTF-8 and UTF-16.
            Self::Utf16 if one.is_ascii() && other.is_ascii() => one.cmp(other),
            Self::Utf16 => one.encode_utf16().cmp(other.encode_utf16()),
        }
    }
}

/// A column of a batch, or an image of the events shape.
pub trait Cells {
    fn is_text(&self) -> bool;

    /// Whether it is a column of floats or doubles.
    fn is_float(&self) -> bool {
        false
    }

    /// Whether it is an image, which keeps a value's own type.
    fn is_image(&self) -> bool {
        false
    }

    fn push_null(&mut self) -> Result<()>;

    fn push_integer(&mut self, value: i128) -> Result<()>;

    fn push_decimal(&mut self, value: i128, scale: u8) -> Result<()>;

    fn push_float(&mut self, value: f64) -> Result<()>;

    /// An integer, or a decimal with its scale, parsed from `_text`, which has no exponent.
    fn push_number_text(&mut self, value: i128, scale: Option<u8>, _text: &str) -> Result<()> {
        match scale {
            None => self.push_integer(value),
            Some(scale) => self.push_decimal(value, scale),
        }
    }

    /// A finite number; `read` parses it from the text if needed.
    fn push_float_text(
        &mut self,
        text: &str,
        read: impl FnOnce(&str) -> Result<f64>,
    ) -> Result<()> {
        self.push_float(read(text)?)
    }

    fn push_boolean(&mut self, value: bool) -> Result<()>;

    fn push_text(&mut self, text: &str) -> Result<()>;

    /// Text as in the document.
    fn push_string(&mut self, token: Token, document: &str, scratch: &mut Vec<u8>) -> Result<()> {
        self.push_text(plain(token, document, scratch))
    }

    fn push_bytes(&mut self, data: &[u8]) -> Result<()>;

    /// Text with one byte per character (Latin-1), padded with zeros.
    fn push_latin1(&mut self, text: &str, padded: usize) -> Result<()>;

    /// The bytes of padded base64.
    fn push_base64(&mut self, text: &str) -> Result<()>;

    fn push_date(&mut self, days: i32) -> Result<()>;

    /// A wall clock.
    fn push_datetime(&mut self, micros: i64) -> Result<()>;

    fn push_instant(&mut self, micros: i64) -> Result<()>;

    /// A wall clock parsed from `_text`.
    fn push_datetime_text(&mut self, micros: i64, _text: &str) -> Result<()> {
        self.push_datetime(micros)
    }

    /// An instant in UTC, parsed from `_text`.
    fn push_instant_text(&mut self, micros: i64, _text: &str) -> Result<()> {
        self.push_instant(micros)
    }

    fn push_time(&mut self, micros: i64, fsp: Option<u32>, scratch: &mut String) -> Result<()>;

    /// An interval: text, unless the column has another type.
    fn push_interval(&mut self, value: Interval, scratch: &mut String) -> Result<()> {
        self.push_text(value.text(scratch))
    }

    /// Begins a list; each item is a cell of [`Self::item`].
    fn begin_list(&mut self) -> Result<()> {
        Err(NO_LIST)
    }

    /// Where the next item of the list goes; `form`: that of its integers in images.
    fn item(&mut self, _form: Form) -> Result<&mut Self> {
        Err(NO_LIST)
    }

    fn end_list(&mut self) -> Result<()> {
        Err(NO_LIST)
    }

    /// The order in which it takes the members of objects.
    fn order_of_names(&self) -> NameOrder {
        NameOrder::Given
    }

    /// Begins an object of these names, in the order of its members.
    fn begin_object(&mut self, _names: &[&str]) -> Result<()> {
        Err(NO_LIST)
    }

    /// Where the value of the next member goes; `place`: its index in `names`.
    fn member(&mut self, _place: usize, _name: &str, _form: Form) -> Result<&mut Self> {
        Err(NO_LIST)
    }

    fn end_object(&mut self) -> Result<()> {
        Err(NO_LIST)
    }

    /// An object or array of a column without a type, as its own text.
    fn push_nested(&mut self, _text: &str, _variants: &mut Variants) -> Result<()> {
        Err(Refusal::new("object or list in a column of scalars", 0))
    }

    /// The text of a JSON column: parsed for a variant, else unchanged.
    fn push_json(&mut self, text: &str, variants: &mut Variants) -> Result<()>;
}
