//! Avro's binary encoding, and its schemas.

mod datum;
mod schema;
mod values;

pub use datum::{Datum, encode_long, shortest_double};
pub use schema::{Field, Type};
