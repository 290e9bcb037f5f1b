//! Pools of values: equal values are stored once.

use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashSet;

/// Has an approximate size in bytes.
pub trait Weighed {
    fn bytes(&self) -> usize;
}

/// A set of shared values.
pub struct Pool<T> {
    values: HashSet<Arc<T>>,
    bytes: usize,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self {
            values: HashSet::new(),
            bytes: 0,
        }
    }
}

impl<T: Eq + Hash + Weighed> Pool<T> {
    /// The stored value equal to this one; stores new values.
    pub fn share(&mut self, value: T) -> Arc<T> {
        if let Some(known) = self.values.get(&value) {
            return Arc::clone(known);
        }
        self.bytes += value.bytes();
        let value = Arc::new(value);
        self.values.insert(Arc::clone(&value));
        value
    }

    /// Drops values that are not used elsewhere.
    pub fn sweep(&mut self) {
        let bytes = &mut self.bytes;
        self.values.retain(|value| {
            // One reference is the pool's own.
            let stays = Arc::strong_count(value) > 1;
            *bytes -= if stays { 0 } else { value.bytes() };
            stays
        });
    }

    /// Approximate bytes of the values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
