//! One row's message, if its key comes in order.

use crate::refusal::{Refusal, Step};
use crate::write::key_text;
use crate::write::message::{Printing, Row, Scratch};
use crate::write::order::{Kind, Order, Position};
use crate::write::plan::{Image, Message, Settings, Table, Written};

pub const NO_OP: Refusal = Refusal::new("an operation that is not written", 0);
const NO_COMMIT_TS: Refusal = Refusal::new("a row without a commit_ts", 0);
const KEY_CHANGED: Refusal = Refusal::new("an update of the key, which is split", 0);
const DISORDER: Refusal = Refusal::new("a change out of order", 0);
const TOO_LARGE: Refusal = Refusal::new("a message that is too large", 0);
const NO_UTF8: Refusal = Refusal::new("text that is not UTF-8", 0);

/// Messages one behind the other.
#[derive(Default)]
pub struct Messages {
    pub values: Vec<u8>,
    pub ends: Vec<usize>,
    pub keys: Vec<u8>,
    /// None where a message has no key.
    pub key_ends: Vec<Option<usize>>,
    /// Of a topic.
    pub partitions: Vec<i32>,
}

/// What one row needs.
pub struct Writing<'a> {
    pub settings: &'a Settings,
    pub order: &'a mut Order,
    pub table: &'a Table,
    pub scratch: &'a mut Scratch,
    pub text: &'a mut Vec<u8>,
    pub messages: &'a mut Messages,
    pub now: i64,
}

impl Writing<'_> {
    pub fn append(
        &mut self,
        row: &impl Row,
        is_update: bool,
        written: &Written,
        position: Option<(Kind, Position)>,
    ) -> Step<()> {
        let message = self.table.messages.get(&written.op).ok_or(NO_OP)?;
        if self.settings.needs_commit_ts && row.facts().commit_ts.is_none() {
            return Err(NO_COMMIT_TS);
        }
        let partition = match &self.settings.partitions {
            Some(partitions) => Some(partitions.of(row, self.table, self.text)?),
            None => None,
        };
        self.check_key(row, is_update && self.settings.splits, position)?;
        let (value, key) = (self.messages.values.len(), self.messages.keys.len());
        let result = self.print(message, row, value, key);
        match result {
            Ok(()) => self.messages.partitions.extend(partition),
            Err(_) => {
                self.messages.values.truncate(value);
                self.messages.keys.truncate(key);
            }
        }
        result
    }

    /// Refuses changes out of order, and those of a key where these are split.
    fn check_key(
        &mut self,
        row: &impl Row,
        splits: bool,
        position: Option<(Kind, Position)>,
    ) -> Step<()> {
        let position = position.filter(|_| self.settings.ordered);
        let is_pair = row.has(Image::Before) && row.has(Image::After);
        if self.table.keys.is_empty() || (position.is_none() && !(splits && is_pair)) {
            return Ok(());
        }
        let image = match row.has(Image::After) {
            true => Image::After,
            false => Image::Before,
        };
        self.text.clear();
        self.key(row, image)?;
        let end = self.text.len();
        if is_pair {
            self.key(row, Image::Before)?;
        }
        let (key, previous) = self.text.split_at(end);
        let has_changed = is_pair && key != previous;
        if has_changed && splits {
            return Err(KEY_CHANGED);
        }
        if let Some((kind, position)) = position {
            let mut check = |key| self.order.check(key, kind, position);
            check(key).map_err(|_| DISORDER)?;
            // A change of the key moves the row: of both its places it is a change.
            if has_changed {
                check(previous).map_err(|_| DISORDER)?;
            }
        }
        Ok(())
    }

    fn key(&mut self, row: &impl Row, image: Image) -> Step<()> {
        for name in &self.table.name {
            self.text.extend_from_slice(name.as_bytes());
            self.text.push(0);
        }
        for (number, place) in self.table.keys.iter().enumerate() {
            if number > 0 {
                self.text.push(0);
            }
            let printer = &self.table.columns[*place].printer;
            key_text::append(printer, row.cell(image, *place)?, self.text)?;
        }
        Ok(())
    }

    fn print(&mut self, message: &Message, row: &impl Row, value: usize, key: usize) -> Step<()> {
        let mut printing = Printing {
            table: self.table,
            zone: &self.settings.zone,
            now: self.now,
            scratch: self.scratch,
        };
        let Messages {
            values,
            ends,
            keys,
            key_ends,
            ..
        } = &mut *self.messages;
        printing.append(&message.value, row, values)?;
        if let Some(parts) = &message.key {
            printing.append(parts, row, keys)?;
        }
        if values.len() - value + keys.len() - key > self.settings.max_bytes {
            return Err(TOO_LARGE);
        }
        for data in [&values[value..], &keys[key..]] {
            simdutf8::basic::from_utf8(data).map_err(|_| NO_UTF8)?;
        }
        if self.settings.lines {
            values.push(b'\n');
        }
        ends.push(values.len());
        key_ends.push(message.key.as_ref().map(|_| keys.len()));
        Ok(())
    }
}
