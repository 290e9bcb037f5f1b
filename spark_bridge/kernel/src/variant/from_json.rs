//! Converts the text of a JSON column to a variant (Parquet's *Variant Binary Encoding*).
//!
//! The bytes equal those of `pyspark_cdcfmt/rows/variant.py`. Refuses duplicate names, and what
//! that module keeps as text (numbers beyond 38 digits, deep nesting, invalid JSON).

use crate::json::{Cursor, Kind, Token, plain, unescape};
use crate::refusal::{Refusal, Result};
use crate::text::{Names, Texts};
use crate::variant::encode::{
    NULL, boolean, check_size, count_into, insert, number, object_head, push_all, string, width,
};

/// Names that all variants of a plan share, and their metadata.
#[derive(Default, PartialEq, Eq, Hash)]
pub struct Dictionary {
    names: Names,
    pub metadata: Vec<u8>,
}

impl Dictionary {
    /// The names of an image, in the order of its fields.
    pub fn new(ordered: &[String]) -> Self {
        let mut names = Names::default();
        for name in ordered {
            names.add(name, 0);
        }
        let mut metadata = Vec::new();
        push_metadata(&names.texts, &Texts::default(), &mut metadata);
        Self { names, metadata }
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        self.names.bytes() + self.metadata.len()
    }
}

/// A member of an object: the position of its name among the texts, and of its value.
#[derive(Clone, Copy)]
struct Field {
    name: (usize, usize),
    value: Token,
}

/// Makes variants; buffers are reused.
#[derive(Default)]
pub struct Variants {
    /// Whether members keep their order, for variants that are written as messages again.
    pub keeps_order: bool,
    /// Names that the dictionary lacks.
    names: Names,
    nothing: Dictionary,
    // Stacks, for nested objects and arrays.
    fields: Vec<Field>,
    texts: String,
    ends: Vec<usize>,
    /// Buffer for text without escapes.
    plain: Vec<u8>,
}

impl Variants {
    /// Appends value and metadata of a JSON document.
    pub fn append(
        &mut self,
        text: &str,
        value: &mut Vec<u8>,
        metadata: &mut Vec<u8>,
    ) -> Result<()> {
        let (start, before) = (value.len(), metadata.len());
        self.clear();
        // Taken out, as the dictionary is borrowed while `self` changes.
        let nothing = std::mem::take(&mut self.nothing);
        let result = self.document(&nothing, text, value);
        self.nothing = nothing;
        result?;
        push_metadata(&Texts::default(), &self.names.texts, metadata);
        check_size(value.len() - start)?;
        check_size(metadata.len() - before)
    }

    /// Adds the names of an object, before those of its values.
    pub fn begin<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.clear();
        for name in names {
            self.names.add(name, 0);
        }
    }

    /// Appends a value of the object.
    pub fn value(&mut self, text: &str, token: Token, out: &mut Vec<u8>) -> Result<()> {
        let nothing = std::mem::take(&mut self.nothing);
        let result = self.encode(&nothing, text, token, out);
        self.nothing = nothing;
        result
    }

    /// Appends the metadata of the object and its values.
    pub fn own_metadata(&self, out: &mut Vec<u8>) {
        push_metadata(&Texts::default(), &self.names.texts, out);
    }

    /// Clears the names that dictionaries lacked.
    pub fn clear(&mut self) {
        self.names.clear();
        self.fields.clear();
        self.texts.clear();
        self.ends.clear();
    }

    /// Whether any names are missing from dictionaries.
    pub fn has_any(&self) -> bool {
        !self.names.texts.is_empty()
    }

    /// Appends the metadata of everything appended since `clear`.
    pub fn metadata(&self, dictionary: &Dictionary, out: &mut Vec<u8>) {
        if self.names.texts.is_empty() {
            out.extend_from_slice(&dictionary.metadata);
        } else {
            push_metadata(&dictionary.names.texts, &self.names.texts, out);
        }
    }

    /// Appends the value of a JSON document.
    pub fn document(
        &mut self,
        dictionary: &Dictionary,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let token = Cursor::new(text)?.document()?;
        self.encode(dictionary, text, token, out)
    }

    fn encode(
        &mut self,
        dictionary: &Dictionary,
        text: &str,
        token: Token,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match token.kind {
            Kind::Null => out.push(NULL),
            Kind::True => boolean(true, out),
            Kind::False => boolean(false, out),
            Kind::Text => string(token.text(text).as_bytes(), out),
            Kind::Escaped => {
                string(unescape(token.text(text), &mut self.plain).as_bytes(), out);
            }
            Kind::Integer | Kind::Fraction => {
                number(token, text, out)
                    .ok_or(Refusal::new("number cannot be stored in a variant", 0))?;
            }
            Kind::Array => self.array(dictionary, text, token, out)?,
            Kind::Object => self.object(dictionary, text, token, out)?,
            Kind::Missing | Kind::Long | Kind::Double => {
                return Err(Refusal::new("invalid JSON value", 0));
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
    ) -> Result<()> {
        let (start, first) = (out.len(), self.ends.len());
        let mut cursor = Cursor::at(text, token.start + 1)?;
        if !cursor.take(b']') {
            loop {
                let item = cursor.value()?;
                self.encode(dictionary, text, item, out)?;
                self.end_value(start, out);
                if !cursor.more(b']')? {
                    break;
                }
            }
        }
        self.end_array(first, start, out);
        Ok(())
    }

    /// The number of ends of values, of all arrays and objects that are not yet complete.
    pub fn ends(&self) -> usize {
        self.ends.len()
    }

    /// Ends a value of the array or object whose values begin at `start`.
    pub fn end_value(&mut self, start: usize, out: &[u8]) {
        self.ends.push(out.len() - start);
    }

    /// Inserts the head of the array whose values begin at `start`; the last ends are theirs, from
    /// `first` on.
    pub fn end_array(&mut self, first: usize, start: usize, out: &mut Vec<u8>) {
        let count = self.ends.len() - first;
        let width = self.offsets(first, start, out);
        let mut head = [3, 0, 0, 0, 0];
        head[0] |= u8::from(count > 0xff) << 4 | width << 2;
        let size = count_into(count, &mut head);
        insert(&head[..size], start, out);
    }

    /// Appends the head of an object with these names, in order; its values follow.
    pub fn begin_object(&mut self, dictionary: &Dictionary, names: &[&str], out: &mut Vec<u8>) {
        let names = names.iter().copied();
        push_head(names, dictionary, &mut self.names, &mut self.ends, out);
    }

    /// Inserts the offsets of the object whose head and values begin there; as `end_array`.
    pub fn end_object(&mut self, first: usize, head: usize, start: usize, out: &mut Vec<u8>) {
        out[head] |= self.offsets(first, start, out) << 2;
    }

    fn object(
        &mut self,
        dictionary: &Dictionary,
        text: &str,
        token: Token,
        out: &mut Vec<u8>,
    ) -> Result<()> {
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
        let in_order = self.keeps_order.then(|| fields.to_vec());
        let name = |field: &Field| &self.texts[field.name.0..field.name.1];
        // ASCII has the same order in UTF-8 and UTF-16.
        if self.texts[first_text..].is_ascii() {
            fields.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        } else {
            // Spark searches fields in Java's order.
            fields.sort_unstable_by(|one, other| {
                let (one, other) = (name(one).encode_utf16(), name(other).encode_utf16());
                one.cmp(other)
            });
        }
        if fields
            .windows(2)
            // Python's parser keeps the last of them.
            .any(|pair| name(&pair[0]) == name(&pair[1]))
        {
            return Err(Refusal::new(
                "two members have one name",
                token.start as usize,
            ));
        }
        if let Some(in_order) = in_order {
            fields.copy_from_slice(&in_order);
        }
        let (head, first_id) = (out.len(), self.ends.len());
        let names = fields.iter().map(name);
        push_head(names, dictionary, &mut self.names, &mut self.ends, out);
        let (values, count) = (out.len(), fields.len());
        for place in first..first + count {
            let value = self.fields[place].value;
            self.encode(dictionary, text, value, out)?;
            self.end_value(values, out);
        }
        self.end_object(first_id, head, values, out);
        self.fields.truncate(first);
        self.texts.truncate(first_text);
        Ok(())
    }

    /// Inserts offsets before the values that begin at `values`; their ends are the last ones, from
    /// `first` on. Returns the header's bits for their width.
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

/// Appends an object's head, with the narrowest offsets: their width is known only when the values
/// are written.
fn push_head<'a>(
    names: impl Iterator<Item = &'a str>,
    dictionary: &Dictionary,
    others: &mut Names,
    ids: &mut Vec<usize>,
    out: &mut Vec<u8>,
) {
    let first = ids.len();
    for name in names {
        let known = dictionary.names.find(name);
        ids.push(known.unwrap_or_else(|| others.add(name, dictionary.names.texts.len())));
    }
    object_head(&ids[first..], 1, out);
    ids.truncate(first);
}

fn push_metadata(first: &Texts, second: &Texts, out: &mut Vec<u8>) {
    let count = first.len() + second.len();
    let total = first.text.len() + second.text.len();
    let names = || first.iter().chain(second.iter());
    let width = width(total.max(count));
    // The flag lets readers search names by halves.
    let in_order = count > 0
        && names()
            .zip(names().skip(1))
            .all(|(one, next)| one.as_bytes() < next.as_bytes());
    out.push((width - 1) << 6 | u8::from(in_order) << 4 | 1);
    push_all(&[count, 0], width, out);
    let behind = second.ends().map(|end| first.text.len() + end);
    for end in first.ends().chain(behind) {
        push_all(&[end], width, out);
    }
    out.extend_from_slice(first.text.as_bytes());
    out.extend_from_slice(second.text.as_bytes());
}
