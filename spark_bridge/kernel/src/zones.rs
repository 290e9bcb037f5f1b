//! Time zones: offsets by local time.

use serde::Deserialize;

use crate::temporal::datetime;

/// Offsets of a time zone by local time, as the bridge found them.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Zone {
    /// Where spans start, in microseconds since 1970, ascending; the last one is only an end.
    starts: Vec<i64>,
    /// Microseconds east of UTC in each span; None where the clock changes.
    offsets: Vec<Option<i64>>,
}

impl Zone {
    /// TIMESTAMP: microseconds since 1970 in UTC.
    pub fn instant(&self, text: &str) -> Option<i64> {
        self.of_wall(datetime(text)?)
    }

    /// The instant at which clocks showed this.
    pub fn of_wall(&self, wall: i64) -> Option<i64> {
        let span = self
            .starts
            .partition_point(|start| *start <= wall)
            .checked_sub(1)?;
        Some(wall - (*self.offsets.get(span)?)?)
    }
}
