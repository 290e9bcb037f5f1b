//! Messages as the reference's own compressor makes them: another one would give other bytes.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::refusal::{Refusal, Step};

const NOT_COMPRESSED: Refusal = Refusal::new("a message that is not compressed", 0);

/// A function of Python's: bytes to bytes.
pub struct Compress(pub Py<PyAny>);

impl Compress {
    /// Compresses what begins at a place, to the end.
    pub fn replace(&self, start: usize, out: &mut Vec<u8>) -> Step<()> {
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
