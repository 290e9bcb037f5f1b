//! State that readers of values share.

use std::sync::Arc;

use crate::text::ByText;
use crate::values::zones::Zone;
use crate::variant::Variants;

/// What readers of MySQL's text need; apart from the buffer that may hold this text.
#[derive(Default)]
pub struct TextTools {
    /// The zone of text without a zone.
    pub zone: Zone,
    pub variants: Variants,
    /// Buffer for a printed TIME.
    pub time: String,
}

/// State that readers share: buffers, and time zones of TIMESTAMP text.
#[derive(Default)]
pub struct Tools {
    pub texts: TextTools,
    /// Zones by the names in values.
    pub zones: ByText<Zone>,
    /// Buffer for text without its escapes.
    pub plain: Vec<u8>,
    /// Buffer for decoded bytes.
    pub bytes: Vec<u8>,
    /// Buffer for the text of an Avro number.
    pub number: String,
    /// Notes of the counted values of a message.
    pub notes: Vec<Arc<str>>,
    /// The zone of the last value with a zone that `zones` lacks.
    pub missing_zone: Option<String>,
}

impl Tools {
    /// Reads text without a zone in this zone.
    pub fn in_zone(zone: Zone) -> Self {
        let mut tools = Self::default();
        tools.texts.zone = zone;
        tools
    }
}
