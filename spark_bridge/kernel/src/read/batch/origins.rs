//! Rows, and what they share with the other rows of their message.

use std::ops::Range;
use std::sync::Arc;

use crate::plan::Op;
use crate::read::plans::Plan;

/// The kind of a row, as named in `_change_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Insert,
    Preimage,
    Postimage,
    Delete,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Preimage => "update_preimage",
            Self::Postimage => "update_postimage",
            Self::Delete => "delete",
        }
    }

    /// The order of a key's changes in one commit.
    pub fn rank(self) -> i32 {
        i32::from(self != Self::Delete)
    }

    /// The order of the two rows of an update.
    pub fn part(self) -> i32 {
        i32::from(!matches!(self, Self::Preimage | Self::Delete))
    }
}

/// Where a message is in its topic.
#[derive(Clone, Copy, Default)]
pub struct Place {
    pub epoch: i32,
    pub partition: i32,
    pub offset: Option<i64>,
}

/// A position in the log of the source database.
#[derive(Clone)]
pub struct LogPosition {
    pub server: Option<i64>,
    pub file: Arc<str>,
    pub pos: i64,
}

/// Values that all rows of one message share.
#[derive(Clone)]
pub struct Origin {
    pub message: i32,
    /// Index of the first row within its message.
    pub index: usize,
    pub place: Place,
    pub log: Option<LogPosition>,
    pub commit_ts: Option<i64>,
    pub source_time: Option<i64>,
    pub keyed: bool,
    pub orders_by_source_time: bool,
    pub unit: i64,
    pub absent: Arc<[String]>,
    pub event: Option<EventOrigin>,
    /// Bytes of a row, excluding its text and binary values.
    pub row_bytes: usize,
}

/// A row of the batch; `origin` is the index of its message's values.
pub struct Row {
    pub change: Change,
    pub index: i32,
    pub origin: u32,
}

/// Values that all events of one message share.
#[derive(Clone)]
pub struct EventOrigin {
    pub plan: Arc<Plan>,
    pub op: Op,
    pub emit_time: Option<i64>,
    /// Ranges of value and metadata of `extra`.
    pub extra: Option<(Range<usize>, Range<usize>)>,
}
