//! Counted values: those that equal a column's default, and may mean NULL.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::json::{Kind, Token, plain};
use crate::refusal::{Reason, Refusal, Result};
use crate::text::numbers;

/// A JSON value, and the note to count it under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct DefaultNull {
    value: Value,
    pub note: Arc<str>,
}

impl DefaultNull {
    /// Whether a value equals this one by Python's rules, where 1 equals 1.0 and true.
    pub fn is(&self, token: Token, document: &str, scratch: &mut Vec<u8>) -> Result<bool> {
        let known = match &self.value {
            Value::String(text) => {
                return Ok(token.is_text() && plain(token, document, scratch) == text);
            }
            Value::Bool(value) => f64::from(*value),
            value => value.as_f64().unwrap_or(f64::NAN),
        };
        // Python's comparison decides, as the reference counts the same values.
        let text = token.text(document);
        let found = match token.kind {
            Kind::True => 1.0,
            Kind::False => 0.0,
            Kind::Integer | Kind::Fraction => text.parse().unwrap_or(f64::NAN),
            _ => return Ok(false),
        };
        if known != found {
            return Ok(false);
        }
        let whole = self.value.as_i64().map(i128::from);
        match (&self.value, token.kind) {
            (Value::Bool(_), Kind::True | Kind::False) => Ok(true),
            (Value::Number(value), Kind::Integer) if !value.is_f64() => {
                Ok(numbers::integer(text) == whole.or_else(|| value.as_u64().map(i128::from)))
            }
            // 1, 1.0 and true are equal in Python; which of them a column means is for the
            // reference to count.
            _ => Err(Refusal::of(
                Reason::Doubt,
                "value may equal the counted default",
                token.start as usize,
            )),
        }
    }
}
