//! Rows that may be written without the encoder, which may have to insert other messages first.

use hashbrown::HashMap;

use crate::refusal::{Refusal, Step};
use crate::write::cell::{Cell, MISFIT};
use crate::write::message::Facts;
use crate::write::plan::Version;

pub const NOT_ALLOWED: Refusal = Refusal::new("a row that is not allowed", 0);

/// Index of the table, partition, and version of the table's schema.
pub type OfRows = (usize, i32, i64);

/// Number of allowed rows, deadline in microseconds, and number of rows written.
#[derive(Default)]
struct Allowance {
    rows: u64,
    until: i64,
    written: u64,
}

#[derive(Default)]
pub struct Allowed {
    by_rows: HashMap<OfRows, Allowance>,
    /// The last row that was not allowed.
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

    /// Counts a written row.
    pub fn count(&mut self, rows: OfRows) {
        if let Some(known) = self.by_rows.get_mut(&rows) {
            known.written += 1;
        }
    }

    /// Returns the numbers of written rows, and revokes all allowances.
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
