//! Skips unwanted messages, by table, operation or time.

use std::sync::Arc;

use crate::connect;
use crate::read::kernel::{Kernel, Outcome};
use crate::read::plans::Plan;
use crate::refusal::{Refusal, Result};

impl Kernel {
    /// Lets the filters skip messages with this one's table and schema; `all`: skip all of them.
    pub fn skip(&mut self, value: &[u8], key: Option<&[u8]>, all: bool) -> Result<()> {
        let (layout, document) = &self.look(value, key)?;
        let schema = self.schema(*layout, document).to_owned();
        if self.settings.layouts[*layout].schema.is_some() && !schema.is_empty() {
            connect::check_schema(&schema)?;
        }
        let name = self.envelope.name(document).to_name();
        self.filter_cache.add(name, &schema, all);
        Ok(())
    }

    /// The schema of the last document's payload, or what stands for its writer schema; empty if
    /// filters need none.
    fn schema<'a>(&'a self, layout: usize, document: &'a str) -> &'a str {
        if self.settings.framed {
            let program = self.writers.program(self.envelope.writers[0]);
            return program.map_or("", |program| &program.tag);
        }
        let part = self.settings.layouts[layout].schema;
        part.map_or("", |part| self.envelope.key[part].text(document))
    }

    /// Applies the filters to a row's envelope; None if they want it.
    pub(super) fn refused_by_filters(
        &mut self,
        layout: usize,
        document: &str,
    ) -> Result<Option<Outcome>> {
        if !self.envelope.is_row(&self.settings.layouts[layout]) {
            return Err(Refusal::new("not a message of rows", 0));
        }
        if self.envelope.table.text(document).is_empty() {
            return Err(Refusal::new("missing table", 0));
        }
        if self.envelope.lacks_time(&self.settings.layouts[layout]) {
            return Err(Refusal::new("missing time", 0));
        }
        // A table with a plan is wanted, so most messages need no look-up here.
        if self.guess_for(document).is_none()
            && let schema = self.schema(layout, document)
            && let Some(table) = self.filter_cache.get(self.envelope.name(document), schema)
            && table.is_unwanted
        {
            return Ok(Some(Outcome::Skipped));
        }
        if self.is_wanted()? {
            return Ok(None);
        }
        let is_good = self.is_good(layout, document);
        // An unknown schema may be invalid, which the reference must report even for unwanted rows.
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
        let is_plans = |plan: &Arc<Plan>| match part {
            Some(part) => plan.key.bytes_of_part(part) == Some(schema),
            None => plan.writers[0] == self.envelope.writers[0],
        };
        schema.is_empty()
            || self.filter_cache.get(name, schema).is_some()
            || self.plans.of(name).iter().any(is_plans)
    }

    /// Whether to read rows with the envelope's operation, `commit_ts` and time.
    pub(super) fn is_wanted(&self) -> Result<bool> {
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
            return Err(Refusal::new("commit_ts is below the low watermark", 0));
        }
        let (low, high) = (
            self.settings.starting_commit_ts,
            self.settings.ending_commit_ts,
        );
        if low.is_some() || high.is_some() {
            let Some(commit_ts) = self.envelope.commit_ts else {
                return Err(Refusal::new("missing commit_ts", 0));
            };
            if low.is_some_and(|low| commit_ts < low) || high.is_some_and(|high| commit_ts > high) {
                return Ok(false);
            }
        }
        self.is_in_source_times()
    }

    /// Whether the envelope's time is in the range of times of the source.
    fn is_in_source_times(&self) -> Result<bool> {
        let settings = &self.settings;
        let (low, high) = (settings.starting_source_time, settings.ending_source_time);
        if low.is_none() && high.is_none() {
            return Ok(true);
        }
        let unit = settings.layouts[self.envelope.layout].times.2;
        let time = match (self.envelope.commit_ts, self.envelope.source_time) {
            // The physical part of a TSO is in milliseconds.
            (Some(commit_ts), _) => (commit_ts >> 18) * 1000,
            (None, Some(time)) => time * unit,
            (None, None) => return Err(Refusal::new("missing time of the source", 0)),
        };
        Ok(low.is_none_or(|low| low <= time) && high.is_none_or(|high| time < high))
    }
}
