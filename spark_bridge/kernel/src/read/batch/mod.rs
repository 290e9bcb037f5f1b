//! The rows of a batch under construction: the table's columns, and each row's kind.

mod added_columns;
mod column_cells;
mod columns;
mod event_columns;
mod event_images;
mod image_cells;
mod json_cells;
mod json_numbers;
mod json_times;
mod origins;
mod variant_cells;

pub use columns::Column;
use columns::shown_type;
pub use event_images::{EventImages, Format};
pub use image_cells::Source;
pub use origins::{Change, EventOrigin, LogPosition, Origin, Place, Row};

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use serde::Deserialize;

use crate::plan::Target;
use crate::read::batch::event_columns::EventContent;
use crate::read::batch::event_columns::Extras;
use crate::refusal::Result;
use crate::values::Cells;
use crate::values::Zone;

/// A column of the batch, as the bridge describes it.
#[derive(Clone, Deserialize)]
pub struct Output {
    name: String,
    #[serde(flatten)]
    content: Content,
}

/// What a column of the batch shows.
#[derive(Clone, Deserialize)]
#[serde(tag = "content", rename_all = "snake_case")]
pub enum Content {
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
    /// Message numbers, starting at 0.
    Message,
    /// Row numbers within the message.
    Index,
    Offset,
    Before,
    After,
    Event {
        column: EventContent,
    },
}

/// Rows under construction, column by column.
pub struct Batch {
    outputs: Vec<Output>,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    pub origins: Vec<Origin>,
    row_bytes: usize,
    pub messages: i32,
    /// Images of events, if needed.
    pub images: Option<EventImages>,
    pub extras: Extras,
}

impl Batch {
    /// `zone` converts wall clocks in columns of instants.
    pub fn new(outputs: Vec<Output>, images: Option<EventImages>, zone: &Arc<Zone>) -> Self {
        let columns = outputs
            .iter()
            .filter_map(|output| match &output.content {
                Content::Value { target, nullable } => {
                    Some(Column::new(target, *nullable).in_zone(zone))
                }
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

    /// Bytes of the rows in memory, approximately; visits all columns.
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

    /// Begins the rows of a message.
    pub fn begin(&mut self, origin: Origin) {
        self.origins.push(origin);
    }

    /// Adds a row whose values were appended; `index`: its number in the message.
    pub fn push(&mut self, change: Change, index: usize) {
        let origin = self.origins.len() as u32 - 1;
        // Summed up as rows come, so that the size of a batch needs no visit of its rows.
        self.row_bytes += self.origins[origin as usize].row_bytes;
        self.rows.push(Row {
            change,
            index: (self.origins[origin as usize].index + index) as i32,
            origin,
        });
    }

    /// Removes all rows but the first ones.
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

    /// Appends NULLs to columns that a table lacks; refuses columns that are NOT NULL.
    pub fn push_nulls(&mut self, places: &[usize], rows: usize) -> Result<()> {
        for place in places {
            for _ in 0..rows {
                self.columns[*place].push_null()?;
            }
        }
        Ok(())
    }

    /// Returns the rows as a struct of the outputs, with their fields, and clears the batch.
    ///
    /// Text arrays are arrays of bytes: the text was validated when it was read.
    pub fn finish(&mut self) -> Result<(StructArray, Fields), ArrowError> {
        let mut arrays: Vec<ArrayRef> = Vec::new();
        let mut values = 0;
        let in_text = self.images.as_ref().is_some_and(EventImages::are_text);
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
        let outputs = || self.outputs.iter().zip(&arrays);
        let field =
            |output: &Output, type_: &DataType| Field::new(&output.name, type_.clone(), true);
        let fields: Fields = outputs()
            .map(|(output, array)| field(output, array.data_type()))
            .collect();
        let shown: Fields = outputs()
            .map(|(output, array)| match &output.content {
                Content::Value { target, .. } => {
                    field(output, &shown_type(target, array.data_type()))
                }
                Content::Before | Content::After if in_text => field(output, &DataType::Utf8),
                _ => field(output, array.data_type()),
            })
            .collect();
        self.rows.clear();
        self.origins.clear();
        self.extras = Extras::default();
        self.row_bytes = 0;
        self.messages = 0;
        Ok((StructArray::try_new(fields, arrays, None)?, shown))
    }
}
