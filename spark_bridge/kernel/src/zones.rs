//! Time zones: offsets by local time.

use serde::Deserialize;

use crate::temporal::datetime;

/// Offsets of a time zone by local time, as computed by the bridge.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Zone {
    /// Starts of the spans, in microseconds since 1970, ascending; the last one is only an end.
    starts: Vec<i64>,
    /// Microseconds east of UTC in each span; None during changes of the clock.
    offsets: Vec<Option<i64>>,
}

impl Zone {
    /// TIMESTAMP: microseconds since 1970 in UTC.
    pub fn instant(&self, text: &str) -> Option<i64> {
        self.of_wall(datetime(text)?)
    }

    /// The instant of a wall clock.
    pub fn of_wall(&self, wall: i64) -> Option<i64> {
        let span = self
            .starts
            .partition_point(|start| *start <= wall)
            .checked_sub(1)?;
        Some(wall - (*self.offsets.get(span)?)?)
    }
}
