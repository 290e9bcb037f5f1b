//! The kind of a value, and its position in its document.

use crate::text::equal;

/// The kind of a value.
// As long as a position: a processor waits for a token that it loads as one word, but stored byte
// by byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The member is missing.
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
    /// An integer instead of its position, for Avro.
    Long,
    /// A finite 64-bit number instead of its position, for Avro.
    Double,
}

impl Kind {
    pub fn is_nested(self) -> bool {
        matches!(self, Self::Object | Self::Array)
    }
}

/// A value's kind and position in its document.
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

    /// The member exists, but outside of the document.
    pub const ELSEWHERE: Self = Self {
        kind: Kind::Object,
        start: 0,
        end: 0,
    };

    pub fn new(kind: Kind, start: usize, end: usize) -> Self {
        // Twelve bytes: a row of a thousand columns has a thousand tokens, which stay in the cache.
        // Documents are shorter than 4 GiB, as checked by `Cursor::new` and readers of Avro.
        Self {
            kind,
            start: start as u32,
            end: end as u32,
        }
    }

    // Avro's numbers have no text in a document: their 64 bits take the place of the span.
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

    /// The token of the same text this far behind, modulo 4 GiB.
    pub fn moved(self, by: u32) -> Self {
        Self {
            kind: self.kind,
            start: self.start.wrapping_add(by),
            end: self.end.wrapping_add(by),
        }
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

    /// Whether two values of a document have the same kind and bytes.
    pub fn equals(self, other: Self, document: &str) -> bool {
        // By bits, so that -0.0 is not 0.0; NaN was refused before.
        let is_number = matches!(self.kind, Kind::Long | Kind::Double);
        self.kind == other.kind
            && if is_number {
                self.bits() == other.bits()
            } else {
                let document = document.as_bytes();
                equal(self.bytes(document), other.bytes(document))
            }
    }

    /// A value's bytes, without the quotes of text.
    pub fn bytes<'a>(&self, document: &'a [u8]) -> &'a [u8] {
        document
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    /// A value's text, without quotes, but with escapes.
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

    /// Start and end of a value, with the quotes of text.
    pub fn whole_span(&self) -> (usize, usize) {
        let quote = usize::from(self.is_text());
        (self.start as usize - quote, self.end as usize + quote)
    }

    pub fn is_text(self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Escaped)
    }
}
