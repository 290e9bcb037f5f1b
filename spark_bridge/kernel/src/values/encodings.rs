//! Value encodings: the forms of a column's values in messages.
//!
//! `cdcfmt_core/toolkit/encodings.py` has the table of their names,
//! `cdcfmt_core/toolkit/value_readers.py` the Python readers.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use serde::Deserialize;

use crate::json::{Kind, Token};
use crate::read::batch::extra;
use crate::refusal::Refusal;
use crate::text::ByText;
use crate::values::clocks::Clock;
use crate::values::packed::{BytesText, Unscaled};
use crate::values::scalars::Number;
use crate::values::zones::Zone;
use crate::variant::Variants;

/// MySQL's text of a logical type (`cdcfmt_core/types.py`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum MysqlText {
    Bool,
    /// Integers within bounds.
    Int {
        low: i64,
        high: u64,
    },
    Float,
    /// `scale` fractional digits, if known.
    Decimal {
        scale: Option<usize>,
    },
    Text,
    /// Padded with zeros to this number of bytes.
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
    /// An index or a name; `names` are those of the column.
    Enum {
        names: Option<Vec<String>>,
    },
    /// A bitmap, or names joined by commas.
    Set {
        names: Option<Vec<String>>,
    },
    Json,
}

/// An encoding, with its parameters from the column's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "encoding", rename_all = "kebab-case")]
pub enum Encoding {
    MysqlText(MysqlText),
    /// Like `MysqlText`, or a number or boolean instead of text.
    MysqlJson(MysqlText),
    /// Bytes in padded base64.
    Base64,
    /// Text in padded base64.
    Base64Text,
    /// Bytes in hexadecimal.
    Hex,
    /// Bytes as Go's `strconv.Quote` writes them.
    GoQuoted,
    /// Bytes in Latin-1, base64 or hexadecimal, if only one of them is possible.
    DetectedBytes {
        exact: Option<usize>,
        longest: Option<usize>,
    },
    /// Bytes in base64 or hexadecimal.
    BytesText(BytesText),
    JsonNumber(Number),
    JsonBoolean,
    /// Any JSON value of unknown type.
    JsonValue,
    /// Text unchanged, except for aliases.
    Text {
        json: bool,
        aliases: BTreeMap<String, String>,
    },
    /// MySQL's text, optionally followed by `Z`.
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
    /// Kafka Connect's Decimal or text, if only one of them is possible.
    GuessedDecimal {
        scale: u8,
    },
    LittleEndianBits {
        bits: u32,
    },
    /// Text with one byte per character, in a charset that includes ASCII.
    CharsetText {
        is_latin1: bool,
    },
    /// An integer for a decimal column.
    IntegerText,
    /// Year to microsecond, some of which may be null; or MySQL's text.
    CalendarParts(MysqlText),
    /// Seconds since 1970, and microseconds.
    EpochPair,
    /// Refused unless NULL.
    Other,
    /// An object of a time zone's name and a TIMESTAMP's text, or text in the source's zone.
    ZonedText {
        zone_member: String,
        text_member: String,
    },
}

/// State that readers share: buffers, and time zones of TIMESTAMP text.
#[derive(Default)]
pub struct Tools {
    /// The zone of text without a zone.
    pub zone: Zone,
    /// Zones by the names in values.
    pub zones: ByText<Zone>,
    pub variants: Variants,
    pub extra: extra::PreviousExtra,
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

impl Encoding {
    /// Whether the encoding accepts a number instead of text.
    pub fn takes(&self, token: Token) -> bool {
        match self {
            Self::JsonNumber(Number::Decimal { .. }) => token.kind == Kind::Long,
            Self::JsonNumber(_) | Self::EpochDays => true,
            Self::EpochMillis(_) | Self::EpochMicros(_) | Self::EpochNanos(_) => true,
            _ => false,
        }
    }

    /// Its name in Python.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MysqlText(_) => "mysql-text",
            Self::MysqlJson(_) => "mysql-json",
            Self::Base64 => "base64",
            Self::Base64Text => "base64-text",
            Self::Hex => "hex",
            Self::GoQuoted => "go-quoted",
            Self::DetectedBytes { .. } => "detected-bytes",
            Self::BytesText(_) => "bytes-text",
            Self::JsonNumber(_) => "json-number",
            Self::JsonBoolean => "json-boolean",
            Self::JsonValue => "json-value",
            Self::Text { .. } => "text",
            Self::IsoText(_) => "iso-text",
            Self::IsoInstant => "iso-instant",
            Self::EpochDays => "epoch-days",
            Self::EpochMillis(_) => "epoch-millis",
            Self::EpochMicros(_) => "epoch-micros",
            Self::EpochNanos(_) => "epoch-nanos",
            Self::EpochGuessed(_) => "epoch-guessed",
            Self::ConnectDecimal(_) => "connect-decimal",
            Self::GuessedDecimal { .. } => "guessed-decimal",
            Self::LittleEndianBits { .. } => "little-endian-bits",
            Self::CharsetText { .. } => "charset-text",
            Self::IntegerText => "integer-text",
            Self::CalendarParts(_) => "calendar-parts",
            Self::EpochPair => "epoch-pair",
            Self::Other => "other",
            Self::ZonedText { .. } => "zoned-text",
        }
    }

    /// Whether values are bytes, as text with one byte per character.
    pub fn is_of_bytes(&self) -> bool {
        matches!(
            self,
            Self::MysqlText(MysqlText::Binary { .. }) | Self::CharsetText { .. }
        )
    }
}

pub const BROKEN: Refusal = Refusal::new("text is not a value of the column's type", 0);
