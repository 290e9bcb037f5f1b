//! Plans: how to read the rows of one table schema.

mod avro_cells;
mod event_plan;
mod images;
mod members;
mod open_cells;
mod plan;
mod plan_cache;
mod row_order;
mod row_plan;
mod schema_key;
mod shared;
mod table;

pub use event_plan::{EventPlan, ShownColumn};
pub use images::Images;
pub use plan::{Description, Plan, Shown};
pub use plan_cache::PlanCache;
pub use row_plan::{PlanColumn, RowPlan, Sink};
pub use shared::Weighed;
pub use table::{Name, NameRef, PLANS_OF_TABLE, PlanTable};
