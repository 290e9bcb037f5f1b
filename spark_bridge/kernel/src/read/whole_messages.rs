//! Lines that are whole messages: rows of Spark's Kafka source, as JSON.
//!
//! `cdcfmt_files/sources/lines.py` is the reference. It handles tombstones, escapes and unusual
//! times.

use crate::json::{Cursor, Kind, Token};
use crate::read::attributes::Attributes;
use crate::read::kernel::Shown;
use crate::refusal::{Refusal, Result};
use crate::text::Names;
use crate::text::bytes::decode_base64;
use crate::text::numbers;
use crate::values::temporal;

const FIELDS: [&str; 8] = [
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
];
const MINUTE: i64 = 60_000;
/// Bytes of a header besides its texts.
pub const HEADER_BYTES: usize = 24;
/// Larger buffers are not reused for the next message.
const MAX_KEPT: usize = 1 << 20;

/// The message of one line; its buffers are reused.
#[derive(Default)]
pub struct WholeMessage {
    pub value: Vec<u8>,
    pub has_key: bool,
    pub key: Vec<u8>,
    pub partition: Option<i32>,
    pub offset: Option<i64>,
}

/// The origins of the messages of a batch.
#[derive(Default)]
pub struct Origins {
    names: Names,
    pub topics: Vec<Option<usize>>,
    pub partitions: Vec<Option<i32>>,
    /// In milliseconds.
    pub timestamps: Vec<Option<i64>>,
    pub headers: Vec<Vec<Header>>,
}

/// Name and value.
pub type Header = (String, Option<Vec<u8>>);

impl Origins {
    pub fn topic(&self, number: usize) -> Option<&str> {
        self.names.texts.get(number)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The bytes that each row of the last message has of it.
    pub fn beside(&self, shown: Shown) -> usize {
        let topic = self.topics.last().copied().flatten();
        let topic = topic.and_then(|number| self.topic(number));
        let of_place = topic.map_or(0, str::len);
        let headers = self.headers.last().into_iter().flatten();
        let of_headers: usize = headers
            .map(|(name, value)| name.len() + value.as_ref().map_or(0, Vec::len) + HEADER_BYTES)
            .sum();
        shown.bytes(of_place, of_headers)
    }

    /// Notes topic and headers of the last message.
    pub fn note(&self, attributes: &mut Attributes) {
        let topic = self.topics.last().copied().flatten();
        let topic = topic.and_then(|number| self.topic(number));
        let headers = self.headers.last().into_iter().flatten();
        attributes.read(
            topic,
            headers.map(|(name, value)| (name.as_str(), value.as_deref())),
        );
    }

    /// Removes the last message.
    pub fn pop(&mut self) {
        self.topics.pop();
        self.partitions.pop();
        self.timestamps.pop();
        self.headers.pop();
    }
}

impl WholeMessage {
    /// Parses a line, and adds the origin of its message.
    pub fn read(&mut self, line: &[u8], origins: &mut Origins) -> Result<()> {
        let document =
            std::str::from_utf8(line).map_err(|_| Refusal::new("invalid UTF-8 in the line", 0))?;
        let tokens = members(document)?;
        let [key, value, topic, partition, offset, timestamp, _, headers] = tokens;
        let has = |token: Token| !matches!(token.kind, Kind::Missing | Kind::Null);
        let headers = match has(headers) {
            true => headers_of(headers, document)?,
            false => Vec::new(),
        };
        // A tombstone, which the reference handles.
        if !has(value) {
            return refuse("missing value", value);
        }
        decode(value, document, &mut self.value)?;
        self.has_key = has(key);
        self.key.clear();
        if self.has_key {
            decode(key, document, &mut self.key)?;
        }
        self.offset = integer(offset, document)?;
        let partition = integer(partition, document)?
            .map(i32::try_from)
            .transpose()
            .map_err(|_| Refusal::new("partition exceeds 32 bits", 0))?;
        self.partition = partition;
        let timestamp = match timestamp.kind {
            Kind::Text => Some(milliseconds(timestamp.text(document)).ok_or(Refusal::new(
                "timestamp is not an integer",
                timestamp.start as usize,
            ))?),
            _ => integer(timestamp, document)?,
        };
        let topic = match topic.kind {
            Kind::Missing | Kind::Null => None,
            Kind::Text => Some(origins.names.add(topic.text(document), 0)),
            _ => return refuse("topic is not plain text", topic),
        };
        origins.topics.push(topic);
        origins.partitions.push(partition);
        origins.timestamps.push(timestamp);
        origins.headers.push(headers);
        Ok(())
    }
}

/// The values of the fields, by index.
fn members(document: &str) -> Result<[Token; FIELDS.len()]> {
    let mut found = [Token::MISSING; FIELDS.len()];
    let mut cursor = Cursor::new(document)?;
    cursor.expect(b'{', "line is not a whole message")?;
    loop {
        let name = cursor.name()?;
        let place = FIELDS
            .iter()
            .position(|field| *field == name.text(document));
        // A line with another member is not a row of Spark's Kafka source, but perhaps a message
        // itself.
        let Some(place) = place.filter(|place| found[*place].kind == Kind::Missing) else {
            return refuse("line is not a whole message", name);
        };
        found[place] = cursor.value()?;
        if !cursor.more(b'}')? {
            break;
        }
    }
    cursor.end()?;
    Ok(found)
}

/// Reads a list of objects with a name and a value.
fn headers_of(token: Token, document: &str) -> Result<Vec<Header>> {
    let mut headers = Vec::new();
    let mut cursor = Cursor::at(document, token.start)?;
    cursor.expect(b'[', "headers are not a list")?;
    if cursor.take(b']') {
        return Ok(headers);
    }
    loop {
        let mut fields = [Token::MISSING; 2];
        cursor.expect(b'{', "header is not an object")?;
        loop {
            let name = cursor.name()?;
            let place = ["key", "value"]
                .iter()
                .position(|field| *field == name.text(document));
            let Some(place) = place.filter(|place| fields[*place].kind == Kind::Missing) else {
                return refuse("header has other members", name);
            };
            fields[place] = cursor.value()?;
            if !cursor.more(b'}')? {
                break;
            }
        }
        let [name, value] = fields;
        if name.kind != Kind::Text {
            return refuse("name of a header is not plain text", name);
        }
        let data = match value.kind {
            Kind::Missing | Kind::Null => None,
            _ => {
                let mut data = Vec::new();
                decode(value, document, &mut data)?;
                Some(data)
            }
        };
        headers.push((name.text(document).to_owned(), data));
        if !cursor.more(b']')? {
            return Ok(headers);
        }
    }
}

fn refuse<T>(reason: &'static str, token: Token) -> Result<T> {
    Err(Refusal::new(reason, token.start as usize))
}

fn decode(token: Token, document: &str, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    if out.capacity() > MAX_KEPT {
        *out = Vec::new();
    }
    if token.kind != Kind::Text {
        return refuse("bytes are not plain text", token);
    }
    decode_base64(token.text(document), out)
}

fn integer(token: Token, document: &str) -> Result<Option<i64>> {
    match token.kind {
        Kind::Missing | Kind::Null => Ok(None),
        Kind::Integer => numbers::integer(token.text(document))
            .and_then(|value| i64::try_from(value).ok())
            .map(Some)
            .ok_or(Refusal::new("integer exceeds 64 bits", 0)),
        _ => refuse("expected an integer", token),
    }
}

/// Milliseconds since 1970 of `2026-01-01T08:00:00.000+08:00`, or with `Z`.
fn milliseconds(text: &str) -> Option<i64> {
    const SECONDS: usize = 19;
    let (clock, shift) = match text.strip_suffix('Z') {
        Some(clock) => (clock, 0),
        None => {
            let (clock, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
            (clock, shift_of(zone.as_bytes())?)
        }
    };
    let (clock, fraction) = clock.split_at_checked(SECONDS)?;
    let mut millis = 0;
    if !fraction.is_empty() {
        let digits = fraction.strip_prefix('.')?;
        let are_digits = digits.bytes().all(|digit| digit.is_ascii_digit());
        if !are_digits || !(1..=9).contains(&digits.len()) {
            return None;
        }
        // Kafka's timestamps are milliseconds.
        // Digits below a millisecond are ignored.
        let digits = digits.bytes().chain([b'0', b'0']).take(3);
        millis = digits.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    }
    Some(temporal::datetime(clock)? / 1000 + millis - shift)
}

/// Milliseconds of `+08:00`.
fn shift_of(zone: &[u8]) -> Option<i64> {
    let digit = |place: usize| {
        let digit = zone[place].wrapping_sub(b'0');
        (digit < 10).then_some(i64::from(digit))
    };
    let hours = digit(1)? * 10 + digit(2)?;
    let minutes = digit(4)? * 10 + digit(5)?;
    let shift = (hours * 60 + minutes) * MINUTE;
    match (zone[0], zone[3]) {
        (b'+', b':') => Some(shift),
        (b'-', b':') => Some(-shift),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(milliseconds("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(milliseconds("1970-01-01T08:00:00.001+08:00"), Some(1));
        assert_eq!(milliseconds("1969-12-31T23:30:00-00:30"), Some(0));
        assert_eq!(milliseconds("1969-12-31T23:59:59.999Z"), Some(-1));
        assert_eq!(milliseconds("1969-12-31 23:59:59.98765Z"), Some(-13));
        assert_eq!(milliseconds("1970-01-01T00:00:00.1Z"), Some(100));
        assert_eq!(milliseconds("1970-01-01T00:00:00.Z"), None);
        assert_eq!(milliseconds("1970-01-01"), None);
        assert_eq!(milliseconds(""), None);
    }

    #[test]
    fn lines() {
        let mut message = WholeMessage::default();
        let mut origins = Origins::default();
        let line = br#" {"key":null,"value":"YQ==","topic":"t","partition":1,"offset":-2}"#;
        message.read(line, &mut origins).unwrap();
        assert_eq!(
            (message.value.as_slice(), message.has_key),
            (&b"a"[..], false)
        );
        assert_eq!((message.offset, origins.topic(0)), (Some(-2), Some("t")));
        for other in [
            "{}",
            r#"{"value":null}"#,
            r#"{"value":"YQ==","value":"YQ=="}"#,
            r#"{"value":"YQ==","headers":[{"key":1,"value":null}]}"#,
            r#"{"value":"YQ==","partition":2147483648}"#,
            r#"{"value":"Y"}"#,
            r#"{"value":"YQ=="}x"#,
            r#"{"id":1}"#,
        ] {
            assert!(
                message.read(other.as_bytes(), &mut origins).is_err(),
                "{other}"
            );
        }
        assert_eq!(origins.topics.len(), 1);
    }
}
