//! Time zones: offsets by local time and by instant, and offsets in texts.

use serde::Deserialize;

use crate::values::temporal::{datetime, pair};

const MINUTE: i64 = 60_000_000;

/// Offsets of a time zone by span of time, as computed by the bridge: zone data is Python's alone.
#[derive(Clone, Debug, Default, Deserialize)]
struct Spans {
    /// Starts in microseconds since 1970, ascending; the last one is only an end.
    starts: Vec<i64>,
    /// Microseconds east of UTC in each span; None during changes of the clock.
    offsets: Vec<Option<i64>>,
}

impl Spans {
    fn offset(&self, time: i64) -> Option<i64> {
        let span = self.starts.partition_point(|start| *start <= time);
        *self.offsets.get(span.checked_sub(1)?)?
    }
}

/// Offsets by local time, for reading.
///
/// A local time that occurs twice, or never, has no offset: the reference decides.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Zone(Spans);

impl Zone {
    /// TIMESTAMP: microseconds since 1970 in UTC.
    pub fn instant(&self, text: &str) -> Option<i64> {
        self.of_wall(datetime(text)?)
    }

    /// The instant of a wall clock.
    pub fn of_wall(&self, wall: i64) -> Option<i64> {
        Some(wall - self.0.offset(wall)?)
    }
}

/// Offsets by instant, for writing.
#[derive(Debug, Deserialize)]
pub struct Offsets(Spans);

impl Offsets {
    /// UTC at all times.
    pub fn utc() -> Self {
        Self(Spans {
            starts: vec![i64::MIN],
            offsets: vec![Some(0)],
        })
    }

    /// The wall clock of an instant.
    pub fn wall(&self, instant: i64) -> Option<i64> {
        Some(instant + self.0.offset(instant)?)
    }
}

/// Microseconds since 1970 of a time with `Z`, or an offset such as `+08` or `+08:00`.
pub fn zoned_instant(text: &str) -> Option<i64> {
    if let Some(clock) = text.strip_suffix('Z') {
        return datetime(clock);
    }
    // PostgreSQL prints `+08`, others `+08:00`.
    let size = if has_minutes(text) { 6 } else { 3 };
    let (clock, offset) = text.split_at_checked(text.len().checked_sub(size)?)?;
    Some(datetime(clock)? - micros_of(offset)?)
}

/// The same of MySQL's text, whose offset has minutes, and may follow a blank.
pub fn zoned_text(text: &str) -> Option<i64> {
    if let Some(clock) = text.strip_suffix('Z') {
        return datetime(clock);
    }
    let (clock, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let clock = clock.strip_suffix(' ').unwrap_or(clock);
    has_minutes(text).then(|| Some(datetime(clock)? - micros_of(offset)?))?
}

fn has_minutes(text: &str) -> bool {
    text.as_bytes().iter().rev().nth(2) == Some(&b':')
}

/// Microseconds east of UTC of `+08` or `+08:00`.
fn micros_of(offset: &str) -> Option<i64> {
    let data = offset.as_bytes();
    let minutes = if data.len() > 3 {
        pair(data, 4, 59)?
    } else {
        0
    };
    let micros = (pair(data, 1, 23)? * 60 + minutes) * MINUTE;
    match data.first()? {
        b'+' => Some(micros),
        b'-' => Some(-micros),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_before_zones() {
        for text in ["1970-01-01 00:00:01Z", "1970-01-01 08:00:01.0 +08:00"] {
            assert_eq!(zoned_text(text), Some(1_000_000), "{text}");
        }
        for text in ["1970-01-01 00:00:01 Z", "1970-01-01 08:00:01+08"] {
            assert_eq!(zoned_text(text), None, "{text}");
        }
        assert_eq!(zoned_text("1970-01-01 00:00:01  +00:00"), None);
    }

    #[test]
    fn instants() {
        let second = Some(1_000_000);
        for text in [
            "1970-01-01T00:00:01Z",
            "1970-01-01 00:00:01.000+00",
            "1970-01-01 08:00:01+08:00",
            "1969-12-31 20:30:01-03:30",
        ] {
            assert_eq!(zoned_instant(text), second, "{text}");
        }
        for text in [
            "",
            "Z",
            "1970-01-01",
            "1970-01-01 00:00:01",
            "1970-01-01 00:00:01.5",
            "1970-01-01 00:00:01+24",
            "1970-01-01 00:00:01+8",
            "1970-01-01 00:00:01+00:60",
            "1970-01-01 00:00:01+0000",
        ] {
            assert_eq!(zoned_instant(text), None, "{text}");
            assert_eq!(zoned_text(text), None, "{text}");
        }
    }
}
