//! How to write the rows of a table, as described by the bridge.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, de};

use crate::plan::Image;
use crate::values::Offsets;
use crate::write::json_text::Escapes;

/// Settings shared by all rows.
#[derive(Debug, Deserialize)]
pub struct Settings {
    pub shape: Shape,
    /// Operations of rows, and how to write them.
    pub ops: HashMap<String, Written>,
    pub needs_commit_ts: bool,
    /// Whether updates of the key are left to the reference, which splits them.
    pub splits: bool,
    /// Whether changes of a key must be in order.
    pub ordered: bool,
    /// Maximum bytes of value and key together.
    pub max_bytes: usize,
    pub zone: Offsets,
    /// For topics.
    pub partitions: Option<Partitions>,
    /// Whether messages are lines, each with a line break.
    pub lines: bool,
    /// For messages with several rows.
    pub batches: Option<Limits>,
    /// The note for counting decimals that a double rounds.
    pub rounded: String,
    /// The note for counting rows with a generated `commit_ts`; None: such rows are refused.
    pub made: Option<String>,
}

/// The shape of the rows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Columns of one table; the names of the added columns have a prefix.
    Changes {
        prefix: String,
        /// Smaller numbers are not a `commit_ts`.
        first_commit_ts: i64,
    },
    Events,
    /// Events with a number for the table of each row.
    NumberedEvents,
}

/// The operation that an operation is written as.
#[derive(Debug, Deserialize)]
pub struct Written {
    pub op: WrittenOp,
    /// The note for counting this.
    pub note: Option<String>,
}

/// An operation that messages have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrittenOp {
    Insert,
    Update,
    Delete,
    Upsert,
    Read,
    Truncate,
}

/// A table's columns and messages.
#[derive(Debug, Deserialize)]
pub struct Table {
    /// Database, schema and table.
    pub name: [String; 3],
    pub columns: Vec<Column>,
    /// Indexes of the key columns.
    pub keys: Vec<usize>,
    /// The distinct parts of all messages.
    pub parts: Vec<Part>,
    /// The distinct members of all images.
    pub members: Vec<Member>,
    pub messages: HashMap<WrittenOp, MessagePlan>,
    /// For rows that need a permit.
    pub version: Option<Version>,
}

/// A column, and the printer of its type.
#[derive(Debug, Deserialize)]
pub struct Column {
    pub name: String,
    pub printer: Printer,
}

/// Indexes of a table's parts: messages of different operations share most of them.
pub type Parts = Vec<usize>;

/// How to write the message of one operation.
#[derive(Debug, Deserialize)]
pub struct MessagePlan {
    pub key: Option<Parts>,
    pub value: Parts,
    pub wire: Wire,
    /// Whether the key is compressed, if values are.
    pub compresses_key: bool,
    /// For files.
    pub line: Line,
}

/// The part of a message in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Value,
    /// Key and value in base64.
    Message,
}

/// The syntax of numbers and values in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    Json,
    /// JSON with fewer escapes.
    Jsoniter,
    /// JSON with only the escapes that JSON requires.
    Orjson,
    Avro,
}

impl Wire {
    /// Escapes of JSON strings; unused for Avro.
    pub fn escapes(self) -> Escapes {
        match self {
            Wire::Jsoniter => Escapes::NoHtml,
            Wire::Orjson => Escapes::Few,
            _ => Escapes::Go,
        }
    }
}

/// An integer of the event's `extra`, else `default`.
#[derive(Debug, Deserialize)]
pub struct Version {
    pub name: String,
    pub default: i64,
}

/// A time of the row as a number.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Number {
    CommitTs,
    /// Milliseconds of the `commit_ts`, else of the source time.
    SourceMillis,
    /// Milliseconds of the source time, else of the `commit_ts`.
    ExecutedMillis,
    /// The same in seconds.
    ExecutedSeconds,
    /// Milliseconds of the emit time, else the current time.
    EmitMillis,
}

/// Bytes, each represented by a character in JSON.
#[derive(Debug, Default)]
pub struct Raw(pub Vec<u8>);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes: Result<_, _> = text.chars().map(u8::try_from).collect();
        bytes.map(Raw).map_err(de::Error::custom)
    }
}

/// The next part of a message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Text(Raw),
    Number(Number),
    Members(Members),
    /// `above` if a column's integer is at least `limit`, else `below`.
    ByLimit {
        image: Image,
        place: usize,
        limit: u64,
        below: Raw,
        above: Raw,
    },
    /// `fine` if a wall clock in either image is finer than milliseconds.
    ByPrecision {
        place: usize,
        coarse: Raw,
        fine: Raw,
    },
    Extra(ExtraValue),
    Texts(Texts),
    Choice(Choice),
    /// The named integer of the event's `extra`, else the last row's number plus one.
    RowNumber(String),
    Checksum(Checksum),
}

/// Parts selected by a text of the event's `extra`; None: the row is refused.
#[derive(Debug, Deserialize)]
pub struct Choice {
    pub name: String,
    pub among: Vec<(Vec<String>, Option<Parts>)>,
    /// Parts for any other text.
    pub default: Option<Parts>,
}

/// A map of texts of the event's `extra`, with those of `more` that it lacks.
#[derive(Debug, Deserialize)]
pub struct Texts {
    pub name: String,
    pub more: Vec<(String, String)>,
}

/// Members of an image; `missing` if the row lacks the image.
#[derive(Debug, Deserialize)]
pub struct Members {
    pub image: Image,
    /// Indexes of the table's members.
    pub members: Vec<usize>,
    pub head: Raw,
    pub tail: Raw,
    /// None: a row without the image is refused.
    pub missing: Option<Raw>,
    pub separator: Raw,
    /// Only columns whose text differs from that in the other image.
    pub changed: bool,
    /// Also columns whose value differs; a row without any is refused.
    pub by_value: bool,
}

/// A column: the text before it, around its values, and instead of NULL, which may be refused.
#[derive(Debug, Deserialize)]
pub struct Member {
    pub place: usize,
    pub encoding: PrintEncoding,
    pub label: Raw,
    pub head: Raw,
    pub tail: Raw,
    pub null: Option<Raw>,
}

/// A value of the event's `extra`, else `default`; `zero` replaces 0.
#[derive(Debug, Deserialize)]
pub struct ExtraValue {
    pub name: String,
    #[serde(rename = "type")]
    pub of: ExtraType,
    pub default: Raw,
    pub head: Raw,
    pub tail: Raw,
    pub zero: Option<Raw>,
    /// The column whose integer is used if `extra` has none.
    pub column: Option<ColumnOf>,
}

/// A column of an image.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ColumnOf {
    pub image: Image,
    pub place: usize,
}

/// The type of a value in `extra`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtraType {
    Text,
    Integer,
    /// A list of integers, as an Avro array.
    Integers,
    Json,
}

/// The columns of a checksum, in order.
#[derive(Debug, Deserialize)]
pub struct Checksum {
    pub columns: Vec<Summed>,
}

/// A column of a checksum.
#[derive(Debug, Deserialize)]
pub struct Summed {
    pub place: usize,
    pub kind: SummedKind,
}

/// The form of a value in the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummedKind {
    /// 64 bits of an integer.
    Number,
    /// A double; for a FLOAT the nearest double.
    Float,
    Double,
    /// Text (instants in UTC) or bytes, after their length.
    Text,
}

/// The partitions of a topic.
#[derive(Debug, Deserialize)]
pub struct Partitions {
    pub count: u32,
    pub by: PartitionBy,
}

/// The values that determine the partition of a row.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionBy {
    Key,
    Table,
    CommitTs,
    Columns(Vec<String>),
}

/// Limits of one message.
#[derive(Debug, Deserialize)]
pub struct Limits {
    pub max_rows: usize,
    /// Maximum bytes of key and value together.
    pub max_bytes: usize,
    /// The first bytes of a key.
    pub head: Raw,
}

/// A value encoding to print; `plan::Encoding` is that of readers.
#[derive(Debug, Deserialize)]
#[serde(tag = "encoding", rename_all = "kebab-case")]
pub enum PrintEncoding {
    MysqlText,
    /// As a number, also for members of enums and sets.
    MysqlJson,
    JsonNumber {
        /// Integers beyond 63 bits are written as signed integers with the same bits.
        wraps: bool,
        /// In Avro: a FLOAT is written as a 64-bit double.
        doubles: bool,
        /// Minimum number of digits of an exponent.
        exponent_digits: usize,
    },
    JsonBoolean,
    /// Unchanged.
    Text,
    IsoText,
    IsoDuration,
    Base64,
    Base64Text,
    Hex,
    GoQuoted,
    IsoInstant,
    EpochDays,
    EpochMillis,
    EpochMicros,
    EpochNanos,
    /// Milliseconds, or microseconds if the row has finer values.
    EpochGuessed,
    LittleEndianBits {
        bits: u32,
    },
    /// A decimal's integer, as base64.
    ConnectDecimal {
        scale: u32,
    },
    VariableScaleDecimal,
    List {
        items: Box<PrintPart>,
    },
    Map {
        values: Box<PrintPart>,
    },
    Struct {
        fields: Vec<PrintPart>,
    },
    Geometry,
    /// Text in a charset that includes ASCII.
    CharsetText,
    /// Integer text of a decimal.
    IntegerText,
    /// Year to microsecond, some of which may be null.
    CalendarParts,
    /// Seconds since 1970, and microseconds.
    EpochPair,
    /// Only NULL is printed.
    #[serde(other)]
    Other,
}

/// The items of a list, the values of a map, or a field of a struct.
#[derive(Debug, Deserialize)]
pub struct PrintPart {
    /// Of a field.
    pub name: String,
    pub encoding: PrintEncoding,
    pub printer: Printer,
    pub has_nulls: bool,
}

/// A logical type, for the printers of its values.
#[derive(Debug, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum Printer {
    Bool,
    Int {
        low: i64,
        high: u64,
    },
    Float {
        bits: u8,
    },
    Decimal {
        /// Precision and scale.
        digits: Option<(u32, u32)>,
    },
    Text,
    Binary {
        /// Maximum number of bytes.
        longest: Option<usize>,
    },
    Date,
    DateTime {
        fsp: Option<u32>,
    },
    Timestamp {
        fsp: Option<u32>,
    },
    Time {
        fsp: Option<u32>,
    },
    Year,
    /// Index by member, if names are known; else the largest index.
    Enum {
        members: HashMap<String, u64>,
        most: u64,
        is_named: bool,
    },
    /// Members are joined by commas; their bits form a number.
    Set {
        members: HashMap<String, u64>,
        most: u64,
        is_named: bool,
    },
    Json,
    /// The text, unchanged.
    JsonText,
    Uuid,
    TimeTz,
    Interval {
        /// Whether it has days: the microseconds of a day are one.
        days: bool,
    },
    /// Only NULL is printed.
    Other,
}
