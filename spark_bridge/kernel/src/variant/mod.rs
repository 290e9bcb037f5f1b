//! Variants (Parquet's *Variant Binary Encoding*): made from JSON, and read.

pub mod encode;
mod from_json;
mod reader;

pub use from_json::{Dictionary, Variants};
pub use reader::{Cell, Items, MISFIT, Nested, NestedRow, Parts, Variant};
