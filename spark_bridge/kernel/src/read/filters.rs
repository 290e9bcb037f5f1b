//! Skips unwanted messages, by table, operation or time.

use std::sync::Arc;

use crate::connect;
use crate::read::kernel::{Kernel, Outcome};
use crate::read::plans::Plan;
use crate::read::plans::{Name, PLANS_OF_TABLE};
use crate::refusal::{Refusal, Step};

/// Maximum bytes of names and schemas of tables without plans.
const LOOKED_AT_BYTES: usize = 8 << 20;

/// Results of the reference for a table.
#[derive(Default)]
pub struct LookedAt {
    /// Valid schemas of payloads; newest first.
    schemas: Vec<String>,
    is_unwanted: bool,
}

impl LookedAt {
    fn has(&self, schema: &str) -> bool {
        self.schemas.iter().any(|known| known == schema)
    }
}

impl Kernel {
    /// Lets the filters skip messages with this one's table and schema; `all`: skip all of them.
    pub fn skip(&mut self, value: &[u8], key: Option<&[u8]>, all: bool) -> Step<()> {
        let (layout, document) = &self.look(value, key)?;
        let schema = self.schema(*layout, document);
        if !schema.is_empty() {
            connect::check_schema(schema)?;
        }
        let name = self.envelope.name(document).to_name();
        if self.looked_at_bytes > LOOKED_AT_BYTES {
            self.looked_at.clear();
            self.looked_at_bytes = 0;
        }
        let names = name.iter().map(|name| name.len()).sum::<usize>();
        self.looked_at_bytes += names + size_of::<Name>() + schema.len();
        let table = self.looked_at.entry(name).or_default();
        table.is_unwanted = all;
        table.schemas.retain(|known| known != schema);
        table.schemas.insert(0, schema.to_owned());
        table.schemas.truncate(PLANS_OF_TABLE);
        Ok(())
    }

    /// The schema of the last document's payload; empty without one.
    fn schema<'a>(&self, layout: usize, document: &'a str) -> &'a str {
        let part = self.settings.layouts[layout].schema;
        part.map_or("", |part| self.envelope.key[part].text(document))
    }

    /// Applies the filters to a row's envelope; None if they want it.
    pub fn refused_by_filters(&mut self, layout: usize, document: &str) -> Step<Option<Outcome>> {
        if !self.envelope.is_row(&self.settings.layouts[layout]) {
            return Err(Refusal::new("a message without rows", 0));
        }
        if self.envelope.table.text(document).is_empty() {
            return Err(Refusal::new("no table", 0));
        }
        if self.envelope.lacks_time(&self.settings.layouts[layout]) {
            return Err(Refusal::new("no time", 0));
        }
        if self.guess_for(document).is_none()
            && let Some(table) = self.looked_at.get(&self.envelope.name(document))
            && table.is_unwanted
            && table.has(self.schema(layout, document))
        {
            return Ok(Some(Outcome::Skipped));
        }
        if self.is_wanted()? {
            return Ok(None);
        }
        let is_good = self.is_good(layout, document);
        Ok(Some(match is_good {
            true => Outcome::Skipped,
            false => Outcome::Unknown,
        }))
    }

    /// Whether the payload's schema is known to be valid; it is not parsed here.
    fn is_good(&self, layout: usize, document: &str) -> bool {
        let schema = self.schema(layout, document);
        let name = self.envelope.name(document);
        let part = self.settings.layouts[layout].schema;
        let is_plans =
            |plan: &Arc<Plan>| part.and_then(|part| plan.key.bytes_of_part(part)) == Some(schema);
        schema.is_empty()
            || self
                .looked_at
                .get(&name)
                .is_some_and(|table| table.has(schema))
            || self.plans.of(name).iter().any(is_plans)
    }

    /// Whether to read rows with the envelope's operation and `commit_ts`.
    pub fn is_wanted(&self) -> Step<bool> {
        if let Some(ops) = &self.settings.wanted_ops
            && self.envelope.op.is_some_and(|op| !ops.contains(&op))
        {
            return Ok(false);
        }
        if self
            .envelope
            .commit_ts
            .is_some_and(|commit_ts| commit_ts < self.settings.low_watermark)
        {
            return Err(Refusal::new("a row that may have come before", 0));
        }
        let (low, high) = (
            self.settings.starting_commit_ts,
            self.settings.ending_commit_ts,
        );
        if low.is_none() && high.is_none() {
            return Ok(true);
        }
        let Some(commit_ts) = self.envelope.commit_ts else {
            return Err(Refusal::new("no commit_ts", 0));
        };
        Ok(low.is_none_or(|low| low <= commit_ts) && high.is_none_or(|high| commit_ts <= high))
    }
}
