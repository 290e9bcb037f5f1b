//! Rows of messages that name their writer schema: Avro with a schema registry.

use std::sync::Arc;

use crate::avro::Datum;
use crate::json::{Kind, Token};
use crate::plan::{Layout, Op, Role, Slot};
use crate::read::batch::Place;
use crate::read::envelope::Envelope;
use crate::read::kernel::{Kernel, Outcome};
use crate::read::plans::{Plan, RowPlan};
use crate::refusal::{Reason, Refusal, Result};
use crate::text::utf8;

/// Larger documents are not reused for the next message.
const KEPT_BYTES: usize = 1 << 20;

const UNKNOWN: Refusal = Refusal::of_whole(Reason::UnknownWriter, "unknown writer schema");

/// In the place of a key's schema, of a message without key.
const NO_KEY: usize = usize::MAX;

impl Kernel {
    /// Adds a writer schema of values; None: the reference reads its messages.
    pub fn add_writer(&mut self, head: &[u8], description: Option<&str>) -> Result<(), String> {
        if self.writers.are_many() {
            // All at once, as for plans: they are added again, at one message each.
            self.clear_plans();
            self.writers.clear();
            self.settings.layouts.clear();
        }
        self.writers
            .add(head, description, &mut self.settings.layouts)
    }

    /// Adds a writer schema of keys; None: the reference reads messages with such keys.
    pub fn add_key_writer(&mut self, head: &[u8], schema: Option<&str>) -> Result<(), String> {
        self.writers.add_key(head, schema)
    }

    /// Reads a message; its texts are collected in a document, to which tokens refer.
    pub(super) fn framed(
        &mut self,
        value: &[u8],
        key: Option<&[u8]>,
        place: Place,
    ) -> Result<Outcome> {
        let number = self.writers.find(value)?.ok_or(UNKNOWN)?;
        let mut document = std::mem::take(&mut self.document);
        document.clear();
        let outcome = self.framed_in(number, value, key, place, &mut document);
        if document.capacity() <= KEPT_BYTES {
            self.document = document;
        }
        outcome
    }

    fn framed_in(
        &mut self,
        number: usize,
        value: &[u8],
        key: Option<&[u8]>,
        place: Place,
        document: &mut Vec<u8>,
    ) -> Result<Outcome> {
        let guess = self.writers.get(number).guess.clone();
        let guess = guess.as_ref();
        let rows = guess.map(|plan| &*plan.rows);
        self.open_framed(number, value, key, rows, document)?;
        let layout = self.envelope.layout;
        let Some(op) = self.envelope.op else {
            return Err(Refusal::new("missing operation", 0));
        };
        let length = document.len();
        let text = utf8(document)?;
        if let Some(plan) = guess
            && !self
                .guess
                .as_ref()
                .is_some_and(|last| Arc::ptr_eq(last, plan))
        {
            // The filters need no look-up of a table with a plan.
            self.guess = Some(Arc::clone(plan));
        }
        if let Some(outcome) = self.refused_by_filters(layout, text)? {
            return Ok(outcome);
        }
        if let Some(plan) = guess
            && plan.has_name(self.envelope.name(text))
            && self.is_of(plan)
        {
            self.check_row(text)?;
            self.rows(plan, layout, op, text, place)?;
            return Ok(Outcome::Read);
        }
        let plans = self.plans.of(self.envelope.name(text)).to_vec();
        for plan in plans {
            if !self.is_of(&plan) {
                continue;
            }
            // The envelope's texts stay; images are read anew.
            document.truncate(length);
            self.envelope.clear_images();
            let slots = Arc::clone(&self.writers.program(number)?.slots);
            for (slot, at) in &self.parts {
                let mut datum = Datum::at(value, *at);
                self.envelope
                    .row_part(&slots.0[*slot], &plan.rows, &mut datum, document)
                    .inspect_err(|refusal| self.current.note_column(refusal, &plan.rows))?;
            }
            let text = utf8(document)?;
            self.check_row(text)?;
            self.rows(&plan, layout, op, text, place)?;
            self.writers.guess(number, Some(plan));
            return Ok(Outcome::Read);
        }
        Ok(Outcome::Unknown)
    }

    /// Refuses texts that stand for an unknown value, and images that do not make a row.
    fn check_row(&self, text: &str) -> Result<()> {
        let layout = &self.settings.layouts[self.envelope.layout];
        if layout.has_foreign_text(text) {
            return Err(Refusal::new("text stands for an unknown value", 0));
        }
        self.envelope.check_images(layout)
    }

    /// Whether the plan is for the schema key just read.
    fn is_of(&self, plan: &Plan) -> bool {
        plan.layout == self.envelope.layout
            && plan.writers == self.envelope.writers
            && plan.key.record == self.envelope.schema_key
            && plan.holds(&self.envelope)
    }

    /// Reads all fields, and the images by the guess; otherwise they are skipped.
    fn open_framed(
        &mut self,
        number: usize,
        value: &[u8],
        key: Option<&[u8]>,
        guess: Option<&RowPlan>,
        document: &mut Vec<u8>,
    ) -> Result<()> {
        let size = value.len() + key.map_or(0, <[u8]>::len);
        // The document may take 32 bytes per byte: numbers of a message have up to twenty digits.
        if value.len() > self.settings.max_message_bytes || size > u32::MAX as usize / 32 {
            return Err(Refusal::of(
                Reason::Size,
                "message is longer than maxMessageBytes",
                0,
            ));
        }
        let slots = Arc::clone(&self.writers.program(number)?.slots);
        self.parts.clear();
        let envelope = &mut self.envelope;
        let head = {
            let writer = self.writers.get(number);
            let program = self.writers.program(number)?;
            let layout = &self.settings.layouts[program.layout];
            envelope.start(layout);
            if let Some(names) = &program.table {
                let tokens = names.each_ref().map(|name| {
                    let name = name.as_ref()?;
                    let start = document.len();
                    document.extend_from_slice(name.as_bytes());
                    Some(Token::new(Kind::Text, start, document.len()))
                });
                let [database, schema, table] = tokens.map(Option::unwrap_or_default);
                (envelope.database, envelope.schema, envelope.table) = (database, schema, table);
            }
            envelope.writers = [number, NO_KEY];
            writer.head.len()
        };
        let layout = envelope.layout;
        if self.settings.layouts[layout].keyed {
            self.open_key(number, key)?;
        }
        let (envelope, layout) = (&mut self.envelope, &self.settings.layouts[layout]);
        if !self
            .slots
            .as_ref()
            .is_some_and(|last| Arc::ptr_eq(last, &slots))
        {
            // Slots of other fields have other types.
            envelope.previous_values.clear();
            self.slots = Some(Arc::clone(&slots));
        }
        let row = &self.writers.program(number)?.row[..];
        let mut datum = Datum::at(value, head);
        let mut column = 0;
        for (place, slot) in slots.0.iter().enumerate() {
            if !slot.has_row() {
                // Half of the fields of a message; looking at one without a plan needs them.
                if slot.is_extra && !self.prints && guess.is_some() {
                    slot.type_.skip(&mut datum)?;
                    continue;
                }
                envelope.field(layout, slot, &mut datum, self.prints, document)?;
                continue;
            }
            self.parts.push((place, datum.position()));
            if let Some(plan) = guess {
                envelope
                    .row_part(slot, plan, &mut datum, document)
                    .inspect_err(|refusal| self.current.note_column(refusal, plan))?;
                continue;
            }
            let columns = match slot.role {
                Role::Columns => {
                    column += slot.columns;
                    &row[column - slot.columns..column]
                }
                _ if slot.is_null(&mut datum)? => continue,
                _ => row,
            };
            for field in columns {
                field.type_.skip(&mut datum)?;
            }
        }
        // Cut or joined messages would otherwise look like whole ones.
        if !datum.is_at_end() {
            return datum.refuse("unexpected data after the message");
        }
        // Without it, the reference may find it elsewhere, in another unit; 0 may mean none.
        let lacks = |has_time: bool, time: Option<i64>| has_time && time.unwrap_or(0) == 0;
        if lacks(layout.has_source_time, envelope.source_time)
            || lacks(layout.has_other_time, envelope.other_time)
            || lacks(envelope.commit_ts.is_some(), envelope.commit_ts)
        {
            return Err(Refusal::new("missing time", 0));
        }
        if !layout.has_op {
            envelope.op = layout.ops.get("").copied();
        }
        if layout.has_deleted {
            match (envelope.is_deleted, envelope.op) {
                (true, _) => envelope.op = Some(Op::Delete),
                (false, Some(Op::Delete)) => return Err(Refusal::new("row is not deleted", 0)),
                _ => {}
            }
        }
        let table = self.writers.program(number)?.table.as_ref();
        table.map_or(Ok(()), |names| envelope.check_names(names, document))
    }

    /// Checks the key of a message whose value has this schema, and remembers the key's schema.
    fn open_key(&mut self, number: usize, key: Option<&[u8]>) -> Result<()> {
        let Some(key) = key else {
            return Ok(());
        };
        let schema = self.writers.key(number, key)?.ok_or(UNKNOWN)?;
        let mut datum = Datum::at(key, schema.head.len());
        schema.type_.skip(&mut datum)?;
        if !datum.is_at_end() {
            return datum.refuse("unexpected data after the key");
        }
        self.envelope.writers[1] = schema.number;
        Ok(())
    }

    /// The columns of a message's writer schema, for a plan.
    pub(super) fn row_of(&mut self, value: &[u8]) -> Option<Arc<[crate::avro::Field]>> {
        let number = self.writers.find(value).ok().flatten()?;
        let program = self.writers.program(number).ok()?;
        Some(Arc::clone(&program.row))
    }

    /// Reads the envelope of a message; returns layout and document.
    pub(super) fn look_framed(
        &mut self,
        value: &[u8],
        key: Option<&[u8]>,
    ) -> Result<(usize, String)> {
        let number = self.writers.find(value)?.ok_or(UNKNOWN)?;
        let mut document = Vec::new();
        self.open_framed(number, value, key, None, &mut document)?;
        Ok((self.envelope.layout, utf8(&document)?.to_owned()))
    }
}

impl Slot {
    /// Reads the branch of an image.
    fn is_null(&self, datum: &mut Datum) -> Result<bool> {
        match self.null {
            Some(branch) => Ok(datum.choice(2)? == branch),
            None => Ok(false),
        }
    }
}

impl Envelope {
    /// Reads an image, or a part of it.
    fn row_part(
        &mut self,
        slot: &Slot,
        plan: &RowPlan,
        datum: &mut Datum,
        document: &mut Vec<u8>,
    ) -> Result<()> {
        let images = match slot.role {
            Role::Before => &mut self.images_before,
            _ => &mut self.images_after,
        };
        let mut cells = &plan.record[..];
        let tokens = if slot.role == Role::Columns {
            let first = self.columns_read;
            self.columns_read += slot.columns;
            cells = cells
                .get(first..self.columns_read)
                .ok_or(Refusal::new("plan is of another schema", 0))?;
            match first {
                0 => images.begin(plan.columns.len()),
                _ => &mut images.tokens,
            }
        } else if slot.is_null(datum)? {
            return Ok(());
        } else {
            images.begin(plan.columns.len())
        };
        for cell in cells {
            cell.read(datum, document, tokens)?;
        }
        Ok(())
    }

    /// Refuses names that the reference may take from elsewhere.
    ///
    /// The topic's names depend on the dots in that of the table.
    fn check_names(&self, given: &[Option<Arc<str>>; 3], document: &[u8]) -> Result<()> {
        for (token, given) in [self.database, self.schema, self.table].iter().zip(given) {
            if given.is_none() && token.bytes(document).is_empty() {
                return Err(Refusal::new("missing name", 0));
            }
        }
        if given[2].is_none() && self.table.bytes(document).contains(&b'.') {
            return Err(Refusal::new("name has a dot", 0));
        }
        Ok(())
    }

    /// Refuses images that the operation does not have, and a row without image.
    fn check_images(&self, layout: &Layout) -> Result<()> {
        let Some(op) = self.op else {
            return Err(Refusal::new("missing operation", 0));
        };
        let images = [
            (Role::Before, &self.images_before),
            (Role::After, &self.images_after),
        ];
        let mut needed = &self.images_before;
        for (role, images) in images {
            let is_expected = layout.whole(op, role).is_some();
            // A delete may have its row twice.
            let is_second = op == Op::Delete && role == Role::Before;
            if images.count() > 0 && !is_expected && !is_second {
                return Err(Refusal::new("unexpected image for the operation", 0));
            }
            if role == Role::After && is_expected {
                needed = images;
            }
        }
        if !needed.are_whole() {
            return Err(Refusal::new("row has no image", 0));
        }
        Ok(())
    }
}
