//! The Python class of the writer; see `cdcfmt_kernel.pyi`.

use arrow_array::{Array, ArrayRef, BinaryArray, Int32Array, RecordBatch, StructArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{Field, Fields};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

use crate::python::errors::value_error;
use crate::python::rows::Rows;
use crate::refusal::Stop;
use crate::write::{Batch, Compress, Messages, OfRows, PartialMessage, Position, Writer};

/// Writes the rows of one task.
#[pyclass(name = "Writer")]
pub struct PyWriter {
    writer: Writer,
    batch: Option<Batch>,
    stop: Option<Stop>,
}

#[pymethods]
impl PyWriter {
    #[new]
    fn new(settings: &str, compress: Option<Py<PyAny>>) -> PyResult<Self> {
        let settings = serde_json::from_str(settings).map_err(value_error)?;
        Ok(Self {
            writer: Writer::new(settings, compress.map(Compress)),
            batch: None,
            stop: None,
        })
    }

    /// Starts a batch; false if the reference must write all of it.
    fn open(&mut self, batch: &Bound<'_, PyAny>) -> PyResult<bool> {
        let batch = RecordBatch::from_pyarrow_bound(batch)?;
        self.batch = self.writer.open(&batch);
        Ok(self.batch.is_some())
    }

    fn add_table(&mut self, table: &str, row: Option<usize>) -> PyResult<()> {
        let table = serde_json::from_str(table).map_err(value_error)?;
        let row = self.batch.as_ref().zip(row);
        let added = self.writer.add_table(table, row);
        added.map_err(|refusal| value_error(refusal.text))
    }

    fn clear_tables(&mut self) {
        self.writer.clear_tables();
    }

    /// Writes rows from `start` on; returns the index of the first row not written.
    fn write(&mut self, py: Python<'_>, start: usize, now: i64) -> usize {
        let Some(batch) = &self.batch else {
            return start;
        };
        let writer = &mut self.writer;
        let (at, stop) = py.detach(|| writer.write(batch, start, now));
        self.stop = stop;
        at
    }

    /// Why writing stopped; None at the end of the batch.
    #[getter]
    fn stop(&self) -> Option<Stop> {
        self.stop.clone()
    }

    /// The row without a permit: index of its table, partition and version.
    #[getter]
    fn missing_permit(&self) -> OfRows {
        self.writer.permits.missing
    }

    fn permit(&mut self, rows: OfRows, count: u64, until: i64) {
        self.writer.permits.permit(rows, count, until);
    }

    /// Sets the printable characters in quoted bytes.
    fn set_printable(&mut self, spans: Vec<(u32, u32)>) {
        self.writer.printable.0 = spans;
    }

    /// Returns the numbers of written rows that had a permit, and clears them.
    fn take_permits(&mut self) -> Vec<(OfRows, u64)> {
        self.writer.permits.take()
    }

    /// The last position of a key if it is later than this one; else remembers this one.
    fn check(&mut self, key: &[u8], kind: &[u8], position: Vec<i64>) -> Option<Position> {
        let order = &mut self.writer.order;
        let mut padded = [0; 7];
        padded
            .iter_mut()
            .zip(position)
            .for_each(|(to, from)| *to = from);
        order.check(key, order.kind(kind), padded).err()
    }

    fn restore_partial(&mut self, partition: i32, rows: usize, key: Vec<u8>, value: Vec<u8>) {
        let partial = PartialMessage { rows, key, value };
        self.writer.begun.insert(partition, partial);
    }

    /// The unfinished messages: partition, number of rows, key and value.
    fn take_partial<'py>(
        &mut self,
        py: Python<'py>,
    ) -> Vec<(i32, usize, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let begun = std::mem::take(&mut self.writer.begun).into_iter();
        // Their buffers stay for the next message, without rows.
        let begun = begun.filter(|(_, partial)| partial.rows > 0);
        let bytes = |data: Vec<u8>| PyBytes::new(py, &data);
        begun
            .map(|(number, partial)| {
                (
                    number,
                    partial.rows,
                    bytes(partial.key),
                    bytes(partial.value),
                )
            })
            .collect()
    }

    /// Number of the last row with a number.
    #[getter]
    fn last_number(&self) -> i64 {
        self.writer.last_number
    }

    #[setter]
    fn set_last_number(&mut self, number: i64) {
        self.writer.last_number = number;
    }

    /// The largest `commit_ts` so far.
    #[getter]
    fn last_commit_ts(&self) -> i64 {
        self.writer.last_commit_ts
    }

    #[setter]
    fn set_last_commit_ts(&mut self, commit_ts: i64) {
        self.writer.last_commit_ts = commit_ts;
    }

    /// The values since the last call, each with a line break, and their number.
    fn take_lines<'py>(&mut self, py: Python<'py>) -> (Bound<'py, PyBytes>, usize) {
        let messages = &mut self.writer.messages;
        let lines = PyBytes::new(py, &messages.values);
        let count = messages.ends.len();
        messages.values.clear();
        messages.ends.clear();
        messages.keys.clear();
        messages.key_ends.clear();
        messages.partitions.clear();
        (lines, count)
    }

    /// Keys, values and partitions since the last call; partitions only for topics.
    fn take(&mut self) -> PyResult<Rows> {
        let Messages {
            values,
            ends,
            keys,
            key_ends,
            partitions,
        } = std::mem::take(&mut self.writer.messages);
        let mut last = 0;
        let valid: NullBuffer = key_ends.iter().map(Option::is_some).collect();
        let key_ends = key_ends.into_iter().map(|end| {
            last = end.unwrap_or(last);
            last
        });
        let keys = binary(keys, key_ends, Some(valid))?;
        let values = binary(values, ends.into_iter(), None)?;
        let mut columns: Vec<(&str, ArrayRef)> =
            vec![("key", Arc::new(keys)), ("value", Arc::new(values))];
        if self.writer.has_partitions() {
            columns.push(("partition", Arc::new(Int32Array::from(partitions))));
        }
        let fields = columns.iter();
        let fields = fields
            .map(|(name, array)| Arc::new(Field::new(*name, array.data_type().clone(), true)));
        let fields = fields.collect::<Fields>();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let rows = StructArray::try_new(fields, arrays, None);
        rows.map(Rows::from).map_err(value_error)
    }

    /// Numbers of counted rows by note, since the last call.
    fn take_counts(&mut self) -> Vec<(String, usize)> {
        self.writer.counts.drain().collect()
    }
}

fn binary(
    data: Vec<u8>,
    ends: impl Iterator<Item = usize>,
    valid: Option<NullBuffer>,
) -> PyResult<BinaryArray> {
    let offsets: Result<Vec<i32>, _> = std::iter::once(0).chain(ends).map(i32::try_from).collect();
    let offsets = ScalarBuffer::from(offsets.map_err(value_error)?);
    BinaryArray::try_new(OffsetBuffer::new(offsets), Buffer::from_vec(data), valid)
        .map_err(value_error)
}
