//! The schema key: what all messages with a plan have in common.

use crate::connect::{self, Key};
use crate::json::{Cursor, Kind, Token};
use crate::plan::Layout;
use crate::pool::Weighed;
use crate::read::envelope::Envelope;
use crate::read::plans::members::Members;
use crate::refusal::{Refusal, Result};
use crate::text::Names;

/// A part of the schema key.
#[derive(PartialEq, Eq, Hash)]
enum Part {
    Missing,
    /// The bytes of the value.
    Bytes(String),
    Members(Box<Members>),
}

/// The message key's part of the schema key.
#[derive(PartialEq, Eq, Hash)]
enum MessageKey {
    Nothing,
    /// Messages have no key.
    Missing,
    Columns(Key),
}

/// All that determines a table's schema, as bytes.
#[derive(PartialEq, Eq, Hash)]
pub struct SchemaKey {
    /// By the layout's parts.
    parts: Vec<Part>,
    /// For Avro.
    pub record: Vec<u8>,
    message: MessageKey,
}

impl SchemaKey {
    /// Makes the key of the document just read; `columns` are those of its table.
    pub fn new(
        layout: &Layout,
        envelope: &Envelope,
        document: &str,
        key_document: Option<&str>,
        columns: &Names,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        for (place, (token, name)) in envelope.key.iter().zip(&layout.parts).enumerate() {
            let part = if layout.schema == Some(place) && token.kind != Kind::Missing {
                let schema = token.text(document);
                // Once per plan: messages with the same bytes have the same schema.
                connect::check_schema(schema)?;
                // Searched once per plan: of each message, only the images are.
                if layout.has_foreign_text(schema) {
                    return Err(Refusal::new(
                        "unexpected text between fields",
                        token.start as usize,
                    ));
                }
                Part::Bytes(schema.to_owned())
            } else {
                part_of(*token, document)?
            };
            if layout.column_types.as_ref() == Some(name) {
                let Part::Members(types) = &part else {
                    return Err(Refusal::new(
                        "missing types of columns",
                        token.start as usize,
                    ));
                };
                // A column without a type may have another one in the next message, with an equal
                // key.
                if !columns.texts.iter().all(|name| types.is_text(name)) {
                    return Err(Refusal::new("column has no type", token.start as usize));
                }
            }
            parts.push(part);
        }
        Ok(Self {
            parts,
            record: envelope.schema_key.clone(),
            message: match key_document {
                _ if !layout.keyed => MessageKey::Nothing,
                None => MessageKey::Missing,
                Some(document) => MessageKey::Columns(Key::new(document)?),
            },
        })
    }

    /// Whether the envelope has these parts.
    pub fn fits(&self, envelope: &Envelope, document: &str) -> bool {
        let fits = |(part, token): (&Part, &Token)| match part {
            Part::Missing => token.kind == Kind::Missing,
            Part::Bytes(bytes) => token.whole_text(document) == bytes,
            Part::Members(members) => {
                let cursor = Cursor::at(document, token.start);
                token.kind == Kind::Object
                    && cursor.and_then(|mut cursor| members.are(&mut cursor)) == Ok(true)
            }
        };
        self.parts.iter().zip(&envelope.key).all(fits)
    }

    /// Whether a message's key has these columns.
    pub fn has_message_key(&self, document: Option<&str>) -> Result<bool> {
        match (&self.message, document) {
            (MessageKey::Nothing, _) | (MessageKey::Missing, None) => Ok(true),
            (MessageKey::Columns(key), Some(document)) => key.is(document),
            _ => Ok(false),
        }
    }

    /// The bytes of a part, unless it is an object in any order.
    pub fn bytes_of_part(&self, part: usize) -> Option<&str> {
        match &self.parts[part] {
            Part::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether the key lacks the same parts as a message.
    pub fn lacks_parts(&self, key: &[Token]) -> bool {
        key.iter()
            .zip(&self.parts)
            // Parts that exist were compared while they were read.
            .all(|(token, part)| token.kind != Kind::Missing || *part == Part::Missing)
    }

    /// Takes a part if it is next in the document.
    pub fn has_part(&self, part: usize, cursor: &mut Cursor) -> bool {
        match &self.parts[part] {
            Part::Missing => false,
            Part::Bytes(bytes) => cursor.take_all(bytes) && cursor.ends_value(),
            Part::Members(members) => members.are(cursor) == Ok(true),
        }
    }
}

impl Weighed for SchemaKey {
    fn bytes(&self) -> usize {
        let of_part = |part: &Part| match part {
            Part::Missing => 0,
            Part::Bytes(text) => text.len(),
            Part::Members(members) => size_of::<Members>() + members.bytes(),
        };
        let of_message = match &self.message {
            MessageKey::Columns(key) => key.bytes(),
            _ => 0,
        };
        let parts = self.parts.iter().map(of_part).sum::<usize>();
        let sizes = size_of::<Self>() + size_of_val(&self.parts[..]);
        sizes + parts + self.record.len() + of_message
    }
}

fn part_of(token: Token, document: &str) -> Result<Part> {
    match token.kind {
        Kind::Missing => Ok(Part::Missing),
        Kind::Object => Ok(Part::Members(Box::new(Members::read(token, document)?))),
        _ => Ok(Part::Bytes(token.whole_text(document).to_owned())),
    }
}
