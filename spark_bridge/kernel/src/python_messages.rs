//! Feeds messages in Arrow arrays to the kernel until it refuses one.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BinaryArray, Int64Array, RecordBatch};

use crate::python::{PyKernel, WINDOW};

pub struct Messages<'a> {
    values: &'a BinaryArray,
    keys: &'a BinaryArray,
    offsets: &'a Int64Array,
}

impl<'a> Messages<'a> {
    /// The columns value, key and offset of a batch; None if missing.
    pub fn new(batch: &'a RecordBatch) -> Option<Self> {
        Some(Self {
            values: batch.column_by_name("value")?.as_binary_opt()?,
            keys: batch.column_by_name("key")?.as_binary_opt()?,
            offsets: batch
                .column_by_name("offset")?
                .as_primitive_opt::<Int64Type>()?,
        })
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }
}

impl PyKernel {
    /// Reads some messages; returns the index of the next message, or of the first unread one.
    pub fn messages_of(&mut self, messages: &Messages, start: usize) -> usize {
        let end = messages.len().min(start + WINDOW);
        for at in start..end {
            let Messages {
                values,
                keys,
                offsets,
            } = messages;
            if values.is_null(at) {
                self.stop = ("no value", 0);
                return at;
            }
            let key = keys.is_valid(at).then(|| keys.value(at));
            let offset = offsets.is_valid(at).then(|| offsets.value(at));
            if !self.one(values.value(at), key, offset) {
                return at;
            }
        }
        end
    }
}
