//! PrintEncoding: Arrow columns to messages, as described by plans.
//!
//! A row with anything unusual is refused, and left to the reference encoder.

mod arrow;
mod batches;
mod binary;
mod changes;
mod checksum;
mod compress;
mod digits;
mod encodings;
mod events;
mod extra_values;
mod fields;
mod generated_ts;
mod identity;
mod json_text;
mod key_order;
mod key_text;
mod limits;
mod message;
mod nested;
mod partition;
mod permits;
mod plan;
mod printing;
mod row;
mod style;
mod times;
mod writer;

pub use arrow::Variants;
pub use batches::PartialMessage;
pub use compress::Compress;
pub use key_order::Position;
pub use permits::OfRows;
pub use row::Messages;
pub use writer::{Batch, Writer};
