//! Converts rows of batches to messages, up to the first refused row.

use std::collections::HashMap;

use arrow_array::RecordBatch;

use crate::plan::Image;
use crate::refusal::{Reason, Refusal, Result, Stop};
use crate::text::Printable;
use crate::write::batches::Begun;
use crate::write::changes::Changes;
use crate::write::compress::Compress;
use crate::write::events::Events;
use crate::write::fields::{EventTable, Fields};
use crate::write::key_order::KeyOrder;
use crate::write::permits::Permits;
use crate::write::plan::{Settings, Shape, Table, WrittenOp};
use crate::write::row::{Messages, NO_OP, Writing};
use crate::write::style::Scratch;

/// Bytes of messages after which they must be taken: offsets of an Arrow array have 32 bits, and memory
/// of a task does not grow with its rows.
const MAX_BYTES: usize = 4 << 20;

/// The rows of a record batch.
pub enum Batch {
    Changes(Box<Changes>),
    Events(Box<Events>),
}

const FULL: Refusal = Refusal::of_whole(Reason::Full, "messages must be taken first");
const UNKNOWN: Refusal =
    Refusal::of_whole(Reason::UnknownSchema, "no plan for the table of the row");

/// Writes the rows of a task, in order.
pub struct Writer {
    settings: Settings,
    /// For Go's quoted bytes.
    pub printable: Printable,
    compress: Option<Compress>,
    pub order: KeyOrder,
    pub permits: Permits,
    /// For the changes shape.
    table: Option<Table>,
    /// For the events shape.
    tables: Vec<EventTable>,
    numbers: HashMap<Vec<u8>, usize>,
    /// Identity of the last row's table.
    identity: Vec<u8>,
    number: usize,
    fields: [Fields; 2],
    scratch: Scratch,
    text: Vec<u8>,
    pub messages: Messages,
    pub begun: Begun,
    /// Number of the last row with a number.
    pub last_number: i64,
    /// The largest `commit_ts` so far.
    pub last_commit_ts: i64,
    pub counts: HashMap<String, usize>,
}

impl Writer {
    pub fn new(settings: Settings, compress: Option<Compress>) -> Self {
        Self {
            settings,
            printable: Printable::default(),
            compress,
            order: KeyOrder::default(),
            permits: Permits::default(),
            table: None,
            tables: Vec::new(),
            numbers: HashMap::new(),
            identity: Vec::new(),
            number: usize::MAX,
            fields: [Fields::default(), Fields::default()],
            scratch: Scratch::default(),
            text: Vec::new(),
            messages: Messages::default(),
            begun: Begun::default(),
            last_number: 0,
            last_commit_ts: 0,
            counts: HashMap::new(),
        }
    }

    pub fn has_partitions(&self) -> bool {
        self.settings.partitions.is_some()
    }

    /// None for a batch that the reference must write completely.
    pub fn open(&self, batch: &RecordBatch) -> Option<Batch> {
        match &self.settings.shape {
            Shape::Changes {
                prefix,
                first_commit_ts,
            } => Changes::new(batch, self.table.as_ref()?, prefix, *first_commit_ts)
                .map(Box::new)
                .map(Batch::Changes),
            Shape::Events => Events::new(batch, false).map(Box::new).map(Batch::Events),
            Shape::NumberedEvents => Events::new(batch, true).map(Box::new).map(Batch::Events),
        }
    }

    /// Adds how to write the rows of a table; for events it is the table of `row`.
    pub fn add_table(&mut self, table: Table, row: Option<(&Batch, usize)>) -> Result<()> {
        match row {
            Some((Batch::Events(events), row)) => {
                let mut identity = Vec::new();
                events.identity(row, &mut identity)?;
                self.numbers.insert(identity, self.tables.len());
                self.tables.push(EventTable::new(table));
                self.number = usize::MAX;
            }
            _ => self.table = Some(table),
        }
        Ok(())
    }

    pub fn clear_tables(&mut self) {
        self.tables.clear();
        self.numbers.clear();
        self.number = usize::MAX;
    }

    /// Writes rows from `start` on; returns the first row not written, and why; None: the end.
    pub fn write(&mut self, batch: &Batch, start: usize, now: i64) -> (usize, Option<Stop>) {
        let mut at = start;
        loop {
            match self.write_at(batch, at, now) {
                Ok(Some(size)) => at += size,
                Ok(None) => return (at, None),
                Err(refusal) => return (at, Some(self.stop(refusal))),
            }
        }
    }

    /// Writes the row at `at`; returns the number of rows of the batch that it takes, or None at
    /// the end.
    fn write_at(&mut self, batch: &Batch, at: usize, now: i64) -> Result<Option<usize>> {
        if self.messages.values.len() >= MAX_BYTES {
            return Err(FULL);
        }
        match batch {
            Batch::Changes(changes) if at < changes.rows() => {
                self.change(changes, at, now).map(Some)
            }
            Batch::Events(events) if at < events.rows() => {
                if !self.find(events, at)? {
                    return Err(UNKNOWN);
                }
                self.event(events, at, now).map(|()| Some(1))
            }
            _ => Ok(None),
        }
    }

    fn stop(&self, refusal: Refusal) -> Stop {
        let table = match self.tables.get(self.number) {
            Some(event) => Some(&event.table),
            None => self.table.as_ref(),
        };
        let column = refusal.column().zip(table);
        Stop {
            column: column.map(|(place, table)| table.columns[place].name.clone()),
            ..Stop::new(refusal.reason, refusal.text)
        }
    }

    fn change(&mut self, changes: &Changes, at: usize, now: i64) -> Result<usize> {
        let table = self.table.as_ref().ok_or(NO_OP)?;
        let change = changes.at(at, table, &mut self.text)?;
        let written = self.settings.ops.get(change.op).ok_or(NO_OP)?;
        let mut row = Writing {
            settings: &self.settings,
            printable: &self.printable,
            compress: self.compress.as_ref(),
            order: &mut self.order,
            permits: &mut self.permits,
            table,
            number: 0,
            scratch: &mut self.scratch,
            text: &mut self.text,
            messages: &mut self.messages,
            begun: &mut self.begun,
            last_number: &mut self.last_number,
            last_commit_ts: &mut self.last_commit_ts,
            now,
        };
        let position = change.position;
        let position = position.map(|(kind, at)| (row.order.kind(kind.as_bytes()), at));
        row.append(&change.row, change.op == "update", written, position)?;
        self.count(change.op);
        Ok(change.size)
    }

    /// Whether the table of an event is known.
    fn find(&mut self, events: &Events, at: usize) -> Result<bool> {
        events.op(at)?;
        self.text.clear();
        events.identity(at, &mut self.text)?;
        // Rows of one table usually follow each other.
        if self.number < self.tables.len() && self.text == self.identity {
            return Ok(true);
        }
        let Some(number) = self.numbers.get(&self.text) else {
            return Ok(false);
        };
        self.number = *number;
        std::mem::swap(&mut self.identity, &mut self.text);
        // Columns of another table have other places, even with equal ids.
        self.fields.iter_mut().for_each(Fields::clear);
        Ok(true)
    }

    fn event(&mut self, events: &Events, at: usize, now: i64) -> Result<()> {
        let op = events.op(at)?;
        let written = self.settings.ops.get(op).ok_or(NO_OP)?;
        let table = &self.tables[self.number];
        let wanted = match written.op {
            WrittenOp::Delete => Image::Before,
            _ => Image::After,
        };
        let row = events.row(at, table, &mut self.fields, wanted, op == "update")?;
        let position = events.position(at, &self.order);
        let mut writing = Writing {
            settings: &self.settings,
            printable: &self.printable,
            compress: self.compress.as_ref(),
            order: &mut self.order,
            permits: &mut self.permits,
            table: &table.table,
            number: self.number,
            scratch: &mut self.scratch,
            text: &mut self.text,
            messages: &mut self.messages,
            begun: &mut self.begun,
            last_number: &mut self.last_number,
            last_commit_ts: &mut self.last_commit_ts,
            now,
        };
        writing.append(&row, op == "update", written, position)?;
        self.count(op);
        Ok(())
    }

    fn count(&mut self, op: &str) {
        let note = self.settings.ops.get(op).and_then(|op| op.note.as_ref());
        let notes = [
            (note, 1),
            (Some(&self.settings.rounded), self.scratch.rounded),
            (self.settings.made.as_ref(), self.scratch.made),
        ];
        for (note, more) in notes {
            let Some(note) = note.filter(|_| more > 0) else {
                continue;
            };
            match self.counts.get_mut(note) {
                // Without a copy of the note for each row.
                Some(count) => *count += more,
                None => drop(self.counts.insert(note.clone(), more)),
            }
        }
    }
}
