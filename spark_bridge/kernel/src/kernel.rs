//! Messages to rows: layouts, plans and the batch together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hashbrown::HashMap;
use serde::Deserialize;

use crate::batch::{Batch, Change, Origin, Output};
use crate::connect;
use crate::encodings::Tools;
use crate::envelope::Envelope;
use crate::json::{Kind, Token};
use crate::layout::{Image, Layout, Op, Role};
use crate::plans::{Description, Plan, PlanColumn, Sink};
use crate::refusal::{Refusal, Step};
use crate::temporal::Zone;

/// A message's rows are weighed after each so many of them.
const LOOK_AFTER: usize = 64;

/// Names of unwanted tables that are kept, in bytes.
const UNWANTED_BYTES: usize = 8 << 20;

/// Plans of one table that are kept.
const PLANS_OF_TABLE: usize = 16;

#[derive(Deserialize)]
pub struct Settings {
    layouts: Vec<Layout>,
    outputs: Vec<Output>,
    zone: Zone,
    /// Rows with a smaller or larger commit_ts are skipped.
    starting_commit_ts: Option<i64>,
    ending_commit_ts: Option<i64>,
    /// Images before updates are rows.
    before_updates: bool,
    /// A change of the key is refused.
    splits_keys: bool,
    /// Longer messages are refused.
    max_message_bytes: usize,
    /// A batch ends after so many rows, or so many bytes of values.
    max_rows: usize,
    max_bytes: usize,
    /// Of a row of NULLs.
    row_bytes: usize,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Read,
    Skipped,
    /// No plan has its schema key.
    Unknown,
    Refused(Refusal),
}

type Name = (String, String, String);

pub struct Kernel {
    settings: Settings,
    outputs: usize,
    plans: HashMap<Name, Vec<Arc<Plan>>>,
    /// By names, with the schemas beside their payloads.
    unwanted: HashMap<Name, Vec<String>>,
    unwanted_bytes: usize,
    batch: Batch,
    tools: Tools,
    envelope: Envelope,
    /// The plan of the message before.
    guess: Option<Arc<Plan>>,
    /// The number of its layout.
    layout: usize,
    pub skipped: usize,
}

impl Kernel {
    pub fn new(mut settings: Settings) -> Self {
        for layout in &mut settings.layouts {
            layout.prepare();
        }
        let batch = Batch::new(settings.outputs.clone());
        Self {
            outputs: batch.columns.len(),
            batch,
            tools: Tools {
                zone: settings.zone.clone(),
                ..Tools::default()
            },
            settings,
            plans: HashMap::new(),
            unwanted: HashMap::new(),
            unwanted_bytes: 0,
            envelope: Envelope::default(),
            guess: None,
            layout: 0,
            skipped: 0,
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

    pub fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    pub fn clear_plans(&mut self) {
        self.guess = None;
        self.plans.clear();
    }

    /// Messages of this one's table, with its schema, are skipped.
    pub fn skip_table(&mut self, value: &[u8]) -> Step<()> {
        let (layout, document) = self.envelope_of(value, false)?;
        let schema = self.schema(layout, document);
        if !schema.is_empty() {
            connect::check_schema(schema)?;
        }
        let name = self.name(document);
        if self.unwanted_bytes > UNWANTED_BYTES {
            self.unwanted.clear();
            self.unwanted_bytes = 0;
        }
        let names = name.0.len() + name.1.len() + name.2.len();
        self.unwanted_bytes += names + size_of::<Name>() + schema.len();
        let schemas = self.unwanted.entry(name).or_default();
        schemas.retain(|known| known != schema);
        schemas.insert(0, schema.to_owned());
        schemas.truncate(PLANS_OF_TABLE);
        Ok(())
    }

    /// The schema beside the payload of the last document; empty if there is none.
    fn schema<'a>(&self, layout: usize, document: &'a str) -> &'a str {
        let part = self.settings.layouts[layout].schema;
        part.map_or("", |part| self.envelope.key[part].text(document))
    }

    /// Reads one message; what is not read or skipped leaves no rows.
    pub fn read(&mut self, value: &[u8], key: Option<&[u8]>, offset: Option<i64>) -> Outcome {
        let rows = self.batch.row_count();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.message(value, key, offset)))
            .unwrap_or(Err(Refusal::new("a mistake of the kernel", 0)));
        let outcome = outcome.unwrap_or_else(Outcome::Refused);
        match outcome {
            Outcome::Read => self.batch.messages += 1,
            Outcome::Skipped => {
                self.batch.messages += 1;
                self.skipped += 1;
            }
            Outcome::Unknown | Outcome::Refused(_) => self.batch.truncate(rows),
        }
        outcome
    }

    /// The database, schema and table of a message, if it has a layout.
    pub fn names(&mut self, value: &[u8]) -> Option<Name> {
        let (_, document) = self.envelope_of(value, false).ok()?;
        Some(self.name(document))
    }

    /// A plan for messages with the schema key of this one.
    pub fn add_plan(
        &mut self,
        value: &[u8],
        key: Option<&[u8]>,
        description: Description,
    ) -> Step<()> {
        let key = key_text(key)?;
        let (layout, document) = self.envelope_of(value, false)?;
        let name = self.name(document);
        let layout = &self.settings.layouts[layout];
        let plan = Plan::new(
            description,
            self.outputs,
            layout,
            &self.envelope,
            document,
            key,
        )?;
        let plans = self.plans.entry(name).or_default();
        plans.retain(|known| !plan.replaces(known));
        plans.insert(0, Arc::new(plan));
        self.guess = None;
        plans.truncate(PLANS_OF_TABLE);
        Ok(())
    }

    fn envelope_of<'a>(&mut self, value: &'a [u8], guess: bool) -> Step<(usize, &'a str)> {
        if value.len() > self.settings.max_message_bytes {
            return Err(Refusal::new("a message that is too long", 0));
        }
        let Ok(document) = std::str::from_utf8(value) else {
            return Err(Refusal::new("bytes that are no UTF-8", 0));
        };
        let guess = self.guess.as_deref().filter(|_| guess);
        let layouts = &self.settings.layouts;
        let mut refusal = Refusal::new("another beginning", 0);
        // Mostly it is the layout of the message before.
        for step in 0..layouts.len() {
            let at = (self.layout + step) % layouts.len();
            if !document.starts_with(&layouts[at].begins) {
                continue;
            }
            match self.envelope.read(&layouts[at], document, guess) {
                // Times in another unit are another layout's.
                Ok(()) if !layouts[at].connect || self.envelope.has_times() => {
                    self.layout = at;
                    return Ok((at, document));
                }
                Ok(()) => refusal = Refusal::new("no time", 0),
                Err(other) => refusal = other,
            }
        }
        Err(refusal)
    }

    fn name(&self, document: &str) -> Name {
        let envelope = &self.envelope;
        let text = |token: Token| token.text(document).to_owned();
        (
            text(envelope.database),
            text(envelope.schema),
            text(envelope.table),
        )
    }

    fn message(&mut self, value: &[u8], key: Option<&[u8]>, offset: Option<i64>) -> Step<Outcome> {
        let (layout, document) = self.envelope_of(value, true)?;
        let Some(op) = self.envelope.op else {
            return Err(Refusal::new("no operation", 0));
        };
        if self.envelope.table.text(document).is_empty() {
            return Err(Refusal::new("no table", 0));
        }
        if self.envelope.commit_ts.is_none() && self.envelope.source_time.is_none() {
            return Err(Refusal::new("no time", 0));
        }
        let guess = self
            .guess
            .clone()
            .filter(|plan| plan.has_names(&self.envelope, document));
        if guess.is_none()
            && let Some(schemas) = self.unwanted.get(&self.name(document))
            && schemas
                .iter()
                .any(|known| known == self.schema(layout, document))
        {
            return Ok(Outcome::Skipped);
        }
        let (low, high) = (
            self.settings.starting_commit_ts,
            self.settings.ending_commit_ts,
        );
        if low.is_some() || high.is_some() {
            let Some(commit_ts) = self.envelope.commit_ts else {
                return Err(Refusal::new("no commit_ts", 0));
            };
            if low.is_some_and(|low| commit_ts < low) || high.is_some_and(|high| commit_ts > high) {
                return Ok(Outcome::Skipped);
            }
        }
        let key = key_text(key)?;
        if let Some(plan) = guess {
            let fits = self.envelope.guess_fits(&plan) && plan.holds(&self.envelope);
            if fits && plan.has_key(key)? && self.images(&plan, layout, op, document)? {
                self.rows(&plan, layout, op, document, offset)?;
                return Ok(Outcome::Read);
            }
        }
        let plans = self
            .plans
            .get(&self.name(document))
            .cloned()
            .unwrap_or_default();
        for plan in plans {
            // What was read for another plan means nothing to this one.
            self.envelope.clear_images();
            if plan.fits(&self.envelope, document)
                && plan.has_key(key)?
                && self.images(&plan, layout, op, document)?
            {
                self.rows(&plan, layout, op, document, offset)?;
                self.guess = Some(plan);
                return Ok(Outcome::Read);
            }
        }
        Ok(Outcome::Unknown)
    }

    /// Finds the values of all images; false where the columns are not the plan's.
    fn images(&mut self, plan: &Plan, layout: usize, op: Op, document: &str) -> Step<bool> {
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
        Ok(true)
    }

    fn rows(
        &mut self,
        plan: &Plan,
        layout: usize,
        op: Op,
        document: &str,
        offset: Option<i64>,
    ) -> Step<()> {
        let layout = &self.settings.layouts[layout];
        let envelope = &self.envelope;
        let deleted_before = op == Op::Delete && layout.deleted_row == Image::Before;
        let images = if deleted_before {
            &envelope.images_before
        } else {
            &envelope.images_after
        };
        let row_bytes = self.settings.row_bytes + plan.absent_bytes;
        if images.count() > 1 && 2 * images.count() * row_bytes > self.settings.max_bytes {
            return Err(Refusal::new("more rows than a batch has room for", 0));
        }
        let start = self.batch.row_count();
        // A walk through all columns, for messages of many rows only.
        let begin = if images.count() >= LOOK_AFTER {
            self.batch.size()
        } else {
            0
        };
        self.batch.begin(Origin {
            row_bytes,
            message: self.batch.messages,
            offset,
            commit_ts: envelope.commit_ts,
            source_time: envelope.source_time,
            keyed: plan.keyed,
            orders_by_source_time: layout.orders_by_source_time,
            unit: layout.times.2,
            absent: Arc::clone(&plan.absent),
        });
        for row in 0..images.count() {
            if row % LOOK_AFTER == LOOK_AFTER - 1
                && self.batch.size() - begin > self.settings.max_bytes
            {
                return Err(Refusal::new(
                    "more bytes of rows than a batch has room for",
                    0,
                ));
            }
            let Some(image) = images.row(row) else {
                return Err(Refusal::new("a row without an image", 0));
            };
            let before = if op == Op::Update {
                envelope.images_before.row(row)
            } else {
                None
            };
            if let Some(before) = before {
                if self.settings.splits_keys {
                    same_key(plan, before, image, document)?;
                }
                if self.settings.before_updates {
                    for (column, (old, new)) in plan.columns.iter().zip(before.iter().zip(image)) {
                        if old.kind == Kind::Missing {
                            append(column, *new, document, &mut self.batch, &mut self.tools)?;
                            if let Sink::Output(output) = column.sink {
                                self.batch.columns[output].repeat_last()?;
                            }
                        } else {
                            append(column, *old, document, &mut self.batch, &mut self.tools)?;
                            append(column, *new, document, &mut self.batch, &mut self.tools)?;
                        }
                    }
                    self.batch.push(Change::Preimage, row);
                    self.batch.push(Change::Postimage, row);
                    continue;
                }
            }
            for (column, token) in plan.columns.iter().zip(image) {
                append(column, *token, document, &mut self.batch, &mut self.tools)?;
            }
            let change = match op {
                Op::Insert | Op::Read => Change::Insert,
                Op::Update | Op::Upsert => Change::Postimage,
                Op::Delete => Change::Delete,
            };
            self.batch.push(change, row);
        }
        let rows = self.batch.row_count() - start;
        self.batch.push_nulls(&plan.lacking, rows)
    }
}

fn key_text(key: Option<&[u8]>) -> Step<Option<&str>> {
    let text = key.map(std::str::from_utf8).transpose();
    text.map_err(|_| Refusal::new("a key that is no UTF-8", 0))
}

fn append(
    column: &PlanColumn,
    token: Token,
    document: &str,
    batch: &mut Batch,
    tools: &mut Tools,
) -> Step<()> {
    match &column.sink {
        Sink::Output(place) => {
            column
                .reader
                .read(token, document, &mut batch.columns[*place], tools)
        }
        Sink::Check(target) => column.reader.check(token, document, target, tools),
        Sink::Null if token.kind == Kind::Null => Ok(()),
        Sink::Null => Err(Refusal::new(
            "a value that no column takes",
            token.start as usize,
        )),
        Sink::Nothing => Ok(()),
    }
}

fn same_key(plan: &Plan, before: &[Token], after: &[Token], document: &str) -> Step<()> {
    for (column, (old, new)) in plan.columns.iter().zip(before.iter().zip(after)) {
        let same = old.kind == Kind::Missing
            || (old.kind == new.kind && old.text(document) == new.text(document));
        if column.key && !same {
            return Err(Refusal::new("another key than before", old.start as usize));
        }
    }
    Ok(())
}
