//! Attributes of messages on which their layout depends: topic and headers.

use hashbrown::HashMap;

/// Maximum bytes of the attributes of a message.
const MAX_BYTES: usize = 4 << 10;

/// The number of messages with attributes for which no writer schema was added.
const UNKNOWN: u32 = u32::MAX;

/// The attributes of the current message, as a number; 0 if layouts do not depend on them.
#[derive(Default)]
pub struct Attributes {
    /// The beginnings of headers' names; None: layouts depend on no attributes.
    prefixes: Option<Vec<String>>,
    numbers: HashMap<Box<[u8]>, u32>,
    /// The attributes of the current message.
    current: Vec<u8>,
    number: u32,
    spare: Vec<u8>,
}

impl Attributes {
    pub fn new(prefixes: Option<Vec<String>>) -> Self {
        let number = if prefixes.is_some() { UNKNOWN } else { 0 };
        Self {
            prefixes,
            number,
            ..Self::default()
        }
    }

    pub fn are_used(&self) -> bool {
        self.prefixes.is_some()
    }

    /// The number of the current message's attributes.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Gives the attributes of the current message a number, if they have none; None if they are too
    /// long to be kept.
    pub fn learn(&mut self) -> Option<u32> {
        if self.number == UNKNOWN {
            if self.current.len() > MAX_BYTES {
                return None;
            }
            self.number = self.numbers.len() as u32;
            self.numbers.insert(self.current[..].into(), self.number);
        }
        Some(self.number)
    }

    /// Forgets all numbers but not the current message.
    pub fn forget(&mut self) {
        self.numbers.clear();
        if self.are_used() {
            self.number = UNKNOWN;
        }
    }

    /// Notes the attributes of the next message.
    pub fn read<'a>(
        &mut self,
        topic: Option<&str>,
        headers: impl Iterator<Item = (&'a str, Option<&'a [u8]>)>,
    ) {
        let mut encoded = std::mem::take(&mut self.spare);
        encoded.clear();
        self.encode(topic, headers, &mut encoded);
        self.set(&encoded);
        self.spare = encoded;
    }

    /// Appends attributes as bytes, for [`set`](Self::set).
    pub fn encode<'a>(
        &self,
        topic: Option<&str>,
        headers: impl Iterator<Item = (&'a str, Option<&'a [u8]>)>,
        encoded: &mut Vec<u8>,
    ) {
        let Some(prefixes) = &self.prefixes else {
            return;
        };
        append(topic.map(str::as_bytes), encoded);
        for (name, value) in headers {
            if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                append(Some(name.as_bytes()), encoded);
                append(value, encoded);
            }
        }
    }

    /// Notes the encoded attributes of the next message.
    pub fn set(&mut self, encoded: &[u8]) {
        // Most messages have those of the previous one.
        if self.are_used() && self.current != encoded {
            self.current.clear();
            self.current.extend_from_slice(encoded);
            self.number = self.numbers.get(encoded).copied().unwrap_or(UNKNOWN);
        }
    }
}

/// Appends a value with its length, so that other values have other bytes.
fn append(value: Option<&[u8]>, encoded: &mut Vec<u8>) {
    encoded.push(u8::from(value.is_some()));
    if let Some(value) = value {
        encoded.extend_from_slice(&(value.len() as u64).to_le_bytes());
        encoded.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Header = (&'static str, Option<&'static [u8]>);

    fn number(attributes: &mut Attributes, topic: Option<&str>, headers: &[Header]) -> u32 {
        attributes.read(topic, headers.iter().copied());
        attributes.number()
    }

    #[test]
    fn numbers() {
        let mut attributes = Attributes::new(Some(vec!["__".into()]));
        assert_eq!(number(&mut attributes, Some("t"), &[]), UNKNOWN);
        assert_eq!(attributes.learn(), Some(0));
        assert_eq!(number(&mut attributes, None, &[]), UNKNOWN);
        let op: Header = ("__op", Some(b"c"));
        assert_eq!(number(&mut attributes, Some("t"), &[op]), UNKNOWN);
        assert_eq!(attributes.learn(), Some(1));
        // Other headers do not count.
        assert_eq!(number(&mut attributes, Some("t"), &[("x", None), op]), 1);
        assert_eq!(number(&mut attributes, Some("t"), &[]), 0);
        assert_eq!(
            number(&mut attributes, Some("t"), &[("__op", None)]),
            UNKNOWN
        );
        let long = "t".repeat(MAX_BYTES);
        assert_eq!(number(&mut attributes, Some(&long), &[]), UNKNOWN);
        assert_eq!(attributes.learn(), None);
        attributes.forget();
        assert_eq!(number(&mut attributes, Some("t"), &[op]), UNKNOWN);
    }

    #[test]
    fn no_attributes() {
        let mut attributes = Attributes::new(None);
        assert_eq!(number(&mut attributes, Some("t"), &[("__op", None)]), 0);
        assert_eq!(attributes.learn(), Some(0));
    }
}
