//! Checks a document without recording positions of values.

use crate::json::strings::end_of_string;
use crate::json::values::{MAX_DEPTH, MAX_VALUES};
use crate::json::{Cursor, Kind};
use crate::refusal::Result;

impl Cursor<'_> {
    /// Checks one value with nothing after it, like `document`.
    pub fn check(&mut self) -> Result<()> {
        // Bits tell whether open brackets are braces; the lowest bit is the innermost bracket.
        // 128 bits hold the 100 brackets of the deepest document, without an allocation or
        // recursion.
        let (mut braces, mut depth) = (0_u128, 0);
        loop {
            self.blanks();
            // With the same limits as `value`, so that both accept the same documents.
            self.values += 1;
            if self.values > MAX_VALUES {
                return self.refuse("more values than a message may have");
            }
            match self.peek() {
                b'"' => self.pass_string()?,
                b'-' | b'0'..=b'9' => _ = self.number()?,
                b'n' => _ = self.word("null", Kind::Null)?,
                b't' => _ = self.word("true", Kind::True)?,
                b'f' => _ = self.word("false", Kind::False)?,
                bracket @ (b'{' | b'[') => {
                    if depth >= MAX_DEPTH {
                        return self.refuse("nested too deeply");
                    }
                    self.at += 1;
                    let is_brace = bracket == b'{';
                    if !self.take(closing(is_brace)) {
                        (braces, depth) = (braces << 1 | u128::from(is_brace), depth + 1);
                        self.pass_name(is_brace)?;
                        continue;
                    }
                }
                _ => return self.refuse("invalid JSON value"),
            }
            loop {
                if depth == 0 {
                    return self.end();
                }
                let in_braces = braces & 1 == 1;
                if self.take(b',') {
                    self.pass_name(in_braces)?;
                    break;
                }
                self.expect(closing(in_braces), "expected a comma or the end")?;
                (braces, depth) = (braces >> 1, depth - 1);
            }
        }
    }

    /// Skips the name of the next value, if it is in an object.
    fn pass_name(&mut self, in_braces: bool) -> Result<()> {
        if in_braces {
            self.blanks();
            if self.peek() != b'"' {
                return self.refuse("expected the name of a member");
            }
            self.pass_string()?;
            self.expect(b':', "expected a colon after a name")?;
        }
        Ok(())
    }

    /// Skips text with its quotes.
    fn pass_string(&mut self) -> Result<()> {
        self.at += 1;
        match end_of_string(self.data, self.at) {
            Some((end, _)) => {
                self.at = end + 1;
                Ok(())
            }
            None => self.refuse("text has a broken escape, a control character, or no end"),
        }
    }
}

fn closing(is_brace: bool) -> u8 {
    if is_brace { b'}' } else { b']' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_checked() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let values = |count: u32| format!("[{}1]", "1,".repeat(count as usize - 2));
        let whole = r#" {"a" : [1, -2.50, {}, [] ,null,true,false], "\u00e9\n": {"b":"\\"}} "#;
        let mut documents: Vec<String> = (0..whole.len()).map(|end| whole[..end].into()).collect();
        for byte in " ,:[]{}\"\\1an-".chars() {
            documents.extend((0..whole.len()).map(|at| {
                let (before, behind) = whole.split_at(at);
                format!("{before}{byte}{behind}")
            }));
        }
        documents.extend([whole.into(), "\"x\"".into(), "1e3".into(), "1".repeat(39)]);
        documents.extend([nested(MAX_DEPTH), nested(MAX_DEPTH + 1)]);
        documents.extend([values(MAX_VALUES), values(MAX_VALUES + 1)]);
        for document in &documents {
            let read = Cursor::exact(document).unwrap().document().is_ok();
            let checked = Cursor::exact(document).unwrap().check().is_ok();
            assert_eq!(read, checked, "{document}");
        }
    }
}
