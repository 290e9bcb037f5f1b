//! Messages to rows: layouts, plans and the batch together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hashbrown::HashMap;
use serde::Deserialize;
use simdutf8::basic::from_utf8;

use crate::avro_rows::text_of;
use crate::batch::{Batch, Output};
use crate::connect;
use crate::encodings::Tools;
use crate::envelope::Envelope;
use crate::event_images::{EventImages, Format};
use crate::layout::{Layout, Op, Role};
use crate::open_protocol::Joined;
use crate::plan_table::{Name, PLANS_OF_TABLE, PlanTable};
use crate::plans::{Description, Plan};
use crate::refusal::{Refusal, Step};
use crate::row_plan::RowPlan;
use crate::temporal::Zone;

/// Names and schemas of tables without plans that are kept, in bytes.
const LOOKED_AT_BYTES: usize = 8 << 20;

/// What the reference has said of a table.
#[derive(Default)]
struct LookedAt {
    /// Schemas beside payloads with which nothing was wrong; the newest are the first.
    schemas: Vec<String>,
    is_unwanted: bool,
}

#[derive(Deserialize)]
pub struct Settings {
    pub layouts: Vec<Layout>,
    outputs: Vec<Output>,
    zone: Zone,
    /// Rows with a smaller or larger commit_ts are skipped.
    starting_commit_ts: Option<i64>,
    ending_commit_ts: Option<i64>,
    /// Rows with a smaller `commit_ts` are refused.
    fence: i64,
    /// Rows of other operations are skipped.
    wanted_ops: Option<Vec<Op>>,
    /// Images before updates are rows.
    pub before_updates: bool,
    /// A change of the key is refused.
    pub splits_keys: bool,
    /// Longer messages are refused.
    pub max_message_bytes: usize,
    /// A batch ends after so many rows, or so many bytes of values.
    max_rows: usize,
    pub max_bytes: usize,
    /// Of a row of NULLs.
    pub row_bytes: usize,
    /// Rows are events, with such images.
    pub images: Option<Format>,
}

impl LookedAt {
    fn has(&self, schema: &str) -> bool {
        self.schemas.iter().any(|known| known == schema)
    }
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Read,
    /// A filter does not want it, or some of its rows.
    Skipped,
    /// No plan has its schema key.
    Unknown,
    Refused(Refusal),
}

pub struct Kernel {
    pub settings: Settings,
    outputs: usize,
    pub plans: PlanTable,
    looked_at: HashMap<Name, LookedAt>,
    looked_at_bytes: usize,
    pub batch: Batch,
    pub tools: Tools,
    pub envelope: Envelope,
    /// The plan of the message before.
    pub guess: Option<Arc<Plan>>,
    /// The number of its layout.
    pub layout: usize,
    /// Of a message that is none itself.
    pub document: Vec<u8>,
    /// Rows show `extra`.
    pub prints: bool,
    /// The number of the event in its message that was read last.
    pub event: usize,
    pub joined: Joined,
    pub skipped: usize,
    /// Of values, by their notes.
    pub counts: HashMap<Arc<str>, usize>,
}

impl Kernel {
    pub fn new(mut settings: Settings) -> Self {
        for (place, layout) in settings.layouts.iter_mut().enumerate() {
            layout.prepare(place);
        }
        let images = settings.images.map(EventImages::new);
        let batch = Batch::new(settings.outputs.clone(), images);
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
            joined: Joined::default(),
            skipped: 0,
            counts: HashMap::new(),
        }
    }

    pub fn add_zone(&mut self, name: String, zone: Zone) {
        self.tools.zones.insert(name, zone);
    }

    /// Whether the batch has to be finished before more is read.
    pub fn is_full(&self) -> bool {
        self.batch.row_count() >= self.settings.max_rows
            || self.batch.size() >= self.settings.max_bytes
    }

    pub fn clear_plans(&mut self) {
        self.guess = None;
        self.plans.clear();
    }

    /// The filters may refuse messages of this one's table that have its schema; `all` are skipped.
    pub fn skip(&mut self, value: &[u8], key: Option<&[u8]>, all: bool) -> Step<()> {
        let (layout, document) = &self.look(value, key)?;
        let schema = self.schema(*layout, document);
        if !schema.is_empty() {
            connect::check_schema(schema)?;
        }
        let name = self.envelope.name(document).to_name();
        if self.looked_at_bytes > LOOKED_AT_BYTES {
            self.looked_at.clear();
            self.looked_at_bytes = 0;
        }
        let names = name.iter().map(|name| name.len()).sum::<usize>();
        self.looked_at_bytes += names + size_of::<Name>() + schema.len();
        let table = self.looked_at.entry(name).or_default();
        table.is_unwanted = all;
        table.schemas.retain(|known| known != schema);
        table.schemas.insert(0, schema.to_owned());
        table.schemas.truncate(PLANS_OF_TABLE);
        Ok(())
    }

    /// The schema beside the payload of the last document; empty if there is none.
    fn schema<'a>(&self, layout: usize, document: &'a str) -> &'a str {
        let part = self.settings.layouts[layout].schema;
        part.map_or("", |part| self.envelope.key[part].text(document))
    }

    /// Reads one message; what is not read or skipped leaves no rows.
    pub fn read(&mut self, value: &[u8], key: Option<&[u8]>, offset: Option<i64>) -> Outcome {
        let (rows, extras) = (self.batch.row_count(), self.batch.extras.sizes());
        let outcome = catch_unwind(AssertUnwindSafe(|| self.message(value, key, offset)))
            .unwrap_or(Err(Refusal::new("a mistake of the kernel", 0)));
        let outcome = outcome.unwrap_or_else(Outcome::Refused);
        let notes = std::mem::take(&mut self.tools.notes);
        match outcome {
            Outcome::Read | Outcome::Skipped => {
                self.batch.messages += 1;
                self.skipped += usize::from(outcome == Outcome::Skipped);
                for note in notes {
                    *self.counts.entry(note).or_default() += 1;
                }
            }
            Outcome::Unknown | Outcome::Refused(_) => {
                self.batch.truncate(rows);
                self.batch.extras.truncate(extras);
            }
        }
        outcome
    }

    /// The database, schema and table of a message, if it has a layout.
    pub fn names(&mut self, value: &[u8], key: Option<&[u8]>) -> Option<Name> {
        let (_, document) = self.look(value, key).ok()?;
        Some(self.envelope.name(&document).to_name())
    }

    /// Reads the envelope of a message, or of its first event; its layout and document.
    fn look(&mut self, value: &[u8], key: Option<&[u8]>) -> Step<(usize, String)> {
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

    /// A plan for messages with the schema key of this one.
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

    /// The name of a time zone that the message has and the kernel lacks.
    pub fn missing_zone(&mut self, value: &[u8], key: Option<&[u8]>) -> Option<String> {
        let (rows, extras) = (self.batch.row_count(), self.batch.extras.sizes());
        self.tools.missing_zone = None;
        let read = AssertUnwindSafe(|| _ = self.message(value, key, None));
        let _ = catch_unwind(read);
        self.batch.truncate(rows);
        self.batch.extras.truncate(extras);
        self.tools.notes.clear();
        self.tools.missing_zone.take()
    }

    fn envelope_of<'a>(&mut self, value: &'a [u8], guess: bool) -> Step<(usize, &'a str)> {
        if value.len() > self.settings.max_message_bytes {
            return Err(Refusal::new("a message that is too long", 0));
        }
        let Ok(document) = from_utf8(value) else {
            return Err(Refusal::new("bytes that are no UTF-8", 0));
        };
        let plans = guess.then_some(&self.plans);
        let guess = self.guess.as_ref().filter(|_| guess);
        let layouts = &self.settings.layouts;
        let mut refusal = Refusal::new("another beginning", 0);
        // Mostly it is the layout of the message before.
        for step in 0..layouts.len() {
            let at = (self.layout + step) % layouts.len();
            if !document.starts_with(&layouts[at].begins) {
                continue;
            }
            let mut guessed = guess;
            let read = self
                .envelope
                .read(&layouts[at], document, &mut guessed, plans, false);
            match read {
                // Times in another unit are another layout's.
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

    fn message(&mut self, value: &[u8], key: Option<&[u8]>, offset: Option<i64>) -> Step<Outcome> {
        if let Some(most) = self.max_events() {
            let size = value.len() + key.map_or(0, <[u8]>::len);
            if size > self.settings.max_message_bytes {
                return Err(Refusal::new("a message that is too long", 0));
            }
            return self.events(most, key, value, offset);
        }
        if self.is_avro() {
            return self.record(value, offset);
        }
        if let Some(outcome) = self.payload(value, key, offset)? {
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
        self.by_plan(layout, op, document, key, offset)
    }

    /// The text of messages' keys, where they count.
    fn keys<'a>(&self, key: Option<&'a [u8]>) -> Step<Option<&'a str>> {
        if self.max_events().is_some() || self.is_avro() {
            return Ok(None);
        }
        let text = key.map(from_utf8).transpose();
        text.map_err(|_| Refusal::new("a key that is no UTF-8", 0))
    }

    /// What the filters make of a row with this envelope, if they do not want it.
    pub fn refused_by_filters(&mut self, layout: usize, document: &str) -> Step<Option<Outcome>> {
        if !self.envelope.is_row(&self.settings.layouts[layout]) {
            return Err(Refusal::new("a message without rows", 0));
        }
        if self.envelope.table.text(document).is_empty() {
            return Err(Refusal::new("no table", 0));
        }
        if self.envelope.commit_ts.is_none() && self.envelope.source_time.is_none() {
            return Err(Refusal::new("no time", 0));
        }
        if self.guess_for(document).is_none()
            && let Some(table) = self.looked_at.get(&self.envelope.name(document))
            && table.is_unwanted
            && table.has(self.schema(layout, document))
        {
            return Ok(Some(Outcome::Skipped));
        }
        if self.is_wanted()? {
            return Ok(None);
        }
        let is_good = self.is_good(layout, document);
        Ok(Some(match is_good {
            true => Outcome::Skipped,
            false => Outcome::Unknown,
        }))
    }

    /// Whether the reference knows the schema beside the payload; it is not parsed here.
    fn is_good(&self, layout: usize, document: &str) -> bool {
        let schema = self.schema(layout, document);
        let name = self.envelope.name(document);
        let part = self.settings.layouts[layout].schema;
        let is_plans =
            |plan: &Arc<Plan>| part.and_then(|part| plan.key.bytes_of_part(part)) == Some(schema);
        schema.is_empty()
            || self
                .looked_at
                .get(&name)
                .is_some_and(|table| table.has(schema))
            || self.plans.of(name).iter().any(is_plans)
    }

    /// The plan of the message before, if it is of the same table.
    pub fn guess_for(&self, document: &str) -> Option<&Arc<Plan>> {
        let guess = self.guess.as_ref();
        guess.filter(|plan| {
            plan.layout == self.envelope.layout && plan.has_name(self.envelope.name(document))
        })
    }

    /// Guesses a plan of the table whose names were read.
    pub fn guess_by_name(&mut self, document: &str) {
        if self.guess_for(document).is_none() {
            let plans = self.plans.of(self.envelope.name(document));
            self.guess = plans.first().cloned();
        }
    }

    /// Appends the rows of the envelope by a plan that has its schema key.
    pub fn by_plan(
        &mut self,
        layout: usize,
        op: Op,
        document: &str,
        key: Option<&str>,
        offset: Option<i64>,
    ) -> Step<Outcome> {
        if let Some(plan) = self.guess_for(document).cloned() {
            let fits = self.envelope.guess_fits(&plan) && plan.holds(&self.envelope);
            if fits
                && plan.key.has_message_key(key)?
                && self.images(&plan.rows, layout, op, document)?
            {
                self.rows(&plan, layout, op, document, offset)?;
                return Ok(Outcome::Read);
            }
        }
        let plans = self.plans.of(self.envelope.name(document)).to_vec();
        let mut read_by = self.guess.as_ref().map(|plan| Arc::clone(&plan.rows));
        for plan in plans {
            // What was read for other rows means nothing to these.
            if !read_by.is_some_and(|rows| Arc::ptr_eq(&rows, &plan.rows)) {
                self.envelope.clear_images();
            }
            read_by = Some(Arc::clone(&plan.rows));
            if plan.fits(&self.envelope, document)
                && plan.key.has_message_key(key)?
                && self.images(&plan.rows, layout, op, document)?
            {
                self.rows(&plan, layout, op, document, offset)?;
                self.guess = Some(plan);
                return Ok(Outcome::Read);
            }
        }
        Ok(Outcome::Unknown)
    }

    /// Whether rows of the envelope's operation and `commit_ts` are read.
    pub fn is_wanted(&self) -> Step<bool> {
        if let Some(ops) = &self.settings.wanted_ops
            && self.envelope.op.is_some_and(|op| !ops.contains(&op))
        {
            return Ok(false);
        }
        if self
            .envelope
            .commit_ts
            .is_some_and(|commit_ts| commit_ts < self.settings.fence)
        {
            return Err(Refusal::new("a row that may have come before", 0));
        }
        let (low, high) = (
            self.settings.starting_commit_ts,
            self.settings.ending_commit_ts,
        );
        if low.is_none() && high.is_none() {
            return Ok(true);
        }
        let Some(commit_ts) = self.envelope.commit_ts else {
            return Err(Refusal::new("no commit_ts", 0));
        };
        Ok(low.is_none_or(|low| low <= commit_ts) && high.is_none_or(|high| commit_ts <= high))
    }

    /// Reads a message that has the schema, and the plan, of the message before: only its payload
    /// is looked at. None for any other message.
    fn payload(
        &mut self,
        value: &[u8],
        key: Option<&[u8]>,
        offset: Option<i64>,
    ) -> Step<Option<Outcome>> {
        let guess = self.guess.clone();
        let Some(plan) = guess.filter(|plan| plan.layout == self.layout) else {
            return Ok(None);
        };
        let (at, layout) = (self.layout, &self.settings.layouts[self.layout]);
        let schema = layout.schema.and_then(|part| plan.key.bytes_of_part(part));
        let payload = schema.and_then(|schema| connect::payload_beside(value, schema));
        let document = payload.and_then(|payload| from_utf8(payload).ok());
        let Some(document) = document.filter(|_| value.len() <= self.settings.max_message_bytes)
        else {
            return Ok(None);
        };
        let envelope = &mut self.envelope;
        let read = envelope.read(layout, document, &mut Some(&plan), None, true);
        let fits = read.is_ok()
            && envelope.has_times()
            && envelope.guess_fits(&plan)
            && plan.has_name(envelope.name(document))
            && plan.holds(envelope);
        let Some(op) = envelope.op.filter(|_| fits) else {
            return Ok(None);
        };
        if !self.is_wanted()? {
            return Ok(Some(Outcome::Skipped));
        }
        if !plan.key.has_message_key(self.keys(key)?)?
            || !self.images(&plan.rows, at, op, document)?
        {
            return Ok(None);
        }
        self.rows(&plan, at, op, document, offset)?;
        Ok(Some(Outcome::Read))
    }

    /// Finds the values of all images; false where the columns are not the plan's.
    fn images(&mut self, plan: &RowPlan, layout: usize, op: Op, document: &str) -> Step<bool> {
        let layout = &self.settings.layouts[layout];
        let envelope = &mut self.envelope;
        let (before, after) = (&mut envelope.images_before, &mut envelope.images_after);
        let (of_before, of_after) = (
            layout.whole(op, Role::Before),
            layout.whole(op, Role::After),
        );
        let both = [
            (&mut *after, envelope.after, of_after),
            (&mut *before, envelope.before, of_before),
        ];
        for (images, token, whole) in both {
            let Some(whole) = whole else {
                images.clear();
                continue;
            };
            if !images.is_read && !images.read_at(plan, layout.in_lists, whole, token, document)? {
                return Ok(false);
            }
        }
        let needed = if of_after.is_some() {
            &*after
        } else {
            &*before
        };
        if !needed.are_whole() {
            return Err(Refusal::new("a row without an image", 0));
        }
        if of_after.is_some() && before.count() > 0 && before.count() != after.count() {
            return Err(Refusal::new("images before and after differ in number", 0));
        }
        if envelope.doubts_nulls(document, layout) {
            return Err(Refusal::new("a NULL that may be something else", 0));
        }
        Ok(true)
    }
}
