//! Columns of a batch in addition to the table's own.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, ListArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use crate::batch::{Batch, Content};
use crate::event_columns;

impl Batch {
    pub fn metadata(
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
            // A redelivered change of a row with a key gets the same sequence.
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
