//! Messages of several rows: concatenated frames, limited by number and bytes.

use std::collections::BTreeMap;

use crate::write::plan::Limits;

/// An unfinished message.
#[derive(Default)]
pub struct PartialMessage {
    pub rows: usize,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// Unfinished messages by partition.
pub type Begun = BTreeMap<i32, PartialMessage>;

impl PartialMessage {
    /// Whether an event of this size must begin the next message.
    pub fn is_full_for(&self, key: usize, value: usize, limits: &Limits) -> bool {
        // Two lengths of eight bytes.
        let size = self.key.len() + self.value.len() + key + value + 16;
        self.rows > 0 && size > limits.max_bytes
    }

    /// Appends an event, each part preceded by its length.
    pub fn add(&mut self, key: &[u8], value: &[u8], limits: &Limits) {
        if self.rows == 0 {
            self.key.extend_from_slice(&limits.head.0);
        }
        for (data, out) in [(key, &mut self.key), (value, &mut self.value)] {
            out.extend_from_slice(&(data.len() as u64).to_be_bytes());
            out.extend_from_slice(data);
        }
        self.rows += 1;
    }
}
