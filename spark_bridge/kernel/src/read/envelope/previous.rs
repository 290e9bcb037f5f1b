//! Nested values of the previous Avro message: compared, not read.

use crate::avro::Datum;
use crate::json::{Kind, Token};

/// An object or a list that is usually equal in the next message.
#[derive(Default)]
pub struct PreviousDatum {
    /// Its encoded bytes; no other value of its type begins with them.
    bytes: Vec<u8>,
    /// Its JSON, if needed.
    printed: Vec<u8>,
}

impl PreviousDatum {
    /// Takes this value if it is next.
    pub fn is_next(&self, datum: &mut Datum) -> bool {
        !self.bytes.is_empty() && datum.take_all(&self.bytes)
    }

    pub fn set(&mut self, bytes: &[u8], printed: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.printed.clear();
        self.printed.extend_from_slice(printed);
    }

    /// Bytes of the value in Avro's encoding.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The value's token; its JSON is appended to the document, if that is needed.
    pub fn token(&self, is_printed: bool, document: &mut Vec<u8>) -> Token {
        if !is_printed {
            return Token::ELSEWHERE;
        }
        let start = document.len();
        document.extend_from_slice(&self.printed);
        let is_list = self.printed.starts_with(b"[");
        let kind = if is_list { Kind::Array } else { Kind::Object };
        Token::new(kind, start, document.len())
    }
}
