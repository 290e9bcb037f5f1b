//! Value encodings: how a column's values stand on the wire.
//!
//! The table of their names is in `cdcfmt_core/toolkit/encodings.py`; the Python readers are in
//! `cdcfmt_core/toolkit/value_readers.py`.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use serde::Deserialize;

use crate::clocks::Clock;
use crate::extra;
use crate::json::{Kind, Token};
use crate::names::ByText;
use crate::packed::{BytesText, Unscaled};
use crate::refusal::Refusal;
use crate::scalars::{Any, Number};
use crate::variant::Variants;
use crate::zones::Zone;

/// MySQL's text of a logical type (`cdcfmt_core/types.py`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum MysqlText {
    Bool,
    /// Integers between the bounds.
    Int {
        low: i64,
        high: u64,
    },
    Float,
    /// `scale` digits behind the point, if that is known.
    Decimal {
        scale: Option<usize>,
    },
    Text,
    /// Padded with zeros to so many bytes.
    Binary {
        padded: usize,
    },
    Date,
    DateTime,
    Timestamp,
    Time {
        fsp: Option<u32>,
    },
    Year,
    /// An index or a name; `names` are the column's.
    Enum {
        names: Option<Vec<String>>,
    },
    /// A bitmap, or names joined by commas.
    Set {
        names: Option<Vec<String>>,
    },
    Json,
}

/// An encoding with what it takes from the column's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "encoding", rename_all = "kebab-case")]
pub enum Encoding {
    MysqlText(MysqlText),
    /// The same, or a number or boolean instead of text.
    MysqlJson(MysqlText),
    /// Bytes in padded base64.
    Base64,
    /// Text in padded base64.
    Base64Text,
    /// Bytes in hexadecimal.
    Hex,
    /// Bytes as Go's `strconv.Quote` writes them.
    GoQuoted,
    /// Bytes in Latin-1, base64 or hexadecimal, whichever alone fits.
    DetectedBytes {
        exact: Option<usize>,
        longest: Option<usize>,
    },
    /// Bytes in base64 or hexadecimal.
    BytesText(BytesText),
    JsonNumber(Number),
    JsonBoolean,
    /// Any JSON value whose type is not known.
    JsonValue(Any),
    /// Text as it stands; some of it stands for other text.
    Text {
        json: bool,
        aliases: BTreeMap<String, String>,
    },
    /// MySQL's text, perhaps with a `Z` behind it.
    IsoText(MysqlText),
    /// `2024-01-01T00:00:00.5Z`
    IsoInstant,
    /// Days since 1970.
    EpochDays,
    EpochMillis(Clock),
    EpochMicros(Clock),
    EpochNanos(Clock),
    EpochGuessed(Clock),
    /// Kafka Connect's Decimal.
    ConnectDecimal(Unscaled),
    /// Kafka Connect's Decimal or text, whichever alone fits.
    GuessedDecimal {
        scale: u8,
    },
    LittleEndianBits {
        bits: u32,
    },
    /// Text of one character a byte, in a charset that has ASCII.
    CharsetText {
        is_latin1: bool,
    },
    /// An integer that is a decimal.
    IntegerText,
    /// Year to microsecond, some of them null; or MySQL's text.
    CalendarParts(MysqlText),
    /// Seconds since 1970, and microseconds.
    EpochPair,
    /// Refused, if it is not NULL.
    Other,
    /// An object of a time zone's name and of a TIMESTAMP's text, or text in the source's own.
    ZonedText {
        zone_member: String,
        text_member: String,
    },
}

/// What readers share: scratch space, and the zone of TIMESTAMP text.
#[derive(Default)]
pub struct Tools {
    /// Of text that brings none.
    pub zone: Zone,
    /// By the names that values bring.
    pub zones: ByText<Zone>,
    pub variants: Variants,
    pub extra: extra::Kept,
    /// Of text without its escapes.
    pub plain: Vec<u8>,
    pub text: String,
    pub more: String,
    pub bytes: Vec<u8>,
    pub number: String,
    /// Of the values of a message that are counted.
    pub notes: Vec<Arc<str>>,
    /// Of the last value with a zone that is not among `zones`.
    pub missing_zone: Option<String>,
}

impl Encoding {
    /// Whether a number is read in place of its text.
    pub fn takes(&self, token: Token) -> bool {
        match self {
            Self::JsonNumber(Number::Decimal { .. }) => token.kind == Kind::Long,
            Self::JsonNumber(_) | Self::EpochDays => true,
            Self::EpochMillis(_) | Self::EpochMicros(_) | Self::EpochNanos(_) => true,
            _ => false,
        }
    }

    /// Whether values are bytes, as text of one character a byte.
    pub fn is_of_bytes(&self) -> bool {
        matches!(
            self,
            Self::MysqlText(MysqlText::Binary { .. }) | Self::CharsetText { .. }
        )
    }
}

pub const UNKNOWN_ZONE: &str = "a time zone that the kernel lacks";

pub const BROKEN: Refusal = Refusal::new("text that is no value of the column's type", 0);
