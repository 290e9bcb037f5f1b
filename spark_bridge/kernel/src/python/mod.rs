//! The classes and functions for Python; see `cdcfmt_kernel.pyi`.

mod errors;
mod feed;
mod kernel;
mod messages;
mod rows;
pub mod variant_members;
mod writer;

pub use kernel::PyKernel;
pub use rows::Rows;
pub use writer::PyWriter;
