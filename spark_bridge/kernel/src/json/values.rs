//! Reads and checks values of any kind.

use crate::json::simd::digits_end;
use crate::json::strings::end_of_string;
use crate::json::{Cursor, Kind, Token};
use crate::refusal::Result;
use crate::text::numbers;

/// The reference accepts numbers below 10^1000, even if they are not used.
// Together, 300 digits and an exponent of 600 stay below 10^1000.
const EXPONENT_DIGITS: usize = 3;
const LARGEST_EXPONENT: usize = 600;
const NUMBER_LENGTH: usize = 300;

/// The reference refuses 350 000 brackets and commas; a value has at most two of them.
pub(super) const MAX_VALUES: u32 = 140_000;

/// Maximum nesting of arrays and objects: reading recurses, and a thread's stack is bounded.
pub const MAX_DEPTH: usize = 100;

impl Cursor<'_> {
    /// Any value.
    #[inline]
    // Texts, short numbers and null are most values: they are read without recursion.
    pub fn value(&mut self) -> Result<Token> {
        match self.fast_value() {
            Some(token) => Ok(token),
            None => self.value_within(0),
        }
    }

    fn value_within(&mut self, depth: usize) -> Result<Token> {
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
            _ => self.refuse("invalid JSON value"),
        }
    }

    fn nested(&self, depth: usize) -> Result<()> {
        if depth >= MAX_DEPTH {
            self.refuse("nested too deeply")
        } else {
            Ok(())
        }
    }

    pub(super) fn word(&mut self, word: &str, kind: Kind) -> Result<Token> {
        let start = self.at;
        if !self.data[start..].starts_with(word.as_bytes()) {
            return self.refuse("invalid JSON value");
        }
        self.at += word.len();
        Ok(Token::new(kind, start, self.at))
    }

    fn digits(&mut self) -> Result<()> {
        let start = self.at;
        self.at = digits_end(self.data, start);
        if self.at == start {
            self.refuse("number without digits")
        } else {
            Ok(())
        }
    }

    pub(super) fn number(&mut self) -> Result<Token> {
        let start = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        if self.peek() == b'0' {
            self.at += 1;
            // Python's parser refuses `01`, too.
            if self.peek().is_ascii_digit() {
                return self.refuse("leading zero in a number");
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
        // A number without exponent and with at most 38 characters has at most 38 digits.
        let is_short = self.at - start <= 38;
        let has_exponent = matches!(self.peek(), b'e' | b'E');
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
                return self.refuse("exponent is too long");
            }
            kind = Kind::Fraction;
        }
        // Numbers of hundreds of digits are left to the reference, which has limits of its own.
        if self.at - start > NUMBER_LENGTH {
            return self.refuse("number is too long");
        }
        if self.exact && (has_exponent || !is_short) {
            let text = &self.document[start..self.at];
            if numbers::exact(text).is_none() {
                return self.refuse("number has more than 38 digits");
            }
        }
        Ok(Token::new(kind, start, self.at))
    }

    /// Text after its opening quote.
    pub(super) fn string(&mut self) -> Result<Token> {
        let start = self.at;
        match end_of_string(self.data, self.at) {
            Some((end, kind)) => {
                self.at = end + 1;
                Ok(Token::new(kind, start, end))
            }
            None => self.refuse("text has a broken escape, a control character, or no end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &str) -> Option<Token> {
        Cursor::new(document).unwrap().document().ok()
    }

    #[test]
    fn kinds_and_places() {
        for (document, kind, text) in [
            (" null ", Kind::Null, "null"),
            ("-0", Kind::Integer, "-0"),
            (
                "12345678901234567890",
                Kind::Integer,
                "12345678901234567890",
            ),
            ("1.50E-3", Kind::Fraction, "1.50E-3"),
            (
                r#""caf\u00e9 \ud83d\ude00""#,
                Kind::Escaped,
                r"caf\u00e9 \ud83d\ude00",
            ),
            (
                r#""a text of some words""#,
                Kind::Text,
                "a text of some words",
            ),
            (r#"[1, {"a" : []}]"#, Kind::Array, r#"[1, {"a" : []}]"#),
        ] {
            let token = read(document).unwrap();
            assert_eq!(
                (token.kind, token.text(document)),
                (kind, text),
                "{document}"
            );
        }
    }

    #[test]
    fn what_is_refused() {
        for document in [
            "",
            "01",
            "-",
            "1.",
            "1e",
            "+1",
            "nul",
            "[1,]",
            "{\"a\"}",
            "[1] 2",
            "\"a",
            "\"\n\"",
            r#""\ud800""#,
            r#""\x""#,
            "1e1000",
        ] {
            assert_eq!(read(document), None, "{document}");
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(&nested(MAX_DEPTH)).is_some());
        assert!(read(&nested(MAX_DEPTH + 1)).is_none());
    }

    #[test]
    fn exact_numbers() {
        let read = |document: &str| Cursor::exact(document).unwrap().document().is_ok();
        assert!(read("1234567890.5"));
        assert!(read("1e3") && read(&format!("0.{}", "1".repeat(38))));
        assert!(!read("1e38") && !read("1e-39") && !read(&"1".repeat(39)));
    }
}
