//! The interface for the output of value encodings: one cell after the other.

use serde::Deserialize;

use crate::json::{Token, plain};
use crate::refusal::{Reason, Refusal, Result};
use crate::variant::Variants;

/// The form of a column's integers in images, for all values of the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    Plain,
    Decimal,
    Boolean,
    /// Negative values are left to the reference.
    Signless,
}

impl Form {
    /// Refuses an integer whose sign is not known.
    pub fn check(self, value: i128) -> Result<()> {
        // Debezium may write unsigned BIGINT as signed.  `extra` names the columns with negative
        // values, a list that only the reference makes.
        if self == Self::Signless && (i128::from(i64::MIN)..0).contains(&value) {
            let text = "an integer whose sign is not known";
            return Err(Refusal::of(Reason::Doubt, text, 0));
        }
        Ok(())
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

    /// An object or array of a column without a type, as its own text.
    fn push_nested(&mut self, _text: &str, _variants: &mut Variants) -> Result<()> {
        Err(Refusal::new("object or list in a column of scalars", 0))
    }

    /// The text of a JSON column: parsed for a variant, else unchanged.
    fn push_json(&mut self, text: &str, variants: &mut Variants) -> Result<()>;
}
