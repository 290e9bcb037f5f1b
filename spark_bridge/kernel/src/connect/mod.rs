//! Kafka Connect's JSON: a payload alone, or in an object with its schema.
//!
//! Schemas are never parsed while reading: their bytes must equal those of a known plan, or the
//! message is unknown. They were checked to be JSON when the plan was added.

use crate::json::{Cursor, Kind, Token};
use crate::refusal::{Refusal, Result};

const SCHEMA_FIRST: &str = "{\"schema\":";
const PAYLOAD: &[u8] = b"\"payload\"";
const PAYLOAD_FIRST: &str = "{\"payload\":";
const THEN_PAYLOAD: &str = ",\"payload\":";
const THEN_SCHEMA: &str = ",\"schema\":";
/// Together with a payload's values this stays below the reference's limit.
const MAX_STRUCTURE: usize = 70_000;

/// What follows the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Bare,
    /// The end of the object; the schema came first.
    SchemaFirst(Token),
    /// Possibly a schema.
    PayloadFirst,
}

/// Moves to the beginning of the payload. `known` is the schema that the document may have.
pub fn open(cursor: &mut Cursor, known: Option<&str>) -> Result<Form> {
    if cursor.take_spaced(PAYLOAD_FIRST) {
        return Ok(Form::PayloadFirst);
    }
    if !cursor.take_spaced(SCHEMA_FIRST) {
        return Ok(Form::Bare);
    }
    cursor.blanks();
    let start = cursor.position();
    // Debezium's schema is usually longer than its payload: it is compared, not parsed.
    let is_known = known.is_some_and(|known| cursor.take_all(known));
    if is_known {
        let schema = cursor.token_from(Kind::Object, start);
        if cursor.take_spaced(THEN_PAYLOAD) {
            return Ok(Form::SchemaFirst(schema));
        }
    }
    // An unknown schema is not parsed: it ends where a payload begins.  A text that looks like that
    // ends it too early, and the check of the new plan's schema refuses it.
    for name in memchr::memmem::find_iter(&cursor.document.as_bytes()[start..], PAYLOAD) {
        let before = without_blanks(&cursor.document[start..start + name]);
        let Some(schema) = before.strip_suffix(',').map(without_blanks) else {
            continue;
        };
        cursor.go_back(start + schema.len());
        let schema = cursor.token_from(Kind::Object, start);
        if cursor.take_spaced(THEN_PAYLOAD) {
            return Ok(Form::SchemaFirst(schema));
        }
    }
    Err(Refusal::new("schema without payload", start))
}

/// Text without trailing blanks.
fn without_blanks(text: &str) -> &str {
    text.trim_end_matches([' ', '\t', '\n', '\r'])
}

/// The payload of a value with exactly this schema and nothing else.
pub fn payload_beside<'a>(value: &'a [u8], schema: &str) -> Option<&'a [u8]> {
    let inner = value.strip_suffix(b"}")?;
    if let Some(rest) = inner.strip_prefix(SCHEMA_FIRST.as_bytes()) {
        let rest = rest.strip_prefix(schema.as_bytes())?;
        return rest.strip_prefix(THEN_PAYLOAD.as_bytes());
    }
    let rest = inner.strip_prefix(PAYLOAD_FIRST.as_bytes())?;
    let rest = rest.strip_suffix(schema.as_bytes())?;
    rest.strip_suffix(THEN_SCHEMA.as_bytes())
}

/// Reads the rest after the payload: the schema, which may be missing.
pub fn close(cursor: &mut Cursor, form: Form) -> Result<Token> {
    let schema = match form {
        Form::Bare => return cursor.end().map(|()| Token::MISSING),
        Form::SchemaFirst(schema) => schema,
        Form::PayloadFirst if cursor.take_spaced(THEN_SCHEMA) => {
            cursor.blanks();
            let start = cursor.position();
            // The schema is the last member, so it ends before the last brace.
            let rest = without_blanks(&cursor.document[start..]);
            let schema = rest.strip_suffix('}').map_or("", without_blanks);
            cursor.go_back(start + schema.len());
            cursor.token_from(Kind::Object, start)
        }
        Form::PayloadFirst => Token::MISSING,
    };
    cursor.expect(b'}', "unexpected member beside the payload")?;
    cursor.end().map(|()| schema)
}

/// Checks a schema, which must be an object or null.
pub fn check_schema(text: &str) -> Result<()> {
    let mut cursor = Cursor::new(text)?;
    let token = cursor.value()?;
    cursor.end()?;
    // Messages with this schema pass it unread, so the limit of values is checked here, once.
    let structure = text.bytes().filter(|byte| b",[{".contains(byte)).count();
    let whole = token.start == 0 && token.end as usize == text.len();
    if whole && matches!(token.kind, Kind::Object | Kind::Null) && structure <= MAX_STRUCTURE {
        return Ok(());
    }
    Err(Refusal::new("schema is not an object", 0))
}

/// The columns of a message's key, and its schema.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Key {
    schema: Option<String>,
    names: Vec<String>,
}

impl Key {
    /// The key of a message; refuses one that is not an object.
    pub fn new(document: &str) -> Result<Self> {
        let mut names = Vec::new();
        let schema = walk(document, None, |name| {
            names.push(name.to_owned());
            Ok(())
        })?;
        if let Some(schema) = schema {
            check_schema(schema)?;
        }
        Ok(Self {
            schema: schema.map(str::to_owned),
            names,
        })
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let names = self
            .names
            .iter()
            .map(|name| size_of::<String>() + name.len());
        names.sum::<usize>() + self.schema.as_ref().map_or(0, String::len)
    }

    /// Whether a key has exactly these columns and this schema.
    pub fn is(&self, document: &str) -> Result<bool> {
        let mut count = 0;
        let mut same = true;
        let schema = walk(document, self.schema.as_deref(), |name| {
            same &= self.names.get(count).is_some_and(|known| known == name);
            count += 1;
            Ok(())
        })?;
        Ok(same && count == self.names.len() && schema == self.schema.as_deref())
    }
}

/// Calls `show` for each column of a key; returns the schema.
fn walk<'a>(
    document: &'a str,
    known: Option<&str>,
    mut show: impl FnMut(&'a str) -> Result<()>,
) -> Result<Option<&'a str>> {
    let mut cursor = Cursor::new(document)?;
    let form = open(&mut cursor, known)?;
    cursor.expect(b'{', "key is not an object")?;
    if !cursor.take(b'}') {
        loop {
            let token = cursor.name()?;
            let name = token.text(document);
            // Columns of these names, or a wrapper whose members have another order: the reference
            // decides.
            let may_wrap = form == Form::Bare && matches!(name, "payload" | "schema");
            if may_wrap || token.kind == Kind::Escaped {
                return cursor.refuse("key has an unexpected form");
            }
            show(name)?;
            cursor.value()?;
            if !cursor.more(b'}')? {
                break;
            }
        }
    }
    let schema = close(&mut cursor, form)?;
    Ok((schema.kind != Kind::Missing).then(|| schema.text(document)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema of a document whose payload is an object.
    fn schema<'a>(document: &'a str, known: Option<&str>) -> Result<Option<&'a str>> {
        walk(document, known, |_| Ok(()))
    }

    #[test]
    fn schemas_lie_before_and_behind_payloads() {
        let bytes = r#"{"type":"struct","fields":[]}"#;
        let first = format!(r#"{{"schema":{bytes},"payload":{{"a":1}}}}"#);
        let last = format!(r#"{{"payload":{{"a":1}},"schema":{bytes}}}"#);
        for known in [None, Some(bytes), Some("{}"), Some("null")] {
            assert_eq!(schema(&first, known), Ok(Some(bytes)));
            assert_eq!(schema(&last, known), Ok(Some(bytes)));
        }
        let spaced = format!("{{ \"schema\" :\n{bytes} , \"payload\": {{\"a\" :1}} }} ");
        let behind = format!("{{\"payload\": {{\"a\": 1}}, \"schema\": {bytes}\r\n}}\r");
        for known in [None, Some(bytes), Some("null")] {
            assert_eq!(schema(&spaced, known), Ok(Some(bytes)));
            assert_eq!(schema(&behind, known), Ok(Some(bytes)));
        }
        assert_eq!(schema(r#"{"payload":{"a":1}}"#, None), Ok(None));
        assert_eq!(schema(r#"{"a":1}"#, Some(bytes)), Ok(None));
    }

    #[test]
    fn payloads_are_found_beside_a_known_schema() {
        let first = br#"{"schema":{"x":1},"payload":{"a":1}}"#;
        let last = br#"{"payload":{"a":1},"schema":{"x":1}}"#;
        for value in [&first[..], last] {
            assert_eq!(
                payload_beside(value, r#"{"x":1}"#),
                Some(&br#"{"a":1}"#[..])
            );
            for other in ["{}", "", r#"{"x":1"#, r#""x":1}"#] {
                assert_eq!(payload_beside(value, other), None, "{other}");
            }
        }
        assert_eq!(payload_beside(br#"{"a":1}"#, "{}"), None);
    }

    #[test]
    fn other_documents_are_refused() {
        for document in [
            "",
            "{",
            "1",
            "null",
            r#"{"schema":{}}"#,
            r#"{"schema":{},"payload":1}"#,
            r#"{"schema":{},"payload":{}} 1"#,
            r#"{"schema":{},"payload":{},"more":1}"#,
            r#"{"payload":{},"more":1}"#,
            r#"{"payload":{},"schema":"#,
            r#"{"payload":{},"schema":é"#,
            r#"{"a":1,"payload":{}}"#,
            r#"{"\u0070ayload":{}}"#,
        ] {
            assert!(Key::new(document).is_err(), "{document}");
        }
    }

    #[test]
    fn a_schema_is_one_value() {
        for text in [
            r#"{"payload":{},"schema":{}},"x":{}}"#,
            r#"{"schema":1,"payload":{}}"#,
        ] {
            assert!(Key::new(text).is_err(), "{text}");
        }
        assert!(check_schema(&format!("[{}]", "1,".repeat(MAX_STRUCTURE))).is_err());
    }

    #[test]
    fn keys_have_columns_in_order() {
        let key = Key::new(r#"{"payload":{"a":1,"b":null},"schema":{"x":[]}}"#).unwrap();
        assert_eq!(
            key.is(r#"{"payload":{"a":"2","b":3.5},"schema":{"x":[]}}"#),
            Ok(true)
        );
        for other in [
            r#"{"payload":{"a":1},"schema":{"x":[]}}"#,
            r#"{"payload":{"b":1,"a":null},"schema":{"x":[]}}"#,
            r#"{"payload":{"a":1,"b":1,"c":1},"schema":{"x":[]}}"#,
            r#"{"payload":{"a":1,"b":null},"schema":{}}"#,
            r#"{"a":1,"b":null}"#,
        ] {
            assert_eq!(key.is(other), Ok(false), "{other}");
        }
        assert!(
            key.is(r#"{"payload":{"a":1,"b":nul},"schema":{"x":[]}}"#)
                .is_err()
        );
    }
}
