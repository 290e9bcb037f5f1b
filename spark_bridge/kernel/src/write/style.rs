//! What the printers of a message's values share.

use crate::text::Printable;
use crate::values::Offsets;
use crate::write::plan::Wire;

/// Settings shared by all values of a message.
#[derive(Clone, Copy)]
pub struct Style<'a> {
    pub wire: Wire,
    /// Time zone of TIMESTAMP texts.
    pub zone: &'a Offsets,
    pub printable: &'a Printable,
}

/// Reusable buffers, and counts for the values of a message.
#[derive(Default)]
pub struct Scratch {
    pub text: Vec<u8>,
    pub other: Vec<u8>,
    /// Number of rounded decimals.
    pub rounded: usize,
    /// Number of generated `commit_ts`.
    pub made: usize,
}
