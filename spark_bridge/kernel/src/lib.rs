//! The compiled decoder of cdcfmt: messages to Arrow record batches.
//!
//! It is strict: a message with anything unusual is refused, and left to the reference decoder in
//! Python. Messages are not trusted: nothing is allocated by a length that a message
//! claims.

mod avro;
mod connect;
mod json;
mod plan;
mod pool;
mod python;
mod read;
mod refusal;
mod text;
mod values;
mod variant;
mod write;

use pyo3::prelude::*;

/// What property tests and fuzz targets use; Python does not see it.
#[doc(hidden)]
pub mod testing {
    pub use crate::json::{Cursor, plain, unescape, unescape_latin1};
    pub use crate::read::{Kernel, Place};
    pub use crate::refusal::Result;
    pub use crate::text::bytes::{decode_base64, decode_hex, encode_base64, encode_hex, latin1};
    pub use crate::text::unquote_go;

    /// Numbers as MySQL prints them.
    pub mod numbers {
        pub use crate::text::numbers::{decimal, float, integer};
    }

    /// Dates and times as MySQL prints them.
    pub mod temporal {
        pub use crate::values::temporal::{
            date, datetime, print_date, print_datetime, print_time, time,
        };
    }
}

#[pymodule]
fn cdcfmt_kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<python::PyKernel>()?;
    module.add_class::<refusal::Reason>()?;
    module.add_class::<refusal::Stop>()?;
    module.add_class::<python::Rows>()?;
    module.add_function(wrap_pyfunction!(read::holds_any, module)?)?;
    module.add_function(wrap_pyfunction!(
        python::variant_members::variant_members,
        module
    )?)?;
    module.add_class::<python::PyWriter>()
}
