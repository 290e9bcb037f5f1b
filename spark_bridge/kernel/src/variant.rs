//! The text of a JSON column to a variant (Parquet's *Variant Binary Encoding*).
//!
//! The bytes are those of `pyspark_cdcfmt/variant.py`. What that keeps as text (numbers beyond
//! 38 digits, deep nesting, text that is no JSON) and duplicate names are refused.

use std::collections::HashMap;

use crate::json::{Cursor, Kind, Token, unescape};
use crate::numbers;
use crate::refusal::{Refusal, Step};

pub const MAX_UNSCALED: i128 = 10_i128.pow(38);
const SHORT: usize = 64;
const PLAIN_ZEROS: u8 = 6;
/// Spark takes no larger value, nor larger metadata.
const SIZE_LIMIT: usize = 128 << 20;

/// Names that all variants of a plan have, and their metadata.
#[derive(Default)]
pub struct Dictionary {
    ids: HashMap<String, u32>,
    names: Vec<String>,
    pub metadata: Vec<u8>,
}

impl Dictionary {
    pub fn new(names: Vec<String>) -> Self {
        let mut metadata = Vec::new();
        push_metadata(&names, &[], &mut metadata);
        let ids = (0..).zip(&names).map(|(id, name)| (name.clone(), id));
        Self {
            ids: ids.collect(),
            names,
            metadata,
        }
    }
}

/// Makes variants; what it allocates is used again.
#[derive(Default)]
pub struct Variants {
    /// Names that the dictionary lacks.
    ids: HashMap<String, u32>,
    names: Vec<String>,
    nothing: Dictionary,
}

impl Variants {
    /// Appends value and metadata of a JSON document.
    pub fn append(&mut self, text: &str, value: &mut Vec<u8>, metadata: &mut Vec<u8>) -> Step<()> {
        let (start, before) = (value.len(), metadata.len());
        self.clear();
        let nothing = std::mem::take(&mut self.nothing);
        let result = self.document(&nothing, text, value);
        self.nothing = nothing;
        result?;
        push_metadata(&[], &self.names, metadata);
        if value.len() - start > SIZE_LIMIT || metadata.len() - before > SIZE_LIMIT {
            return Err(Refusal::new("a variant of more than 128 MiB", 0));
        }
        Ok(())
    }

    /// Appends value and metadata of an object of these members, in the order of their names:
    /// name, document and place of each.
    pub fn object_of(
        &mut self,
        fields: &[(&str, &str, Token)],
        value: &mut Vec<u8>,
        metadata: &mut Vec<u8>,
    ) -> Step<()> {
        self.clear();
        let nothing = std::mem::take(&mut self.nothing);
        let result = self.members(&nothing, fields, value);
        self.nothing = nothing;
        push_metadata(&[], &self.names, metadata);
        result
    }

    /// Forgets the names that dictionaries lacked.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.names.clear();
    }

    /// Whether there were names that the dictionary lacks.
    pub fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Appends the metadata of what was appended since `clear`.
    pub fn metadata(&self, dictionary: &Dictionary, out: &mut Vec<u8>) {
        if self.names.is_empty() {
            out.extend_from_slice(&dictionary.metadata);
        } else {
            push_metadata(&dictionary.names, &self.names, out);
        }
    }

    /// Appends the value of a JSON document.
    pub fn document(&mut self, dictionary: &Dictionary, text: &str, out: &mut Vec<u8>) -> Step<()> {
        let mut cursor = Cursor::new(text)?;
        let token = cursor.value()?;
        cursor.end()?;
        self.encode(dictionary, text, token, out)
    }

    fn encode(
        &mut self,
        dictionary: &Dictionary,
        text: &str,
        token: Token,
        out: &mut Vec<u8>,
    ) -> Step<()> {
        match token.kind {
            Kind::Null => out.push(NULL),
            Kind::True => boolean(true, out),
            Kind::False => boolean(false, out),
            Kind::Text => string(token.text(text).as_bytes(), out),
            Kind::Escaped => {
                let mut plain = String::new();
                unescape(token.text(text), &mut plain);
                string(plain.as_bytes(), out);
            }
            Kind::Integer | Kind::Fraction => {
                number(token, text, out).ok_or(Refusal::new("a number in JSON", 0))?;
            }
            Kind::Array => self.array(dictionary, text, token, out)?,
            Kind::Object => self.object(dictionary, text, token, out)?,
            Kind::Missing => return Err(Refusal::new("no JSON value", 0)),
        }
        Ok(())
    }

    fn array(
        &mut self,
        dictionary: &Dictionary,
        text: &str,
        token: Token,
        out: &mut Vec<u8>,
    ) -> Step<()> {
        let start = out.len();
        let mut offsets = vec![0];
        let mut cursor = Cursor::at(text, token.start + 1)?;
        if !cursor.take(b']') {
            loop {
                let item = cursor.value()?;
                self.encode(dictionary, text, item, out)?;
                offsets.push(out.len() - start);
                if !cursor.more(b']')? {
                    break;
                }
            }
        }
        let count = offsets.len() - 1;
        let width = width(out.len() - start);
        let mut head = vec![u8::from(count > 0xff) << 4 | (width - 1) << 2 | 3];
        push_count(count, &mut head);
        push_all(&offsets, width, &mut head);
        out.splice(start..start, head);
        Ok(())
    }

    fn object(
        &mut self,
        dictionary: &Dictionary,
        text: &str,
        token: Token,
        out: &mut Vec<u8>,
    ) -> Step<()> {
        let mut fields: Vec<(String, Token)> = Vec::new();
        let mut cursor = Cursor::at(text, token.start + 1)?;
        if !cursor.take(b'}') {
            loop {
                let name = cursor.name()?;
                let mut plain = String::new();
                unescape(name.text(text), &mut plain);
                fields.push((plain, cursor.value()?));
                if !cursor.more(b'}')? {
                    break;
                }
            }
        }
        if fields.iter().all(|(name, _)| name.is_ascii()) {
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        } else {
            // Spark looks fields up by Java's order.
            fields.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
        }
        if fields.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Refusal::new(
                "two members of one name",
                token.start as usize,
            ));
        }
        let fields: Vec<(&str, &str, Token)> = fields
            .iter()
            .map(|(name, value)| (name.as_str(), text, *value))
            .collect();
        self.members(dictionary, &fields, out)
    }

    fn members(
        &mut self,
        dictionary: &Dictionary,
        fields: &[(&str, &str, Token)],
        out: &mut Vec<u8>,
    ) -> Step<()> {
        let start = out.len();
        let mut ids = Vec::with_capacity(fields.len());
        for (name, _, _) in fields {
            let known = dictionary.ids.get(*name).or_else(|| self.ids.get(*name));
            let id = match known {
                Some(id) => *id as usize,
                None => {
                    let next = dictionary.names.len() + self.names.len();
                    self.ids
                        .insert((*name).to_owned(), u32::try_from(next).unwrap_or(u32::MAX));
                    self.names.push((*name).to_owned());
                    next
                }
            };
            ids.push(id);
        }
        let mut offsets = vec![0];
        for (_, text, value) in fields {
            self.encode(dictionary, text, *value, out)?;
            offsets.push(out.len() - start);
        }
        let mut head = Vec::new();
        object_head(&ids, width(out.len() - start), &mut head);
        push_all(&offsets, width(out.len() - start), &mut head);
        out.splice(start..start, head);
        Ok(())
    }
}

/// Header, number of fields and field ids: all that stands before the offsets.
pub fn object_head(ids: &[usize], offset_width: u8, out: &mut Vec<u8>) {
    let id_width = width(ids.iter().copied().max().unwrap_or(0));
    let large = u8::from(ids.len() > 0xff);
    out.push(large << 6 | (id_width - 1) << 4 | (offset_width - 1) << 2 | 2);
    push_count(ids.len(), out);
    push_all(ids, id_width, out);
}

fn push_metadata(first: &[String], second: &[String], out: &mut Vec<u8>) {
    let names = || first.iter().chain(second);
    let count = first.len() + second.len();
    let mut offsets = vec![count, 0];
    let mut total = 0;
    for name in names() {
        total += name.len();
        offsets.push(total);
    }
    let width = width(total.max(count));
    let in_order = count > 0
        && names()
            .zip(names().skip(1))
            .all(|(one, next)| one.as_bytes() < next.as_bytes());
    out.push((width - 1) << 6 | u8::from(in_order) << 4 | 1);
    push_all(&offsets, width, out);
    for name in names() {
        out.extend_from_slice(name.as_bytes());
    }
}

/// Bytes for each id or offset.
pub fn width(largest: usize) -> u8 {
    match largest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

pub fn push_all(numbers: &[usize], width: u8, out: &mut Vec<u8>) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes()[..usize::from(width)]);
    }
}

fn push_count(count: usize, out: &mut Vec<u8>) {
    push_all(&[count], if count < 0x100 { 1 } else { 4 }, out);
}

pub const NULL: u8 = 0;

pub fn boolean(value: bool, out: &mut Vec<u8>) {
    out.push(if value { 1 << 2 } else { 2 << 2 });
}

/// A primitive: the number of its type and its bytes.
pub fn primitive<const N: usize>(kind: u8, bytes: [u8; N], out: &mut Vec<u8>) {
    out.push(kind << 2);
    out.extend_from_slice(&bytes);
}

pub fn string(data: &[u8], out: &mut Vec<u8>) {
    if data.len() < SHORT {
        #[allow(clippy::cast_possible_truncation)]
        out.push((data.len() as u8) << 2 | 1);
    } else {
        out.push(16 << 2);
        push_all(&[data.len()], 4, out);
    }
    out.extend_from_slice(data);
}

fn number(token: Token, text: &str, out: &mut Vec<u8>) -> Option<()> {
    let text = token.text(text);
    if token.kind == Kind::Integer {
        if text == "-0" {
            return None;
        }
        integer(numbers::integer(text)?, out);
        return Some(());
    }
    if memchr::memchr2(b'e', b'E', text.as_bytes()).is_some() {
        return None;
    }
    let (value, scale) = numbers::decimal(text)?;
    unscaled(value, scale, out);
    Some(())
}

pub fn integer(value: i128, out: &mut Vec<u8>) {
    if let Ok(value) = i8::try_from(value) {
        primitive(3, value.to_le_bytes(), out);
    } else if let Ok(value) = i16::try_from(value) {
        primitive(4, value.to_le_bytes(), out);
    } else if let Ok(value) = i32::try_from(value) {
        primitive(5, value.to_le_bytes(), out);
    } else if let Ok(value) = i64::try_from(value) {
        primitive(6, value.to_le_bytes(), out);
    } else {
        unscaled(value, 0, out);
    }
}

pub fn unscaled(value: i128, scale: u8, out: &mut Vec<u8>) {
    debug_assert!(value.abs() < MAX_UNSCALED);
    // The reference prints such a zero with an exponent, and then as 0.
    let scale = if value == 0 && scale > PLAIN_ZEROS {
        0
    } else {
        scale
    };
    let size = value.abs();
    let (kind, bytes) = if scale <= 9 && size < 1_000_000_000 {
        (8, 4)
    } else if scale <= 18 && size < 1_000_000_000_000_000_000 {
        (9, 8)
    } else {
        (10, 16)
    };
    out.extend_from_slice(&[kind << 2, scale]);
    out.extend_from_slice(&value.to_le_bytes()[..bytes]);
}
