//! The plans of all tables.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::read::envelope::{Name, NameRef};
use crate::read::plans::plan::Plan;
use crate::read::plans::shared::Shared;

/// Maximum number of plans per table, as each is tried in turn for a message that none of them fits.
pub const PLANS_OF_TABLE: usize = 16;

/// Maximum bytes; beyond it all plans are dropped.  They are learned again, one message each, which
/// is cheaper than to keep an order of use for every message.
const MAX_BYTES: usize = 128 << 20;

/// The plans of all tables, by name.
#[derive(Default)]
pub struct PlanTable {
    plans: HashMap<Name, Vec<Arc<Plan>>>,
    /// Bytes of the plans, excluding shared parts.
    bytes: usize,
    pub shared: Shared,
}

impl PlanTable {
    /// The plans of a table, newest first.
    pub fn of(&self, name: NameRef) -> &[Arc<Plan>] {
        self.plans.get(&name).map_or(&[], Vec::as_slice)
    }

    /// Adds a plan in place of those with the same key and columns.
    pub fn add(&mut self, plan: Plan) {
        // What no plan uses any more is dropped first.
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
        // Newest first: after ALTER TABLE the next messages have its schema.
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
