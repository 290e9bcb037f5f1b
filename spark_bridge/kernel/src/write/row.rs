//! The message of one row, after the check of the order of its key.

use crate::plan::Image;
use crate::refusal::{Refusal, Result};
use crate::text::Printable;
use crate::text::bytes::encode_base64;
use crate::write::batches::{Begun, PartialMessage};
use crate::write::compress::Compress;
use crate::write::generated_ts::WithCommitTs;
use crate::write::key_order::{KeyOrder, Kind, Position};
use crate::write::key_text;
use crate::write::message::{Printing, Row};
use crate::write::permits::Permits;
use crate::write::plan::{Line, MessagePlan, Settings, Table, Wire, Written};
use crate::write::style::{Scratch, Style};

pub const NO_OP: Refusal = Refusal::new("operation is not written", 0);
const KEY_CHANGED: Refusal = Refusal::new("update changes the key and must be split", 0);
const DISORDER: Refusal = Refusal::new("change is out of order", 0);
const TOO_LARGE: Refusal = Refusal::new("message is too large", 0);
const NO_LINE: Refusal = Refusal::new("value may contain a line break", 0);
const NO_UTF8: Refusal = Refusal::new("invalid UTF-8", 0);

/// Concatenated messages.
#[derive(Default)]
pub struct Messages {
    pub values: Vec<u8>,
    pub ends: Vec<usize>,
    pub keys: Vec<u8>,
    /// None for a message without a key.
    pub key_ends: Vec<Option<usize>>,
    /// Only for topics.
    pub partitions: Vec<i32>,
}

/// The context for writing one row.
pub struct Writing<'a> {
    pub settings: &'a Settings,
    pub printable: &'a Printable,
    pub compress: Option<&'a Compress>,
    pub order: &'a mut KeyOrder,
    pub permits: &'a mut Permits,
    pub table: &'a Table,
    /// Index of the table.
    pub number: usize,
    pub scratch: &'a mut Scratch,
    pub text: &'a mut Vec<u8>,
    pub messages: &'a mut Messages,
    pub begun: &'a mut Begun,
    pub last_number: &'a mut i64,
    pub last_commit_ts: &'a mut i64,
    pub now: i64,
}

impl Writing<'_> {
    /// Appends a row; generates a `commit_ts` if it needs one and has none.
    pub fn append(
        &mut self,
        row: &impl Row,
        is_update: bool,
        written: &Written,
        position: Option<(Kind, Position)>,
    ) -> Result<()> {
        let row = WithCommitTs::new(row, self.settings, *self.last_commit_ts)?;
        self.append_with_commit_ts(&row, is_update, written, position)?;
        self.scratch.made = usize::from(row.is_made);
        let commit_ts = row.facts.commit_ts.unwrap_or(0);
        *self.last_commit_ts = commit_ts.max(*self.last_commit_ts);
        Ok(())
    }

    fn append_with_commit_ts(
        &mut self,
        row: &impl Row,
        is_update: bool,
        written: &Written,
        position: Option<(Kind, Position)>,
    ) -> Result<()> {
        let message = self.table.messages.get(&written.op).ok_or(NO_OP)?;
        let partition = match &self.settings.partitions {
            Some(partitions) => Some(partitions.of(row, self.table, self.text)?),
            None => None,
        };
        let of_rows = match &self.table.version {
            Some(version) => {
                let version = version.of(row.facts())?;
                let of_rows = (self.number, partition.unwrap_or(0), version);
                // Before the order of keys, which remembers the row.
                self.permits.check(of_rows, self.now)?;
                Some(of_rows)
            }
            None => None,
        };
        self.check_key(row, is_update && self.settings.splits, position)?;
        let (value, key) = (self.messages.values.len(), self.messages.keys.len());
        let result = self.print(message, row, value, key);
        match result {
            Ok(()) => {
                let has_key = message.key.is_some();
                self.finish(value, key, has_key, message.line, partition);
                of_rows.inspect(|of_rows| self.permits.count(*of_rows));
            }
            Err(_) => {
                // Half a message must not stay before the reference's.
                self.messages.values.truncate(value);
                self.messages.keys.truncate(key);
            }
        }
        result
    }

    /// Refuses changes out of order, and updates of the key if these must be split.
    fn check_key(
        &mut self,
        row: &impl Row,
        splits: bool,
        position: Option<(Kind, Position)>,
    ) -> Result<()> {
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
            // An update of the key is a change of the old and of the new key.
            if has_changed {
                check(previous).map_err(|_| DISORDER)?;
            }
        }
        Ok(())
    }

    fn key(&mut self, row: &impl Row, image: Image) -> Result<()> {
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

    fn print(
        &mut self,
        message: &MessagePlan,
        row: &impl Row,
        value: usize,
        key: usize,
    ) -> Result<()> {
        let mut printing = Printing {
            table: self.table,
            style: Style {
                zone: &self.settings.zone,
                printable: self.printable,
                wire: message.wire,
            },
            now: self.now,
            last_number: *self.last_number,
            scratch: self.scratch,
        };
        let Messages { values, keys, .. } = &mut *self.messages;
        if let Some(parts) = &message.key {
            printing.append(parts, row, keys)?;
        }
        // Rounding is counted once, as values of the key are also in the value.
        printing.scratch.rounded = 0;
        printing.append(&message.value, row, values)?;
        let last_number = printing.last_number;
        // JSON is checked as a whole, which is cheaper than each text.
        // Texts in Avro were checked one by one.
        for data in [&values[value..], &keys[key..]] {
            if message.wire != Wire::Avro {
                simdutf8::basic::from_utf8(data).map_err(|_| NO_UTF8)?;
            }
        }
        if let Some(compress) = self.compress {
            compress.replace(value, values)?;
            if message.compresses_key {
                compress.replace(key, keys)?;
            }
        }
        // After compression, as the broker compares what it receives.
        if values.len() - value + keys.len() - key > self.settings.max_bytes {
            return Err(TOO_LARGE);
        }
        if self.settings.lines {
            check_line(message, &values[value..], self.compress.is_some())?;
        }
        // Only now: a refused row has taken no number.
        *self.last_number = last_number;
        Ok(())
    }

    /// Ends a message, or adds its event to the unfinished message of its partition.
    fn finish(
        &mut self,
        value: usize,
        key: usize,
        has_key: bool,
        line: Line,
        partition: Option<i32>,
    ) {
        let Some(limits) = &self.settings.batches else {
            return self.end(value, key, has_key, line, partition);
        };
        let (keys, values) = (&mut self.messages.keys, &mut self.messages.values);
        let of_key = keys.split_off(key);
        let of_value = values.split_off(value);
        let number = partition.unwrap_or(0);
        let is_full =
            |partial: &PartialMessage| partial.is_full_for(of_key.len(), of_value.len(), limits);
        if self.begun.get(&number).is_some_and(is_full) {
            self.end_partial(number, line, partition);
        }
        let partial = self.begun.entry(number).or_default();
        partial.add(&of_key, &of_value, limits);
        if partial.rows >= limits.max_rows {
            self.end_partial(number, line, partition);
        }
    }

    fn end_partial(&mut self, number: i32, line: Line, partition: Option<i32>) {
        let Some(partial) = self.begun.get_mut(&number) else {
            return;
        };
        let (value, key) = (self.messages.values.len(), self.messages.keys.len());
        self.messages.values.extend_from_slice(&partial.value);
        self.messages.keys.extend_from_slice(&partial.key);
        partial.rows = 0;
        partial.key.clear();
        partial.value.clear();
        self.end(value, key, true, line, partition);
    }

    /// Ends the message whose value and key begin at these positions.
    fn end(&mut self, value: usize, key: usize, has_key: bool, line: Line, partition: Option<i32>) {
        let Messages {
            values,
            ends,
            keys,
            key_ends,
            partitions,
        } = &mut *self.messages;
        if self.settings.lines {
            if line == Line::Message {
                wrap(has_key.then(|| &keys[key..]), value, values, self.text);
            }
            values.push(b'\n');
            keys.truncate(key);
        }
        ends.push(values.len());
        key_ends.push(has_key.then_some(keys.len()));
        partitions.extend(partition);
    }
}

/// Refuses values that are not a line, and compressed ones that look like one.
fn check_line(message: &MessagePlan, value: &[u8], is_compressed: bool) -> Result<()> {
    let has_foreign_text = match message.line {
        Line::Value => memchr::memchr2(b'\n', b'\r', value).is_some(),
        Line::Message => is_compressed && value.first() == Some(&b'{'),
    };
    if has_foreign_text {
        Err(NO_LINE)
    } else {
        Ok(())
    }
}

/// Replaces the value that begins at a position by a line with the whole message.
fn wrap(key: Option<&[u8]>, value: usize, values: &mut Vec<u8>, text: &mut Vec<u8>) {
    text.clear();
    text.extend_from_slice(&values[value..]);
    values.truncate(value);
    match key {
        Some(key) => {
            values.extend_from_slice(b"{\"key\":\"");
            encode_base64(key, values);
            values.push(b'"');
        }
        None => values.extend_from_slice(b"{\"key\":null"),
    }
    values.extend_from_slice(b",\"value\":\"");
    encode_base64(text, values);
    values.extend_from_slice(b"\"}");
}
