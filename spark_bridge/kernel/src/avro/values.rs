//! Values of an Avro type: read as tokens, printed as JSON, or skipped.

use simdutf8::basic::from_utf8;

use crate::avro::datum::{Datum, shortest_double};
use crate::avro::schema::Type;
use crate::json::{Kind, Token, find_special};
use crate::refusal::{Refusal, Result};
use crate::text::bytes::encode_base64;

impl Type {
    /// Skips a value, which must be valid.
    pub fn skip(&self, datum: &mut Datum) -> Result<()> {
        match self {
            Self::Null => {}
            Self::Boolean => _ = datum.boolean()?,
            Self::Int => _ = int(datum)?,
            Self::Long | Self::Unsigned => _ = datum.long()?,
            Self::Float => _ = datum.fixed::<4>()?,
            Self::Double => _ = datum.fixed::<8>()?,
            // Text that no row shows must be UTF-8, too: the reference decodes the whole message.
            Self::Text => _ = datum.text()?,
            Self::Bytes | Self::Base64 => _ = datum.bytes()?,
            Self::Fixed(size) => _ = datum.take(*size)?,
            Self::Enum(symbols) => _ = datum.choice(symbols.len())?,
            Self::Record(fields) => {
                for field in fields.iter() {
                    field.type_.skip(datum)?;
                }
            }
            Self::Union(branches) => {
                let branch = datum.choice(branches.len())?;
                branches[branch].type_.skip(datum)?;
            }
            Self::Array(inner) | Self::Map(inner) => {
                let mut all = 0;
                loop {
                    let count = datum.block(all)?;
                    if count == 0 {
                        break;
                    }
                    for _ in 0..count {
                        if matches!(self, Self::Map(_)) {
                            datum.text()?;
                        }
                        inner.skip(datum)?;
                    }
                    all += count;
                }
            }
        }
        Ok(())
    }

    /// Appends a value to the document and returns its token; None for objects and lists.
    ///
    /// Text is between quotes, without escapes, and may be invalid UTF-8; bytes become characters
    /// (Latin-1). `bare`: numbers become tokens without text.
    pub fn scalar(
        &self,
        datum: &mut Datum,
        bare: bool,
        document: &mut Vec<u8>,
    ) -> Result<Option<Token>> {
        let start = document.len();
        let simple = |kind| Ok(Some(Token::new(kind, start, start)));
        match self {
            Self::Null => simple(Kind::Null),
            Self::Boolean if datum.boolean()? => simple(Kind::True),
            Self::Boolean => simple(Kind::False),
            Self::Int => long(int(datum)?, bare, document),
            Self::Long => long(datum.long()?, bare, document),
            // Above 63 bits it has no token as a number, so it is text like any integer of JSON.
            Self::Unsigned => {
                let value = datum.long()?;
                if value >= 0 {
                    return long(value, bare, document);
                }
                push_unsigned(value as u64, document);
                Ok(Some(Token::new(Kind::Integer, start, document.len())))
            }
            Self::Float => {
                let value = f32::from_le_bytes(datum.fixed()?);
                double(shortest_double(value), bare, datum, document)
            }
            Self::Double => double(f64::from_le_bytes(datum.fixed()?), bare, datum, document),
            Self::Text => {
                document.push(b'"');
                let length = datum.append_bytes(document)?;
                document.push(b'"');
                Ok(Some(Token::new(Kind::Text, start + 1, start + 1 + length)))
            }
            Self::Bytes => {
                let bytes = datum.bytes()?;
                document.push(b'"');
                push_latin1(bytes, document);
                document.push(b'"');
                Ok(Some(Token::new(Kind::Text, start + 1, document.len() - 1)))
            }
            Self::Base64 => in_base64(datum.bytes()?, document),
            Self::Fixed(size) => in_base64(datum.take(*size)?, document),
            Self::Enum(symbols) => {
                let symbol = &symbols[datum.choice(symbols.len())?];
                quoted(symbol.as_bytes(), document)
            }
            Self::Union(branches) => {
                let branch = datum.choice(branches.len())?;
                branches[branch].type_.scalar(datum, bare, document)
            }
            Self::Record(_) | Self::Array(_) | Self::Map(_) => Ok(None),
        }
    }

    /// The big-endian integer in bytes, which are passed; None if it may exceed 64 bits.
    pub fn small_integer(&self, datum: &mut Datum) -> Result<Option<i64>> {
        let mut ahead = *datum;
        let bytes = match self {
            Self::Fixed(size) => ahead.take(*size)?,
            _ => ahead.bytes()?,
        };
        // No bytes are no number: the reader of bytes says so.
        let Some(first) = bytes.first().filter(|_| bytes.len() <= 8) else {
            return Ok(None);
        };
        *datum = ahead;
        let sign = -i64::from(first >> 7);
        let join = |value, byte: &u8| value << 8 | i64::from(*byte);
        Ok(Some(bytes.iter().fold(sign, join)))
    }

    /// Appends a value as JSON; records are objects, or lists of their values.
    pub fn print(&self, datum: &mut Datum, in_lists: bool, document: &mut Vec<u8>) -> Result<()> {
        let (opens, closes) = match self {
            Self::Record(_) if in_lists => (b'[', b']'),
            Self::Array(_) => (b'[', b']'),
            _ => (b'{', b'}'),
        };
        match self {
            Self::Null => document.extend_from_slice(b"null"),
            Self::Boolean => {
                let word: &[u8] = if datum.boolean()? { b"true" } else { b"false" };
                document.extend_from_slice(word);
            }
            // The whole document is checked later.
            Self::Text => push_escaped(datum.bytes()?, document)?,
            // JSON has no form of bytes; the reference chooses one.
            Self::Bytes => return datum.refuse("bytes among other values"),
            Self::Union(branches) => {
                let branch = datum.choice(branches.len())?;
                branches[branch].type_.print(datum, in_lists, document)?;
            }
            Self::Record(fields) => {
                document.push(opens);
                for (place, field) in fields.iter().enumerate() {
                    if place > 0 {
                        document.push(b',');
                    }
                    if !in_lists {
                        push_escaped(field.name.as_bytes(), document)?;
                        document.push(b':');
                    }
                    field.type_.print(datum, in_lists, document)?;
                }
                document.push(closes);
            }
            Self::Array(inner) | Self::Map(inner) => {
                document.push(opens);
                let mut all = 0;
                loop {
                    let count = datum.block(all)?;
                    if count == 0 {
                        break;
                    }
                    for place in all..all + count {
                        if place > 0 {
                            document.push(b',');
                        }
                        if matches!(self, Self::Map(_)) {
                            push_escaped(datum.bytes()?, document)?;
                            document.push(b':');
                        }
                        inner.print(datum, in_lists, document)?;
                    }
                    all += count;
                }
                document.push(closes);
            }
            _ => _ = self.scalar(datum, false, document)?,
        }
        Ok(())
    }
}

fn int(datum: &mut Datum) -> Result<i64> {
    let value = datum.long()?;
    if i32::try_from(value).is_err() {
        return datum.refuse("int has more than 32 bits");
    }
    Ok(value)
}

fn long(value: i64, bare: bool, document: &mut Vec<u8>) -> Result<Option<Token>> {
    if bare {
        return Ok(Some(Token::of_long(value)));
    }
    let start = document.len();
    if value < 0 {
        document.push(b'-');
    }
    push_unsigned(value.unsigned_abs(), document);
    Ok(Some(Token::new(Kind::Integer, start, document.len())))
}

fn double(value: f64, bare: bool, datum: &Datum, document: &mut Vec<u8>) -> Result<Option<Token>> {
    // JSON has no such numbers, and `extra` is JSON.
    if !value.is_finite() {
        return datum.refuse("number is not finite");
    }
    if bare {
        return Ok(Some(Token::of_double(value)));
    }
    let start = document.len();
    document.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    Ok(Some(Token::new(Kind::Fraction, start, document.len())))
}

fn push_unsigned(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn push_latin1(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_ascii() {
        return out.extend_from_slice(bytes);
    }
    // Branchless, as the next byte is unpredictable.
    let mut length = out.len();
    out.resize(length + 2 * bytes.len(), 0);
    for byte in bytes {
        let is_high = byte >> 7;
        out[length] = if is_high == 0 {
            *byte
        } else {
            0xc0 | byte >> 6
        };
        out[length + 1] = 0x80 | byte & 0x3f;
        length += 1 + usize::from(is_high);
    }
    out.truncate(length);
}

/// Appends text between quotes; it may be invalid UTF-8 if it needs no escapes.
fn push_escaped(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    // Checked with the whole document, not text by text.
    if find_special(text).is_none() {
        quoted(text, out)?;
        return Ok(());
    }
    let text = from_utf8(text).map_err(|_| Refusal::new("invalid UTF-8", 0))?;
    out.extend_from_slice(serde_json::to_string(text).unwrap_or_default().as_bytes());
    Ok(())
}

fn in_base64(bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<Token>> {
    let start = out.len() + 1;
    out.push(b'"');
    encode_base64(bytes, out);
    out.push(b'"');
    Ok(Some(Token::new(Kind::Text, start, out.len() - 1)))
}

fn quoted(text: &[u8], out: &mut Vec<u8>) -> Result<Option<Token>> {
    let start = out.len() + 1;
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
    Ok(Some(Token::new(Kind::Text, start, start + text.len())))
}
