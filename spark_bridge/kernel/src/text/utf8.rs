//! Bytes of messages that are text.

use simdutf8::basic::from_utf8;

use crate::refusal::{Refusal, Result};

/// The text of a document, which is checked as a whole: one pass is cheaper than one per value.
pub fn utf8(data: &[u8]) -> Result<&str> {
    from_utf8(data).map_err(|_| Refusal::new("invalid UTF-8", 0))
}
