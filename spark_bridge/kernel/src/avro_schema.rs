//! Avro's schemas, compiled once: what reads, prints and passes over the values of a type.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::avro::{Datum, shortest_double};
use crate::json::{Kind, Token, find_special};
use crate::refusal::Step;

/// Of types in types.
const MAX_DEPTH: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Value")]
pub enum Type {
    Null,
    Boolean,
    Long,
    /// A long whose bits are those of a number without sign.
    Unsigned,
    Float,
    Double,
    Text,
    Bytes,
    Enum(Arc<[String]>),
    Record(Arc<[Field]>),
    Array(Arc<Type>),
    Map(Arc<Type>),
    Union(Arc<[Field]>),
}

/// A field of a record, or a branch of a union; its name is that of its type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Field {
    pub name: String,
    pub type_: Type,
}

impl TryFrom<Value> for Type {
    type Error = String;

    fn try_from(schema: Value) -> Result<Self, String> {
        compile(&schema, &mut HashMap::new(), 0)
    }
}

fn text<'a>(schema: &'a Value, name: &str) -> Result<&'a str, String> {
    let member = schema.get(name).and_then(Value::as_str);
    member.ok_or_else(|| format!("an Avro schema without {name}"))
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The type of a schema; `named` are the types before it.
fn compile(
    schema: &Value,
    named: &mut HashMap<String, Type>,
    depth: usize,
) -> Result<Type, String> {
    if depth > MAX_DEPTH {
        return Err("an Avro schema that is nested too deeply".into());
    }
    let list = |name: &str| {
        let items = schema.get(name).and_then(Value::as_array);
        items.ok_or_else(|| format!("an Avro schema without {name}"))
    };
    let name = match schema {
        Value::String(name) => name.as_str(),
        Value::Array(branches) => {
            let mut found = Vec::new();
            for branch in branches {
                found.push(Field {
                    name: short(match branch {
                        Value::String(name) => name,
                        other => other
                            .get("name")
                            .and_then(Value::as_str)
                            .map_or_else(|| text(other, "type"), Ok)?,
                    })
                    .to_owned(),
                    type_: compile(branch, named, depth + 1)?,
                });
            }
            return Ok(Type::Union(found.into()));
        }
        Value::Object(_) => match schema.get("type") {
            Some(Value::String(name)) => name.as_str(),
            Some(inner) => return compile(inner, named, depth + 1),
            None => return Err("an Avro schema without type".into()),
        },
        _ => return Err("no Avro schema".into()),
    };
    let is_unsigned = schema.get("logicalType").and_then(Value::as_str) == Some("unsigned");
    let found = match name {
        "null" => Type::Null,
        "boolean" => Type::Boolean,
        "int" | "long" if is_unsigned => Type::Unsigned,
        "int" | "long" => Type::Long,
        "float" => Type::Float,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "array" => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            Type::Array(Arc::new(compile(items, named, depth + 1)?))
        }
        "map" => {
            let values = schema.get("values").unwrap_or(&Value::Null);
            Type::Map(Arc::new(compile(values, named, depth + 1)?))
        }
        "enum" => {
            let symbols = list("symbols")?.iter().map(|symbol| symbol.as_str());
            let symbols: Option<Vec<String>> = symbols.map(|s| s.map(str::to_owned)).collect();
            Type::Enum(symbols.ok_or("symbols that are no text")?.into())
        }
        "record" => {
            let mut fields = Vec::new();
            for field in list("fields")? {
                fields.push(Field {
                    name: text(field, "name")?.to_owned(),
                    type_: compile(field.get("type").unwrap_or(&Value::Null), named, depth + 1)?,
                });
            }
            Type::Record(fields.into())
        }
        other => {
            let known = named.get(short(other)).cloned();
            return known.ok_or_else(|| format!("no Avro type {other}"));
        }
    };
    if matches!(found, Type::Enum(_) | Type::Record(_)) {
        named.insert(short(text(schema, "name")?).to_owned(), found.clone());
    }
    Ok(found)
}

impl Type {
    /// The branch of a union that is no null, of two; of other types the type.
    pub fn without_null(&self) -> &Self {
        match self {
            Self::Union(branches) if branches.len() == 2 && branches[0].type_ == Self::Null => {
                &branches[1].type_
            }
            _ => self,
        }
    }

    /// Passes over a value, which has to be a good one.
    pub fn skip(&self, datum: &mut Datum) -> Step<()> {
        match self {
            Self::Null => {}
            Self::Boolean => _ = datum.boolean()?,
            Self::Long | Self::Unsigned => _ = datum.long()?,
            Self::Float => _ = datum.fixed::<4>()?,
            Self::Double => _ = datum.fixed::<8>()?,
            Self::Text => _ = datum.text()?,
            Self::Bytes => _ = datum.bytes()?,
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

    /// The token of a value, which is appended to the document; None for objects and lists.
    ///
    /// Text stands between quotes, without escapes, and may be no UTF-8; bytes are characters
    /// (Latin-1). `bare`: numbers are tokens of their own.
    pub fn scalar(
        &self,
        datum: &mut Datum,
        bare: bool,
        document: &mut Vec<u8>,
    ) -> Step<Option<Token>> {
        let start = document.len();
        let simple = |kind| Ok(Some(Token::new(kind, start, start)));
        let mut quoted = |push: &mut dyn FnMut(&mut Vec<u8>)| {
            document.push(b'"');
            push(document);
            document.push(b'"');
            Ok(Some(Token::new(Kind::Text, start + 1, document.len() - 1)))
        };
        match self {
            Self::Null => simple(Kind::Null),
            Self::Boolean if datum.boolean()? => simple(Kind::True),
            Self::Boolean => simple(Kind::False),
            Self::Long => long(datum.long()?, bare, document),
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
                let text = datum.bytes()?;
                quoted(&mut |document| document.extend_from_slice(text))
            }
            Self::Bytes => {
                let bytes = datum.bytes()?;
                quoted(&mut |document| push_latin1(bytes, document))
            }
            Self::Enum(symbols) => {
                let symbol = &symbols[datum.choice(symbols.len())?];
                quoted(&mut |document| document.extend_from_slice(symbol.as_bytes()))
            }
            Self::Union(branches) => {
                let branch = datum.choice(branches.len())?;
                branches[branch].type_.scalar(datum, bare, document)
            }
            Self::Record(_) | Self::Array(_) | Self::Map(_) => Ok(None),
        }
    }

    /// Appends a value as JSON; records are objects, or lists of their values.
    pub fn print(&self, datum: &mut Datum, in_lists: bool, document: &mut Vec<u8>) -> Step<()> {
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
            Self::Text => push_escaped(datum.text()?, document),
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
                        push_escaped(&field.name, document);
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
                            push_escaped(datum.text()?, document);
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

fn long(value: i64, bare: bool, document: &mut Vec<u8>) -> Step<Option<Token>> {
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

fn double(value: f64, bare: bool, datum: &Datum, document: &mut Vec<u8>) -> Step<Option<Token>> {
    if !value.is_finite() {
        return datum.refuse("a number that is not finite");
    }
    if bare {
        return Ok(Some(Token::of_double(value)));
    }
    let start = document.len();
    // Writing to a vector does not fail.
    let _ = write!(document, "{value:?}");
    Ok(Some(Token::new(Kind::Fraction, start, document.len())))
}

fn push_unsigned(value: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] += (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn push_latin1(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_ascii() {
        return out.extend_from_slice(bytes);
    }
    for byte in bytes {
        if *byte < 0x80 {
            out.push(*byte);
        } else {
            out.extend_from_slice(&[0xc0 | byte >> 6, 0x80 | byte & 0x3f]);
        }
    }
}

fn push_escaped(text: &str, out: &mut Vec<u8>) {
    if find_special(text.as_bytes()).is_some() {
        out.extend_from_slice(serde_json::to_string(text).unwrap_or_default().as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}
