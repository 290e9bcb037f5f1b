//! Errors for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::refusal::Refusal;

pub fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A `ValueError` with the refusal's text and byte.
pub fn refused(refusal: Refusal) -> PyErr {
    let place = refusal.at().map(|at| format!(" at byte {at}"));
    PyValueError::new_err(format!("{}{}", refusal.text, place.unwrap_or_default()))
}
