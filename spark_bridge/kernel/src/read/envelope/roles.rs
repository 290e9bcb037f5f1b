//! Interpretation of the envelope's members by role.

use crate::json::{Kind, Token};
use crate::plan::{Layout, Op, Role};
use crate::read::envelope::Envelope;
use crate::refusal::{Refusal, Result};
use crate::text::numbers;
use crate::values::zoned_instant;

const NO_ROWS: &str = "not a message of rows";

impl Envelope {
    /// Keeps a member's value by its role; refuses what no row message has.
    ///
    /// `part`: index of the member's part of the schema key.
    pub fn member(
        &mut self,
        layout: &Layout,
        role: Role,
        part: usize,
        token: Token,
        document: &[u8],
    ) -> Result<()> {
        let at = token.start as usize;
        match role {
            // MySQL has no schemas; producers write null for it.
            Role::Schema if token.kind == Kind::Null => {}
            Role::Database | Role::Schema | Role::Table => return self.name_part(role, token),
            Role::ObjectName => return self.object_name(token, document),
            // Avro's schema key consists of the encoded bytes.
            Role::Same if layout.avro.is_some() => {}
            Role::Same => self.key[part] = token,
            Role::MustBeFalse => {
                if !matches!(token.kind, Kind::False | Kind::Null) {
                    return Err(Refusal::new(NO_ROWS, at));
                }
            }
            Role::Row => {
                if !is_row_word(layout, token, document) {
                    return Err(Refusal::new(NO_ROWS, at));
                }
                self.has_row_word = true;
            }
            Role::Op => {
                let op = operation(layout, token, document);
                self.op = Some(op.ok_or(Refusal::new(NO_ROWS, at))?);
            }
            Role::IsDeleted => {
                self.is_deleted = token.kind == Kind::True || token.bytes(document) == b"true";
            }
            Role::CommitTs => self.commit_ts = time(token, document, 0, i64::MAX)?,
            Role::SourceTime => self.source_time = time_of(layout, token, document)?,
            Role::OtherTime => self.other_time = time_of(layout, token, document)?,
            Role::Position => self.position = time(token, document, i64::MIN, i64::MAX)?,
            Role::Before | Role::After | Role::Deleted => return self.image(layout, role, token),
            Role::Object => {
                if !matches!(token.kind, Kind::Object | Kind::Null) {
                    return Err(Refusal::new("member is not an object", at));
                }
            }
            Role::RowId | Role::Integer => {
                let is_integer = is_64_bits(token, document);
                if !is_integer && token.kind != Kind::Null {
                    return Err(Refusal::new("member is not a 64-bit integer", at));
                }
                self.has_row_id |= role == Role::RowId && is_integer;
            }
            Role::Extra | Role::Passed | Role::Columns => {}
        }
        Ok(())
    }

    /// Keeps a part of the table's name.
    #[inline]
    fn name_part(&mut self, role: Role, token: Token) -> Result<()> {
        // Plans are found by the bytes of names, which an escape would change.
        if token.kind != Kind::Text {
            let at = token.start as usize;
            return Err(Refusal::new("name is not plain text", at));
        }
        match role {
            Role::Database => self.database = token,
            Role::Schema => self.schema = token,
            _ => self.table = token,
        }
        Ok(())
    }

    /// Keeps an image, or a list of images.
    #[inline]
    fn image(&mut self, layout: &Layout, role: Role, token: Token) -> Result<()> {
        let refuse = |reason| Err(Refusal::new(reason, token.start as usize));
        let (expected, _) = layout.form();
        if token.kind != expected && token.kind != Kind::Null {
            return refuse("images have an unexpected form");
        }
        let image = match role {
            Role::After => &mut self.after,
            _ => &mut self.before,
        };
        // Both members of `before` would be one image.
        if image.kind != Kind::Missing {
            return refuse("deleted row has the before image of an update");
        }
        *image = token;
        self.deleted |= role == Role::Deleted;
        Ok(())
    }

    /// Splits a qualified table name.
    fn object_name(&mut self, token: Token, document: &[u8]) -> Result<()> {
        let text = token.bytes(document);
        let refusal = Refusal::new("name has an unexpected form", token.start as usize);
        // The reference splits names that have dots of their own.
        // A backslash may escape a dot.
        if token.kind != Kind::Text || text.contains(&b'\\') {
            return Err(refusal);
        }
        let mut start = token.start as usize;
        let mut tokens = Vec::with_capacity(3);
        for part in text.split(|byte| *byte == b'.') {
            if part.is_empty() {
                return Err(refusal);
            }
            tokens.push(Token::new(Kind::Text, start, start + part.len()));
            start += part.len() + 1;
        }
        (self.database, self.schema, self.table) = match tokens[..] {
            [database, table] => (database, Token::MISSING, table),
            // The reference takes such a schema for none.
            // Some sources without schemas repeat the database as schema.
            [database, schema, table] if database.bytes(document) != schema.bytes(document) => {
                (database, schema, table)
            }
            _ => return Err(refusal),
        };
        Ok(())
    }
}

/// Whether a value is one of the words of rows, as in documents: quoted, or `null`.
#[inline]
fn is_row_word(layout: &Layout, token: Token, document: &[u8]) -> bool {
    let (start, end) = token.whole_span();
    let word = document.get(start..end);
    let mut words = layout.row_words.iter();
    words.any(|known| Some(known.as_bytes()) == word)
}

#[inline]
fn operation(layout: &Layout, token: Token, document: &[u8]) -> Option<Op> {
    let word = token.bytes(document);
    let known = layout.ops.iter().find(|known| known.0.as_bytes() == word);
    known
        .map(|known| *known.1)
        .filter(|_| token.kind == Kind::Text)
}

/// Whether a value is a signed or unsigned integer of 64 bits.
#[inline]
fn is_64_bits(token: Token, document: &[u8]) -> bool {
    let fits = |number| (i64::MIN.into()..=u64::MAX.into()).contains(&number);
    match token.kind {
        Kind::Long => true,
        Kind::Integer => numbers::integer(token.bytes(document)).is_some_and(fits),
        _ => false,
    }
}

/// An integer of 64 bits.
pub fn long(token: Token, document: &[u8]) -> Option<i64> {
    match token.kind {
        Kind::Integer => i64::try_from(numbers::integer(token.bytes(document))?).ok(),
        _ => token.long(),
    }
}

/// A time in the layout's unit.
fn time_of(layout: &Layout, token: Token, document: &[u8]) -> Result<Option<i64>> {
    let (low, high, _) = layout.times;
    if !layout.iso_times || token.kind == Kind::Null {
        return time(token, document, low, high);
    }
    let text = std::str::from_utf8(token.bytes(document)).ok();
    let text = text.filter(|_| token.kind == Kind::Text);
    let micros = text.and_then(zoned_instant);
    match micros.filter(|micros| (low..=high).contains(micros)) {
        Some(micros) => Ok(Some(micros)),
        None => Err(Refusal::new(
            "time has an unexpected form",
            token.start as usize,
        )),
    }
}

fn time(token: Token, document: &[u8], low: i64, high: i64) -> Result<Option<i64>> {
    if token.kind == Kind::Null {
        return Ok(None);
    }
    match long(token, document) {
        Some(value) if (low..=high).contains(&value) => Ok(Some(value)),
        _ => Err(Refusal::new("time is out of range", token.start as usize)),
    }
}
