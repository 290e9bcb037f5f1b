//! The way back: Arrow columns to messages, as plans say.
//!
//! A row on which anything is unusual is refused, and the reference encoder writes it.

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
