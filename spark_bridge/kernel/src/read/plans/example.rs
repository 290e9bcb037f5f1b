//! The message that shows a table's schema.

use crate::avro::Field;
use crate::plan::Layout;
use crate::read::envelope::Envelope;

/// The message just read, for whose schema key a plan is made.
pub struct Example<'a> {
    pub layout: &'a Layout,
    pub envelope: &'a Envelope,
    pub document: &'a str,
    /// The document of its key.
    pub key: Option<&'a str>,
    /// The fields of rows, if the message names its writer schema.
    pub row: Option<&'a [Field]>,
}
