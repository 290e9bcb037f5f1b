//! Days, wall clocks and times as MySQL's text, and wall clocks of instants.

use serde::Deserialize;

use crate::refusal::Result;
use crate::values::MAX_TIME;
use crate::values::temporal::{self, DAY_MICROS};
use crate::variant::MISFIT;

/// The range of Python's dates.
const FIRST_DAY: i32 = -719_162;
const LAST_DAY: i32 = 2_932_896;

/// Offsets of a time zone by instant, as computed by the bridge.
#[derive(Debug, Deserialize)]
pub struct Offsets {
    /// Starts of the spans, in microseconds since 1970, ascending; the last one is only an end.
    pub starts: Vec<i64>,
    /// Microseconds east of UTC in each span; None during changes of the clock.
    pub offsets: Vec<Option<i64>>,
}

impl Offsets {
    pub fn utc() -> Self {
        Self {
            starts: vec![i64::MIN],
            offsets: vec![Some(0)],
        }
    }

    /// The wall clock of an instant.
    pub fn wall(&self, instant: i64) -> Option<i64> {
        let span = self.starts.partition_point(|start| *start <= instant);
        Some(instant + (*self.offsets.get(span.checked_sub(1)?)?)?)
    }
}

/// Refuses days outside of the range of Python's dates.
pub fn check_day(days: i32) -> Result<()> {
    match (FIRST_DAY..=LAST_DAY).contains(&days) {
        true => Ok(()),
        false => Err(MISFIT),
    }
}

pub fn clock(micros: i64, fsp: Option<u32>, out: &mut Vec<u8>) -> Result<()> {
    temporal::check_instant(micros)?;
    temporal::print_date(micros.div_euclid(DAY_MICROS), out);
    let of_day = micros.rem_euclid(DAY_MICROS);
    let seconds = of_day / 1_000_000;
    let mut text = *b" 00:00:00.000000";
    let mut put = |value: i64, at: usize| {
        let value = value as u8;
        text[at] = b'0' + value / 10;
        text[at + 1] = b'0' + value % 10;
    };
    put(seconds / 3600, 1);
    put(seconds / 60 % 60, 4);
    put(seconds % 60, 7);
    let fraction = of_day % 1_000_000;
    put(fraction / 10_000, 10);
    put(fraction / 100 % 100, 12);
    put(fraction % 100, 14);
    let digits = fsp.unwrap_or(0).min(6);
    // Digits beyond those of the type are kept.
    let length = match digits {
        _ if fraction % 10_i64.pow(6 - digits) != 0 => text.len(),
        0 => 9,
        _ => 10 + digits as usize,
    };
    out.extend_from_slice(&text[..length]);
    Ok(())
}

pub fn time(micros: i64, fsp: Option<u32>, out: &mut Vec<u8>) -> Result<()> {
    if !(-MAX_TIME..=MAX_TIME).contains(&micros) {
        return Err(MISFIT);
    }
    let mut text = String::new();
    temporal::print_time(micros, fsp, &mut text);
    out.extend_from_slice(text.as_bytes());
    Ok(())
}
