//! Columns of a batch in addition to the table's own.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, ListArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use crate::read::batch::event_columns;
use crate::read::batch::{Batch, Content};

impl Batch {
    /// The array of a column that is not the table's.
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
                        // The physical part of a TSO is in milliseconds.
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
                    .map(|(_, origin)| origin.place.offset)
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

    /// `_sequence`: its fields are in the order in which they compare.
    fn sequence(&self) -> Result<ArrayRef, ArrowError> {
        let count = self.rows.len();
        let (mut epochs, mut commits) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut ranks, mut partitions) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut offsets, mut index) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut parts, mut times) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut servers, mut positions) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut files = StringBuilder::with_capacity(count, 0);
        for row in &self.rows {
            let origin = &self.origins[row.origin as usize];
            let place = origin.place;
            // A `commit_ts` of 0 orders nothing.
            let known = origin.commit_ts.is_some_and(|commit_ts| commit_ts != 0);
            // A redelivered change of a row with a key gets the same sequence.
            let anywhere = known && origin.keyed;
            let has_commit_ts = origin.commit_ts.is_some();
            // A commit_ts orders changes across partitions and recreated topics.
            epochs.push(if has_commit_ts { 0 } else { place.epoch });
            commits.push(match (origin.commit_ts, origin.source_time) {
                (Some(commit_ts), _) => commit_ts,
                (None, Some(time)) if origin.orders_by_source_time => time << 18,
                _ => 0,
            });
            // Within a commit a key is deleted before it is inserted again.
            ranks.push(if known { row.change.rank() } else { 0 });
            partitions.push(if anywhere { 0 } else { place.partition });
            offsets.push(if anywhere { Some(0) } else { place.offset });
            index.push(if anywhere { 0 } else { row.index });
            parts.push(row.change.part());
            let time = origin.source_time.map(|time| time * origin.unit);
            // Behind all compared fields: clocks order nothing, but show what came first between
            // partitions.
            times.push(time.filter(|_| !has_commit_ts));
            let log = origin.log.as_ref().filter(|_| !has_commit_ts);
            servers.push(log.and_then(|log| log.server));
            files.append_option(log.map(|log| &*log.file));
            positions.push(log.map(|log| log.pos));
        }
        let arrays: [(&str, ArrayRef); 11] = [
            ("epoch", Arc::new(Int32Array::from(epochs))),
            ("commit", Arc::new(Int64Array::from(commits))),
            ("rank", Arc::new(Int32Array::from(ranks))),
            ("partition", Arc::new(Int32Array::from(partitions))),
            ("offset", Arc::new(Int64Array::from(offsets))),
            ("index", Arc::new(Int32Array::from(index))),
            ("part", Arc::new(Int32Array::from(parts))),
            ("time", Arc::new(Int64Array::from(times))),
            ("server", Arc::new(Int64Array::from(servers))),
            ("file", Arc::new(files.finish())),
            ("pos", Arc::new(Int64Array::from(positions))),
        ];
        let fields: Fields = arrays
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
            .collect();
        let arrays = arrays.into_iter().map(|(_, array)| array).collect();
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
