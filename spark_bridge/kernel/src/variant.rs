//! The text of a JSON column to a variant (Parquet's *Variant Binary Encoding*).
//!
//! The bytes are those of `pyspark_cdcfmt/rows/variant.py`. What that keeps as text (numbers beyond
//! 38 digits, deep nesting, text that is no JSON) and duplicate names are refused.

use crate::columns::plain;
use crate::json::{Cursor, Kind, Token, unescape};
use crate::names::{Names, Texts};
use crate::numbers;
use crate::refusal::{Refusal, Step};

pub const MAX_UNSCALED: i128 = 10_i128.pow(38);
const SHORT: usize = 64;
const PLAIN_ZEROS: u8 = 6;
/// Spark takes no larger value, nor larger metadata.
const SIZE_LIMIT: usize = 128 << 20;

/// Names that all variants of a plan have, and their metadata.
#[derive(Default, PartialEq, Eq, Hash)]
pub struct Dictionary {
    names: Names,
    pub metadata: Vec<u8>,
}

impl Dictionary {
    pub fn new(ordered: &[String]) -> Self {
        let mut names = Names::default();
        for name in ordered {
            names.add(name, 0);
        }
        let mut metadata = Vec::new();
        push_metadata(&names.texts, &Texts::default(), &mut metadata);
        Self { names, metadata }
    }

    /// About what it takes.
    pub fn bytes(&self) -> usize {
        self.names.bytes() + self.metadata.len()
    }
}

/// A member of an object: where its name lies among the texts, and its value in the document.
#[derive(Clone, Copy)]
struct Field {
    name: (usize, usize),
    value: Token,
}

/// Makes variants; what it allocates is used again.
#[derive(Default)]
pub struct Variants {
    /// Those that the dictionary lacks.
    names: Names,
    nothing: Dictionary,
    // Stacks, as objects and arrays are nested.
    fields: Vec<Field>,
    texts: String,
    ends: Vec<usize>,
    /// The last text without its escapes.
    plain: String,
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
        push_metadata(&Texts::default(), &self.names.texts, metadata);
        check_size(value.len() - start)?;
        check_size(metadata.len() - before)
    }

    /// The names of an object, before those that its values have.
    pub fn begin<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.clear();
        for name in names {
            self.names.add(name, 0);
        }
    }

    /// Appends a value of the object.
    pub fn value(&mut self, text: &str, token: Token, out: &mut Vec<u8>) -> Step<()> {
        let nothing = std::mem::take(&mut self.nothing);
        let result = self.encode(&nothing, text, token, out);
        self.nothing = nothing;
        result
    }

    /// Appends the metadata of the object and its values.
    pub fn own_metadata(&self, out: &mut Vec<u8>) {
        push_metadata(&Texts::default(), &self.names.texts, out);
    }

    /// Forgets the names that dictionaries lacked.
    pub fn clear(&mut self) {
        self.names.clear();
        self.fields.clear();
        self.texts.clear();
        self.ends.clear();
    }

    /// Appends the metadata of what was appended since `clear`.
    pub fn metadata(&self, dictionary: &Dictionary, out: &mut Vec<u8>) {
        if self.names.texts.is_empty() {
            out.extend_from_slice(&dictionary.metadata);
        } else {
            push_metadata(&dictionary.names.texts, &self.names.texts, out);
        }
    }

    /// Appends the value of a JSON document.
    pub fn document(&mut self, dictionary: &Dictionary, text: &str, out: &mut Vec<u8>) -> Step<()> {
        let token = Cursor::new(text)?.document()?;
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
                unescape(token.text(text), &mut self.plain);
                string(self.plain.as_bytes(), out);
            }
            Kind::Integer | Kind::Fraction => {
                number(token, text, out).ok_or(Refusal::new("a number in JSON", 0))?;
            }
            Kind::Array => self.array(dictionary, text, token, out)?,
            Kind::Object => self.object(dictionary, text, token, out)?,
            Kind::Missing | Kind::Long | Kind::Double => {
                return Err(Refusal::new("no JSON value", 0));
            }
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
        let (start, first) = (out.len(), self.ends.len());
        let mut cursor = Cursor::at(text, token.start + 1)?;
        if !cursor.take(b']') {
            loop {
                let item = cursor.value()?;
                self.encode(dictionary, text, item, out)?;
                self.ends.push(out.len() - start);
                if !cursor.more(b']')? {
                    break;
                }
            }
        }
        let count = self.ends.len() - first;
        let width = self.offsets(first, start, out);
        let mut head = [3, 0, 0, 0, 0];
        head[0] |= u8::from(count > 0xff) << 4 | width << 2;
        let size = count_into(count, &mut head);
        insert(&head[..size], start, out);
        Ok(())
    }

    fn object(
        &mut self,
        dictionary: &Dictionary,
        text: &str,
        token: Token,
        out: &mut Vec<u8>,
    ) -> Step<()> {
        let (first, first_text) = (self.fields.len(), self.texts.len());
        let mut cursor = Cursor::at(text, token.start + 1)?;
        if !cursor.take(b'}') {
            loop {
                let name = cursor.name()?;
                let start = self.texts.len();
                self.texts.push_str(plain(name, text, &mut self.plain));
                let name = (start, self.texts.len());
                let value = cursor.value()?;
                self.fields.push(Field { name, value });
                if !cursor.more(b'}')? {
                    break;
                }
            }
        }
        let fields = &mut self.fields[first..];
        let name = |field: &Field| &self.texts[field.name.0..field.name.1];
        if self.texts[first_text..].is_ascii() {
            fields.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        } else {
            // Spark looks fields up by Java's order.
            fields.sort_unstable_by(|one, other| {
                let (one, other) = (name(one).encode_utf16(), name(other).encode_utf16());
                one.cmp(other)
            });
        }
        if fields
            .windows(2)
            .any(|pair| name(&pair[0]) == name(&pair[1]))
        {
            return Err(Refusal::new(
                "two members of one name",
                token.start as usize,
            ));
        }
        let (start, first_id) = (out.len(), self.ends.len());
        for field in &*fields {
            let name = name(field);
            let known = dictionary.names.find(name);
            let known = known.unwrap_or_else(|| self.names.add(name, dictionary.names.texts.len()));
            self.ends.push(known);
        }
        object_head(&self.ends[first_id..], 1, out);
        self.ends.truncate(first_id);
        let (values, count) = (out.len(), fields.len());
        for place in first..first + count {
            let value = self.fields[place].value;
            self.encode(dictionary, text, value, out)?;
            self.ends.push(out.len() - values);
        }
        out[start] |= self.offsets(first_id, values, out) << 2;
        self.fields.truncate(first);
        self.texts.truncate(first_text);
        Ok(())
    }

    /// Puts offsets before values that begin at `values`, whose ends are the last ones from
    /// `first` on; what a header says of their width.
    fn offsets(&mut self, first: usize, values: usize, out: &mut Vec<u8>) -> u8 {
        let width = width(out.len() - values);
        let ends = &self.ends[first..];
        let size = out.len();
        let gap = (ends.len() + 1) * usize::from(width);
        out.resize(size + gap, 0);
        out.copy_within(values..size, values + gap);
        let mut at = values;
        for offset in std::iter::once(&0).chain(ends) {
            let bytes = &offset.to_le_bytes()[..usize::from(width)];
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        }
        self.ends.truncate(first);
        width - 1
    }
}

/// Refuses a value, or metadata, that Spark does not take.
pub fn check_size(size: usize) -> Step<()> {
    if size > SIZE_LIMIT {
        return Err(Refusal::new("a variant of more than 128 MiB", 0));
    }
    Ok(())
}

fn insert(bytes: &[u8], at: usize, out: &mut Vec<u8>) {
    let size = out.len();
    out.resize(size + bytes.len(), 0);
    out.copy_within(at..size, at + bytes.len());
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Appends an object of as many values, with the first names in their order.
pub fn object<'a>(values: impl Iterator<Item = &'a [u8]> + Clone, count: usize, out: &mut Vec<u8>) {
    let width = width(values.clone().map(<[u8]>::len).sum());
    let ids: Vec<usize> = (0..count).collect();
    object_head(&ids, width, out);
    let mut end = 0;
    push_all(&[end], width, out);
    for value in values.clone() {
        end += value.len();
        push_all(&[end], width, out);
    }
    values.for_each(|value| out.extend_from_slice(value));
}

/// Header, number of fields and field ids: all that stands before the offsets.
pub fn object_head(ids: &[usize], offset_width: u8, out: &mut Vec<u8>) {
    let id_width = width(ids.iter().copied().max().unwrap_or(0));
    let large = u8::from(ids.len() > 0xff);
    out.push(large << 6 | (id_width - 1) << 4 | (offset_width - 1) << 2 | 2);
    let mut head = [0; 5];
    let size = count_into(ids.len(), &mut head);
    out.extend_from_slice(&head[1..size]);
    push_all(ids, id_width, out);
}

/// Puts a count behind a header; the bytes of both.
fn count_into(count: usize, head: &mut [u8; 5]) -> usize {
    let width = if count < 0x100 { 1 } else { 4 };
    head[1..=width].copy_from_slice(&count.to_le_bytes()[..width]);
    1 + width
}

fn push_metadata(first: &Texts, second: &Texts, out: &mut Vec<u8>) {
    let count = first.ends.len() + second.ends.len();
    let total = first.text.len() + second.text.len();
    let names = || first.iter().chain(second.iter());
    let width = width(total.max(count));
    let in_order = count > 0
        && names()
            .zip(names().skip(1))
            .all(|(one, next)| one.as_bytes() < next.as_bytes());
    out.push((width - 1) << 6 | u8::from(in_order) << 4 | 1);
    push_all(&[count, 0], width, out);
    push_all(&first.ends, width, out);
    for end in &second.ends {
        push_all(&[first.text.len() + end], width, out);
    }
    out.extend_from_slice(first.text.as_bytes());
    out.extend_from_slice(second.text.as_bytes());
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
