//! Rows with a generated `commit_ts`.

use crate::plan::Image;
use crate::refusal::{Refusal, Result};
use crate::variant::Cell;
use crate::write::message::{Facts, Row};
use crate::write::plan::Settings;

const NO_COMMIT_TS: Refusal = Refusal::new("row has no commit_ts", 0);
/// Larger times have no `commit_ts` of 63 bits.
const MAX_MILLIS: i64 = i64::MAX >> 18;

/// A row; its `commit_ts` is generated if it needs one and has none.
pub struct WithCommitTs<'a, R> {
    row: &'a R,
    pub facts: Facts<'a>,
    pub is_made: bool,
}

impl<'a, R: Row> WithCommitTs<'a, R> {
    /// The `commit_ts` is that of the source time, but larger than the last row's.
    pub fn new(row: &'a R, settings: &Settings, last: i64) -> Result<Self> {
        let mut facts = *row.facts();
        if facts.commit_ts.is_some_and(i64::is_negative) {
            return Err(NO_COMMIT_TS);
        }
        let is_made = settings.needs_commit_ts && facts.commit_ts.is_none();
        if is_made {
            let time = facts.source_time.filter(|_| settings.made.is_some());
            let millis = time.ok_or(NO_COMMIT_TS)?.div_euclid(1_000);
            // Larger than the last one, so that the rows of a task keep their order within a
            // millisecond.
            let next = last.checked_add(1).ok_or(NO_COMMIT_TS)?;
            if millis > MAX_MILLIS {
                return Err(NO_COMMIT_TS);
            }
            facts.commit_ts = Some(next.max(millis << 18));
        }
        Ok(Self {
            row,
            facts,
            is_made,
        })
    }
}

impl<R: Row> Row for WithCommitTs<'_, R> {
    fn facts(&self) -> &Facts<'_> {
        &self.facts
    }

    fn has(&self, image: Image) -> bool {
        self.row.has(image)
    }

    fn cell(&self, image: Image, place: usize) -> Result<Cell<'_>> {
        self.row.cell(image, place)
    }
}
