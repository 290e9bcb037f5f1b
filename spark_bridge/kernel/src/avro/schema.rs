//! Avro schemas, compiled once: types that read, print and skip values.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

/// Maximum nesting of types.
const MAX_DEPTH: usize = 20;

/// Maximum number of types in a schema, after named ones are put in the place of their names:
/// schemas of registries are foreign, and a few names may stand for any number of types.
const MAX_TYPES: usize = 50_000;

/// A type, with all names resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Value")]
pub enum Type {
    Null,
    Boolean,
    /// Of registries: at most 32 bits.
    Int,
    Long,
    /// A long that holds the bits of an unsigned number.
    Unsigned,
    Float,
    Double,
    Text,
    /// Read as text with one character per byte.
    Bytes,
    /// Bytes read as base64, as in the JSON of Kafka Connect.
    Base64,
    /// This number of bytes, read as base64.
    Fixed(usize),
    Enum(Arc<[String]>),
    Record(Arc<[Field]>),
    Array(Arc<Type>),
    Map(Arc<Type>),
    Union(Arc<[Field]>),
}

/// A field of a record, or a branch of a union, whose name is that of its type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    pub name: String,
    pub type_: Type,
}

impl TryFrom<Value> for Type {
    type Error = String;

    fn try_from(schema: Value) -> Result<Self, String> {
        let (type_, _) = Compiler::default().compile(&schema, "", 0)?;
        Ok(type_)
    }
}

impl Type {
    /// The type of a registry's schema: foreign, and its bytes are read as base64.
    pub fn of_registry(schema: &Value) -> Result<Self, String> {
        let mut compiler = Compiler {
            of_registry: true,
            ..Compiler::default()
        };
        Ok(compiler.compile(schema, "", 0)?.0)
    }

    /// Whether each value has at least one byte; others could repeat without end.
    fn takes_bytes(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Fixed(size) => *size > 0,
            Self::Record(fields) => fields.iter().any(|field| field.type_.takes_bytes()),
            _ => true,
        }
    }

    /// The fields of a record, which may be optional.
    pub fn record(&self) -> Option<&Arc<[Field]>> {
        match self {
            Self::Record(fields) => Some(fields),
            Self::Union(branches) => match &branches[..] {
                [one, other] => match (&one.type_, &other.type_) {
                    (Self::Null, Self::Record(fields)) | (Self::Record(fields), Self::Null) => {
                        Some(fields)
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}

fn text<'a>(schema: &'a Value, name: &str) -> Result<&'a str, String> {
    let member = schema.get(name).and_then(Value::as_str);
    member.ok_or_else(|| format!("an Avro schema without {name}"))
}

fn list<'a>(schema: &'a Value, name: &str) -> Result<&'a [Value], String> {
    let items = schema.get(name).and_then(Value::as_array);
    items
        .map(Vec::as_slice)
        .ok_or_else(|| format!("an Avro schema without {name}"))
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A name with its namespace, that of the type around it by default.
fn full(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        return name.to_owned();
    }
    format!("{namespace}.{name}")
}

/// Compiles schemas; remembers the named types with their numbers of types.
#[derive(Default)]
struct Compiler {
    named: HashMap<String, (Type, usize)>,
    of_registry: bool,
}

impl Compiler {
    /// The type of a schema, and its number of types.
    fn compile(
        &mut self,
        schema: &Value,
        namespace: &str,
        depth: usize,
    ) -> Result<(Type, usize), String> {
        if depth > MAX_DEPTH {
            return Err("an Avro schema that is nested too deeply".into());
        }
        let name = match schema {
            Value::String(name) => name.as_str(),
            Value::Array(branches) => return self.union(branches, namespace, depth),
            Value::Object(_) => match schema.get("type") {
                Some(Value::String(name)) => name.as_str(),
                // The member `type` may have a whole type instead of a name.
                Some(inner) => return self.compile(inner, namespace, depth + 1),
                None => return Err("an Avro schema without type".into()),
            },
            _ => return Err("no Avro schema".into()),
        };
        let is_unsigned = schema.get("logicalType").and_then(Value::as_str) == Some("unsigned");
        let simple = match name {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "int" | "long" if is_unsigned => Type::Unsigned,
            "int" if self.of_registry => Type::Int,
            "int" | "long" => Type::Long,
            "float" => Type::Float,
            "double" => Type::Double,
            "string" => Type::Text,
            "bytes" if self.of_registry => Type::Base64,
            "bytes" => Type::Bytes,
            "array" => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                let (items, size) = self.compile(items, namespace, depth + 1)?;
                let items = self.checked(items)?;
                return Ok((Type::Array(Arc::new(items)), size + 1));
            }
            "map" => {
                let values = schema.get("values").unwrap_or(&Value::Null);
                let (values, size) = self.compile(values, namespace, depth + 1)?;
                return Ok((Type::Map(Arc::new(values)), size + 1));
            }
            "enum" | "fixed" | "record" => return self.named_type(name, schema, namespace, depth),
            other => {
                let known = self.named.get(&full(other, namespace));
                return known
                    .cloned()
                    .ok_or_else(|| format!("no Avro type {other}"));
            }
        };
        Ok((simple, 1))
    }

    fn union(
        &mut self,
        branches: &[Value],
        namespace: &str,
        depth: usize,
    ) -> Result<(Type, usize), String> {
        let (mut found, mut all) = (Vec::new(), 1);
        for branch in branches {
            let name = match branch {
                Value::String(name) => name,
                other => other
                    .get("name")
                    .and_then(Value::as_str)
                    .map_or_else(|| text(other, "type"), Ok)?,
            };
            let (type_, size) = self.compile(branch, namespace, depth + 1)?;
            all = within(all + size)?;
            found.push(Field {
                name: short(name).to_owned(),
                type_,
            });
        }
        Ok((Type::Union(found.into()), all))
    }

    fn named_type(
        &mut self,
        kind: &str,
        schema: &Value,
        namespace: &str,
        depth: usize,
    ) -> Result<(Type, usize), String> {
        let name = text(schema, "name")?;
        let given = schema.get("namespace").and_then(Value::as_str);
        let name = full(name, given.unwrap_or(namespace));
        let (found, size) = match kind {
            "enum" => {
                let symbols = list(schema, "symbols")?.iter();
                let symbols = symbols.map(|symbol| symbol.as_str().map(str::to_owned));
                let symbols: Option<Vec<String>> = symbols.collect();
                let symbols = symbols.ok_or("symbols that are not text")?;
                (Type::Enum(symbols.into()), 1)
            }
            "fixed" => {
                let size = schema.get("size").and_then(Value::as_u64);
                let size = size.and_then(|size| usize::try_from(size).ok());
                (Type::Fixed(size.ok_or("a fixed type without size")?), 1)
            }
            _ => {
                let inner = name.rsplit_once('.').map_or("", |(namespace, _)| namespace);
                let (mut fields, mut all) = (Vec::new(), 1);
                for field in list(schema, "fields")? {
                    let type_ = field.get("type").unwrap_or(&Value::Null);
                    let (type_, size) = self.compile(type_, inner, depth + 1)?;
                    all = within(all + size)?;
                    fields.push(Field {
                        name: text(field, "name")?.to_owned(),
                        type_: self.checked(type_)?,
                    });
                }
                (Type::Record(fields.into()), all)
            }
        };
        // Only afterwards: a recursive type would have values of any depth, and stays unknown.
        self.named.insert(name, (found.clone(), size));
        Ok((found, size))
    }

    /// A field's or an item's type; those without bytes are left to the reference, as work on a
    /// message is bounded by its bytes.
    fn checked(&self, type_: Type) -> Result<Type, String> {
        if self.of_registry && !type_.takes_bytes() {
            return Err("an Avro type without bytes".into());
        }
        Ok(type_)
    }
}

fn within(size: usize) -> Result<usize, String> {
    if size > MAX_TYPES {
        return Err("an Avro schema of too many types".into());
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_have_namespaces() {
        let inner = |namespace: &str, type_: &str| {
            json!({"type": "record", "name": "Value", "namespace": namespace,
                "fields": [{"name": "a", "type": type_}]})
        };
        let schema = json!({"type": "record", "name": "x.Envelope", "fields": [
            {"name": "one", "type": ["null", inner("x", "long")]},
            {"name": "other", "type": inner("y", "string")},
            {"name": "again", "type": "Value"},
            {"name": "named", "type": ["null", "y.Value"]},
        ]});
        let Type::Record(fields) = Type::of_registry(&schema).unwrap() else {
            panic!("no record");
        };
        let of = |place: usize| &fields[place].type_.record().unwrap()[0].type_;
        assert_eq!([of(0), of(1)], [&Type::Long, &Type::Text]);
        assert_eq!([of(2), of(3)], [&Type::Long, &Type::Text]);
    }

    #[test]
    fn foreign_schemas_are_bounded() {
        let record = |name: &str, type_: Value| {
            json!({"type": "record", "name": name, "fields": [
                {"name": "a", "type": type_.clone()}, {"name": "b", "type": type_}]})
        };
        // Each record has the one before it twice.
        let of_records = |count: usize| {
            let fields = (0..count).map(|number| {
                let inner = if number == 0 {
                    "long".to_owned()
                } else {
                    format!("r{}", number - 1)
                };
                json!({"name": number.to_string(), "type": record(&format!("r{number}"), json!(inner))})
            });
            json!({"type": "record", "name": "all", "fields": fields.collect::<Vec<_>>()})
        };
        assert!(Type::of_registry(&of_records(19)).is_err());
        assert!(Type::of_registry(&of_records(10)).is_ok());
        let recursive = record("r", json!(["null", "r"]));
        let deep = (0..30).fold(
            json!("long"),
            |inner, _| json!({"type": "array", "items": inner}),
        );
        let empty = json!({"type": "array", "items": "null"});
        let null = record("n", json!("null"));
        for schema in [recursive, deep, empty, null, json!({}), json!(1)] {
            assert!(Type::of_registry(&schema).is_err());
        }
        // The key of a table without key columns.
        let nothing = json!({"type": "record", "name": "k", "fields": []});
        assert!(Type::of_registry(&nothing).is_ok());
    }
}
