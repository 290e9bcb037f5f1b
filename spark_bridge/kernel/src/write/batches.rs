//! Messages of several rows: frames behind one another, cut by number and bytes.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::write::plan::Raw;

/// Of one message.
#[derive(Debug, Deserialize)]
pub struct Limits {
    pub max_rows: usize,
    /// Of key and value together.
    pub max_bytes: usize,
    /// What a key begins with.
    pub head: Raw,
}

/// A message that was begun.
#[derive(Default)]
pub struct Held {
    pub rows: usize,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// By partition.
pub type Begun = BTreeMap<i32, Held>;

impl Held {
    /// Whether an event of so many bytes belongs to the next message.
    pub fn is_full_for(&self, key: usize, value: usize, limits: &Limits) -> bool {
        let size = self.key.len() + self.value.len() + key + value + 16;
        self.rows > 0 && size > limits.max_bytes
    }

    /// Appends an event, each of its parts behind its length.
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
