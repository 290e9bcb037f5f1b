//! Conversion of messages to rows: combines layouts, plans and the batch.
//!
//! The parts of the kernel are in this folder, so its fields are private.

mod avro_rows;
mod filter_cache;
mod filters;
mod framed_rows;
mod open_protocol;
mod plan_rows;
mod rows;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use arrow_array::StructArray;
use arrow_schema::{ArrowError, Fields};
use hashbrown::HashMap;
use serde::Deserialize;
use simdutf8::basic::from_utf8;

use crate::json::Cursor;
use crate::plan::{Layout, Op};
use crate::read::attributes::Attributes;
use crate::read::batch::{Batch, Output, Place};
use crate::read::batch::{EventImages, Format};
use crate::read::envelope::Envelope;
use crate::read::envelope::Name;
use crate::read::frames::Joined;
use crate::read::kernel::filter_cache::FilterCache;
use crate::read::plans::{Description, Example, Plan, PlanTable, PreviousExtra};
use crate::read::writers::{Slots, Writers};
use crate::refusal::{Reason, Refusal, Result, Stop};
use crate::text::utf8;
use crate::values::Tools;
use crate::values::Zone;

/// Settings of a task, as the bridge describes them.
#[derive(Deserialize)]
pub struct Settings {
    layouts: Vec<Layout>,
    outputs: Vec<Output>,
    zone: Zone,
    /// Rows with a `commit_ts` outside of these bounds are skipped.
    starting_commit_ts: Option<i64>,
    ending_commit_ts: Option<i64>,
    /// The same for the time of the source in microseconds; the end is exclusive.
    starting_source_time: Option<i64>,
    ending_source_time: Option<i64>,
    /// Rows with a smaller `commit_ts` are refused.
    low_watermark: i64,
    /// Rows of other operations are skipped.
    wanted_ops: Option<Vec<Op>>,
    /// Before images of updates are rows.
    before_updates: bool,
    /// Changes of the key are refused.
    splits_keys: bool,
    /// Longer messages are refused.
    max_message_bytes: usize,
    /// Limits of a batch: rows, and bytes of values.
    max_rows: usize,
    max_bytes: usize,
    /// Bytes of a row of NULLs.
    row_bytes: usize,
    /// What each row repeats of its message.
    shown: Shown,
    /// Form of the images, if rows are events.
    images: Option<Format>,
    /// Messages name their writer schemas.
    #[serde(default)]
    framed: bool,
    /// The beginnings of headers on which layouts depend, with the topic; None: they depend on neither.
    #[serde(default)]
    headers: Option<Vec<String>>,
    /// Members of nested values in `extra` keep their order.
    #[serde(default)]
    keeps_order: bool,
}

const UNKNOWN: Refusal = Refusal::of_whole(Reason::UnknownSchema, "no plan for the schema");
const PANIC: Refusal = Refusal::of_whole(
    Reason::Panic,
    "internal error: the kernel panicked (please report)",
);

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

/// The result for a message that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Read,
    /// A filter excludes it, or some of its rows.
    Skipped,
    /// No plan fits its schema key.
    Unknown,
}

/// The message that is being read.
#[derive(Default)]
struct Current {
    /// The index of the last read event in the message.
    event: usize,
    /// Bytes of topic, path and headers in each row.
    beside: usize,
    /// Column and value encoding of the refused value.
    refused: Option<(String, &'static str)>,
    /// Position of the last document in the message's value; negative if part of it is elsewhere.
    document_at: isize,
}

/// Reads the messages of a task into batches, in order.
pub struct Kernel {
    settings: Settings,
    /// Number of the batch's columns with values.
    outputs: usize,
    plans: PlanTable,
    filter_cache: FilterCache,
    batch: Batch,
    tools: Tools,
    previous_extra: PreviousExtra,
    envelope: Envelope,
    /// The plan of the previous message.
    guess: Option<Arc<Plan>>,
    /// The index of its layout.
    layout: usize,
    current: Current,
    /// The document of a message that is not itself one.
    document: Vec<u8>,
    joined: Joined,
    writers: Writers,
    /// Of the previous message with a writer schema.
    slots: Option<Arc<Slots>>,
    /// Parts of images: slots and positions.
    parts: Vec<(usize, usize)>,
    /// Whether rows show `extra`.
    prints: bool,
    /// The file of the last position in the source's log.
    log_file: Arc<str>,
    skipped: usize,
    /// Numbers of counted values, by note.
    counts: HashMap<Arc<str>, usize>,
}

impl Kernel {
    pub fn new(mut settings: Settings) -> Self {
        for (place, layout) in settings.layouts.iter_mut().enumerate() {
            layout.prepare(place);
        }
        let images = settings.images.map(EventImages::new);
        let zone = Arc::new(settings.zone.clone());
        let attributes = Attributes::new(settings.headers.take());
        let batch = Batch::new(settings.outputs.clone(), images, &zone);
        let mut tools = Tools::in_zone(settings.zone.clone());
        tools.texts.variants.keeps_order = settings.keeps_order;
        Self {
            outputs: batch.columns.len(),
            tools,
            settings,
            plans: PlanTable::default(),
            filter_cache: FilterCache::default(),
            previous_extra: PreviousExtra::default(),
            envelope: Envelope::default(),
            guess: None,
            layout: 0,
            document: Vec::new(),
            prints: batch.shows_extra(),
            batch,
            current: Current::default(),
            joined: Joined::default(),
            writers: Writers::new(attributes),
            slots: None,
            parts: Vec::new(),
            log_file: "".into(),
            skipped: 0,
            counts: HashMap::new(),
        }
    }

    /// Adds a time zone by the name that values have.
    pub fn add_zone(&mut self, name: String, zone: Zone) {
        self.tools.zones.insert(name, zone);
    }

    /// The attributes of the next message, if its layout depends on them.
    pub fn attributes(&mut self) -> Option<&mut Attributes> {
        let attributes = &mut self.writers.attributes;
        attributes.are_used().then_some(attributes)
    }

    /// Whether the batch must be finished before reading more.
    pub fn is_full(&self) -> bool {
        self.batch.row_count() >= self.settings.max_rows
            || self.batch.size() >= self.settings.max_bytes
    }

    pub fn clear_plans(&mut self) {
        self.guess = None;
        self.writers.forget_guesses();
        self.plans.clear();
    }

    /// Reads one message; one that is not read or is skipped adds no rows.
    ///
    /// `beside`: bytes of topic, path and headers in each of its rows.
    pub fn read(
        &mut self,
        value: &[u8],
        key: Option<&[u8]>,
        place: Place,
        beside: usize,
    ) -> Result<(), Stop> {
        self.current = Current {
            beside,
            ..Current::default()
        };
        // A refusal may come after some rows of the message: all of them are removed.
        let (rows, extras) = (self.batch.row_count(), self.batch.extras.sizes());
        let outcome = self.caught(|kernel| kernel.message(value, key, place));
        let refusal = match outcome {
            Ok(Outcome::Read | Outcome::Skipped) => {
                self.batch.messages += 1;
                self.skipped += usize::from(outcome == Ok(Outcome::Skipped));
                // Counted only now: a refused message is counted by the reference.
                for note in self.tools.notes.drain(..) {
                    *self.counts.entry(note).or_default() += 1;
                }
                return Ok(());
            }
            Ok(Outcome::Unknown) => UNKNOWN,
            Err(refusal) => refusal,
        };
        self.undo(rows, extras);
        Err(self.stop(refusal))
    }

    /// Calls a function that may panic, which is a bug of the kernel.
    ///
    /// Builds for tests go on panicking.  In a wheel the message is refused like any other, so that
    /// a query survives: the bridge logs the bug.  What the panic may have left half-written is
    /// dropped; columns are cut back to their whole rows by the caller.
    fn caught<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let caught = catch_unwind(AssertUnwindSafe(|| read(&mut *self)));
        caught.unwrap_or_else(|panic| {
            if cfg!(debug_assertions) {
                resume_unwind(panic);
            }
            self.envelope = Envelope::default();
            (self.guess, self.document, self.joined) = Default::default();
            self.writers.forget_guesses();
            Err(PANIC)
        })
    }

    /// Removes the rows of a message, and its notes.
    fn undo(&mut self, rows: usize, extras: (usize, usize)) {
        self.batch.truncate(rows);
        self.batch.extras.truncate(extras);
        self.tools.notes.clear();
    }

    fn stop(&mut self, refusal: Refusal) -> Stop {
        let (column, encoding) = self.current.refused.take().unzip();
        let at = refusal.at();
        Stop {
            at: at.and_then(|at| at.checked_add_signed(self.current.document_at)),
            column,
            encoding,
            event: self.current.event,
            ..Stop::new(refusal.reason, refusal.text)
        }
    }

    /// Counts a message that is decoded elsewhere; returns its number in the batch.
    pub fn pass_over(&mut self) -> i32 {
        self.batch.messages += 1;
        self.batch.messages - 1
    }

    /// Number of messages in the batch.
    pub fn messages(&self) -> i32 {
        self.batch.messages
    }

    /// Number of rows in the batch.
    pub fn row_count(&self) -> usize {
        self.batch.row_count()
    }

    /// Number of messages skipped by the filters.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// What each row repeats of its message.
    pub fn shown(&self) -> Shown {
        self.settings.shown
    }

    /// Numbers of counted values by note, since the last call.
    pub fn take_counts(&mut self) -> HashMap<Arc<str>, usize> {
        std::mem::take(&mut self.counts)
    }

    /// The rows of the batch with their fields; clears it.
    pub fn finish(&mut self) -> Result<(StructArray, Fields), ArrowError> {
        self.batch.finish()
    }

    /// The database, schema and table of a message, if a layout fits.
    pub fn names(&mut self, value: &[u8], key: Option<&[u8]>) -> Option<Name> {
        let (_, document) = self.look(value, key).ok()?;
        Some(self.envelope.name(&document).to_name())
    }

    /// The index of a message's layout.
    pub fn layout_of(&mut self, value: &[u8], key: Option<&[u8]>) -> Result<usize> {
        Ok(self.look(value, key)?.0)
    }

    /// Reads the envelope of a message, or of its first event; returns layout and document.
    pub fn look(&mut self, value: &[u8], key: Option<&[u8]>) -> Result<(usize, String)> {
        if self.settings.framed {
            return self.look_framed(value, key);
        }
        if self.is_avro() {
            let mut document = Vec::new();
            let opened = self.open_record(value, &mut document)?;
            return Ok((opened.layout, utf8(&document)?.to_owned()));
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
    ) -> Result<()> {
        let (layout, document) = &self.look(value, key)?;
        let row = match self.settings.framed {
            true => self.row_of(value),
            false => None,
        };
        let key = self.keys(key)?;
        let layout = &self.settings.layouts[*layout];
        let example = Example {
            layout,
            envelope: &self.envelope,
            document,
            key,
            row: row.as_deref(),
        };
        let plan = Plan::new(description, self.outputs, &example, &mut self.plans.shared)?;
        self.plans.add(plan);
        // The next message is looked up by its name, and finds the new plan.
        self.guess = None;
        self.writers.forget_guesses();
        Ok(())
    }

    /// The name of a time zone in the message that the kernel lacks.
    pub fn missing_zone(&mut self, value: &[u8], key: Option<&[u8]>) -> Option<String> {
        let (rows, extras) = (self.batch.row_count(), self.batch.extras.sizes());
        self.tools.missing_zone = None;
        // Read once more for the zone: refusals have no room for a name, and an unknown zone is
        // rare.
        let _ = self.caught(|kernel| kernel.message(value, key, Place::default()));
        self.undo(rows, extras);
        self.tools.missing_zone.take()
    }

    fn envelope_of<'a>(&mut self, value: &'a [u8], guess: bool) -> Result<(usize, &'a str)> {
        if value.len() > self.settings.max_message_bytes {
            return Err(Refusal::of(
                Reason::Size,
                "message is longer than maxMessageBytes",
                0,
            ));
        }
        let document = utf8(value)?;
        let plans = guess.then_some(&self.plans);
        let guess = self.guess.as_ref().filter(|_| guess);
        let layouts = &self.settings.layouts;
        // The refusal of the last layout that begins like the message is the most specific one.
        let mut refusal = Refusal::new("unknown first bytes", 0);
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
                Ok(()) => refusal = Refusal::new("missing time", 0),
                Err(other) => refusal = other,
            }
        }
        Err(refusal)
    }

    fn message(&mut self, value: &[u8], key: Option<&[u8]>, place: Place) -> Result<Outcome> {
        if let Some(most) = self.max_events() {
            let size = value.len() + key.map_or(0, <[u8]>::len);
            if size > self.settings.max_message_bytes {
                return Err(Refusal::of(
                    Reason::Size,
                    "message is longer than maxMessageBytes",
                    0,
                ));
            }
            return self.events(most, key, value, place);
        }
        // Before the document is read: its first bytes are a header, not text.
        if self.settings.framed {
            return self.framed(value, key, place);
        }
        if self.is_avro() {
            return self.record(value, place);
        }
        if let Some(outcome) = self.payload(value, key, place)? {
            return Ok(outcome);
        }
        let (layout, document) = self.envelope_of(value, true)?;
        let Some(op) = self.envelope.op else {
            return Err(Refusal::new("missing operation", 0));
        };
        if let Some(outcome) = self.refused_by_filters(layout, document)? {
            return Ok(outcome);
        }
        let key = self.keys(key)?;
        self.by_plan(layout, op, document, key, place)
    }

    /// The text of a message's key, if keys are read.
    pub fn keys<'a>(&self, key: Option<&'a [u8]>) -> Result<Option<&'a str>> {
        // Keys of frames belong to the events; those of Avro are not read.
        if self.max_events().is_some() || self.is_avro() || self.settings.framed {
            return Ok(None);
        }
        let text = key.map(from_utf8).transpose();
        text.map_err(|_| Refusal::new("invalid UTF-8 in the key", 0))
    }
}
