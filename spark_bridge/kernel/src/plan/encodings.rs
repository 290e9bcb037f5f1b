//! Value encodings: the forms of a column's values in messages.
//!
//! `cdcfmt_toolkit/encodings.py` has the table of their names,
//! `cdcfmt_toolkit/value_readers.py` the Python readers.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::json::{Kind, Token};
use crate::refusal::{Reason, Refusal, Result};
use crate::text::bytes::Bound;

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
    /// Text unchanged, except for aliases; `only`: in the usual form of this type.
    Text {
        json: bool,
        only: Option<UsualText>,
        aliases: BTreeMap<String, String>,
    },
    /// A list of values.
    List {
        items: Box<Part>,
    },
    /// An object with any names.
    Map {
        values: Box<Part>,
    },
    /// An object with a member for each field.
    Struct {
        fields: Vec<Part>,
    },
    /// An object of well-known binary, a number of its reference system, and others.
    Geometry,
    /// MySQL's text, optionally followed by `Z`.
    IsoText(MysqlText),
    /// `2024-01-01T00:00:00.5Z`
    IsoInstant,
    /// `P1Y2M3DT4H5M6.5S`, with all parts.
    IsoDuration,
    /// Days since 1970.
    EpochDays,
    EpochMillis(Clock),
    EpochMicros(Clock),
    EpochNanos(Clock),
    EpochGuessed(Clock),
    /// Kafka Connect's Decimal, or a number.
    ConnectDecimal(Unscaled),
    /// An object of a scale and an unscaled integer.
    VariableScaleDecimal,
    /// Kafka Connect's Decimal or text, if only one of them is possible.
    GuessedDecimal {
        scale: u8,
    },
    LittleEndianBits {
        bits: u32,
    },
    BigEndianBits {
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

impl Encoding {
    /// Whether the encoding accepts a number instead of text.
    pub fn takes(&self, token: Token) -> bool {
        match self {
            // A double in Avro has no digits of its own, so a decimal is read from its shortest
            // text; Connect's decimal is read from its unscaled integer.
            Self::JsonNumber(Number::Decimal { .. }) | Self::ConnectDecimal(_) => {
                token.kind == Kind::Long
            }
            Self::JsonNumber(_)
            | Self::EpochDays
            | Self::EpochMillis(_)
            | Self::EpochMicros(_)
            | Self::EpochNanos(_) => true,
            _ => false,
        }
    }

    /// The items of a list, the values of a map, or the fields of a struct.
    pub fn parts(&self) -> &[Part] {
        match self {
            Self::List { items: part } | Self::Map { values: part } => std::slice::from_ref(part),
            Self::Struct { fields } => fields,
            _ => &[],
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
            Self::List { .. } => "list",
            Self::Map { .. } => "map",
            Self::Struct { .. } => "struct",
            Self::Geometry => "geometry",
            Self::IsoText(_) => "iso-text",
            Self::IsoInstant => "iso-instant",
            Self::IsoDuration => "iso-duration",
            Self::EpochDays => "epoch-days",
            Self::EpochMillis(_) => "epoch-millis",
            Self::EpochMicros(_) => "epoch-micros",
            Self::EpochNanos(_) => "epoch-nanos",
            Self::EpochGuessed(_) => "epoch-guessed",
            Self::ConnectDecimal(_) => "connect-decimal",
            Self::VariableScaleDecimal => "variable-scale-decimal",
            Self::GuessedDecimal { .. } => "guessed-decimal",
            Self::LittleEndianBits { .. } => "little-endian-bits",
            Self::BigEndianBits { .. } => "big-endian-bits",
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
            Self::MysqlText(MysqlText::Binary { .. })
                | Self::MysqlJson(MysqlText::Binary { .. })
                | Self::CharsetText { .. }
        )
    }
}

/// A JSON number of a logical type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum Number {
    /// `wraps`: unsigned 64-bit values are written as signed ones with the same bits.
    Int {
        low: i64,
        high: u64,
        wraps: bool,
    },
    Float,
    /// `whole` digits before the point, `scale` after it.
    /// `doubles`: the value is known only by the shortest digits of a double.
    Decimal {
        whole: u8,
        scale: Option<u8>,
        doubles: bool,
    },
    /// 0 is written as 1900.
    Year,
}

/// Maximum digits of a DECIMAL.
pub const MAX_DIGITS: usize = 65;

impl Number {
    /// A DECIMAL of any number of digits.
    pub fn decimal(scale: Option<usize>) -> Self {
        Self::Decimal {
            whole: MAX_DIGITS as u8,
            scale: scale.and_then(|scale| scale.try_into().ok()),
            doubles: false,
        }
    }
}

/// The items of a list, the values of a map, or a field of a struct: their encoding, and what a
/// column with it would have besides.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Part {
    /// Of a field.
    pub name: String,
    #[serde(flatten)]
    pub encoding: Encoding,
    pub bound: Option<Bound>,
    /// The form of their integers in images.
    pub form: Form,
    pub has_nulls: bool,
}

/// The form of a column's integers in images, for all values of the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    Plain,
    Decimal,
    Boolean,
    /// Negative values are left to the reference.
    Signless,
}

impl Form {
    /// Refuses an integer whose sign is not known.
    pub fn check(self, value: i128) -> Result<()> {
        // Debezium may write unsigned BIGINT as signed.  `extra` names the columns with negative
        // values, a list that only the reference makes.
        if self == Self::Signless && (i128::from(i64::MIN)..0).contains(&value) {
            let text = "an integer whose sign is not known";
            return Err(Refusal::of(Reason::Doubt, text, 0));
        }
        Ok(())
    }
}

/// A type whose usual text is the text of its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsualText {
    Uuid,
    TimeTz,
}

/// The kind of time: since 1970 as a wall clock or in UTC, since midnight, or an interval.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum Clock {
    DateTime { fsp: Option<u32> },
    Timestamp,
    Time { fsp: Option<u32> },
    Interval,
}

/// The integer of a decimal, or an unsigned 64-bit integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum Unscaled {
    Int {
        low: i64,
        high: u64,
    },
    /// `whole` digits before the point, `scale` after it.
    Decimal {
        whole: u8,
        scale: u8,
    },
}

impl Unscaled {
    /// A decimal of any number of digits.
    pub fn decimal(scale: u8) -> Self {
        let whole = MAX_DIGITS as u8;
        Self::Decimal { whole, scale }
    }
}

/// Bytes in one of two forms, and the column's number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct BytesText {
    pub form: BytesForm,
    pub exact: Option<usize>,
    pub longest: Option<usize>,
}

/// The form of bytes: that of the option, or the only possible one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BytesForm {
    Auto,
    Base64,
    Hex,
}
