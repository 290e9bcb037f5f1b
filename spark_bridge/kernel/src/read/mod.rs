//! Decoding: messages to the rows of Arrow batches, as described by layouts and plans.

mod attributes;
pub mod batch;
mod document;
pub mod envelope;
pub mod frames;
mod kernel;
mod marks;
mod object;
mod plan_guess;
pub mod plans;
mod whole_messages;
mod writers;

pub use attributes::Attributes;
pub use batch::Place;
pub use kernel::{Kernel, Shown};
pub use marks::holds_any;
pub use whole_messages::{HEADER_BYTES, Origins, WholeMessage};
