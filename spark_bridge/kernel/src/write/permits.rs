//! Rows that may be written without the encoder, which may have to insert other messages first.

use hashbrown::HashMap;

use crate::refusal::{Reason, Refusal, Result};
use crate::variant::{Cell, MISFIT};
use crate::write::message::Facts;
use crate::write::plan::Version;

pub const NOT_PERMITTED: Refusal =
    Refusal::of(Reason::NotPermitted, "row needs a permit of the encoder", 0);

/// Index of the table, partition, and version of the table's schema.
pub type OfRows = (usize, i32, i64);

/// Number of permitted rows, deadline in microseconds, and number of rows written.
#[derive(Default)]
struct Permit {
    rows: u64,
    until: i64,
    written: u64,
}

/// Permits by table, partition and version.
#[derive(Default)]
pub struct Permits {
    by_rows: HashMap<OfRows, Permit>,
    /// The last row that had no permit.
    pub missing: OfRows,
}

impl Permits {
    /// Permits `count` rows until a time, in microseconds since 1970.
    pub fn permit(&mut self, rows: OfRows, count: u64, until: i64) {
        let written = 0;
        let permit = Permit {
            rows: count,
            until,
            written,
        };
        self.by_rows.insert(rows, permit);
    }

    /// Refuses a row without a permit.
    pub fn check(&mut self, rows: OfRows, now: i64) -> Result<()> {
        match self.by_rows.get(&rows) {
            // The encoder inserts a schema message after so many rows, or so much time.
            Some(known) if known.written < known.rows && now < known.until => Ok(()),
            _ => {
                self.missing = rows;
                Err(NOT_PERMITTED)
            }
        }
    }

    /// Counts a written row.
    pub fn count(&mut self, rows: OfRows) {
        if let Some(known) = self.by_rows.get_mut(&rows) {
            known.written += 1;
        }
    }

    /// Returns the numbers of written rows, and revokes all permits.
    pub fn take(&mut self) -> Vec<(OfRows, u64)> {
        let all = self.by_rows.drain();
        all.map(|(rows, permit)| (rows, permit.written)).collect()
    }
}

impl Version {
    /// The version of a row's table schema.
    pub fn of(&self, facts: &Facts) -> Result<i64> {
        match facts.of_extra(&self.name)? {
            Some(Cell::Int(version)) => Ok(version),
            Some(Cell::Decimal(..)) => Err(MISFIT),
            _ => Ok(self.default),
        }
    }
}
