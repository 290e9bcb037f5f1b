//! Times as numbers of units since 1970, or since midnight; intervals as numbers of units.

use crate::json::Token;
use crate::plan::Clock;
use crate::refusal::Result;
use crate::values::cells::Cells;
use crate::values::scalars::{RANGE, small};
use crate::values::temporal::{
    DAY_MICROS, FIRST_DAY, FIRST_MICROSECOND, Interval, LAST_DAY, LAST_MICROSECOND, MAX_TIME,
};

const YEAR_MICROS: u64 = 365 * 86_400_000_000;

/// Units of a clock; `Guessed` is the unit of most columns, if no other unit is plausible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Millis,
    Micros,
    Nanos,
    Guessed,
}

/// Appends the time of a number of units; refuses numbers beyond the range of its type.
pub fn clock(
    unit: Unit,
    clock: &Clock,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    scratch: &mut String,
) -> Result<()> {
    let value = small(token, token.text(document))?;
    let value = i64::try_from(value).map_err(|_| RANGE)?;
    let micros = match unit {
        Unit::Millis => value.checked_mul(1000),
        Unit::Micros => Some(value),
        // Digits that a column would lose are counted by the reference.
        Unit::Nanos => (value % 1000 == 0).then_some(value / 1000),
        Unit::Guessed => guessed(value, clock),
    };
    let micros = micros.ok_or(RANGE)?;
    match clock {
        Clock::DateTime { .. } if (FIRST_MICROSECOND..=LAST_MICROSECOND).contains(&micros) => {
            cell.push_datetime(micros)
        }
        Clock::Timestamp => cell.push_instant(micros),
        Clock::Interval => cell.push_interval(Interval::of_micros(micros), scratch),
        Clock::Time { fsp } if (-MAX_TIME..=MAX_TIME).contains(&micros) => {
            cell.push_time(micros, *fsp, scratch)
        }
        _ => Err(RANGE),
    }
}

/// Microseconds in the unit of most columns; None if another unit is possible.
fn guessed(value: i64, clock: &Clock) -> Option<i64> {
    match clock {
        Clock::DateTime { fsp } => {
            // Within 230 years of 1970, but not within one: a time that is so in one unit is not in
            // another.
            let near = |micros: i64| {
                let size = micros.unsigned_abs();
                (YEAR_MICROS..=230 * YEAR_MICROS).contains(&size)
            };
            let millis = value.checked_mul(1000)?;
            // Debezium's `adaptive` mode: the unit follows from the digits of the type.
            let usual = if fsp.unwrap_or(0) > 3 { value } else { millis };
            // Nanoseconds are possible, too; refuses values with more digits than the column's.
            let is_open = near(millis) || near(value) || near(value / 1000);
            (near(usual) || !is_open).then_some(usual)
        }
        // Debezium writes TIMESTAMP as text, and intervals with their unit: a number has no usual one.
        Clock::Timestamp | Clock::Interval => None,
        Clock::Time { fsp } => {
            let other = value.checked_mul(1000)?;
            let step = 10_i64.checked_pow(6_u32.checked_sub(fsp.unwrap_or(0))?)?;
            let is_none = other.checked_abs()? > MAX_TIME || other % step != 0;
            // A time of day in milliseconds is also a short TIME in microseconds.
            let is_of_day = (1..DAY_MICROS).contains(&other);
            (value == 0 || is_none || (value % step == 0 && !is_of_day)).then_some(value)
        }
    }
}

/// Days since 1970, for the years 1 to 9999.
pub fn days(token: Token, document: &str, cell: &mut impl Cells) -> Result<()> {
    let value = small(token, token.text(document))?;
    match i32::try_from(value) {
        Ok(days) if (FIRST_DAY..=LAST_DAY).contains(&days) => cell.push_date(days),
        _ => Err(RANGE),
    }
}
