//! Parts that plans share: equal values are stored once.

use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashSet;

use crate::read::batch::extra::Extra;
use crate::read::plans::row_plan::RowPlan;
use crate::read::plans::schema_key::SchemaKey;
use crate::values::Reader;

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
    fn sweep(&mut self) {
        let bytes = &mut self.bytes;
        self.values.retain(|value| {
            let stays = Arc::strong_count(value) > 1;
            *bytes -= if stays { 0 } else { value.bytes() };
            stays
        });
    }
}

#[derive(Default)]
pub struct Shared {
    names: HashSet<Arc<str>>,
    pub rows: Pool<RowPlan>,
    pub keys: Pool<SchemaKey>,
    pub readers: Pool<Reader>,
    pub extras: Pool<Extra>,
}

impl Shared {
    pub fn bytes(&self) -> usize {
        self.rows.bytes + self.keys.bytes + self.readers.bytes + self.extras.bytes
    }

    /// The shared name of a database, a schema or a table.
    pub fn name(&mut self, name: &str) -> Arc<str> {
        Arc::clone(self.names.get_or_insert_with(name, |name| name.into()))
    }

    /// Drops what no plan uses.
    pub fn sweep(&mut self) {
        self.names.retain(|name| Arc::strong_count(name) > 1);
        // First, as rows hold readers and extras.
        self.rows.sweep();
        self.keys.sweep();
        self.readers.sweep();
        self.extras.sweep();
    }
}
