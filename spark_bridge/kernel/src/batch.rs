//! The rows of a batch while it grows: the table's columns, and what each row is.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, ListArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use serde::Deserialize;

use crate::cells::Cells;
use crate::columns::{Column, Target};
use crate::event_columns::{self, EventContent, EventOrigin, Extras};
use crate::event_images::EventImages;
use crate::refusal::Step;

/// What a row is; the names are in `_change_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Insert,
    Preimage,
    Postimage,
    Delete,
}

impl Change {
    fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Preimage => "update_preimage",
            Self::Postimage => "update_postimage",
            Self::Delete => "delete",
        }
    }

    fn rank(self) -> i32 {
        i32::from(self != Self::Delete)
    }

    fn part(self) -> i32 {
        i32::from(!matches!(self, Self::Preimage | Self::Delete))
    }
}

/// A column of the batch, as the bridge describes it.
#[derive(Clone, Deserialize)]
pub struct Output {
    name: String,
    #[serde(flatten)]
    content: Content,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "content", rename_all = "snake_case")]
enum Content {
    /// A column of the table.
    Value {
        #[serde(flatten)]
        target: Target,
        nullable: bool,
    },
    ChangeType,
    CommitVersion,
    CommitTimestamp,
    Sequence,
    Absent,
    /// Numbers of messages, from 0 on.
    Message,
    /// Numbers of rows in their messages.
    Index,
    Offset,
    Before,
    After,
    Event {
        column: EventContent,
    },
}

/// What the rows of one message have in common.
#[derive(Clone)]
pub struct Origin {
    pub message: i32,
    /// The number of the first row in its message.
    pub index: usize,
    pub offset: Option<i64>,
    pub commit_ts: Option<i64>,
    pub source_time: Option<i64>,
    pub keyed: bool,
    pub orders_by_source_time: bool,
    pub unit: i64,
    pub absent: Arc<[String]>,
    pub event: Option<EventOrigin>,
    /// Of a row, besides its text and binary values.
    pub row_bytes: usize,
}

struct Row {
    change: Change,
    index: i32,
    origin: u32,
}

pub struct Batch {
    outputs: Vec<Output>,
    pub columns: Vec<Column>,
    rows: Vec<Row>,
    origins: Vec<Origin>,
    row_bytes: usize,
    pub messages: i32,
    /// Of events, if they have any.
    pub images: Option<EventImages>,
    pub extras: Extras,
}

impl Batch {
    pub fn new(outputs: Vec<Output>, images: Option<EventImages>) -> Self {
        let columns = outputs
            .iter()
            .filter_map(|output| match &output.content {
                Content::Value { target, nullable } => Some(Column::new(target, *nullable)),
                _ => None,
            })
            .collect();
        Self {
            outputs,
            columns,
            rows: Vec::new(),
            origins: Vec::new(),
            row_bytes: 0,
            messages: 0,
            images,
            extras: Extras::default(),
        }
    }

    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    pub fn size(&self) -> usize {
        self.row_bytes
            + self.columns.iter().map(Column::size).sum::<usize>()
            + self.images.as_ref().map_or(0, EventImages::size)
    }

    pub fn shows_extra(&self) -> bool {
        let is_extra = |output: &Output| {
            let column = EventContent::Extra;
            matches!(output.content, Content::Event { column: some } if some == column)
        };
        self.outputs.iter().any(is_extra)
    }

    pub fn begin(&mut self, origin: Origin) {
        self.origins.push(origin);
    }

    #[allow(clippy::cast_possible_truncation)]
    pub fn push(&mut self, change: Change, index: usize) {
        let origin = self.origins.len() as u32 - 1;
        self.row_bytes += self.origins[origin as usize].row_bytes;
        self.rows.push(Row {
            change,
            index: (self.origins[origin as usize].index + index) as i32,
            origin,
        });
    }

    /// Takes back all rows but the first ones.
    pub fn truncate(&mut self, rows: usize) {
        let removed = self.rows.drain(rows.min(self.rows.len())..);
        let bytes: usize = removed
            .map(|row| self.origins[row.origin as usize].row_bytes)
            .sum();
        self.row_bytes -= bytes;
        for column in &mut self.columns {
            column.truncate(rows);
        }
        if let Some(images) = &mut self.images {
            images.truncate(rows);
        }
    }

    pub fn push_nulls(&mut self, places: &[usize], rows: usize) -> Step<()> {
        for place in places {
            for _ in 0..rows {
                self.columns[*place].push_null()?;
            }
        }
        Ok(())
    }

    /// The rows as a struct of the outputs; the batch is empty afterwards.
    pub fn finish(&mut self) -> Result<StructArray, ArrowError> {
        let mut arrays: Vec<ArrayRef> = Vec::new();
        let mut values = 0;
        let images = match &mut self.images {
            Some(images) => Some(images.finish()?),
            None => None,
        };
        for place in 0..self.outputs.len() {
            let array = match &self.outputs[place].content {
                Content::Value { .. } => {
                    values += 1;
                    self.columns[values - 1].finish()?
                }
                other => self.metadata(other, images.as_ref())?,
            };
            arrays.push(array);
        }
        let fields: Fields = self
            .outputs
            .iter()
            .zip(&arrays)
            .map(|(output, array)| Field::new(&output.name, array.data_type().clone(), true))
            .collect();
        self.rows.clear();
        self.origins.clear();
        self.extras = Extras::default();
        self.row_bytes = 0;
        self.messages = 0;
        StructArray::try_new(fields, arrays, None)
    }

    fn metadata(
        &self,
        content: &Content,
        images: Option<&(ArrayRef, ArrayRef)>,
    ) -> Result<ArrayRef, ArrowError> {
        let rows = || {
            self.rows
                .iter()
                .map(|row| (row, &self.origins[row.origin as usize]))
        };
        Ok(match content {
            Content::Value { .. } => unreachable!("columns have arrays"),
            Content::ChangeType => Arc::new(StringArray::from_iter_values(
                rows().map(|(row, _)| row.change.name()),
            )),
            Content::CommitVersion => Arc::new(
                rows()
                    .map(|(_, origin)| origin.commit_ts)
                    .collect::<Int64Array>(),
            ),
            Content::CommitTimestamp => {
                let array: TimestampMicrosecondArray = rows()
                    .map(|(_, origin)| match origin.commit_ts {
                        Some(commit_ts) => Some((commit_ts >> 18) * 1000),
                        None => origin.source_time.map(|time| time * origin.unit),
                    })
                    .collect();
                Arc::new(array.with_timezone("UTC"))
            }
            Content::Message => Arc::new(Int32Array::from_iter_values(
                rows().map(|(_, origin)| origin.message),
            )),
            Content::Index => Arc::new(Int32Array::from_iter_values(
                rows().map(|(row, _)| row.index),
            )),
            Content::Offset => Arc::new(
                rows()
                    .map(|(_, origin)| origin.offset)
                    .collect::<Int64Array>(),
            ),
            Content::Sequence => self.sequence()?,
            Content::Absent => self.absent()?,
            Content::Before => image(images.map(|(before, _)| before))?,
            Content::After => image(images.map(|(_, after)| after))?,
            Content::Event { column } => {
                event_columns::array(*column, rows().map(|(_, origin)| origin), &self.extras)?
            }
        })
    }

    /// `_sequence`: commit, rank, offset, index, part.
    fn sequence(&self) -> Result<ArrayRef, ArrowError> {
        let count = self.rows.len();
        let (mut commits, mut ranks) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut offsets, mut index) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut parts = Vec::with_capacity(count);
        for row in &self.rows {
            let origin = &self.origins[row.origin as usize];
            let known = origin.commit_ts.is_some_and(|commit_ts| commit_ts != 0);
            commits.push(match (origin.commit_ts, origin.source_time) {
                (Some(commit_ts), _) => commit_ts,
                (None, Some(time)) if origin.orders_by_source_time => time << 18,
                _ => 0,
            });
            ranks.push(if known { row.change.rank() } else { 0 });
            // A change of a row with a key is the same change when it comes again.
            let anywhere = known && origin.keyed;
            offsets.push(if anywhere { Some(0) } else { origin.offset });
            index.push(if anywhere { 0 } else { row.index });
            parts.push(row.change.part());
        }
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(commits)),
            Arc::new(Int32Array::from(ranks)),
            Arc::new(Int64Array::from(offsets)),
            Arc::new(Int32Array::from(index)),
            Arc::new(Int32Array::from(parts)),
        ];
        let fields: Fields = ["commit", "rank", "offset", "index", "part"]
            .iter()
            .zip(&arrays)
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
            .collect();
        Ok(Arc::new(StructArray::try_new(fields, arrays, None)?))
    }

    fn absent(&self) -> Result<ArrayRef, ArrowError> {
        let mut names: Vec<&str> = Vec::new();
        let mut lengths = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let absent = &self.origins[row.origin as usize].absent;
            names.extend(absent.iter().map(String::as_str));
            lengths.push(absent.len());
        }
        let field = Arc::new(Field::new("element", DataType::Utf8, true));
        let values = Arc::new(StringArray::from(names));
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(
            field,
            offsets,
            values,
            None::<NullBuffer>,
        )?))
    }
}

fn image(array: Option<&ArrayRef>) -> Result<ArrayRef, ArrowError> {
    let none = || ArrowError::InvalidArgumentError("there are no images".into());
    array.cloned().ok_or_else(none)
}
