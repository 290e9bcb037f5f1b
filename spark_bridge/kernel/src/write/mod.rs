//! Encoding: Arrow columns to messages, as described by plans.
//!
//! A row with anything unusual is refused, and left to the reference encoder.

pub mod allowed;
pub mod arrow;
pub mod batches;
pub mod binary;
pub mod cell;
pub mod changes;
pub mod checksum;
pub mod clocks;
pub mod compress;
pub mod digits;
pub mod encodings;
pub mod events;
pub mod extra;
pub mod fields;
pub mod go_quote;
pub mod identity;
pub mod json_text;
pub mod key_text;
pub mod limits;
pub mod message;
pub mod order;
pub mod partition;
pub mod plan;
pub mod printing;
pub mod python;
pub mod row;
pub mod stamped;
pub mod variants;
pub mod writer;
