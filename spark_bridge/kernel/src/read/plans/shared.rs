//! Parts that plans share: equal values are stored once.

use std::sync::Arc;

use hashbrown::HashSet;

use crate::pool::Pool;
use crate::read::plans::row_plan::{RowParts, RowPlan};
use crate::read::plans::schema_key::SchemaKey;

/// The pools of all plans.
#[derive(Default)]
pub struct Shared {
    names: HashSet<Arc<str>>,
    pub rows: Pool<RowPlan>,
    pub keys: Pool<SchemaKey>,
    pub parts: RowParts,
}

impl Shared {
    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.keys.bytes() + self.parts.bytes()
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
        self.parts.sweep();
    }
}
