//! The plans of all tables.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::{Equivalent, HashMap};

use crate::plans::Plan;
use crate::shared::Shared;

/// Plans of one table that are kept.
pub const PLANS_OF_TABLE: usize = 16;

/// All plans are forgotten when they are more bytes.
const MAX_BYTES: usize = 128 << 20;

/// A table's database, schema and name.
pub type Name = [Arc<str>; 3];

/// A name that lies in a document.
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

#[derive(Default)]
pub struct PlanTable {
    plans: HashMap<Name, Vec<Arc<Plan>>>,
    /// Of the plans, besides what they share.
    bytes: usize,
    pub shared: Shared,
}

impl PlanTable {
    /// Those of a table; the newest is the first.
    pub fn of(&self, name: NameRef) -> &[Arc<Plan>] {
        self.plans.get(&name).map_or(&[], Vec::as_slice)
    }

    pub fn add(&mut self, plan: Plan) {
        if self.bytes + self.shared.bytes() > MAX_BYTES {
            self.shared.sweep();
        }
        if self.bytes + self.shared.bytes() > MAX_BYTES {
            self.clear();
        }
        let plans = self.plans.entry(plan.table.clone()).or_default();
        self.bytes += plan.bytes();
        plans.retain(|known| {
            let stays = !plan.replaces(known);
            self.bytes -= if stays { 0 } else { known.bytes() };
            stays
        });
        plans.insert(0, Arc::new(plan));
        if plans.len() > PLANS_OF_TABLE
            && let Some(oldest) = plans.pop()
        {
            self.bytes -= oldest.bytes();
        }
    }

    pub fn clear(&mut self) {
        self.plans.clear();
        self.bytes = 0;
        self.shared = Shared::default();
    }
}
