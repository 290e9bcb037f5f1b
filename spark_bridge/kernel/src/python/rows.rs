//! Rows for Python, exported through Arrow's C data interface.

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, StructArray};
use arrow_schema::{DataType, Fields};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::python::errors::value_error;

/// The rows of a batch, for `pyarrow.record_batch`.
#[pyclass(frozen, name = "Rows")]
pub struct Rows {
    rows: StructArray,
    /// A text field may have an array of bytes, which has the same memory layout.
    fields: Fields,
}

impl Rows {
    pub fn new(rows: StructArray, fields: Fields) -> Self {
        Self { rows, fields }
    }
}

impl From<StructArray> for Rows {
    fn from(rows: StructArray) -> Self {
        let fields = rows.fields().clone();
        Self { rows, fields }
    }
}

#[pymethods]
impl Rows {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The protocol asks for the argument, and allows to ignore it.
        let _ = requested_schema;
        let schema = DataType::Struct(self.fields.clone());
        let schema = FFI_ArrowSchema::try_from(schema).map_err(value_error)?;
        let array = FFI_ArrowArray::new(&self.rows.to_data());
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}
