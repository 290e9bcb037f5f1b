//! Conversion of messages to rows: combines layouts, plans and the batch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hashbrown::HashMap;
use serde::Deserialize;
use simdutf8::basic::from_utf8;

use crate::json::Cursor;
use crate::read::avro_rows::text_of;
use crate::read::batch::{Batch, Output, Place};
use crate::read::batch::{EventImages, Format};
use crate::read::envelope::Envelope;
use crate::read::envelope::{Layout, Op};
use crate::read::filters::LookedAt;
use crate::read::frames::Joined;
use crate::read::plans::{Description, Plan};
use crate::read::plans::{Name, PlanTable};
use crate::refusal::{Reason, Refusal, Step};
use crate::values::Tools;
use crate::values::Zone;

#[derive(Deserialize)]
pub struct Settings {
    pub layouts: Vec<Layout>,
    outputs: Vec<Output>,
    zone: Zone,
    /// Rows with a commit_ts outside of these bounds are skipped.
    pub starting_commit_ts: Option<i64>,
    pub ending_commit_ts: Option<i64>,
    /// Rows with a smaller `commit_ts` are refused.
    pub low_watermark: i64,
    /// Rows of other operations are skipped.
    pub wanted_ops: Option<Vec<Op>>,
    /// Before images of updates are rows.
    pub before_updates: bool,
    /// Changes of the key are refused.
    pub splits_keys: bool,
    /// Longer messages are refused.
    pub max_message_bytes: usize,
    /// Limits of a batch: rows, and bytes of values.
    max_rows: usize,
    pub max_bytes: usize,
    /// Bytes of a row of NULLs.
    pub row_bytes: usize,
    /// What each row repeats of its message.
    pub shown: Shown,
    /// Form of the images, if rows are events.
    pub images: Option<Format>,
}

/// Attributes of a message that each of its rows has.
#[derive(Clone, Copy, Deserialize)]
pub struct Shown {
    /// Topic and path.
    pub place: bool,
    pub headers: bool,
}

impl Shown {
    /// The bytes in each row, of a place and headers of so many bytes.
    pub fn bytes(self, of_place: usize, of_headers: usize) -> usize {
        let place = if self.place { of_place } else { 0 };
        place + if self.headers { of_headers } else { 0 }
    }
}

/// The result for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Read,
    /// A filter excludes it, or some of its rows.
    Skipped,
    /// No plan fits its schema key.
    Unknown,
    Refused(Refusal),
}

pub struct Kernel {
    pub settings: Settings,
    outputs: usize,
    pub plans: PlanTable,
    pub looked_at: HashMap<Name, LookedAt>,
    pub looked_at_bytes: usize,
    pub batch: Batch,
    pub tools: Tools,
    pub envelope: Envelope,
    /// The plan of the previous message.
    pub guess: Option<Arc<Plan>>,
    /// The index of its layout.
    pub layout: usize,
    /// The document of a message that is not itself one.
    pub document: Vec<u8>,
    /// Whether rows show `extra`.
    pub prints: bool,
    /// The index of the last read event in its message.
    pub event: usize,
    /// Bytes of topic, path and headers in each row of the message.
    pub beside: usize,
    pub joined: Joined,
    /// The file of the last position in the source's log.
    pub log_file: Arc<str>,
    pub skipped: usize,
    /// Column and value encoding of the last refused value.
    pub refused: Option<(String, &'static str)>,
    /// Position of the last document in its message's value; negative if part of it is elsewhere.
    pub document_at: isize,
    /// Numbers of counted values, by note.
    pub counts: HashMap<Arc<str>, usize>,
}

impl Kernel {
    pub fn new(mut settings: Settings) -> Self {
        for (place, layout) in settings.layouts.iter_mut().enumerate() {
            layout.prepare(place);
        }
        let images = settings.images.map(EventImages::new);
        let zone = Arc::new(settings.zone.clone());
        let batch = Batch::new(settings.outputs.clone(), images, &zone);
        Self {
            outputs: batch.columns.len(),
            tools: Tools {
                zone: settings.zone.clone(),
                ..Tools::default()
            },
            settings,
            plans: PlanTable::default(),
            looked_at: HashMap::new(),
            looked_at_bytes: 0,
            envelope: Envelope::default(),
            guess: None,
            layout: 0,
            document: Vec::new(),
            prints: batch.shows_extra(),
            batch,
            event: 0,
            beside: 0,
            joined: Joined::default(),
            log_file: "".into(),
            skipped: 0,
            refused: None,
            document_at: 0,
            counts: HashMap::new(),
        }
    }

    pub fn add_zone(&mut self, name: String, zone: Zone) {
        self.tools.zones.insert(name, zone);
    }

    /// Whether the batch must be finished before reading more.
    pub fn is_full(&self) -> bool {
        self.batch.row_count() >= self.settings.max_rows
            || self.batch.size() >= self.settings.max_bytes
    }

    pub fn clear_plans(&mut self) {
        self.guess = None;
        self.plans.clear();
    }

    /// Reads one message; one that is not read or is skipped adds no rows.
    pub fn read(&mut self, value: &[u8], key: Option<&[u8]>, place: Place) -> Outcome {
        let (rows, extras) = (self.batch.row_count(), self.batch.extras.sizes());
        (self.refused, self.document_at) = (None, 0);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.message(value, key, place))).unwrap_or(
            Err(Refusal::of(Reason::Panic, "a mistake of the kernel", 0)),
        );
        let outcome = outcome.unwrap_or_else(Outcome::Refused);
        match outcome {
            Outcome::Read | Outcome::Skipped => {
                self.batch.messages += 1;
                self.skipped += usize::from(outcome == Outcome::Skipped);
                for note in self.tools.notes.drain(..) {
                    *self.counts.entry(note).or_default() += 1;
                }
            }
            Outcome::Unknown | Outcome::Refused(_) => {
                self.batch.truncate(rows);
                self.batch.extras.truncate(extras);
                self.tools.notes.clear();
            }
        }
        outcome
    }

    /// The database, schema and table of a message, if a layout fits.
    pub fn names(&mut self, value: &[u8], key: Option<&[u8]>) -> Option<Name> {
        let (_, document) = self.look(value, key).ok()?;
        Some(self.envelope.name(&document).to_name())
    }

    /// The index of a message's layout.
    pub fn layout_of(&mut self, value: &[u8], key: Option<&[u8]>) -> Step<usize> {
        Ok(self.look(value, key)?.0)
    }

    /// Reads the envelope of a message, or of its first event; returns layout and document.
    pub fn look(&mut self, value: &[u8], key: Option<&[u8]>) -> Step<(usize, String)> {
        if self.is_avro() {
            let mut document = Vec::new();
            let opened = self.open_record(value, &mut document)?;
            return Ok((opened.layout, text_of(&document)?.to_owned()));
        }
        if self.max_events().is_none() {
            let (layout, document) = self.envelope_of(value, false)?;
            return Ok((layout, document.to_owned()));
        }
        let joined = Joined::new(key, value)?;
        self.read_joined(&joined)?;
        Ok((0, joined.document))
    }

    fn is_avro(&self) -> bool {
        let layouts = &self.settings.layouts;
        layouts.iter().any(|layout| layout.avro.is_some())
    }

    fn max_events(&self) -> Option<usize> {
        self.settings.layouts.first()?.max_events
    }

    /// Adds a plan for messages with the schema key of this one.
    pub fn add_plan(
        &mut self,
        value: &[u8],
        key: Option<&[u8]>,
        description: Description,
    ) -> Step<()> {
        let (layout, document) = &self.look(value, key)?;
        let key = self.keys(key)?;
        let layout = &self.settings.layouts[*layout];
        let plan = Plan::new(
            description,
            self.outputs,
            layout,
            &self.envelope,
            document,
            key,
            &mut self.plans.shared,
        )?;
        self.plans.add(plan);
        self.guess = None;
        Ok(())
    }

    /// The name of a time zone in the message that the kernel lacks.
    pub fn missing_zone(&mut self, value: &[u8], key: Option<&[u8]>) -> Option<String> {
        let (rows, extras) = (self.batch.row_count(), self.batch.extras.sizes());
        self.tools.missing_zone = None;
        let read = AssertUnwindSafe(|| _ = self.message(value, key, Place::default()));
        let _ = catch_unwind(read);
        self.batch.truncate(rows);
        self.batch.extras.truncate(extras);
        self.tools.notes.clear();
        self.tools.missing_zone.take()
    }

    fn envelope_of<'a>(&mut self, value: &'a [u8], guess: bool) -> Step<(usize, &'a str)> {
        if value.len() > self.settings.max_message_bytes {
            return Err(Refusal::of(Reason::Size, "a message that is too long", 0));
        }
        let Ok(document) = from_utf8(value) else {
            return Err(Refusal::new("bytes that are no UTF-8", 0));
        };
        let plans = guess.then_some(&self.plans);
        let guess = self.guess.as_ref().filter(|_| guess);
        let layouts = &self.settings.layouts;
        let mut refusal = Refusal::new("another beginning", 0);
        // Usually the previous message's layout fits.
        for step in 0..layouts.len() {
            let at = (self.layout + step) % layouts.len();
            if !Cursor::new(document)?.take_spaced(&layouts[at].begins) {
                continue;
            }
            let mut guessed = guess;
            let read = self
                .envelope
                .read(&layouts[at], document, &mut guessed, plans, false);
            match read {
                // Times in another unit belong to another layout.
                Ok(()) if !layouts[at].connect || self.envelope.has_times() => {
                    self.layout = at;
                    let other =
                        guessed.filter(|plan| guess.is_none_or(|guess| !Arc::ptr_eq(guess, plan)));
                    if let Some(other) = other.cloned() {
                        self.guess = Some(other);
                    }
                    return Ok((at, document));
                }
                Ok(()) => refusal = Refusal::new("no time", 0),
                Err(other) => refusal = other,
            }
        }
        Err(refusal)
    }

    fn message(&mut self, value: &[u8], key: Option<&[u8]>, place: Place) -> Step<Outcome> {
        if let Some(most) = self.max_events() {
            let size = value.len() + key.map_or(0, <[u8]>::len);
            if size > self.settings.max_message_bytes {
                return Err(Refusal::of(Reason::Size, "a message that is too long", 0));
            }
            return self.events(most, key, value, place);
        }
        if self.is_avro() {
            return self.record(value, place);
        }
        if let Some(outcome) = self.payload(value, key, place)? {
            return Ok(outcome);
        }
        let (layout, document) = self.envelope_of(value, true)?;
        let Some(op) = self.envelope.op else {
            return Err(Refusal::new("no operation", 0));
        };
        if let Some(outcome) = self.refused_by_filters(layout, document)? {
            return Ok(outcome);
        }
        let key = self.keys(key)?;
        self.by_plan(layout, op, document, key, place)
    }

    /// The text of a message's key, if keys are read.
    pub fn keys<'a>(&self, key: Option<&'a [u8]>) -> Step<Option<&'a str>> {
        if self.max_events().is_some() || self.is_avro() {
            return Ok(None);
        }
        let text = key.map(from_utf8).transpose();
        text.map_err(|_| Refusal::new("a key that is no UTF-8", 0))
    }
}
