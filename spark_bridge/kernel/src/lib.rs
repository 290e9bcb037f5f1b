//! The compiled decoder of cdcfmt: messages to Arrow record batches.
//!
//! It is strict: a message with anything unusual is refused, and left to the reference decoder in
//! Python. Messages are not trusted: nothing is allocated by a length that a message
//! claims.

#![forbid(unsafe_code)]

pub mod added_columns;
pub mod any_text;
pub mod appending;
pub mod avro;
pub mod avro_cells;
pub mod avro_layout;
pub mod avro_rows;
pub mod avro_schema;
pub mod avro_values;
pub mod batch;
pub mod by_plan;
pub mod calendar;
pub mod cells;
pub mod clocks;
pub mod column_cells;
pub mod columns;
pub mod connect;
pub mod encodings;
pub mod envelope;
pub mod envelope_object;
pub mod event_columns;
pub mod event_images;
pub mod event_plan;
pub mod extra;
pub mod filters;
pub mod frames;
pub mod go_quoted;
pub mod guessing;
pub mod image_cells;
pub mod image_numbers;
pub mod image_times;
pub mod images;
pub mod json;
pub mod json_cells;
pub mod kernel;
pub mod labels;
pub mod layout;
pub mod marks;
pub mod members;
pub mod mysql_text;
pub mod names;
pub mod nested;
pub mod noted;
pub mod numbered;
pub mod numbers;
pub mod open_cells;
pub mod open_protocol;
pub mod order;
pub mod packed;
pub mod plan_table;
pub mod plans;
mod python;
mod python_lines;
mod python_messages;
mod python_rows;
pub mod reader;
pub mod refusal;
pub mod repeats;
pub mod roles;
pub mod row_order;
pub mod row_plan;
pub mod rows;
pub mod scalars;
pub mod schema_key;
pub mod shared;
pub mod temporal;
pub mod text_bytes;
pub mod variant;
pub mod variant_bytes;
pub mod variant_cells;
pub mod variant_members;
pub mod whole_messages;
pub mod write;
pub mod zones;

use pyo3::prelude::*;

#[pymodule]
fn cdcfmt_kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<python::PyKernel>()?;
    module.add_class::<refusal::Reason>()?;
    module.add_class::<refusal::Stop>()?;
    module.add_class::<python_rows::Rows>()?;
    module.add_function(wrap_pyfunction!(marks::holds_any, module)?)?;
    module.add_function(wrap_pyfunction!(variant_members::variant_members, module)?)?;
    module.add_class::<write::python::PyWriter>()
}
