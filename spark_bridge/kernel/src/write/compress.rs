//! Compression by the reference's Python function, as another compressor would give other bytes.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::refusal::{Refusal, Result};

const NOT_COMPRESSED: Refusal = Refusal::new("compression failed", 0);

/// A Python function: bytes to bytes.
pub struct Compress(pub Py<PyAny>);

impl Compress {
    /// Compresses the bytes from a position to the end, in place.
    pub fn replace(&self, start: usize, out: &mut Vec<u8>) -> Result<()> {
        // The GIL was released while rows are written.
        Python::attach(|py| {
            let data = PyBytes::new(py, &out[start..]);
            let compressed = self.0.bind(py).call1((data,)).map_err(|_| NOT_COMPRESSED)?;
            let compressed = compressed.cast::<PyBytes>().map_err(|_| NOT_COMPRESSED)?;
            out.truncate(start);
            out.extend_from_slice(compressed.as_bytes());
            Ok(())
        })
    }
}
