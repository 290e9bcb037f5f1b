//! Messages to rows: layouts, plans and the batch together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde::Deserialize;

use crate::batch::{Batch, Change, Origin, Output};
use crate::encodings::Tools;
use crate::envelope::Envelope;
use crate::json::{Cursor, Kind, Token};
use crate::layout::{Image, Layout, Op};
use crate::plans::{Description, Plan, PlanColumn, Sink};
use crate::refusal::{Refusal, Step};
use crate::temporal::Zone;

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
    unwanted: HashSet<Name>,
    batch: Batch,
    tools: Tools,
    envelope: Envelope,
    after: Vec<Token>,
    before: Vec<Token>,
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
            unwanted: HashSet::new(),
            envelope: Envelope::empty(),
            after: Vec::new(),
            before: Vec::new(),
            skipped: 0,
        }
    }

    /// Whether the batch has to be finished before more is read.
    pub fn is_full(&self) -> bool {
        self.batch.row_count() >= self.settings.max_rows || self.batch.size() >= self.settings.max_bytes
    }

    pub fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    pub fn clear_plans(&mut self) {
        self.plans.clear();
    }

    pub fn skip_table(&mut self, name: Name) {
        self.unwanted.insert(name);
    }

    /// Reads one message; what is not read or skipped leaves no rows.
    pub fn read(&mut self, value: &[u8], offset: Option<i64>) -> Outcome {
        let rows = self.batch.row_count();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.message(value, offset)))
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
        let (_, document) = self.envelope_of(value).ok()?;
        Some(self.name(document))
    }

    /// A plan for messages with the schema key of this one.
    pub fn add_plan(&mut self, value: &[u8], description: Description) -> Step<()> {
        let (layout, document) = self.envelope_of(value)?;
        let name = self.name(document);
        let layout = &self.settings.layouts[layout];
        let plan = Plan::new(description, self.outputs, layout, &self.envelope, document)?;
        let plans = self.plans.entry(name).or_default();
        plans.retain(|known| !plan.replaces(known));
        plans.insert(0, Arc::new(plan));
        plans.truncate(PLANS_OF_TABLE);
        Ok(())
    }

    fn envelope_of<'a>(&mut self, value: &'a [u8]) -> Step<(usize, &'a str)> {
        if value.len() > self.settings.max_message_bytes {
            return Err(Refusal::new("a message that is too long", 0));
        }
        let Ok(document) = std::str::from_utf8(value) else {
            return Err(Refusal::new("bytes that are no UTF-8", 0));
        };
        let layout = self
            .settings
            .layouts
            .iter()
            .position(|layout| document.starts_with(&layout.begins));
        let layout = layout.ok_or(Refusal::new("another beginning", 0))?;
        self.envelope
            .read(&self.settings.layouts[layout], document)?;
        Ok((layout, document))
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

    fn message(&mut self, value: &[u8], offset: Option<i64>) -> Step<Outcome> {
        let (layout, document) = self.envelope_of(value)?;
        let Some(op) = self.envelope.op else {
            return Err(Refusal::new("no operation", 0));
        };
        if self.envelope.table.text(document).is_empty() {
            return Err(Refusal::new("no table", 0));
        }
        let name = self.name(document);
        if self.unwanted.contains(&name) {
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
        if self.envelope.commit_ts.is_none() && self.envelope.source_time.is_none() {
            return Err(Refusal::new("no time", 0));
        }
        let Some(plans) = self.plans.get(&name) else {
            return Ok(Outcome::Unknown);
        };
        for place in 0..plans.len() {
            let plan = Arc::clone(&self.plans[&name][place]);
            if !plan.fits(&self.envelope, document) {
                continue;
            }
            if let Some(images) = self.images(&plan, layout, op, document)? {
                self.rows(&plan, layout, op, images, document, offset)?;
                return Ok(Outcome::Read);
            }
        }
        Ok(Outcome::Unknown)
    }

    /// Finds the values of all images; how many rows, and which of them have one before.
    ///
    /// None where the columns are not the plan's.
    fn images(
        &mut self,
        plan: &Plan,
        layout: usize,
        op: Op,
        document: &str,
    ) -> Step<Option<Images>> {
        let layout = &self.settings.layouts[layout];
        let envelope = &self.envelope;
        self.after.clear();
        self.before.clear();
        let deletes = op == Op::Delete;
        let needs_after = !deletes || layout.deleted_row == Image::After;
        let needs_before = op == Op::Update || (deletes && layout.deleted_row == Image::Before);
        let mut images = Images::default();
        if needs_after {
            let Some(found) = image_list(
                plan,
                layout.in_lists,
                envelope.after,
                true,
                document,
                &mut self.after,
            )?
            else {
                return Ok(None);
            };
            if found.is_empty() || found.contains(&false) {
                return Err(Refusal::new(
                    "a row without an image",
                    envelope.after.start as usize,
                ));
            }
            images.after = found;
        }
        if needs_before && !matches!(envelope.before.kind, Kind::Missing | Kind::Null) {
            let whole = deletes || !layout.completes_before;
            let Some(found) = image_list(
                plan,
                layout.in_lists,
                envelope.before,
                whole,
                document,
                &mut self.before,
            )?
            else {
                return Ok(None);
            };
            images.before = found;
        }
        if deletes && !needs_after && (images.before.is_empty() || images.before.contains(&false)) {
            return Err(Refusal::new(
                "a row without an image",
                envelope.before.start as usize,
            ));
        }
        if needs_after && !images.before.is_empty() && images.before.len() != images.after.len() {
            return Err(Refusal::new("images before and after differ in number", 0));
        }
        Ok(Some(images))
    }

    fn rows(
        &mut self,
        plan: &Plan,
        layout: usize,
        op: Op,
        images: Images,
        document: &str,
        offset: Option<i64>,
    ) -> Step<()> {
        let layout = &self.settings.layouts[layout];
        let width = plan.columns.len();
        let deleted_before = op == Op::Delete && layout.deleted_row == Image::Before;
        let count = if deleted_before {
            images.before.len()
        } else {
            images.after.len()
        };
        let row_bytes = self.settings.row_bytes + plan.absent_bytes;
        if 2 * count * row_bytes > self.settings.max_bytes.max(2 * row_bytes) {
            return Err(Refusal::new("more rows than a batch has room for", 0));
        }
        let begin = self.batch.size();
        self.batch.begin(Origin {
            row_bytes,
            message: self.batch.messages,
            offset,
            commit_ts: self.envelope.commit_ts,
            source_time: self.envelope.source_time,
            keyed: plan.keyed,
            orders_by_source_time: layout.orders_by_source_time,
            unit: layout.times.2,
            absent: Arc::clone(&plan.absent),
        });
        let start = self.batch.row_count();
        for row in 0..count {
            if row % 64 == 63 && self.batch.size() - begin > self.settings.max_bytes {
                return Err(Refusal::new("more bytes of rows than a batch has room for", 0));
            }
            let cells = row * width..(row + 1) * width;
            let has_before = op == Op::Update && images.before.get(row) == Some(&true);
            if has_before && self.settings.splits_keys {
                let (before, after) = (&self.before[cells.clone()], &self.after[cells.clone()]);
                same_key(plan, before, after, document)?;
            }
            if has_before && self.settings.before_updates {
                for (place, column) in plan.columns.iter().enumerate() {
                    let (old, new) = (
                        self.before[cells.start + place],
                        self.after[cells.start + place],
                    );
                    if old.kind == Kind::Missing {
                        append(column, new, document, &mut self.batch, &mut self.tools)?;
                        if let Sink::Output(output) = column.sink {
                            self.batch.columns[output].repeat_last()?;
                        }
                    } else {
                        append(column, old, document, &mut self.batch, &mut self.tools)?;
                        append(column, new, document, &mut self.batch, &mut self.tools)?;
                    }
                }
                self.batch.push(Change::Preimage, row);
                self.batch.push(Change::Postimage, row);
                continue;
            }
            let image = if deleted_before {
                &self.before
            } else {
                &self.after
            };
            for (column, token) in plan.columns.iter().zip(&image[cells]) {
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

/// Of each row, whether it has an image.
#[derive(Default)]
struct Images {
    after: Vec<bool>,
    before: Vec<bool>,
}

fn image_list(
    plan: &Plan,
    in_lists: bool,
    token: Token,
    whole: bool,
    document: &str,
    tokens: &mut Vec<Token>,
) -> Step<Option<Vec<bool>>> {
    if matches!(token.kind, Kind::Missing | Kind::Null) {
        return Ok(Some(Vec::new()));
    }
    let mut found = Vec::new();
    let mut cursor = Cursor::at(document, token.start)?;
    if !in_lists {
        found.push(true);
        return Ok(plan.image(&mut cursor, whole, tokens)?.map(|()| found));
    }
    cursor.expect(b'[', "images that are no list")?;
    if cursor.take(b']') {
        return Ok(Some(found));
    }
    loop {
        cursor.blanks();
        let has_image = cursor.is_object();
        if has_image {
            if plan.image(&mut cursor, whole, tokens)?.is_none() {
                return Ok(None);
            }
        } else {
            let value = cursor.value()?;
            if value.kind != Kind::Null {
                return Err(Refusal::new(
                    "an image that is no object",
                    value.start as usize,
                ));
            }
            tokens.resize(tokens.len() + plan.columns.len(), Token::MISSING);
        }
        found.push(has_image);
        if !cursor.more(b']')? {
            return Ok(Some(found));
        }
    }
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
