//! The Open Protocol: a message is frames of events, each a key and a value.
//!
//! An event is read as one document, its key and its value behind each other. Its images hold
//! cells: objects of a value and of what the table's schema is made of.

use std::sync::Arc;

use hashbrown::HashMap;
use simdutf8::basic::from_utf8;

use crate::envelope::Envelope;
use crate::json::{Cursor, Kind, Token};
use crate::kernel::{Kernel, Outcome};
use crate::layout::{Layout, Op};
use crate::plans::Plan;
use crate::refusal::{Refusal, Step};

const VERSION: [u8; 8] = 1_u64.to_be_bytes();

/// A message's rows are weighed after each so many of them.
const LOOK_AFTER: usize = 64;

/// Frames: a length of eight bytes, and as many bytes.
#[derive(Clone, Copy)]
struct Frames<'a>(&'a [u8]);

impl<'a> Frames<'a> {
    fn of_key(key: &'a [u8]) -> Step<Self> {
        let frames = key.strip_prefix(&VERSION);
        frames
            .map(Self)
            .ok_or(Refusal::new("another version of frames", 0))
    }

    fn next(&mut self) -> Step<Option<&'a [u8]>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let refusal = Refusal::new("a frame whose length is wrong", 0);
        let (length, rest) = self.0.split_first_chunk().ok_or(refusal)?;
        let length = usize::try_from(u64::from_be_bytes(*length)).map_err(|_| refusal)?;
        let (frame, rest) = rest.split_at_checked(length).ok_or(refusal)?;
        self.0 = rest;
        Ok(Some(frame))
    }

    fn count(mut self) -> Step<usize> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// An event's key and value, behind each other.
#[derive(Default)]
pub struct Joined {
    pub document: String,
    /// Where the value begins.
    value: usize,
}

impl Joined {
    fn set(&mut self, key: &[u8], value: &[u8]) -> Step<()> {
        let refusal = Refusal::new("bytes that are no UTF-8", 0);
        let text = |data| from_utf8(data).map_err(|_| refusal);
        self.document.clear();
        self.document.push_str(text(key)?);
        self.document.push_str(text(value)?);
        self.value = key.len();
        Ok(())
    }

    /// The key and the value of an event.
    pub fn new(key: Option<&[u8]>, value: &[u8]) -> Step<Self> {
        let mut joined = Self::default();
        joined.set(key.unwrap_or_default(), value)?;
        Ok(joined)
    }
}

/// The key and the value of an event, by its number in the message.
pub fn event<'a>(
    key: Option<&'a [u8]>,
    value: &'a [u8],
    number: usize,
) -> Step<(&'a [u8], &'a [u8])> {
    let mut keys = Frames::of_key(key.unwrap_or_default())?;
    let mut values = Frames(value);
    if keys.count()? != values.count()? {
        return Err(Refusal::new("frames that are no pairs", 0));
    }
    for _ in 0..number {
        keys.next()?;
        values.next()?;
    }
    match (keys.next()?, values.next()?) {
        (Some(key), Some(value)) => Ok((key, value)),
        _ => Err(Refusal::new("no such event", 0)),
    }
}

impl Kernel {
    /// Reads the events of a message, of which there may be `most`.
    pub fn events(
        &mut self,
        most: usize,
        key: Option<&[u8]>,
        value: &[u8],
        offset: Option<i64>,
    ) -> Step<Outcome> {
        let mut keys = Frames::of_key(key.unwrap_or_default())?;
        let mut values = Frames(value);
        let count = keys.count()?;
        if count == 0 || count > most || count != values.count()? {
            return Err(Refusal::new("frames that are no pairs", 0));
        }
        if count > 1 && 2 * count * self.settings.row_bytes > self.settings.max_bytes {
            return Err(Refusal::new("more rows than a batch has room for", 0));
        }
        let begin = if count >= LOOK_AFTER {
            self.batch.size()
        } else {
            0
        };
        let mut outcome = Outcome::Read;
        let mut joined = std::mem::take(&mut self.joined);
        self.event = 0;
        while let (Some(key), Some(value)) = (keys.next()?, values.next()?) {
            joined.set(key, value)?;
            match self.one_event(&joined, offset)? {
                Outcome::Skipped => outcome = Outcome::Skipped,
                Outcome::Read => {}
                other => return Ok(other),
            }
            self.event += 1;
            if self.event % LOOK_AFTER == 0 && self.batch.size() - begin > self.settings.max_bytes {
                let reason = "more bytes of rows than a batch has room for";
                return Err(Refusal::new(reason, 0));
            }
        }
        self.joined = joined;
        Ok(outcome)
    }

    fn one_event(&mut self, joined: &Joined, offset: Option<i64>) -> Step<Outcome> {
        let document = joined.document.as_str();
        let layout = &self.settings.layouts[0];
        self.envelope.read_key(layout, document, joined.value)?;
        if let Some(outcome) = self.refused_by_filters(0, document)? {
            return Ok(outcome);
        }
        self.guess_by_name(document);
        let layout = &self.settings.layouts[0];
        let guess = self.guess.as_ref();
        self.envelope
            .read_value(layout, document, joined.value, guess)?;
        let op = self.envelope.op.ok_or(Refusal::new("no operation", 0))?;
        let rows = self.batch.row_count();
        let outcome = self.by_plan(0, op, document, None, offset)?;
        if outcome == Outcome::Read && !self.is_wanted()? {
            // The reference, too, knows the operation when it has read the images.
            self.batch.truncate(rows);
            return Ok(Outcome::Skipped);
        }
        Ok(outcome)
    }

    /// The envelope of an event, for who looks at it once.
    pub fn read_joined(&mut self, joined: &Joined) -> Step<()> {
        let layout = &self.settings.layouts[0];
        self.envelope
            .read_key(layout, &joined.document, joined.value)?;
        self.envelope
            .read_value(layout, &joined.document, joined.value, None)
    }
}

impl Envelope {
    fn read_key(&mut self, layout: &Layout, document: &str, end: usize) -> Step<()> {
        self.start(layout);
        let mut cursor = Cursor::new(document)?;
        self.part(layout, layout.inner_members(0), &mut cursor, None)?;
        cursor.blanks();
        if cursor.position() == end {
            Ok(())
        } else {
            cursor.refuse("more behind an event's key")
        }
    }

    fn read_value(
        &mut self,
        layout: &Layout,
        document: &str,
        start: usize,
        guess: Option<&Arc<Plan>>,
    ) -> Step<()> {
        let start = u32::try_from(start).map_err(|_| Refusal::new("a key of 4 GiB", 0))?;
        let mut cursor = Cursor::at(document, start)?;
        self.part(layout, layout.inner_members(1), &mut cursor, guess)?;
        cursor.end()?;
        let word = match (self.deleted, self.before.kind, self.after.kind) {
            (false, Kind::Missing, Kind::Object) => "after",
            (false, Kind::Object, Kind::Object) => "before",
            (true, Kind::Object, Kind::Missing) => "deleted",
            _ => return cursor.refuse("images that make no row"),
        };
        self.op = layout.ops.get(word).copied();
        Ok(())
    }

    /// The image that has all columns of the row.
    pub fn row_token(&self) -> Token {
        if self.after.kind == Kind::Missing {
            self.before
        } else {
            self.after
        }
    }

    /// Whether a NULL before an update may have been something else: nothing shows that NULLs are
    /// certain.
    pub fn doubts_nulls(&self, document: &str, layout: &Layout) -> bool {
        if !layout.doubts_nulls || self.has_row_id || self.op != Some(Op::Update) {
            return false;
        }
        let (Some(before), Some(after)) = (self.images_before.row(0), self.images_after.row(0))
        else {
            return true;
        };
        let unchanged = before
            .iter()
            .zip(after)
            .any(|(old, new)| old.kind != Kind::Missing && old.equals(*new, document));
        !unchanged && before.iter().any(|old| old.kind == Kind::Null)
    }
}

/// What stands around a column's values: its name and the other members of its cells.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    opens: String,
    /// Where what follows the name's colon begins.
    behind_name: usize,
    closes: String,
}

impl Cell {
    /// Takes what stands before a value, the column's name included.
    pub fn take(&self, cursor: &mut Cursor) -> bool {
        cursor.take_all(&self.opens)
    }

    /// Takes what stands between a column's name and a value.
    pub fn open(&self, cursor: &mut Cursor) -> bool {
        cursor.take_all(&self.opens[self.behind_name..])
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.opens.len() + self.closes.len()
    }

    pub fn close(&self, cursor: &mut Cursor) -> bool {
        cursor.take_all(&self.closes)
    }
}

/// The cells of an image, by the names of columns, each with its value in the member `cell`.
pub fn cells(token: Token, cell: &str, document: &str) -> Step<HashMap<String, Cell>> {
    let mut found = HashMap::new();
    let mut cursor = Cursor::at(document, token.start)?;
    cursor.expect(b'{', "an image that is no object")?;
    loop {
        let name = cursor.name()?;
        let start = name.start as usize - 1;
        let behind_name = cursor.position() - start;
        let value = value_in(&mut cursor, cell)?;
        let end = cursor.position();
        let (from, to) = value.whole_span();
        let one = Cell {
            opens: document[start..from].to_owned(),
            behind_name,
            closes: document[to..end].to_owned(),
        };
        let twice = found.insert(name.text(document).to_owned(), one);
        if twice.is_some() {
            return cursor.refuse("two columns of one name");
        }
        if !cursor.more(b'}')? {
            return Ok(found);
        }
    }
}

/// Reads a cell; its value.
fn value_in(cursor: &mut Cursor, cell: &str) -> Step<Token> {
    let mut names = Vec::new();
    let mut found = Token::MISSING;
    cursor.expect(b'{', "a cell that is no object")?;
    loop {
        let name = cursor.name()?.text(cursor.document);
        let value = cursor.value()?;
        if name == cell {
            found = value;
        }
        if names.contains(&name) {
            return cursor.refuse("two members of one name");
        }
        names.push(name);
        if !cursor.more(b'}')? {
            break;
        }
    }
    if found.kind == Kind::Missing {
        return cursor.refuse("a cell without value");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_bytes() {
        let mut frames = Frames(b"\0\0\0\0\0\0\0\x02ab\0\0\0\0\0\0\0\0");
        assert_eq!(frames.count(), Ok(2));
        assert_eq!(frames.next(), Ok(Some(&b"ab"[..])));
        assert_eq!(frames.next(), Ok(Some(&b""[..])));
        assert_eq!(frames.next(), Ok(None));
        for data in [&b"\0\0\0\0\0\0\0\x03ab"[..], b"\0", &[0xff; 9]] {
            assert!(Frames(data).next().is_err(), "{data:?}");
        }
    }

    #[test]
    fn cells_are_what_is_around_values() {
        let text = r#"{"a":{"t":3,"v":"x","f":1},"b" : {"v":null}}"#;
        let token = Cursor::new(text).unwrap().value().unwrap();
        let found = cells(token, "v", text).unwrap();
        assert_eq!(found["a"].opens, r#""a":{"t":3,"v":"#);
        assert_eq!(
            &found["a"].opens[found["a"].behind_name..],
            r#"{"t":3,"v":"#
        );
        assert_eq!(found["a"].closes, r#","f":1}"#);
        assert_eq!(found["b"].closes, "}");
        for text in [
            r#"{"a":{"t":3}}"#,
            r#"{"a":{"v":3,"v":3}}"#,
            r#"{"a":{"v":3},"a":{"v":3}}"#,
            r#"{"a":3}"#,
            "{}",
        ] {
            let token = Cursor::new(text).unwrap().value().unwrap();
            assert!(cells(token, "v", text).is_err(), "{text}");
        }
    }
}
