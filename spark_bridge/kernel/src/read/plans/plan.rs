//! Plans: how to read the rows of one table schema; found by the schema key.

use std::sync::Arc;

use hashbrown::Equivalent;
use serde::Deserialize;

use crate::read::envelope::Envelope;
use crate::read::envelope::{Name, NameRef};
use crate::read::plans::example::Example;
use crate::read::plans::row_plan::{self, RowPlan};
use crate::read::plans::schema_key::SchemaKey;
use crate::read::plans::shared::Shared;
use crate::refusal::Result;

/// A plan, as described by the bridge.
#[derive(Deserialize)]
pub struct Description {
    rows: row_plan::Description,
    /// Bytes of names that each row of a message repeats.
    repeats: usize,
    /// Maximum bytes of members of ENUM and SET columns in the images of a row.
    members: usize,
    /// The table's names in events.
    shown: Option<Shown>,
    #[serde(flatten)]
    spans: Spans,
}

/// A table, as shown in events.
#[derive(Deserialize)]
pub struct Shown {
    pub database: Arc<str>,
    pub schema: Option<Arc<str>>,
    pub table: Arc<str>,
    /// Number of its schema, for writers of the rows.
    pub number: Option<i32>,
}

/// First and last `commit_ts`, time or position for which a schema is valid.
#[derive(PartialEq, Eq, Deserialize)]
struct Spans {
    #[serde(default)]
    commit_ts: Option<(i64, i64)>,
    #[serde(default)]
    source_time: Option<(i64, i64)>,
    #[serde(default)]
    other_time: Option<(i64, i64)>,
    #[serde(default)]
    position: Option<(i64, i64)>,
}

/// How to read the messages of one table schema.
pub struct Plan {
    /// Database, schema and table.
    pub table: Name,
    pub shown: Option<Shown>,
    /// The index of the layout that defines the parts of the key.
    pub layout: usize,
    pub key: Arc<SchemaKey>,
    /// As in the envelope; a part of the key, apart from it, so that tables can share the rest.
    pub writers: [usize; 2],
    pub rows: Arc<RowPlan>,
    pub repeats: usize,
    pub members: usize,
    spans: Spans,
}

impl Plan {
    /// Makes a plan for messages with the schema key of the document just read.
    pub fn new(
        description: Description,
        outputs: usize,
        example: &Example,
        shared: &mut Shared,
    ) -> Result<Self> {
        let &Example {
            layout,
            envelope,
            document,
            ..
        } = example;
        let rows = RowPlan::new(description.rows, outputs, example, &mut shared.parts)?;
        let key = SchemaKey::new(layout, envelope, document, example.key, &rows.names)?;
        let table = envelope.name(document);
        let table = [table.0, table.1, table.2].map(|name| shared.name(name));
        let shown = description.shown.map(|shown| Shown {
            database: shared.name(&shown.database),
            schema: shown.schema.map(|schema| shared.name(&schema)),
            table: shared.name(&shown.table),
            number: shown.number,
        });
        Ok(Self {
            table,
            shown,
            layout: layout.number,
            key: shared.keys.share(key),
            writers: envelope.writers,
            rows: shared.rows.share(rows),
            repeats: description.repeats,
            members: description.members,
            spans: description.spans,
        })
    }

    /// Approximate bytes of memory, excluding key and rows.
    pub fn bytes(&self) -> usize {
        // An estimate is enough: it decides when plans are dropped, not how much is allocated.
        // The table's name is usually not shared with other plans.
        size_of::<Self>() + self.table[2].len()
    }

    /// Whether the plan is for messages with the same key and columns as the other one.
    pub fn replaces(&self, other: &Self) -> bool {
        self.layout == other.layout
            && self.key == other.key
            && self.writers == other.writers
            && self.rows.reads_same(&other.rows)
            && self.spans == other.spans
    }

    /// Whether the envelope has the plan's schema key.
    pub fn fits(&self, envelope: &Envelope, document: &str) -> bool {
        self.layout == envelope.layout && self.holds(envelope) && self.key.fits(envelope, document)
    }

    /// Whether the plan is for this table.
    pub fn has_name(&self, name: NameRef) -> bool {
        name.equivalent(&self.table)
    }

    /// Whether the schema is valid at the envelope's position.
    pub fn holds(&self, envelope: &Envelope) -> bool {
        let within = |span: Option<(i64, i64)>, time: Option<i64>| match span {
            None => true,
            Some((low, high)) => time.is_some_and(|time| low <= time && time <= high),
        };
        let Spans {
            commit_ts,
            source_time,
            other_time,
            position,
        } = self.spans;
        // A commit_ts has priority over other positions.
        let in_position = position.is_none() || envelope.commit_ts.is_none();
        within(commit_ts, envelope.commit_ts)
            && within(source_time, envelope.source_time)
            && within(other_time, envelope.other_time)
            && within(position, envelope.position)
            && in_position
    }
}

impl Shown {
    /// Bytes of the names in a row.
    pub fn bytes(&self) -> usize {
        self.database.len() + self.schema.as_ref().map_or(0, |name| name.len()) + self.table.len()
    }
}
