//! The Open Protocol: messages are frames of events, each with a key and a value.
//!
//! An event is read as one document, its key followed by its value. Its images consist of
//! cells: objects with a value and parts of the table's schema.

use std::sync::Arc;

use crate::json::{Cursor, Kind};
use crate::plan::{Layout, Op};
use crate::read::batch::Place;
use crate::read::envelope::Envelope;
use crate::read::frames::{Frames, Joined};
use crate::read::kernel::{Kernel, Outcome};
use crate::read::plans::Plan;
use crate::refusal::{Reason, Refusal, Result};

/// Number of events between two checks of a message's row bytes, as a check visits all columns.
const LOOK_AFTER: usize = 64;

impl Kernel {
    /// Reads the events of a message, at most `most`.
    pub(super) fn events(
        &mut self,
        most: usize,
        key: Option<&[u8]>,
        value: &[u8],
        place: Place,
    ) -> Result<Outcome> {
        let mut keys = Frames::of_key(key.unwrap_or_default())?;
        let whole = value;
        let mut values = Frames(value);
        // Counted before any event is read: the number of rows bounds their bytes.
        let count = keys.count()?;
        if count == 0 || count > most || count != values.count()? {
            return Err(Refusal::new(
                "key and value have different numbers of frames",
                0,
            ));
        }
        let size = key.map_or(0, <[u8]>::len) + value.len();
        // Before the events: a message of a few bytes each may have 100 000 of them.
        if count > 1 && self.repeats_much(count, self.current.beside, 0, size) {
            return Err(Refusal::of(
                Reason::Size,
                "rows repeat too much of their message",
                0,
            ));
        }
        if count > 1 && 2 * count * self.row_bytes() > self.settings.max_bytes {
            return Err(Refusal::of(
                Reason::Size,
                "more rows than a batch has room for",
                0,
            ));
        }
        let begin = if count >= LOOK_AFTER {
            self.batch.size()
        } else {
            0
        };
        let mut outcome = Outcome::Read;
        let mut joined = std::mem::take(&mut self.joined);
        self.current.event = 0;
        while let (Some(key), Some(value)) = (keys.take()?, values.take()?) {
            joined.set(key, value)?;
            // The document has the event's key, then its value.
            let start = value.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
            self.current.document_at = isize::try_from(start).unwrap_or(0) - key.len() as isize;
            match self.one_event(&joined, place)? {
                Outcome::Skipped => outcome = Outcome::Skipped,
                Outcome::Read => {}
                // The rows of the events before are removed; the reference decodes the whole
                // message.
                Outcome::Unknown => return Ok(Outcome::Unknown),
            }
            self.current.event += 1;
            if self.current.event % LOOK_AFTER == 0
                && self.batch.size() - begin > self.settings.max_bytes
            {
                let reason = "more bytes of rows than a batch has room for";
                return Err(Refusal::of(Reason::Size, reason, 0));
            }
        }
        self.joined = joined;
        Ok(outcome)
    }

    fn one_event(&mut self, joined: &Joined, place: Place) -> Result<Outcome> {
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
        let op = self
            .envelope
            .op
            .ok_or(Refusal::new("missing operation", 0))?;
        let rows = self.batch.row_count();
        let outcome = self.by_plan(0, op, document, None, place)?;
        if outcome == Outcome::Read && !self.is_wanted()? {
            // The reference, too, knows the operation only after the images.
            self.batch.truncate(rows);
            return Ok(Outcome::Skipped);
        }
        Ok(outcome)
    }

    /// Reads the envelope of an event, without its images.
    pub(super) fn read_joined(&mut self, joined: &Joined) -> Result<()> {
        let layout = &self.settings.layouts[0];
        self.envelope
            .read_key(layout, &joined.document, joined.value)?;
        self.envelope
            .read_value(layout, &joined.document, joined.value, None)
    }
}

impl Envelope {
    fn read_key(&mut self, layout: &Layout, document: &str, end: usize) -> Result<()> {
        self.start(layout);
        let mut cursor = Cursor::new(document)?;
        self.part(layout, layout.inner_members(0), &mut cursor, None)?;
        cursor.blanks();
        if cursor.position() == end {
            Ok(())
        } else {
            cursor.refuse("unexpected data after an event's key")
        }
    }

    fn read_value(
        &mut self,
        layout: &Layout,
        document: &str,
        start: usize,
        guess: Option<&Arc<Plan>>,
    ) -> Result<()> {
        let start = u32::try_from(start).map_err(|_| Refusal::new("key has 4 GiB or more", 0))?;
        let mut cursor = Cursor::at(document, start)?;
        self.part(layout, layout.inner_members(1), &mut cursor, guess)?;
        cursor.end()?;
        let word = match (self.deleted, self.before.kind, self.after.kind) {
            (false, Kind::Missing, Kind::Object) => "after",
            (false, Kind::Object, Kind::Object) => "before",
            (true, Kind::Object, Kind::Missing) => "deleted",
            _ => return cursor.refuse("images do not make a row"),
        };
        self.op = layout.ops.get(word).copied();
        Ok(())
    }

    /// Whether a NULL before an update may mean something else: neither a row id nor an unchanged
    /// value shows that NULLs are certain.
    pub fn has_doubtful_nulls(&self, document: &str, layout: &Layout) -> bool {
        if !layout.nulls_may_mean_unknown || self.has_row_id || self.op != Some(Op::Update) {
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
