//! The text of a JSON column to a variant (Parquet's *Variant Binary Encoding*).
//!
//! The bytes are those of `pyspark_cdcfmt/variant.py`. What that keeps as text (numbers beyond
//! 38 digits, deep nesting, text that is no JSON) and duplicate names are refused.

use std::collections::HashMap;

use crate::json::{Cursor, Kind, Token, unescape};
use crate::numbers;
use crate::refusal::{Refusal, Step};

const MAX_UNSCALED: i128 = 10_i128.pow(38);
const SHORT: usize = 64;
/// Spark takes no larger value, nor larger metadata.
const SIZE_LIMIT: usize = 128 << 20;

/// Makes variants; what it allocates is used again.
#[derive(Default)]
pub struct Variants {
    ids: HashMap<String, u32>,
    names: Vec<String>,
}

impl Variants {
    /// Appends value and metadata of a JSON document.
    pub fn append(&mut self, text: &str, value: &mut Vec<u8>, metadata: &mut Vec<u8>) -> Step<()> {
        self.ids.clear();
        self.names.clear();
        let (start, before) = (value.len(), metadata.len());
        let mut cursor = Cursor::new(text)?;
        let token = cursor.value()?;
        cursor.end()?;
        self.encode(text, token, value)?;
        self.metadata(metadata);
        if value.len() - start > SIZE_LIMIT || metadata.len() - before > SIZE_LIMIT {
            return Err(Refusal::new("a variant of more than 128 MiB", 0));
        }
        Ok(())
    }

    fn encode(&mut self, text: &str, token: Token, out: &mut Vec<u8>) -> Step<()> {
        match token.kind {
            Kind::Null => out.push(0),
            Kind::True => out.push(1 << 2),
            Kind::False => out.push(2 << 2),
            Kind::Text => string(token.text(text).as_bytes(), out),
            Kind::Escaped => {
                let mut plain = String::new();
                unescape(token.text(text), &mut plain);
                string(plain.as_bytes(), out);
            }
            Kind::Integer | Kind::Fraction => {
                number(token, text, out).ok_or(Refusal::new("a number in JSON", 0))?;
            }
            Kind::Array => self.array(text, token, out)?,
            Kind::Object => self.object(text, token, out)?,
            Kind::Missing => return Err(Refusal::new("no JSON value", 0)),
        }
        Ok(())
    }

    fn array(&mut self, text: &str, token: Token, out: &mut Vec<u8>) -> Step<()> {
        let start = out.len();
        let mut offsets = vec![0];
        let mut cursor = Cursor::at(text, token.start + 1)?;
        if !cursor.take(b']') {
            loop {
                let item = cursor.value()?;
                self.encode(text, item, out)?;
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

    fn object(&mut self, text: &str, token: Token, out: &mut Vec<u8>) -> Step<()> {
        let start = out.len();
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
        let mut ids = Vec::with_capacity(fields.len());
        for (name, _) in &fields {
            let next = self.names.len();
            let id = match self.ids.get(name) {
                Some(id) => *id as usize,
                None => {
                    self.ids
                        .insert(name.clone(), u32::try_from(next).unwrap_or(u32::MAX));
                    self.names.push(name.clone());
                    next
                }
            };
            ids.push(id);
        }
        let mut offsets = vec![0];
        for (_, value) in &fields {
            self.encode(text, *value, out)?;
            offsets.push(out.len() - start);
        }
        let offset_width = width(out.len() - start);
        let id_width = width(ids.iter().copied().max().unwrap_or(0));
        let large = u8::from(ids.len() > 0xff);
        let mut head = vec![large << 6 | (id_width - 1) << 4 | (offset_width - 1) << 2 | 2];
        push_count(ids.len(), &mut head);
        push_all(&ids, id_width, &mut head);
        push_all(&offsets, offset_width, &mut head);
        out.splice(start..start, head);
        Ok(())
    }

    fn metadata(&self, out: &mut Vec<u8>) {
        let mut offsets = vec![self.names.len(), 0];
        let mut total = 0;
        for name in &self.names {
            total += name.len();
            offsets.push(total);
        }
        let width = width(total.max(self.names.len()));
        let in_order = !self.names.is_empty()
            && self
                .names
                .windows(2)
                .all(|pair| pair[0].as_bytes() < pair[1].as_bytes());
        out.push((width - 1) << 6 | u8::from(in_order) << 4 | 1);
        push_all(&offsets, width, out);
        for name in &self.names {
            out.extend_from_slice(name.as_bytes());
        }
    }
}

/// Bytes for each id or offset.
fn width(largest: usize) -> u8 {
    match largest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

fn push_all(numbers: &[usize], width: u8, out: &mut Vec<u8>) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes()[..usize::from(width)]);
    }
}

fn push_count(count: usize, out: &mut Vec<u8>) {
    push_all(&[count], if count < 0x100 { 1 } else { 4 }, out);
}

fn string(data: &[u8], out: &mut Vec<u8>) {
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

fn integer(value: i128, out: &mut Vec<u8>) {
    #[allow(clippy::cast_possible_truncation)]
    if let Ok(value) = i8::try_from(value) {
        out.push(3 << 2);
        out.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        out.push(4 << 2);
        out.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        out.push(5 << 2);
        out.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = i64::try_from(value) {
        out.push(6 << 2);
        out.extend_from_slice(&value.to_le_bytes());
    } else {
        unscaled(value, 0, out);
    }
}

fn unscaled(value: i128, scale: u8, out: &mut Vec<u8>) {
    debug_assert!(value.abs() < MAX_UNSCALED);
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
