//! Names of tables.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::Equivalent;

/// A table's database, schema and name.
pub type Name = [Arc<str>; 3];

/// A name within a document.
#[derive(Clone, Copy)]
pub struct NameRef<'a>(pub &'a str, pub &'a str, pub &'a str);

impl Hash for NameRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        [self.0, self.1, self.2].hash(state);
    }
}

impl NameRef<'_> {
    pub fn to_name(self) -> Name {
        [self.0, self.1, self.2].map(Arc::from)
    }
}

impl Equivalent<Name> for NameRef<'_> {
    fn equivalent(&self, name: &Name) -> bool {
        [self.0, self.1, self.2] == [&*name[0], &*name[1], &*name[2]]
    }
}
