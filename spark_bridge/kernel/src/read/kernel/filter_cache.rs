//! Tables without plans: whether the filters skip them.

use hashbrown::HashMap;

use crate::read::envelope::{Name, NameRef};
use crate::read::plans::PLANS_OF_TABLE;

/// Maximum bytes of names and schemas of tables without plans: a topic may have any number of
/// unwanted tables.
const MAX_BYTES: usize = 8 << 20;

/// Results of the reference for tables, by name.
#[derive(Default)]
pub struct FilterCache {
    by_table: HashMap<Name, CachedFilter>,
    bytes: usize,
}

/// What is known of one table.
#[derive(Default)]
pub struct CachedFilter {
    /// Valid schemas of payloads; newest first.
    schemas: Vec<String>,
    pub is_unwanted: bool,
}

impl FilterCache {
    /// Adds a table, or a schema of its payloads; empty: payloads have none.
    pub fn add(&mut self, name: Name, schema: &str, is_unwanted: bool) {
        // All at once, as for plans: each table costs one message of the reference.
        if self.bytes > MAX_BYTES {
            self.by_table.clear();
            self.bytes = 0;
        }
        let names = name.iter().map(|name| name.len()).sum::<usize>();
        self.bytes += names + size_of::<Name>() + schema.len();
        let table = self.by_table.entry(name).or_default();
        table.is_unwanted = is_unwanted;
        table.schemas.retain(|known| known != schema);
        table.schemas.insert(0, schema.to_owned());
        table.schemas.truncate(PLANS_OF_TABLE);
    }

    /// The result for a table, if the schema is known to be valid.
    pub fn get(&self, name: NameRef, schema: &str) -> Option<&CachedFilter> {
        let table = self.by_table.get(&name);
        table.filter(|table| table.schemas.iter().any(|known| known == schema))
    }
}
