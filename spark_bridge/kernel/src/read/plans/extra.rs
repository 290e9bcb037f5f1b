//! An event's `extra`: facts of its message without a column, as a variant.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::json::{Cursor, Kind, Token, plain};
use crate::plan::Layout;
use crate::pool::Weighed;
use crate::refusal::{Refusal, Result};
use crate::text::equal;
use crate::text::numbers;
use crate::variant::Variants;
use crate::variant::encode::{check_size, object};

/// A part of `extra`, as described by the bridge.
#[derive(Deserialize)]
pub struct Description {
    name: String,
    /// The path of the member in the envelope; empty for `sequence_commit`.
    path: Option<Vec<String>>,
    /// Values for which the part is left out.
    without: Vec<Value>,
    /// Replaces a missing member; null: the part is left out.
    default: Value,
}

#[derive(PartialEq, Eq, Hash)]
struct Part {
    name: String,
    /// None for `sequence_commit`.
    leaf: Option<usize>,
    without: Vec<Value>,
    default: Option<String>,
}

/// The members of a message that `extra` may show.
pub struct ExtraSource<'a> {
    pub leaves: &'a [Token],
    pub document: &'a str,
    /// The commit that orders a message without `commit_ts`, as digits.
    pub sequence_commit: Option<String>,
}

impl ExtraSource<'_> {
    /// The value of a part, and its document.
    #[inline]
    fn leaf(&self, part: &Part) -> Result<(Token, &str)> {
        match (part.leaf, &self.sequence_commit) {
            (Some(leaf), _) => {
                let token = self.leaves.get(leaf).copied().unwrap_or_default();
                Ok((token, self.document))
            }
            (None, Some(text)) => Ok((whole(text)?, text)),
            (None, None) => Ok((Token::MISSING, self.document)),
        }
    }
}

/// The parts of `extra`, sorted by name.
#[derive(PartialEq, Eq, Hash)]
pub struct Extra {
    parts: Vec<Part>,
}

impl Extra {
    /// Refuses parts that the layout lacks.
    pub fn new(descriptions: Vec<Description>, layout: &Layout) -> Result<Self> {
        let mut parts = Vec::new();
        for description in descriptions {
            let no_leaf = || Refusal::new("plan names an unknown member for extra", 0);
            let leaf = match &description.path {
                None => None,
                Some(path) => Some(*layout.leaves.get(path).ok_or_else(no_leaf)?),
            };
            if description.default.is_object() || description.default.is_array() {
                return Err(Refusal::new(
                    "default of a member of extra is not a scalar",
                    0,
                ));
            }
            parts.push(Part {
                name: description.name,
                leaf,
                without: description.without,
                default: (!description.default.is_null()).then(|| description.default.to_string()),
            });
        }
        // Spark searches fields of a variant in Java's order.
        parts.sort_by(|one, other| one.name.encode_utf16().cmp(other.name.encode_utf16()));
        Ok(Self { parts })
    }

    /// Appends value and metadata; returns their approximate bytes, or None for an empty `extra`.
    pub fn append(
        &self,
        source: &ExtraSource,
        previous: &mut PreviousExtra,
        variants: &mut Variants,
        value: &mut Vec<u8>,
        metadata: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        // After a refusal the previous parts are invalid.
        let mut parts = std::mem::take(&mut previous.parts);
        let is_known = parts.len() == self.parts.len();
        parts.resize_with(self.parts.len(), PreviousPart::default);
        let (mut has_other_names, mut is_same) = (!is_known, is_known);
        for (part, known) in self.parts.iter().zip(&mut parts) {
            let (leaf, document) = source.leaf(part)?;
            if is_known && known.is(leaf, document) {
                continue;
            }
            is_same = false;
            let names_before = known.names();
            known.kind = leaf.kind;
            known.text.clear();
            known.text.push_str(leaf.text(document));
            known.size = part.size(leaf, document)?;
            // Nested values bring names of their own, to whose indexes all values refer.
            has_other_names |= known.names() != names_before || leaf.kind.is_nested();
            if known.size.is_some() && !has_other_names {
                let (text, token) = part.value(leaf, document)?;
                known.value.clear();
                variants.value(text, token, &mut known.value)?;
            }
        }
        if has_other_names {
            let present = || {
                self.parts
                    .iter()
                    .zip(&parts)
                    .filter(|(_, part)| part.size.is_some())
            };
            variants.begin(present().map(|(part, _)| part.name.as_str()));
            for (part, known) in self.parts.iter().zip(&mut parts) {
                known.value.clear();
                if known.size.is_some() {
                    let (leaf, document) = source.leaf(part)?;
                    let (text, token) = part.value(leaf, document)?;
                    variants.value(text, token, &mut known.value)?;
                }
            }
            previous.metadata.clear();
            variants.own_metadata(&mut previous.metadata);
        }
        if !is_same {
            let sizes = parts.iter().filter_map(|part| part.size);
            let count = sizes.clone().count();
            previous.size = (count > 0).then(|| sizes.sum());
            let present = parts.iter().filter(|part| part.size.is_some());
            previous.value.clear();
            object(
                present.map(|part| part.value.as_slice()),
                count,
                &mut previous.value,
            );
            check_size(previous.value.len())?;
            check_size(previous.metadata.len())?;
        }
        if previous.size.is_some() {
            value.extend_from_slice(&previous.value);
            metadata.extend_from_slice(&previous.metadata);
        }
        previous.parts = parts;
        Ok(previous.size)
    }
}

impl Weighed for Extra {
    fn bytes(&self) -> usize {
        let names = self.parts.iter().map(|part| part.name.len());
        size_of_val(&self.parts[..]) + names.sum::<usize>()
    }
}

/// The previous message's `extra`; most of its parts are equal in the next one.
#[derive(Default)]
pub struct PreviousExtra {
    extra: Option<Arc<Extra>>,
    parts: Vec<PreviousPart>,
    value: Vec<u8>,
    metadata: Vec<u8>,
    /// Approximate bytes; None for an empty `extra`.
    size: Option<usize>,
}

impl PreviousExtra {
    /// Clears parts of a different `extra`.
    pub fn begin(&mut self, extra: &Arc<Extra>) {
        let known = self.extra.as_ref();
        if !known.is_some_and(|known| Arc::ptr_eq(known, extra)) {
            *self = Self {
                extra: Some(Arc::clone(extra)),
                ..Self::default()
            };
        }
    }
}

#[derive(Default)]
struct PreviousPart {
    kind: Kind,
    text: String,
    /// None if left out.
    size: Option<usize>,
    /// The value as a variant; refers to the previous names.
    value: Vec<u8>,
}

impl PreviousPart {
    #[inline]
    fn is(&self, leaf: Token, document: &str) -> bool {
        self.kind == leaf.kind
            && leaf != Token::ELSEWHERE
            && equal(self.text.as_bytes(), leaf.bytes(document.as_bytes()))
    }

    /// Whether it exists, and whether it may have its own names.
    fn names(&self) -> (bool, bool) {
        (self.size.is_some(), self.kind.is_nested())
    }
}

impl Part {
    /// The value and its document; a missing member has null or its default.
    fn value<'a>(&'a self, leaf: Token, document: &'a str) -> Result<(&'a str, Token)> {
        Ok(match (leaf.kind, &self.default) {
            (Kind::Missing, Some(default)) => (default, whole(default)?),
            // A guessed member has no other kind.
            (Kind::Object, _) => (document, Cursor::at(document, leaf.start)?.value()?),
            _ => (document, leaf),
        })
    }

    /// Approximate bytes of a value; None if left out.
    fn size(&self, leaf: Token, document: &str) -> Result<Option<usize>> {
        let (text, token) = self.value(leaf, document)?;
        if token.kind == Kind::Missing {
            return Ok(None);
        }
        for value in &self.without {
            if is_equal(token, text, value)? {
                return Ok(None);
            }
        }
        // The reference decides whether null stands for the default.
        if token.kind == Kind::Null && self.default.is_some() {
            return Err(Refusal::new("null in extra", token.start as usize));
        }
        check(token, text)?;
        let length = token.text(text).len();
        // An estimate: numbers and nested values may take more in a variant than in JSON.
        let of_value = if token.is_text() {
            length
        } else {
            8 * length + 8
        };
        Ok(Some(self.name.len() + of_value))
    }
}

fn whole(text: &str) -> Result<Token> {
    Cursor::new(text)?.value()
}

fn is_equal(token: Token, document: &str, value: &Value) -> Result<bool> {
    let text = token.text(document);
    Ok(match (token.kind, value) {
        (Kind::Null, Value::Null)
        | (Kind::True, Value::Bool(true))
        | (Kind::False, Value::Bool(false)) => true,
        (Kind::Integer, Value::Number(number)) => {
            number.as_i64().map(i128::from) == numbers::integer(text)
        }
        (Kind::Text, Value::String(expected)) => text == expected,
        (Kind::Escaped, Value::String(expected)) => {
            plain(token, document, &mut Vec::new()) == expected
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

/// Accepts only integers of 64 bits: the reference reads others as doubles or decimals.
fn check(token: Token, document: &str) -> Result<()> {
    match token.kind {
        Kind::Fraction => Err(Refusal::new("fraction in extra", token.start as usize)),
        Kind::Integer if token.text(document).parse::<i64>().is_err() => {
            Err(Refusal::new("number in extra", token.start as usize))
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
