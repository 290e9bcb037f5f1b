//! A strict reader of JSON (RFC 8259): positions of values in a document, nothing copied.
//!
//! The document is valid UTF-8 before it comes here. Lone surrogates, control characters in
//! text, numbers with leading zeros and nesting beyond [`MAX_DEPTH`] are refused.

use crate::refusal::{Refusal, Step};

/// The reference reads numbers below 10^1000, also where nothing comes of them.
const EXPONENT_DIGITS: usize = 3;
const LARGEST_EXPONENT: usize = 600;
const NUMBER_LENGTH: usize = 300;

/// The reference refuses 350 000 brackets and commas, which are at most two a value.
const MAX_VALUES: usize = 140_000;

/// Deepest nesting of arrays and objects that is walked.
pub const MAX_DEPTH: usize = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// No such member.
    #[default]
    Missing,
    Null,
    True,
    False,
    /// Text without escapes; the span is between the quotes.
    Text,
    /// Text with escapes.
    Escaped,
    Integer,
    /// A number with a fraction or an exponent.
    Fraction,
    Object,
    Array,
    /// An integer in place of its position, as messages in Avro have it.
    Long,
    /// A finite number of 64 bits, likewise.
    Double,
}

impl Kind {
    pub fn is_nested(self) -> bool {
        matches!(self, Self::Object | Self::Array)
    }
}

/// A value's kind and place in its document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

impl Token {
    pub const MISSING: Self = Self {
        kind: Kind::Missing,
        start: 0,
        end: 0,
    };

    /// There is such a member, but not in the document.
    pub const ELSEWHERE: Self = Self {
        kind: Kind::Object,
        start: 0,
        end: 0,
    };

    pub fn new(kind: Kind, start: usize, end: usize) -> Self {
        // Documents are shorter than 4 GiB: `Cursor::new` and readers of Avro check it.
        #[allow(clippy::cast_possible_truncation)]
        Self {
            kind,
            start: start as u32,
            end: end as u32,
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn of_bits(kind: Kind, bits: u64) -> Self {
        Self {
            kind,
            start: bits as u32,
            end: (bits >> 32) as u32,
        }
    }

    fn bits(self) -> u64 {
        u64::from(self.end) << 32 | u64::from(self.start)
    }

    pub fn of_long(value: i64) -> Self {
        Self::of_bits(Kind::Long, value as u64)
    }

    pub fn of_double(value: f64) -> Self {
        Self::of_bits(Kind::Double, value.to_bits())
    }

    pub fn long(self) -> Option<i64> {
        (self.kind == Kind::Long).then_some(self.bits() as i64)
    }

    pub fn double(self) -> Option<f64> {
        (self.kind == Kind::Double).then_some(f64::from_bits(self.bits()))
    }

    /// Whether two values of a document are of one kind, and of the same bytes.
    pub fn equals(self, other: Self, document: &str) -> bool {
        let is_number = matches!(self.kind, Kind::Long | Kind::Double);
        self.kind == other.kind
            && if is_number {
                self.bits() == other.bits()
            } else {
                self.text(document) == other.text(document)
            }
    }

    pub fn bytes<'a>(&self, document: &'a [u8]) -> &'a [u8] {
        document
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    pub fn text<'a>(&self, document: &'a str) -> &'a str {
        document
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    /// A value's bytes, with the quotes of text.
    pub fn whole_text<'a>(&self, document: &'a str) -> &'a str {
        let (start, end) = self.whole_span();
        document.get(start..end).unwrap_or_default()
    }

    /// Where a value begins and ends, with the quotes of text.
    pub fn whole_span(&self) -> (usize, usize) {
        let quote = usize::from(self.is_text());
        (self.start as usize - quote, self.end as usize + quote)
    }

    pub fn is_text(self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Escaped)
    }
}

pub struct Cursor<'a> {
    pub document: &'a str,
    data: &'a [u8],
    at: usize,
    /// Values that were read.
    values: usize,
    /// Numbers have 38 digits at most, and no exponent.
    exact: bool,
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The lowest set bit marks the first quote, backslash or control character of eight bytes.
fn special(word: u64) -> u64 {
    let quotes = word ^ (LOW_BITS * b'"' as u64);
    let slashes = word ^ (LOW_BITS * b'\\' as u64);
    let zeros = |bytes: u64| bytes.wrapping_sub(LOW_BITS) & !bytes;
    let controls = word.wrapping_sub(LOW_BITS * 0x20) & !word;
    (zeros(quotes) | zeros(slashes) | controls) & HIGH_BITS
}

/// What letters behind a backslash stand for; 0 for those that are no escape of one letter.
const SHORT_ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes[b'/' as usize] = b'/';
    escapes[b'b' as usize] = 0x8;
    escapes[b'f' as usize] = 0xc;
    escapes[b'n' as usize] = b'\n';
    escapes[b'r' as usize] = b'\r';
    escapes[b't' as usize] = b'\t';
    escapes
};

/// The lowest set bit marks the first of eight bytes that is no digit.
fn not_digits(word: u64) -> u64 {
    let digits = word ^ (LOW_BITS * b'0' as u64);
    (((digits & !HIGH_BITS) + LOW_BITS * 0x76) | digits) & HIGH_BITS
}

/// Where the first quote, backslash or control character is.
pub fn find_special(data: &[u8]) -> Option<usize> {
    let mut words = data.chunks_exact(8);
    for (place, bytes) in words.by_ref().enumerate() {
        let found = special(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        if found != 0 {
            return Some(place * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let rest = words.remainder();
    let found = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    found.map(|at| data.len() - rest.len() + at)
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
        let found = self.data[self.at..].starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    pub fn bytes_of(&self, token: Token) -> &'a [u8] {
        token.bytes(self.data)
    }

    /// The bytes behind the next ones.
    pub fn ahead<const N: usize>(&self, by: usize) -> Option<&'a [u8; N]> {
        self.data.get(self.at + by..)?.first_chunk()
    }

    fn peek(&self) -> u8 {
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
        let found = text == name;
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

    /// Any value.
    pub fn value(&mut self) -> Step<Token> {
        if self.peek() == b'"' && self.values < MAX_VALUES {
            self.values += 1;
            self.at += 1;
            return self.string();
        }
        self.value_within(0)
    }

    fn value_within(&mut self, depth: usize) -> Step<Token> {
        self.blanks();
        self.values += 1;
        if self.values > MAX_VALUES {
            return self.refuse("more values than a message may have");
        }
        let start = self.at;
        match self.peek() {
            b'"' => {
                self.at += 1;
                self.string()
            }
            b'n' => self.word("null", Kind::Null),
            b't' => self.word("true", Kind::True),
            b'f' => self.word("false", Kind::False),
            b'-' | b'0'..=b'9' => self.number(),
            b'{' => {
                self.at += 1;
                self.nested(depth)?;
                if !self.take(b'}') {
                    loop {
                        self.name()?;
                        self.value_within(depth + 1)?;
                        if !self.more(b'}')? {
                            break;
                        }
                    }
                }
                Ok(Token::new(Kind::Object, start, self.at))
            }
            b'[' => {
                self.at += 1;
                self.nested(depth)?;
                if !self.take(b']') {
                    loop {
                        self.value_within(depth + 1)?;
                        if !self.more(b']')? {
                            break;
                        }
                    }
                }
                Ok(Token::new(Kind::Array, start, self.at))
            }
            _ => self.refuse("no JSON value"),
        }
    }

    fn nested(&self, depth: usize) -> Step<()> {
        if depth >= MAX_DEPTH {
            self.refuse("nested too deeply")
        } else {
            Ok(())
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Step<Token> {
        let start = self.at;
        if !self.data[start..].starts_with(word.as_bytes()) {
            return self.refuse("no JSON value");
        }
        self.at += word.len();
        Ok(Token::new(kind, start, self.at))
    }

    fn digits(&mut self) -> Step<()> {
        let start = self.at;
        while let Some(word) = self.word_at(self.at) {
            let others = not_digits(word);
            if others != 0 {
                self.at += (others.trailing_zeros() / 8) as usize;
                break;
            }
            self.at += 8;
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start {
            self.refuse("a number without digits")
        } else {
            Ok(())
        }
    }

    fn number(&mut self) -> Step<Token> {
        let start = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        if self.peek() == b'0' {
            self.at += 1;
            if self.peek().is_ascii_digit() {
                return self.refuse("a zero before a number");
            }
        } else {
            self.digits()?;
        }
        let mut kind = Kind::Integer;
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
            kind = Kind::Fraction;
        }
        // Strict: a sign and a point count as digits.
        if self.exact && (self.at - start > 38 || matches!(self.peek(), b'e' | b'E')) {
            return self.refuse("a number beyond 38 digits, or with an exponent");
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            let exponent = self.at;
            self.digits()?;
            let digits = &self.document[exponent..self.at];
            if digits
                .parse::<usize>()
                .is_ok_and(|value| value > LARGEST_EXPONENT)
                || digits.len() > EXPONENT_DIGITS
            {
                return self.refuse("an exponent that is too long");
            }
            kind = Kind::Fraction;
        }
        if self.at - start > NUMBER_LENGTH {
            return self.refuse("a number that is too long");
        }
        Ok(Token::new(kind, start, self.at))
    }

    /// Text, behind its opening quote.
    fn string(&mut self) -> Step<Token> {
        let start = self.at;
        let mut kind = Kind::Text;
        let mut at = start;
        loop {
            while let Some(word) = self.word_at(at) {
                let found = special(word);
                if found != 0 {
                    at += (found.trailing_zeros() / 8) as usize;
                    break;
                }
                at += 8;
            }
            match self.data.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(Token::new(kind, start, at));
                }
                Some(b'\\') => {
                    kind = Kind::Escaped;
                    let letter = self.data.get(at + 1).map_or(0, |letter| *letter);
                    at += match SHORT_ESCAPES[usize::from(letter)] {
                        0 => {
                            self.at = at;
                            escape(self.data, at).ok_or(Refusal::new("a broken escape", at))?
                        }
                        _ => 2,
                    }
                }
                Some(0x20..) => at += 1,
                _ => {
                    self.at = at;
                    return self.refuse("text without an end, or with a control character");
                }
            }
        }
    }

    fn word_at(&self, at: usize) -> Option<u64> {
        let bytes = self.data.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }
}

fn hex(data: &[u8], at: usize) -> Option<u32> {
    let digits = data.get(at..at + 4)?;
    let mut value = 0;
    for digit in digits {
        value = value << 4 | (*digit as char).to_digit(16)?;
    }
    Some(value)
}

/// The length of a long escape at a backslash; None for a broken one or a lone surrogate.
fn escape(data: &[u8], at: usize) -> Option<usize> {
    match data.get(at + 1)? {
        b'u' => match hex(data, at + 2)? {
            0xd800..=0xdbff => {
                let pair = data.get(at + 6..at + 8)? == b"\\u"
                    && (0xdc00..=0xdfff).contains(&hex(data, at + 8)?);
                pair.then_some(12)
            }
            0xdc00..=0xdfff => None,
            _ => Some(6),
        },
        _ => None,
    }
}

/// The text of an escaped token, instead of what `out` holds.
pub fn unescape(text: &str, out: &mut String) {
    let data = text.as_bytes();
    let mut bytes = std::mem::take(out).into_bytes();
    // The text is no longer than this, and words are written as a whole.
    bytes.resize(data.len() + 8, 0);
    let (mut at, mut length) = (0, 0);
    while at < data.len() {
        let (word, most) = match data.get(at..at + 8) {
            Some(word) => (u64::from_le_bytes(word.try_into().unwrap_or_default()), 8),
            None => {
                let mut word = [0; 8];
                word[..data.len() - at].copy_from_slice(&data[at..]);
                (u64::from_le_bytes(word), data.len() - at)
            }
        };
        bytes[length..length + 8].copy_from_slice(&word.to_le_bytes());
        let slashes = word ^ (LOW_BITS * b'\\' as u64);
        let found = slashes.wrapping_sub(LOW_BITS) & !slashes & HIGH_BITS;
        let plain = most.min((found.trailing_zeros() / 8) as usize);
        at += plain;
        length += plain;
        if found == 0 {
            continue;
        }
        let letter = data.get(at + 1).map_or(0, |letter| *letter);
        if letter != b'u' {
            bytes[length] = SHORT_ESCAPES[usize::from(letter)];
            length += 1;
            at += 2;
            continue;
        }
        let mut code = hex(data, at + 2).unwrap_or(0);
        at += 6;
        if (0xd800..0xdc00).contains(&code) {
            let low = hex(data, at + 2).unwrap_or(0xdc00);
            code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            at += 6;
        }
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        length += character.encode_utf8(&mut bytes[length..]).len();
    }
    bytes.truncate(length);
    *out = String::from_utf8(bytes).unwrap_or_default();
}
