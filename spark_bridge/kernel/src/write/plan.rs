//! How the rows of a table are written, as the bridge describes it.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, de};

use crate::write::batches::Limits;
use crate::write::checksum::Checksum;
use crate::write::clocks::Offsets;
use crate::write::encodings::Encoding;
use crate::write::json_text::Escapes;
use crate::write::partition::Partitions;
use crate::write::printing::Printer;

/// What is the same for all rows.
#[derive(Debug, Deserialize)]
pub struct Settings {
    pub shape: Shape,
    /// Operations of rows: what they are written as.
    pub ops: HashMap<String, Written>,
    pub needs_commit_ts: bool,
    /// Whether updates of the key are for the reference, which splits them.
    pub splits: bool,
    /// Whether changes of a key have to be in order.
    pub ordered: bool,
    /// Largest value and key together.
    pub max_bytes: usize,
    pub zone: Offsets,
    /// Of a topic.
    pub partitions: Option<Partitions>,
    /// Whether messages are lines, each with its end.
    pub lines: bool,
    /// Of messages with several rows.
    pub batches: Option<Limits>,
    /// Under which decimals are counted that a double rounds.
    pub rounded: String,
    /// Under which rows are counted that get a commit_ts; None: they are refused.
    pub made: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Columns of one table, with the names of these that tell of the change.
    Changes {
        prefix: String,
        /// A commit_ts that is smaller is none.
        first_commit_ts: i64,
    },
    Events,
    /// The same; a number tells the table of each.
    NumberedEvents,
}

/// The operation that an operation is written as.
#[derive(Debug, Deserialize)]
pub struct Written {
    pub op: Op,
    /// Under which this is counted.
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
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
    /// Database, schema and name.
    pub name: [String; 3],
    pub columns: Vec<Column>,
    /// Places of the key columns.
    pub keys: Vec<usize>,
    pub messages: HashMap<Op, Message>,
    /// Of rows that have to be allowed.
    pub version: Option<Version>,
}

#[derive(Debug, Deserialize)]
pub struct Column {
    pub name: String,
    pub printer: Printer,
}

#[derive(Debug, Deserialize)]
pub struct Message {
    pub key: Option<Vec<Part>>,
    pub value: Vec<Part>,
    pub wire: Wire,
    /// Where values are compressed.
    pub compresses_key: bool,
    /// In a file.
    pub line: Line,
}

/// What of a message is a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Value,
    /// Key and value in base64.
    Message,
}

/// How numbers and values stand in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    Json,
    /// With fewer escapes.
    Jsoniter,
    /// With what JSON itself has escaped.
    Orjson,
    Avro,
}

impl Wire {
    /// Those of JSON strings; Avro has none.
    pub fn escapes(self) -> Escapes {
        match self {
            Wire::Jsoniter => Escapes::NoHtml,
            Wire::Orjson => Escapes::Few,
            _ => Escapes::Go,
        }
    }
}

/// An integer of the event's `extra`, or else `default`.
#[derive(Debug, Deserialize)]
pub struct Version {
    pub name: String,
    pub default: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    Before,
    After,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Number {
    CommitTs,
    /// Milliseconds of the commit_ts, or else when it was executed.
    SourceMillis,
    /// Milliseconds of when it was executed, or else of the commit_ts.
    ExecutedMillis,
    /// The same in seconds.
    ExecutedSeconds,
    /// Milliseconds of when it was written, or else now.
    EmitMillis,
}

/// Bytes, each of them a character of JSON.
#[derive(Debug, Default)]
pub struct Raw(pub Vec<u8>);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes: Result<_, _> = text.chars().map(u8::try_from).collect();
        bytes.map(Raw).map_err(de::Error::custom)
    }
}

/// What stands next in a message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Text(Raw),
    Number(Number),
    Members(Members),
    /// `above` where a column's integer is `limit` or more, else `below`.
    Either {
        image: Image,
        place: usize,
        limit: u64,
        below: Raw,
        above: Raw,
    },
    /// `fine` where a wall clock of either image has more digits than milliseconds.
    Digits {
        place: usize,
        coarse: Raw,
        fine: Raw,
    },
    Extra(Extra),
    Texts(Texts),
    Choice(Choice),
    /// The integer of the event's `extra` with this name, or else the number behind the last row's.
    RowNumber(String),
    Checksum(Checksum),
}

/// Parts by a text of the event's `extra`; None: the row is refused.
#[derive(Debug, Deserialize)]
pub struct Choice {
    pub name: String,
    pub among: Vec<(Vec<String>, Option<Vec<Part>>)>,
    /// Where there is none of these texts.
    pub default: Option<Vec<Part>>,
}

/// A map of texts of the event's `extra`, and those of `more` that it lacks.
#[derive(Debug, Deserialize)]
pub struct Texts {
    pub name: String,
    pub more: Vec<(String, String)>,
}

/// Members of an image; `missing` where the row has no such image.
#[derive(Debug, Deserialize)]
pub struct Members {
    pub image: Image,
    pub members: Vec<Member>,
    pub head: Raw,
    pub tail: Raw,
    /// None: a row without the image is refused.
    pub missing: Option<Raw>,
    pub separator: Raw,
    /// Only columns that are printed otherwise than those of the other image.
    pub changed: bool,
    /// Also those with another value; a row without any is refused.
    pub by_value: bool,
}

/// A column: what stands before it, around its values, and in place of NULL.
#[derive(Debug, Deserialize)]
pub struct Member {
    pub place: usize,
    pub encoding: Encoding,
    pub label: Raw,
    pub head: Raw,
    pub tail: Raw,
    pub null: Raw,
}

/// A value of the event's `extra`, or else `default`; `zero` stands for 0.
#[derive(Debug, Deserialize)]
pub struct Extra {
    pub name: String,
    #[serde(rename = "type")]
    pub of: ExtraType,
    pub default: Raw,
    pub head: Raw,
    pub tail: Raw,
    pub zero: Option<Raw>,
    /// Whose integer stands there where `extra` has none.
    pub column: Option<ColumnOf>,
}

/// A column of an image.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ColumnOf {
    pub image: Image,
    pub place: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtraType {
    Text,
    Integer,
    /// A list of them, as an array of Avro's.
    Integers,
    Json,
}
