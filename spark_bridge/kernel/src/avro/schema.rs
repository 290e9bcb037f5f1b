//! Avro schemas, compiled once: types that read, print and skip values.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

/// Maximum nesting of types.
const MAX_DEPTH: usize = 20;

/// A type, with all names resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Value")]
pub enum Type {
    Null,
    Boolean,
    Long,
    /// A long that holds the bits of an unsigned number.
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

/// A field of a record, or a branch of a union, whose name is that of its type.
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

/// Compiles a schema; `named` are the types defined before it.
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
            // The member `type` may have a whole type instead of a name.
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
            Type::Enum(symbols.ok_or("symbols that are not text")?.into())
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
        // Only afterwards: a recursive type would have values of any depth, and stays unknown.
        named.insert(short(text(schema, "name")?).to_owned(), found.clone());
    }
    Ok(found)
}
