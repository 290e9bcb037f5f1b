//! Plans: how to read the rows of one table schema.

mod avro_cells;
mod event_plan;
mod example;
mod extra;
mod members;
mod open_cells;
mod plan;
mod row_order;
mod row_plan;
mod schema_key;
mod shared;
mod table;

pub use event_plan::{EventPlan, ShownColumn};
pub use example::Example;
pub use extra::{ExtraSource, PreviousExtra};
pub use plan::{Description, Plan, Shown};
pub use row_plan::{PlanColumn, RowPlan, Sink};
pub use table::{PLANS_OF_TABLE, PlanTable};
