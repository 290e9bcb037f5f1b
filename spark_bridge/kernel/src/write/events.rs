//! Rows of the events shape: images are variants, and each row describes its columns.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, PrimitiveArray, RecordBatch, StringArray, StructArray};

use crate::plan::Image;
use crate::refusal::{Refusal, Result};
use crate::variant::Cell;
use crate::variant::{Items, Variant};
use crate::write::arrow::{Named, Variants, bytes, number};
use crate::write::changes::small;
use crate::write::fields::{EventTable, Fields, NO_IMAGE};
use crate::write::identity::{Described, text};
use crate::write::key_order::{KeyOrder, Kind, Position};
use crate::write::message::{Facts, Row};

pub const NO_ROW: Refusal = Refusal::new("event is not a row", 0);
const EXTRA: Refusal = Refusal::new("unsupported key in extra", 0);

/// A batch of events.
pub struct Events {
    kind: StringArray,
    op: StringArray,
    tables: Tables,
    before: Option<Variants>,
    after: Option<Variants>,
    commit_ts: Option<PrimitiveArray<Int64Type>>,
    source_time: Option<PrimitiveArray<TimestampMicrosecondType>>,
    emit_time: Option<PrimitiveArray<TimestampMicrosecondType>>,
    extra: Option<Variants>,
    source: Option<Source>,
}

/// Identifies the table of a row.
enum Tables {
    Described(Box<[Option<StringArray>; 3]>, Box<Described>),
    Numbered(PrimitiveArray<Int32Type>),
}

struct Source {
    whole: StructArray,
    protocol: Option<StringArray>,
    topic: Option<StringArray>,
    path: Option<StringArray>,
    partition: Option<PrimitiveArray<Int32Type>>,
    offset: Option<PrimitiveArray<Int64Type>>,
    index: Option<PrimitiveArray<Int32Type>>,
}

/// An event whose images are variants.
pub struct EventRow<'a> {
    pub facts: Facts<'a>,
    before: Option<(Items<'a>, &'a [usize])>,
    after: Option<(Items<'a>, &'a [usize])>,
}

impl Row for EventRow<'_> {
    fn facts(&self) -> &Facts<'_> {
        &self.facts
    }

    fn has(&self, image: Image) -> bool {
        self.image(image).is_some()
    }

    fn cell(&self, image: Image, place: usize) -> Result<Cell<'_>> {
        let (items, fields) = self.image(image).ok_or(NO_IMAGE)?;
        items.value(fields[place])?.cell()
    }
}

impl<'a> EventRow<'a> {
    fn image(&self, image: Image) -> Option<&(Items<'a>, &'a [usize])> {
        match image {
            Image::Before => self.before.as_ref(),
            Image::After => self.after.as_ref(),
        }
    }
}

impl Events {
    /// None if columns have other types.
    pub fn new(batch: &RecordBatch, numbered: bool) -> Option<Self> {
        let named = Named(batch);
        let tables = if numbered {
            Tables::Numbered(named.int("table_number")??)
        } else {
            let names = [
                named.text("database")?,
                named.text("schema")?,
                named.text("table")?,
            ];
            // Rows name no plan: what identifies their table is compared as bytes.
            let described = Described::new(named.list("columns")??, named.list("key_columns")?)?;
            Tables::Described(Box::new(names), Box::new(described))
        };
        Some(Self {
            kind: named.text("kind")??,
            op: named.text("op")??,
            tables,
            before: named.variants("before")?,
            after: named.variants("after")?,
            commit_ts: named.long("commit_ts")?,
            source_time: named.instant("source_time")?,
            emit_time: named.instant("emit_time")?,
            extra: named.variants("extra")?,
            source: match named.structs("_source")? {
                Some(whole) => Some(Source::new(whole)?),
                None => None,
            },
        })
    }

    pub fn rows(&self) -> usize {
        self.kind.len()
    }

    /// The operation of a row.
    pub fn op(&self, row: usize) -> Result<&str> {
        if bytes(&self.kind, row) != Some(b"row") {
            return Err(NO_ROW);
        }
        let op = bytes(&self.op, row).ok_or(NO_ROW)?;
        std::str::from_utf8(op).map_err(|_| NO_ROW)
    }

    /// Appends bytes that identify a row's table.
    pub fn identity(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.tables {
            Tables::Described(names, described) => {
                for array in names.iter() {
                    text(array.as_ref(), row, out);
                }
                text(self.protocol(row), row, out);
                described.append(row, out).ok_or(NO_ROW)
            }
            Tables::Numbered(numbers) => {
                let number = small(numbers, row).ok_or(NO_ROW)?;
                out.extend_from_slice(&number.to_le_bytes());
                Ok(())
            }
        }
    }

    fn protocol(&self, row: usize) -> Option<&StringArray> {
        let source = self.source.as_ref()?;
        source
            .whole
            .is_valid(row)
            .then_some(source.protocol.as_ref())?
    }

    /// A row with its images; refuses images that it must not have.
    pub fn row<'a>(
        &'a self,
        row: usize,
        table: &EventTable,
        fields: &'a mut [Fields; 2],
        wanted: Image,
        other: bool,
    ) -> Result<EventRow<'a>> {
        let [before, after] = [&self.before, &self.after].map(|all| all.as_ref()?.get(row));
        let (has, has_other) = match wanted {
            Image::Before => (before.is_some(), after.is_some()),
            Image::After => (after.is_some(), before.is_some()),
        };
        // An insert with a before image contradicts itself.
        if !has || (has_other && !other) {
            return Err(NO_IMAGE);
        }
        let [of_before, of_after] = fields;
        let commit_ts = number(self.commit_ts.as_ref(), row);
        let mut facts = Facts {
            commit_ts,
            source_time: number(self.source_time.as_ref(), row),
            emit_time: number(self.emit_time.as_ref(), row),
            ..Facts::default()
        };
        let extra = self.extra.as_ref().and_then(|all| all.get(row));
        if let Some(extra) = extra.filter(|extra| extra.is_object()) {
            facts.extra = Some(extra);
            // Completely, as a message may contain any part of it.
            check(extra, 0)?;
            let items = extra.items()?;
            // Images that are marked as partial are never written as complete ones.
            if items.find("partial")?.is_some() {
                return Err(EXTRA);
            }
            facts.sequence_commit = match items.find("sequence_commit")?.map(Variant::cell) {
                None => None,
                Some(Ok(Cell::Int(commit))) => Some(commit),
                Some(_) => return Err(EXTRA),
            };
        } else if let Some(extra) = extra {
            check(extra, 0)?;
        }
        Ok(EventRow {
            facts,
            before: before.map(|image| of_before.of(image, table)).transpose()?,
            after: after.map(|image| of_after.of(image, table)).transpose()?,
        })
    }

    /// The position of a row, for the order of changes.
    pub fn position<'a>(&'a self, row: usize, order: &KeyOrder) -> Option<(Kind, Position)> {
        if let Some(commit_ts) = number(self.commit_ts.as_ref(), row) {
            return Some((
                order.kind(b"commit_ts".as_slice()),
                [commit_ts, 0, 0, 0, 0, 0, 0],
            ));
        }
        let source = self
            .source
            .as_ref()
            .filter(|source| source.whole.is_valid(row))?;
        // Without an offset nothing orders the row.
        let offset = number(source.offset.as_ref(), row)?;
        let int = |array: &Option<PrimitiveArray<Int32Type>>| small(array.as_ref()?, row);
        let text = |array: &'a Option<StringArray>| {
            let text = array.as_ref().and_then(|array| bytes(array, row));
            text.unwrap_or(b"None")
        };
        let partition =
            int(&source.partition).map_or("None".to_owned(), |number| number.to_string());
        // Joined as in Python.
        let place = [
            text(&source.topic),
            text(&source.path),
            partition.as_bytes(),
        ]
        .join(&0);
        let index = int(&source.index).unwrap_or(0);
        Some((order.kind(place.as_slice()), [offset, index, 0, 0, 0, 0, 0]))
    }
}

/// Refuses a variant that is not completely readable.
fn check(variant: Variant, depth: usize) -> Result<()> {
    if depth > 100 {
        return Err(EXTRA);
    }
    match variant.cell()? {
        Cell::Nested(nested) => {
            let items = nested.items()?;
            (0..items.count).try_for_each(|number| check(items.value(number)?, depth + 1))
        }
        Cell::Text(text) => std::str::from_utf8(text).map(drop).map_err(|_| EXTRA),
        _ => Ok(()),
    }
}

impl Source {
    fn new(whole: StructArray) -> Option<Self> {
        let text = |name| match whole.column_by_name(name) {
            None => Some(None),
            Some(array) => array.as_string_opt().cloned().map(Some),
        };
        let int = |name| match whole.column_by_name(name) {
            None => Some(None),
            Some(array) => array.as_primitive_opt().cloned().map(Some),
        };
        let offset = match whole.column_by_name("offset") {
            None => None,
            Some(array) => Some(array.as_primitive_opt()?.clone()),
        };
        Some(Self {
            protocol: text("protocol")?,
            topic: text("topic")?,
            path: text("path")?,
            partition: int("partition")?,
            index: int("index")?,
            offset,
            whole: whole.clone(),
        })
    }
}
