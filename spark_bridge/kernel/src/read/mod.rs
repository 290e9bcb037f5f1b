//! Decoding: messages to the rows of Arrow batches, as described by layouts and plans.

mod avro_rows;
pub mod batch;
pub mod envelope;
mod filters;
pub mod frames;
mod kernel;
mod marks;
mod open_protocol;
mod plan_rows;
pub mod plans;
mod rows;
mod whole_messages;

pub use batch::Place;
pub use kernel::{Kernel, Outcome, Shown};
pub use marks::holds_any;
pub use whole_messages::{HEADER_BYTES, Origins, WholeMessage};
