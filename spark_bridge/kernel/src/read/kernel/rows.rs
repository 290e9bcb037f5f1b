//! The rows of one message: changes, or events.

use std::sync::Arc;

use crate::json::{Kind, Token};
use crate::plan::{Form, Image, Layout, Op};
use crate::read::batch::EventOrigin;
use crate::read::batch::Source;
use crate::read::batch::{Batch, Change, Column, LogPosition, Origin, Place};
use crate::read::envelope::Envelope;
use crate::read::envelope::Images;
use crate::read::envelope::long;
use crate::read::kernel::{Current, Kernel};
use crate::read::plans::{ExtraSource, Plan, PlanColumn, RowPlan, Shown, Sink};
use crate::refusal::{Reason, Refusal, Result};
use crate::text::numbers;
use crate::values::NumberedCells;
use crate::values::Tools;

/// Number of rows between two checks of a message's row bytes, as a check visits all columns.
const LOOK_AFTER: usize = 64;

/// Limits for what rows repeat of their message: a multiple of the message, plus bytes per row;
/// larger messages are left to the reference.
const REPEATED_SHARE: usize = 4;
const REPEATED_BYTES: usize = 1024;
/// The limit per row with the members of ENUM and SET columns, most of which are shorter.
const BYTES_WITH_MEMBERS: usize = 3072;

/// The reference makes the rows of longer messages one by one, so that a batch can end between them;
/// the kernel would hold all of them at once.
const LONGEST_OF_ROWS: usize = 1 << 20;

/// In place of the change in a commit: a snapshot has all changes of its commit.
const AFTER_CHANGES: &str = "~";

impl Kernel {
    /// Appends the rows of the message whose envelope and images were read.
    pub(super) fn rows(
        &mut self,
        plan: &Arc<Plan>,
        layout: usize,
        op: Op,
        document: &str,
        place: Place,
    ) -> Result<()> {
        let deletes_before = self.settings.layouts[layout].deleted_row == Image::Before;
        let count = images_of(&self.envelope, op, deletes_before).count();
        if count > 1 && document.len() > LONGEST_OF_ROWS {
            return Err(Refusal::of(Reason::Size, "many rows in a long message", 0));
        }
        let event = self.event(plan, layout, op, document)?;
        let extra_bytes = event.as_ref().map_or(0, |(_, bytes)| *bytes);
        let repeated = plan.repeats + extra_bytes + self.current.beside;
        if count > 1 && self.repeats_much(count, repeated, plan.members, document.len()) {
            return Err(Refusal::of(
                Reason::Size,
                "rows repeat too much of their message",
                0,
            ));
        }
        let keys = plan.rows.event.as_ref().map_or(0, |event| event.name_bytes);
        let names = keys + plan.shown.as_ref().map_or(0, Shown::bytes);
        let row_bytes = self.row_bytes() + plan.rows.absent_bytes + names + extra_bytes;
        // Twice, as an update may have two rows.
        if count > 1 && 2 * count * row_bytes > self.settings.max_bytes {
            return Err(Refusal::of(
                Reason::Size,
                "more rows than a batch has room for",
                0,
            ));
        }
        let start = self.batch.row_count();
        // Visits all columns, so only for messages with many rows.
        let begin = if count >= LOOK_AFTER {
            self.batch.size()
        } else {
            0
        };
        let Layout {
            orders_by_source_time,
            times,
            ..
        } = self.settings.layouts[layout];
        let log = self.log(layout, op, document)?;
        self.batch.begin(Origin {
            row_bytes,
            message: self.batch.messages,
            index: self.current.event,
            place,
            log,
            commit_ts: self.envelope.commit_ts,
            source_time: self.envelope.source_time,
            keyed: plan.rows.keyed,
            orders_by_source_time,
            unit: times.2,
            absent: Arc::clone(&plan.rows.absent),
            event: event.map(|(event, _)| event),
        });
        for row in 0..count {
            if row % LOOK_AFTER == LOOK_AFTER - 1
                && self.batch.size() - begin > self.settings.max_bytes
            {
                return Err(Refusal::of(
                    Reason::Size,
                    "more bytes of rows than a batch has room for",
                    0,
                ));
            }
            let appended = self.row(&plan.rows, layout, op, document, row);
            appended.inspect_err(|refusal| self.current.note_column(refusal, &plan.rows))?;
        }
        let rows = self.batch.row_count() - start;
        self.batch.push_nulls(&plan.rows.lacking, rows)
    }

    /// Whether rows may repeat more of a message of `size` bytes than the reference allows.
    ///
    /// `each`: bytes that each row repeats, without `members`, the maximum of which is known.
    pub(super) fn repeats_much(
        &self,
        rows: usize,
        each: usize,
        members: usize,
        size: usize,
    ) -> bool {
        let share = REPEATED_SHARE * (size + self.current.beside);
        rows * each > share + REPEATED_BYTES * rows
            || rows * (each + members) > share + BYTES_WITH_MEMBERS * rows
    }

    /// Bytes of a row that has no values yet.
    pub(super) fn row_bytes(&self) -> usize {
        self.settings.row_bytes + self.current.beside
    }

    /// The position in the source's log, if the layout and the message have one.
    fn log(&mut self, layout: usize, op: Op, document: &str) -> Result<Option<LogPosition>> {
        let Some(leaves) = self.settings.layouts[layout].log_leaves else {
            return Ok(None);
        };
        let [server, file, pos, change] =
            leaves.map(|leaf| leaf.map(|leaf| self.envelope.leaves[leaf]));
        let long = |token| long(token, document.as_bytes());
        let Some(pos) = pos.map_or(Some(0), |pos| long(pos).or(change.map(|_| 0))) else {
            return Ok(None);
        };
        let server = match server {
            Some(server) => Some(long(server).unwrap_or_default()),
            None => (op == Op::Read).then_some(0),
        };
        let Some(file) = file else {
            let file = "".into();
            return Ok(Some(LogPosition { server, file, pos }));
        };
        let Some(text) = log_text(file, document)? else {
            return Ok(None);
        };
        let file = match change {
            Some(change) => {
                let change = log_text(change, document)?.unwrap_or(AFTER_CHANGES);
                [text, "/", change].concat().into()
            }
            None => {
                // Most messages are of the same file as the previous one.
                if *self.log_file != *text {
                    self.log_file = text.into();
                }
                Arc::clone(&self.log_file)
            }
        };
        Ok(Some(LogPosition { server, file, pos }))
    }

    /// Values that the message's events share, and the bytes of their `extra`.
    fn event(
        &mut self,
        plan: &Arc<Plan>,
        layout: usize,
        op: Op,
        document: &str,
    ) -> Result<Option<(EventOrigin, usize)>> {
        let Some(event) = &plan.rows.event else {
            return Ok(None);
        };
        let by_time = self.settings.layouts[layout].orders_by_source_time
            && self.envelope.commit_ts.is_none();
        // `extra` shows it only together with the columns.
        let is_shown = by_time && !event.columns.is_empty();
        let sequence_commit = self.envelope.source_time.filter(|_| is_shown);
        let source = ExtraSource {
            leaves: &self.envelope.leaves,
            document,
            sequence_commit: sequence_commit.map(|time| (time << 18).to_string()),
        };
        let extras = &mut self.batch.extras;
        let (value, metadata) = (extras.values.len(), extras.metadata.len());
        self.previous_extra.begin(&event.extra);
        let bytes = event.extra.append(
            &source,
            &mut self.previous_extra,
            &mut self.tools.texts.variants,
            &mut extras.values,
            &mut extras.metadata,
        )?;
        let places = (value..extras.values.len(), metadata..extras.metadata.len());
        let origin = EventOrigin {
            plan: Arc::clone(plan),
            op,
            emit_time: self.envelope.other_time,
            extra: bytes.map(|_| places),
        };
        Ok(Some((origin, bytes.unwrap_or(0))))
    }

    fn row(
        &mut self,
        plan: &RowPlan,
        layout: usize,
        op: Op,
        document: &str,
        row: usize,
    ) -> Result<()> {
        let layout = &self.settings.layouts[layout];
        let deletes_before = layout.deleted_row == Image::Before;
        let images = images_of(&self.envelope, op, deletes_before);
        let Some(image) = images.row(row) else {
            return Err(Refusal::new("row has no image", 0));
        };
        let before = self.envelope.images_before.row(row);
        let before = before.filter(|_| op == Op::Update);
        let (batch, tools) = (&mut self.batch, &mut self.tools);
        if let Some(before) = before {
            // If the key's value before is otherwise unused, read it only if it differs.
            let reads_keys = plan.event.is_some() && !self.settings.before_updates;
            if self.settings.splits_keys || reads_keys {
                same_key(plan, before, image, document)?;
            }
            if layout.reads_before && !self.settings.before_updates {
                batch.try_before(plan, before, image, document, tools)?;
            }
        }
        let before = before.filter(|_| self.settings.before_updates);
        if layout.partial_before
            && let Some(before) = before
            && before.iter().any(|value| value.kind == Kind::Missing)
        {
            // What a partial image lacks is unknown, and a preimage would show it as NULL.
            return Err(Refusal::new("before image is incomplete", 0));
        }
        if let (Some(event), Some(images)) = (&plan.event, &mut batch.images) {
            let source = Source {
                plan,
                event,
                document,
            };
            let (before, after) = match op {
                Op::Delete => (Some(image), None),
                _ => (before, Some(image)),
            };
            images.push(source, before, after, tools)?;
            batch.push(Change::Insert, row);
            return Ok(());
        }
        if let Some(before) = before {
            for (place, (old, new)) in before.iter().zip(image).enumerate() {
                let column = &plan.columns[place];
                // Equal values are parsed once, and copied: most columns of an update do not
                // change.
                let is_same = old.kind == Kind::Missing
                    || (old.equals(*new, document) && !column.reader.counts());
                if !is_same {
                    append(plan, place, *old, document, batch, tools)?;
                }
                append(plan, place, *new, document, batch, tools)?;
                if let (Sink::Output(output), true) = (&column.sink, is_same) {
                    batch.columns[*output].repeat_last()?;
                }
            }
            batch.push(Change::Preimage, row);
            batch.push(Change::Postimage, row);
            return Ok(());
        }
        for (place, token) in image.iter().enumerate() {
            append(plan, place, *token, document, batch, tools)?;
        }
        let change = match op {
            Op::Insert | Op::Read => Change::Insert,
            Op::Update | Op::Upsert => Change::Postimage,
            Op::Delete => Change::Delete,
        };
        batch.push(change, row);
        Ok(())
    }
}

impl Current {
    /// Remembers the column of a refused value.
    pub(super) fn note_column(&mut self, refusal: &Refusal, plan: &RowPlan) {
        let Some(column) = refusal.column() else {
            return;
        };
        let name = plan.names.texts.iter().nth(column).unwrap_or_default();
        self.refused = Some((name.to_owned(), plan.columns[column].reader.encoding()));
    }
}

impl Batch {
    /// Checks the values before an update that differ from those after it; keeps none.
    fn try_before(
        &mut self,
        plan: &RowPlan,
        before: &[Token],
        after: &[Token],
        document: &str,
        tools: &mut Tools,
    ) -> Result<()> {
        let rows = self.row_count();
        for (column, (old, new)) in before.iter().zip(after).enumerate() {
            if old.equals(*new, document) {
                continue;
            }
            append(plan, column, *old, document, self, tools)?;
            if let Sink::Output(place) = plan.columns[column].sink {
                self.columns[place].truncate(rows);
            }
        }
        if let (Some(event), Some(images)) = (&plan.event, &mut self.images) {
            let source = Source {
                plan,
                event,
                document,
            };
            images.push(source, Some(before), Some(after), tools)?;
            images.truncate(rows);
        }
        Ok(())
    }
}

/// A text of the position in the source's log; None if it is missing, empty or of another type.
fn log_text(token: Token, document: &str) -> Result<Option<&str>> {
    let text = token.text(document);
    let text = match token.kind {
        Kind::Text => text,
        // A guessed member has no other kind, and its quotes.
        Kind::Object => match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
            Some(text) => text,
            None => return Ok(None),
        },
        Kind::Escaped => return Err(Refusal::new("name has escapes", token.start as usize)),
        _ => return Ok(None),
    };
    if text.contains('\\') {
        return Err(Refusal::new("name has escapes", token.start as usize));
    }
    Ok((!text.is_empty()).then_some(text))
}

fn images_of(envelope: &Envelope, op: Op, deletes_before: bool) -> &Images {
    if op == Op::Delete && deletes_before {
        &envelope.images_before
    } else {
        &envelope.images_after
    }
}

#[inline]
fn append(
    plan: &RowPlan,
    place: usize,
    token: Token,
    document: &str,
    batch: &mut Batch,
    tools: &mut Tools,
) -> Result<()> {
    append_value(&plan.columns[place], token, document, batch, tools)
        .map_err(|refusal| plan.refused(refusal, place, token))
}

#[inline]
fn append_value(
    column: &PlanColumn,
    token: Token,
    document: &str,
    batch: &mut Batch,
    tools: &mut Tools,
) -> Result<()> {
    match &column.sink {
        Sink::Output(place) => {
            let output = &mut batch.columns[*place];
            match &column.numbers {
                None => column.reader.read(token, document, output, tools),
                Some(numbers) => {
                    let mut output = NumberedCells { output, numbers };
                    column.reader.read(token, document, &mut output, tools)
                }
            }
        }
        Sink::Check(target) => {
            if column.signless {
                Form::Signless.check(match token.kind {
                    Kind::Integer => numbers::integer(token.text(document)).unwrap_or(-1),
                    _ => token.long().unwrap_or_default().into(),
                })?;
            }
            // The format validates values that no row shows, too.
            let mut dropped = Column::new(target, true);
            column.reader.read(token, document, &mut dropped, tools)
        }
        Sink::Null if token.kind == Kind::Null => Ok(()),
        Sink::Null => Err(Refusal::of(
            Reason::Doubt,
            "value of a column that must be NULL",
            0,
        )),
        Sink::Image(_) | Sink::Nothing => Ok(()),
    }
}

fn same_key(plan: &RowPlan, before: &[Token], after: &[Token], document: &str) -> Result<()> {
    for (column, (old, new)) in plan.columns.iter().zip(before.iter().zip(after)) {
        let same = old.kind == Kind::Missing || old.equals(*new, document);
        if column.key && !same {
            // The reference splits such an update, or reads the key before it.
            return Err(Refusal::new("update changes the key", old.start as usize));
        }
    }
    Ok(())
}
