//! An event's `extra`: what its message has and no other column shows, as a variant.

use serde::Deserialize;
use serde_json::Value;

use crate::columns::plain;
use crate::json::{Cursor, Kind, Token};
use crate::layout::Layout;
use crate::numbers;
use crate::refusal::{Refusal, Step};
use crate::variant::Variants;

/// A part of `extra`, as the bridge describes it.
#[derive(Deserialize)]
pub struct Description {
    name: String,
    /// Of the member in the envelope.
    path: Vec<String>,
    /// Values that leave the part out.
    without: Vec<Value>,
    /// Stands for a missing member; null leaves the part out.
    default: Value,
}

struct Part {
    name: String,
    leaf: usize,
    without: Vec<Value>,
    default: Option<String>,
}

/// The parts of `extra` in the order of their names.
pub struct Extra {
    parts: Vec<Part>,
}

impl Extra {
    pub fn new(descriptions: Vec<Description>, layout: &Layout) -> Step<Self> {
        let mut parts = Vec::new();
        for description in descriptions {
            let leaf = layout.leaves.get(&description.path);
            parts.push(Part {
                name: description.name,
                leaf: *leaf.ok_or(Refusal::new("no such member for extra", 0))?,
                without: description.without,
                default: (!description.default.is_null()).then(|| description.default.to_string()),
            });
        }
        parts.sort_by(|one, other| one.name.encode_utf16().cmp(other.name.encode_utf16()));
        Ok(Self { parts })
    }

    /// Appends value and metadata; about their bytes, or None for an empty `extra`.
    pub fn append(
        &self,
        leaves: &[Token],
        document: &str,
        variants: &mut Variants,
        value: &mut Vec<u8>,
        metadata: &mut Vec<u8>,
    ) -> Step<Option<usize>> {
        let mut fields: Vec<(&str, &str, Token)> = Vec::new();
        let mut size = 0;
        for part in &self.parts {
            let leaf = leaves.get(part.leaf).copied().unwrap_or_default();
            let (text, token) = match (leaf.kind, &part.default) {
                (Kind::Missing, None) => continue,
                (Kind::Missing, Some(default)) => (default.as_str(), whole(default)?),
                // What was guessed has no other kind.
                (Kind::Object, _) => (document, Cursor::at(document, leaf.start)?.value()?),
                _ => (document, leaf),
            };
            let mut left_out = false;
            for value in &part.without {
                left_out |= is_equal(token, text, value)?;
            }
            if left_out {
                continue;
            }
            if token.kind == Kind::Null && part.default.is_some() {
                return Err(Refusal::new("a null in extra", token.start as usize));
            }
            check(token, text)?;
            let length = token.text(text).len();
            size += part.name.len()
                + if token.is_text() {
                    length
                } else {
                    8 * length + 8
                };
            fields.push((&part.name, text, token));
        }
        if fields.is_empty() {
            return Ok(None);
        }
        variants.object_of(&fields, value, metadata)?;
        Ok(Some(size))
    }
}

fn whole(text: &str) -> Step<Token> {
    Cursor::new(text)?.value()
}

fn is_equal(token: Token, document: &str, value: &Value) -> Step<bool> {
    let text = token.text(document);
    Ok(match (token.kind, value) {
        (Kind::Null, Value::Null) | (Kind::True, Value::Bool(true)) => true,
        (Kind::False, Value::Bool(false)) => true,
        (Kind::Integer, Value::Number(number)) => {
            number.as_i64().map(i128::from) == numbers::integer(text)
        }
        (Kind::Text, Value::String(expected)) => text == expected,
        (Kind::Escaped, Value::String(expected)) => {
            plain(token, document, &mut String::new()) == expected
        }
        (Kind::Array | Kind::Object, Value::Array(items)) if items.is_empty() => {
            let mut cursor = Cursor::at(document, token.start + 1)?;
            token.kind == Kind::Array && cursor.take(b']')
        }
        (Kind::Array | Kind::Object, Value::Object(items)) if items.is_empty() => {
            let mut cursor = Cursor::at(document, token.start + 1)?;
            token.kind == Kind::Object && cursor.take(b'}')
        }
        _ => false,
    })
}

/// Numbers are integers of 64 bits: the reference has others as doubles, or as decimals.
fn check(token: Token, document: &str) -> Step<()> {
    match token.kind {
        Kind::Fraction => Err(Refusal::new("a fraction in extra", token.start as usize)),
        Kind::Integer if token.text(document).parse::<i64>().is_err() => {
            Err(Refusal::new("a number in extra", token.start as usize))
        }
        Kind::Array | Kind::Object => {
            let is_array = token.kind == Kind::Array;
            let end = if is_array { b']' } else { b'}' };
            let mut cursor = Cursor::at(document, token.start + 1)?;
            if cursor.take(end) {
                return Ok(());
            }
            loop {
                if !is_array {
                    cursor.name()?;
                }
                check(cursor.value()?, document)?;
                if !cursor.more(end)? {
                    return Ok(());
                }
            }
        }
        _ => Ok(()),
    }
}
