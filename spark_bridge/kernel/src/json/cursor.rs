//! A place in a document, and what is taken from there on.

use crate::json::{Kind, Token};
use crate::names::equal;
use crate::refusal::{Refusal, Step};

pub struct Cursor<'a> {
    pub document: &'a str,
    pub(super) data: &'a [u8],
    pub(super) at: usize,
    /// Values that were read.
    pub(super) values: usize,
    /// Numbers have 38 digits at most, and no exponent.
    pub(super) exact: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(document: &'a str) -> Step<Self> {
        if document.len() >= u32::MAX as usize {
            return Err(Refusal::new("a document of 4 GiB", 0));
        }
        Ok(Self {
            document,
            data: document.as_bytes(),
            at: 0,
            values: 0,
            exact: false,
        })
    }

    /// Refuses numbers that are no decimals of 38 digits.
    pub fn exact(document: &'a str) -> Step<Self> {
        let mut cursor = Self::new(document)?;
        cursor.exact = true;
        Ok(cursor)
    }

    /// One value and nothing behind it.
    pub fn document(&mut self) -> Step<Token> {
        let value = self.value()?;
        self.end()?;
        Ok(value)
    }

    /// Reading goes on at this place.
    pub fn at(document: &'a str, at: u32) -> Step<Self> {
        let mut cursor = Self::new(document)?;
        cursor.at = at as usize;
        Ok(cursor)
    }

    pub fn refuse<T>(&self, reason: &'static str) -> Step<T> {
        Err(Refusal::new(reason, self.at))
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn go_back(&mut self, position: usize) {
        self.at = position;
    }

    /// The token that ends here.
    pub fn token_from(&self, kind: Kind, start: usize) -> Token {
        Token::new(kind, start, self.at)
    }

    /// Whether what was taken goes no further, as `12` does in `123`.
    pub fn ends_value(&self) -> bool {
        matches!(self.peek(), b',' | b'}' | b' ' | b'\t' | b'\n' | b'\r')
    }

    pub fn begins_with(&self, byte: u8) -> bool {
        self.peek() == byte
    }

    /// Whether these bytes are next; they are taken then.
    pub fn take_all(&mut self, text: impl AsRef<[u8]>) -> bool {
        let text = text.as_ref();
        let end = self.at + text.len();
        let next = self.data.get(self.at..end);
        let found = next.is_some_and(|next| equal(next, text));
        self.at = if found { end } else { self.at };
        found
    }

    /// As [`Self::take_all`], perhaps with blanks between the tokens; the text has no escapes.
    pub fn take_spaced(&mut self, text: &str) -> bool {
        self.take_all(text) || self.take_tokens(text)
    }

    fn take_tokens(&mut self, text: &str) -> bool {
        let start = self.at;
        let mut in_text = false;
        for byte in text.bytes() {
            if !in_text {
                self.blanks();
            }
            if self.peek() != byte {
                self.at = start;
                return false;
            }
            in_text ^= byte == b'"';
            self.at += 1;
        }
        true
    }

    pub fn bytes_of(&self, token: Token) -> &'a [u8] {
        token.bytes(self.data)
    }

    /// The bytes behind the next ones.
    pub fn ahead<const N: usize>(&self, by: usize) -> Option<&'a [u8; N]> {
        self.data.get(self.at + by..)?.first_chunk()
    }

    pub(super) fn peek(&self) -> u8 {
        self.data.get(self.at).copied().unwrap_or(0)
    }

    pub fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Whether the next character is this one, which is taken then.
    pub fn take(&mut self, byte: u8) -> bool {
        let mut next = self.peek();
        if next <= b' ' {
            self.blanks();
            next = self.peek();
        }
        let found = next == byte;
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, byte: u8, reason: &'static str) -> Step<()> {
        if self.take(byte) {
            Ok(())
        } else {
            self.refuse(reason)
        }
    }

    /// Only blanks are left.
    pub fn end(&mut self) -> Step<()> {
        self.blanks();
        if self.at == self.data.len() {
            Ok(())
        } else {
            self.refuse("more behind the document")
        }
    }

    /// Whether the next member has this name, as names stand in documents; it is taken then.
    pub fn take_name(&mut self, name: &[u8]) -> bool {
        let end = self.at + name.len() + 3;
        let Some([b'"', text @ .., b'"', b':']) = self.data.get(self.at..end) else {
            return false;
        };
        let found = equal(text, name);
        if found {
            self.at = end;
        }
        found
    }

    /// The next member's name and the colon behind it.
    pub fn name(&mut self) -> Step<Token> {
        self.expect(b'"', "no member's name")?;
        let name = self.string()?;
        self.expect(b':', "no colon behind a name")?;
        Ok(name)
    }

    /// Whether more items of the object or array follow; its end is taken.
    pub fn more(&mut self, end: u8) -> Step<bool> {
        if self.take(b',') {
            return Ok(true);
        }
        self.expect(end, "neither a comma nor the end")?;
        Ok(false)
    }
}
