//! Which rows may be written without the encoder, that may put other messages before them.

use hashbrown::HashMap;

use crate::refusal::{Refusal, Step};
use crate::write::cell::{Cell, MISFIT};
use crate::write::message::Facts;
use crate::write::plan::Version;

pub const NOT_ALLOWED: Refusal = Refusal::new("a row that is not allowed", 0);

/// Number of the table, partition, and version of its schema.
pub type OfRows = (usize, i32, i64);

/// How many more rows may be written until when, in microseconds; and how many were.
#[derive(Default)]
struct Allowance {
    rows: u64,
    until: i64,
    written: u64,
}

#[derive(Default)]
pub struct Allowed {
    by_rows: HashMap<OfRows, Allowance>,
    /// The last row's that was not allowed.
    pub wanted: OfRows,
}

impl Allowed {
    pub fn allow(&mut self, rows: OfRows, count: u64, until: i64) {
        let written = 0;
        let allowance = Allowance {
            rows: count,
            until,
            written,
        };
        self.by_rows.insert(rows, allowance);
    }

    /// Refuses a row unless it is allowed.
    pub fn check(&mut self, rows: OfRows, now: i64) -> Step<()> {
        match self.by_rows.get(&rows) {
            Some(known) if known.written < known.rows && now < known.until => Ok(()),
            _ => {
                self.wanted = rows;
                Err(NOT_ALLOWED)
            }
        }
    }

    /// Counts a row that was written.
    pub fn count(&mut self, rows: OfRows) {
        if let Some(known) = self.by_rows.get_mut(&rows) {
            known.written += 1;
        }
    }

    /// How many were written of which; nothing is allowed from now on.
    pub fn take(&mut self) -> Vec<(OfRows, u64)> {
        let all = self.by_rows.drain();
        all.map(|(rows, allowance)| (rows, allowance.written))
            .collect()
    }
}

impl Version {
    pub fn of(&self, facts: &Facts) -> Step<i64> {
        match facts.of_extra(&self.name)? {
            Some(Cell::Int(version)) => Ok(version),
            Some(Cell::Decimal(..)) => Err(MISFIT),
            _ => Ok(self.default),
        }
    }
}
