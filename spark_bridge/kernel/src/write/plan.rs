//! How the rows of a table are written, as the bridge describes it.

use std::collections::HashMap;

use serde::Deserialize;

use crate::write::partition::Partitions;
use crate::write::printing::{Offsets, Printer};

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
    /// Whether a line break follows each value.
    pub lines: bool,
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
    /// Milliseconds of when it was written, or else now.
    EmitMillis,
}

/// What stands next in a message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Text(String),
    Number(Number),
    /// Members of an image; `missing` where the row has no such image.
    Members {
        image: Image,
        members: Vec<Member>,
        head: String,
        tail: String,
        missing: String,
        /// Only columns whose text differs from that of the other image.
        changed: bool,
    },
    /// `above` where a column's integer is `limit` or more, else `below`.
    Either {
        image: Image,
        place: usize,
        limit: u64,
        below: String,
        above: String,
    },
    /// A text or an integer of the event's `extra`, or else a text of JSON.
    Extra {
        name: String,
        default: String,
        is_text: bool,
    },
}

/// A column, and what stands before its value.
#[derive(Debug, Deserialize)]
pub struct Member {
    pub place: usize,
    pub label: String,
}
