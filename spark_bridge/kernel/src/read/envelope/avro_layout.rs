//! The layout of rows in Avro records: roles of fields, and reading of the envelope.

use std::collections::HashMap;

use serde::Deserialize;

use crate::avro::Datum;
use crate::avro::Type;
use crate::json::{Kind, Token};
use crate::read::envelope::layout::{Layout, Member, Role, RoleOrMembers};
use crate::read::envelope::roles::long;
use crate::read::envelope::{Envelope, KEPT_BYTES};
use crate::refusal::Result;

/// The writer's schema, and facts that it does not express (`cdcfmt_core/layout.py`).
#[derive(Clone, Debug, Deserialize)]
pub struct AvroLayout {
    schema: Type,
    /// By record in images: the field with the value.
    pub values: HashMap<String, String>,
    /// The symbol of an enumeration in images that means NULL; other symbols mean a missing value.
    pub null: Option<String>,
    /// Trailing fields that a message may lack.
    optional: Vec<String>,
    /// By field: the smallest number besides 0.
    least: HashMap<String, i64>,
    /// By map: names whose values are parts of the schema key.
    key_names: HashMap<String, Vec<String>>,
    #[serde(skip)]
    pub slots: Vec<Slot>,
}

/// A field of the message.
#[derive(Clone, Debug)]
pub struct Slot {
    pub type_: Type,
    pub role: Role,
    /// Index among the slots.
    number: usize,
    leaf: Option<usize>,
    is_optional: bool,
    least: Option<i64>,
    key_names: Vec<String>,
}

impl AvroLayout {
    /// Assigns the members' roles to the fields; fields without a role are skipped.
    pub fn prepare(&mut self, members: &[Member]) {
        let mut slots = Vec::new();
        self.add_slots(&self.schema, members, &mut slots);
        self.slots = slots;
    }

    fn add_slots(&self, record: &Type, members: &[Member], slots: &mut Vec<Slot>) {
        let Type::Record(fields) = record else {
            return;
        };
        for field in fields.iter() {
            let member = members.iter().find(|member| member.name == field.name);
            let (role, leaf) = match member.map(|member| (&member.role, member.leaf)) {
                Some((RoleOrMembers::Members(inner), _)) => {
                    self.add_slots(&field.type_, inner, slots);
                    continue;
                }
                Some((RoleOrMembers::Role(role), leaf)) => (*role, Some(leaf)),
                None => (Role::Passed, None),
            };
            slots.push(Slot {
                type_: field.type_.clone(),
                role,
                number: slots.len(),
                leaf,
                is_optional: self.optional.contains(&field.name),
                least: self.least.get(&field.name).copied(),
                key_names: self.key_names.get(&field.name).cloned().unwrap_or_default(),
            });
        }
    }

    /// The type of values in images (of a map or a list), and whether it is a map.
    pub fn cells(&self) -> Option<(&Type, bool)> {
        let slot = self.slots.iter().find(|slot| slot.is_image())?;
        let branches = match &slot.type_ {
            Type::Union(branches) => branches.iter().map(|branch| &branch.type_).collect(),
            other => vec![other],
        };
        branches.into_iter().find_map(|type_| match type_ {
            Type::Map(inner) => Some((&**inner, true)),
            Type::Array(inner) => Some((&**inner, false)),
            _ => None,
        })
    }
}

/// An object or a list that is usually equal in the next message.
#[derive(Default)]
pub struct PreviousDatum {
    /// Its encoded bytes; no other value of its type begins with them.
    bytes: Vec<u8>,
    /// Its JSON, if needed.
    printed: Vec<u8>,
}

impl PreviousDatum {
    /// Takes this value if it is next.
    fn is_next(&self, datum: &mut Datum) -> bool {
        !self.bytes.is_empty() && datum.take_all(&self.bytes)
    }

    fn set(&mut self, bytes: &[u8], printed: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.printed.clear();
        self.printed.extend_from_slice(printed);
    }

    fn token(&self, is_printed: bool, document: &mut Vec<u8>) -> Token {
        if !is_printed {
            return Token::ELSEWHERE;
        }
        let start = document.len();
        document.extend_from_slice(&self.printed);
        let is_list = self.printed.starts_with(b"[");
        let kind = if is_list { Kind::Array } else { Kind::Object };
        Token::new(kind, start, document.len())
    }
}

impl Slot {
    pub fn is_image(&self) -> bool {
        matches!(self.role, Role::Before | Role::After)
    }
}

impl Envelope {
    /// Reads the fields of a message up to the first image; returns the index of its slot.
    ///
    /// `prints`: objects and lists are needed for `extra`.
    pub fn read_fields(
        &mut self,
        layout: &Layout,
        avro: &AvroLayout,
        datum: &mut Datum,
        prints: bool,
        document: &mut Vec<u8>,
    ) -> Result<usize> {
        self.start(layout);
        for (place, slot) in avro.slots.iter().enumerate() {
            if slot.is_image() {
                return Ok(place);
            }
            self.field(layout, slot, datum, prints, document)?;
        }
        datum.refuse("record without images")
    }

    /// Reads a field that is not an image.
    pub fn field(
        &mut self,
        layout: &Layout,
        slot: &Slot,
        datum: &mut Datum,
        prints: bool,
        document: &mut Vec<u8>,
    ) -> Result<()> {
        if slot.is_optional && datum.is_at_end() {
            return Ok(());
        }
        let (start, mut ahead) = (datum.position(), *datum);
        let is_printed = prints && slot.role == Role::Extra;
        // Parts of `extra` and words of rows are read as text.
        let is_bare = !prints && !matches!(slot.role, Role::Row | Role::Op);
        let previous = self.previous_values.get(slot.number);
        let token = if let Some(previous) = previous.filter(|previous| previous.is_next(datum)) {
            previous.token(is_printed, document)
        } else if let Some(token) = slot.type_.scalar(datum, is_bare, document)? {
            token
        } else {
            // After the index of the branch, if it is a union.
            *datum = Datum::clone(&ahead);
            let begin = document.len();
            if is_printed {
                slot.type_.print(datum, false, document)?;
            } else {
                slot.type_.skip(datum)?;
            }
            if slot.number >= self.previous_values.len() {
                self.previous_values
                    .resize_with(slot.number + 1, PreviousDatum::default);
            }
            let previous = &mut self.previous_values[slot.number];
            previous.set(datum.since(start), &document[begin..]);
            document.truncate(begin);
            let token = previous.token(is_printed, document);
            if previous.bytes.len() > KEPT_BYTES {
                *previous = PreviousDatum::default();
            }
            token
        };
        if let Some(least) = slot.least
            && long(token, document).is_none_or(|number| number != 0 && number < least)
        {
            return datum.refuse("number is too small");
        }
        if slot.role == Role::Same {
            self.schema_key.extend_from_slice(datum.since(start));
        }
        if !slot.key_names.is_empty() {
            self.key_of_map(slot, &mut ahead)?;
        }
        if let Some(leaf) = slot.leaf {
            self.leaves[leaf] = token;
        }
        self.member(layout, slot.role, 0, token, document)
    }

    /// Adds a map's values of the key names to the schema key.
    fn key_of_map(&mut self, slot: &Slot, datum: &mut Datum) -> Result<()> {
        let Type::Map(inner) = &slot.type_ else {
            return datum.refuse("members of the schema key are not in a map");
        };
        let mut found = vec![None; slot.key_names.len()];
        let mut all = 0;
        loop {
            let count = datum.block(all)?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                let name = datum.text()?;
                let start = datum.position();
                inner.skip(datum)?;
                let place = slot.key_names.iter().position(|known| known == name);
                if let Some(place) = place
                    && found[place].replace(datum.since(start)).is_some()
                {
                    return datum.refuse("two members have one name");
                }
            }
            all += count;
        }
        for value in found {
            self.schema_key.push(u8::from(value.is_some()));
            self.schema_key.extend_from_slice(value.unwrap_or_default());
        }
        Ok(())
    }
}
