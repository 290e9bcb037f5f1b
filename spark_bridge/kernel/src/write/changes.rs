//! Rows of the changes shape: the columns of one table, and columns that describe the change.
//!
//! Two adjacent rows of an update are one change. A preimage without a postimage in the next row is
//! refused: the reference keeps it until the postimage arrives.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ListArray, PrimitiveArray, RecordBatch, StringArray, StructArray};

use crate::plan::Image;
use crate::refusal::{Refusal, Result};
use crate::variant::Cell;
use crate::write::arrow::{Column, Named, Variants, bytes, number, span};
use crate::write::key_order::Position;
use crate::write::key_text;
use crate::write::message::{Facts, Row};
use crate::write::plan::Table;

const NO_CHANGE: Refusal = Refusal::new("row is not a change", 0);
const UNUSUAL: Refusal = Refusal::new("row has an error, rescued values or absent columns", 0);
const ALONE: Refusal = Refusal::new("preimage is not followed by its postimage", 0);
const NO_COMMIT_TS: Refusal = Refusal::new("version is not a commit_ts", 0);

/// A batch of changes.
pub struct Changes {
    own: Vec<Column>,
    change_type: StringArray,
    commit_version: Option<PrimitiveArray<Int64Type>>,
    commit_timestamp: Option<PrimitiveArray<TimestampMicrosecondType>>,
    sequence: Option<Sequence>,
    absent: Option<ListArray>,
    corrupt: Option<StructArray>,
    rescued: Option<Variants>,
    first_commit_ts: i64,
}

struct Sequence {
    whole: StructArray,
    epoch: PrimitiveArray<Int32Type>,
    commit: PrimitiveArray<Int64Type>,
    rank: PrimitiveArray<Int32Type>,
    partition: PrimitiveArray<Int32Type>,
    offset: PrimitiveArray<Int64Type>,
    index: PrimitiveArray<Int32Type>,
    part: PrimitiveArray<Int32Type>,
}

/// A change, with its operation.
pub struct Change<'a> {
    pub op: &'static str,
    pub row: ChangeRow<'a>,
    /// Number of its rows.
    pub size: usize,
    /// The kind of its position (`_sequence` or `commit_ts`), and the position.
    pub position: Option<(&'static str, Position)>,
}

/// A change whose images are rows of the batch.
pub struct ChangeRow<'a> {
    own: &'a [Column],
    before: Option<usize>,
    after: Option<usize>,
    facts: Facts<'a>,
}

impl Row for ChangeRow<'_> {
    fn facts(&self) -> &Facts<'_> {
        &self.facts
    }

    fn has(&self, image: Image) -> bool {
        self.row(image).is_some()
    }

    fn cell(&self, image: Image, place: usize) -> Result<Cell<'_>> {
        let row = self.row(image).ok_or(NO_CHANGE)?;
        self.own[place].cell(row)
    }
}

impl ChangeRow<'_> {
    fn row(&self, image: Image) -> Option<usize> {
        match image {
            Image::Before => self.before,
            Image::After => self.after,
        }
    }
}

impl Changes {
    /// None if columns have other types.
    pub fn new(
        batch: &RecordBatch,
        table: &Table,
        prefix: &str,
        first_commit_ts: i64,
    ) -> Option<Self> {
        let named = Named(batch);
        let name = |name: &str| format!("{prefix}{name}");
        let own = table.columns.iter();
        let own = own.map(|column| {
            batch
                .column_by_name(&column.name)
                .map(|array| Column::new(array))
        });
        Some(Self {
            own: own.collect::<Option<_>>()?,
            change_type: named.text(&name("change_type"))??,
            commit_version: named.long(&name("commit_version"))?,
            commit_timestamp: named.instant(&name("commit_timestamp"))?,
            sequence: match named.structs(&name("sequence"))? {
                Some(whole) => Some(Sequence::new(whole)?),
                None => None,
            },
            absent: named.list(&name("absent"))?,
            corrupt: named.structs(&name("corrupt_record"))?,
            rescued: named.variants(&name("rescued"))?,
            first_commit_ts,
        })
    }

    pub fn rows(&self) -> usize {
        self.change_type.len()
    }

    /// The change whose first row is `row`.
    pub fn at(&self, row: usize, table: &Table, scratch: &mut Vec<u8>) -> Result<Change<'_>> {
        self.check(row)?;
        let (op, before, after) = match bytes(&self.change_type, row) {
            Some(b"insert") => ("insert", None, Some(row)),
            Some(b"delete") => ("delete", Some(row), None),
            Some(b"update_postimage") => ("upsert", None, Some(row)),
            Some(b"update_preimage") => {
                self.check_pair(row, table, scratch)?;
                ("update", Some(row), Some(row + 1))
            }
            _ => return Err(NO_CHANGE),
        };
        let last = after.or(before).unwrap_or(row);
        let commit_ts = number(self.commit_version.as_ref(), last);
        // The versions of a Delta table are small numbers: they would be dates of 1970.
        if commit_ts.is_some_and(|commit_ts| commit_ts < self.first_commit_ts) {
            return Err(NO_COMMIT_TS);
        }
        let sequence = self
            .sequence
            .as_ref()
            .filter(|all| all.whole.is_valid(last));
        let position = match sequence {
            Some(sequence) => Some(("_sequence", sequence.position(last))),
            None => commit_ts.map(|commit_ts| ("commit_ts", [commit_ts, 0, 0, 0, 0, 0, 0])),
        };
        let commit = sequence.and_then(|all| number(Some(&all.commit), last));
        let facts = Facts {
            commit_ts,
            sequence_commit: commit.filter(|commit| *commit != 0 && commit_ts.is_none()),
            source_time: number(self.commit_timestamp.as_ref(), last),
            ..Facts::default()
        };
        Ok(Change {
            op,
            row: ChangeRow {
                own: &self.own,
                before,
                after,
                facts,
            },
            size: last + 1 - row,
            position,
        })
    }

    fn check(&self, row: usize) -> Result<()> {
        let is_bad = self.corrupt.as_ref().is_some_and(|all| all.is_valid(row));
        let has_rescued = self
            .rescued
            .as_ref()
            .is_some_and(|all| all.get(row).is_some());
        // Bad rows, rescued values and absent columns have options that only the encoder knows.
        let absent = self.absent.as_ref().and_then(|all| span(all, row));
        if is_bad || has_rescued || absent.is_some_and(|absent| !absent.is_empty()) {
            return Err(UNUSUAL);
        }
        Ok(())
    }

    /// Refuses a preimage unless the next row is its postimage.
    fn check_pair(&self, row: usize, table: &Table, scratch: &mut Vec<u8>) -> Result<()> {
        let next = row + 1;
        if next >= self.rows() || bytes(&self.change_type, next) != Some(b"update_postimage") {
            return Err(ALONE);
        }
        self.check(next)?;
        let Some(sequence) = &self.sequence else {
            return Ok(());
        };
        match (sequence.pair(row), sequence.pair(next)) {
            (None, None) => return Ok(()),
            (one, other) if one != other => return Err(ALONE),
            // Such a sequence has the offset of one message, or no rank: its rows are one update.
            (Some([_, _, rank, _, offset, _]), _)
                if offset.unwrap_or(0) != 0 || rank.unwrap_or(0) == 0 =>
            {
                return Ok(());
            }
            _ => {}
        }
        // All changes of a commit_ts have this sequence, so compare the keys.
        scratch.clear();
        for place in &table.keys {
            let printer = &table.columns[*place].printer;
            let start = scratch.len();
            key_text::append(printer, self.own[*place].cell(row)?, scratch)?;
            let middle = scratch.len();
            key_text::append(printer, self.own[*place].cell(next)?, scratch)?;
            if scratch[start..middle] != scratch[middle..] {
                return Err(ALONE);
            }
        }
        Ok(())
    }
}

impl Sequence {
    fn new(whole: StructArray) -> Option<Self> {
        let long = |name| whole.column_by_name(name)?.as_primitive_opt().cloned();
        let int = |name| whole.column_by_name(name)?.as_primitive_opt().cloned();
        Some(Self {
            epoch: int("epoch")?,
            commit: long("commit")?,
            rank: int("rank")?,
            partition: int("partition")?,
            offset: long("offset")?,
            index: int("index")?,
            part: int("part")?,
            whole: whole.clone(),
        })
    }

    /// The parts of `_sequence` that are equal in both rows of an update.
    fn pair(&self, row: usize) -> Option<[Option<i64>; 6]> {
        self.whole.is_valid(row).then(|| {
            [
                small(&self.epoch, row),
                number(Some(&self.commit), row),
                small(&self.rank, row),
                small(&self.partition, row),
                number(Some(&self.offset), row),
                small(&self.index, row),
            ]
        })
    }

    fn position(&self, row: usize) -> Position {
        [
            small(&self.epoch, row),
            number(Some(&self.commit), row),
            small(&self.rank, row),
            small(&self.partition, row),
            number(Some(&self.offset), row),
            small(&self.index, row),
            small(&self.part, row),
        ]
        .map(Option::unwrap_or_default)
    }
}

pub fn small(array: &PrimitiveArray<Int32Type>, row: usize) -> Option<i64> {
    (!array.is_null(row)).then(|| array.value(row).into())
}
