//! State that readers of values share.

use std::sync::Arc;

use crate::text::ByText;
use crate::values::zones::Zone;
use crate::variant::Variants;

/// State that readers share: buffers, and time zones of TIMESTAMP text.
#[derive(Default)]
pub struct Tools {
    /// The zone of text without a zone.
    pub zone: Zone,
    /// Zones by the names in values.
    pub zones: ByText<Zone>,
    pub variants: Variants,
    /// Buffer for text without its escapes.
    pub plain: Vec<u8>,
    pub text: String,
    pub more: String,
    pub bytes: Vec<u8>,
    pub number: String,
    /// Notes of the counted values of a message.
    pub notes: Vec<Arc<str>>,
    /// The zone of the last value with a zone that `zones` lacks.
    pub missing_zone: Option<String>,
}
