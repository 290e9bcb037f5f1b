//! A position in a document, and reading from there.

use crate::json::labels::Label;
use crate::json::{Kind, Token};
use crate::refusal::{Reason, Refusal, Result};
use crate::text::equal;

/// A position in a JSON document.  Methods refuse at the position of the fault, in bytes.
pub struct Cursor<'a> {
    pub document: &'a str,
    pub(super) data: &'a [u8],
    pub(super) at: usize,
    /// Number of values read; not as long as a position, so that the two are not loaded as a pair.
    pub values: u32,
    /// Whether numbers must have at most 38 digits and no exponent.
    pub(super) exact: bool,
}

impl<'a> Cursor<'a> {
    /// Begins at the first byte; refuses documents of 4 GiB or more.
    pub fn new(document: &'a str) -> Result<Self> {
        // Positions in tokens have 32 bits.
        if document.len() >= u32::MAX as usize {
            return Err(Refusal::of(Reason::Size, "document has 4 GiB or more", 0));
        }
        Ok(Self {
            document,
            data: document.as_bytes(),
            at: 0,
            values: 0,
            exact: false,
        })
    }

    /// Refuses numbers that are not decimals of 38 digits.
    pub fn exact(document: &'a str) -> Result<Self> {
        let mut cursor = Self::new(document)?;
        cursor.exact = true;
        Ok(cursor)
    }

    /// Reads one value with nothing after it.
    pub fn document(&mut self) -> Result<Token> {
        let value = self.value()?;
        self.end()?;
        Ok(value)
    }

    /// A cursor that continues at this position.
    pub fn at(document: &'a str, at: u32) -> Result<Self> {
        let mut cursor = Self::new(document)?;
        cursor.at = at as usize;
        Ok(cursor)
    }

    pub fn refuse<T>(&self, reason: &'static str) -> Result<T> {
        Err(Refusal::new(reason, self.at))
    }

    pub fn position(&self) -> usize {
        self.at
    }

    /// Continues at an earlier position; the number of values stays.
    pub fn go_back(&mut self, position: usize) {
        self.at = position;
    }

    /// A token that ends here.
    pub fn token_from(&self, kind: Kind, start: usize) -> Token {
        Token::new(kind, start, self.at)
    }

    /// Whether the value ends here, unlike `12` in `123`.
    pub fn ends_value(&self) -> bool {
        matches!(self.peek(), b',' | b'}' | b' ' | b'\t' | b'\n' | b'\r')
    }

    pub fn begins_with(&self, byte: u8) -> bool {
        self.peek() == byte
    }

    /// Takes these bytes if they are next.
    pub fn take_all(&mut self, text: impl AsRef<[u8]>) -> bool {
        let text = text.as_ref();
        let end = self.at + text.len();
        let next = self.data.get(self.at..end);
        let found = next.is_some_and(|next| equal(next, text));
        self.at = if found { end } else { self.at };
        found
    }

    /// Like [`Self::take_all`], with optional blanks between the tokens; the text has no escapes.
    pub fn take_spaced(&mut self, text: &str) -> bool {
        // Nearly all producers write no blanks, so their form is one comparison.
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

    /// The `N` bytes at an offset from here.
    pub fn ahead<const N: usize>(&self, by: usize) -> Option<&'a [u8; N]> {
        self.data.get(self.at + by..)?.first_chunk()
    }

    /// What follows.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    #[inline]
    pub fn advance(&mut self, by: usize) {
        self.at += by;
    }

    #[inline]
    pub(super) fn peek(&self) -> u8 {
        // No valid document has a zero byte, so that the end needs no branch of its own.
        self.data.get(self.at).copied().unwrap_or(0)
    }

    /// Skips the four blanks of JSON.
    pub fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Takes this character if it is next.
    pub fn take(&mut self, byte: u8) -> bool {
        let mut next = self.peek();
        // One comparison in the usual case; control characters are refused by what follows.
        if next <= b' ' {
            self.blanks();
            next = self.peek();
        }
        let found = next == byte;
        self.at += usize::from(found);
        found
    }

    /// Takes this character; refuses any other.
    pub fn expect(&mut self, byte: u8, reason: &'static str) -> Result<()> {
        if self.take(byte) {
            Ok(())
        } else {
            self.refuse(reason)
        }
    }

    /// Refuses anything but blanks up to the end.
    pub fn end(&mut self) -> Result<()> {
        self.blanks();
        if self.at == self.data.len() {
            Ok(())
        } else {
            self.refuse("unexpected data after the document")
        }
    }

    /// Takes a known text if it is next.
    #[inline]
    pub fn take_label(&mut self, label: &Label) -> bool {
        let found = label.begins(self.rest());
        if found {
            self.at += label.len();
        }
        found
    }

    /// Takes the next member's name and colon.
    pub fn name(&mut self) -> Result<Token> {
        self.expect(b'"', "expected the name of a member")?;
        let name = self.string()?;
        self.expect(b':', "expected a colon after a name")?;
        Ok(name)
    }

    /// Whether more items of the object or array follow; takes its end.
    #[inline]
    pub fn more(&mut self, end: u8) -> Result<bool> {
        if self.take(b',') {
            return Ok(true);
        }
        self.expect(end, "expected a comma or the end")?;
        Ok(false)
    }
}
