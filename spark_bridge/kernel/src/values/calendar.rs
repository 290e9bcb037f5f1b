//! Calendar values as separate parts; Python readers: `cdcfmt_toolkit/scalar_readers.py`.

use crate::plan::MysqlText;
use crate::refusal::{Refusal, Result};
use crate::values::cells::Cells;
use crate::values::temporal::{self, MAX_TIME};

/// A year, month, day, hour, minute, second or microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Null,
    Number(i64),
    /// Anything else, which is never valid.
    Other,
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
const BROKEN: Refusal = Refusal::new("parts are not a value of the column's type", 0);

/// Appends the value of some parts.
pub fn push(
    logical: &MysqlText,
    parts: &[Part; 7],
    column: &mut impl Cells,
    scratch: &mut String,
) -> Result<()> {
    let (date, clock) = parts.split_at(3);
    match logical {
        // The list has the same seven places for all types: only the filled ones show which one it
        // is.
        // An hour, or a missing clock, could mean another type of the value.
        MysqlText::Date if clock[0] == Part::Null && micros(clock, 0) == Some(0) => {
            let days = days(date).and_then(|days| i32::try_from(days).ok());
            column.push_date(days.ok_or(BROKEN)?)
        }
        MysqlText::DateTime if clock != [Part::Null; 4] => {
            let days = days(date).ok_or(BROKEN)?;
            column.push_datetime(days * DAY + micros(clock, 23).ok_or(BROKEN)?)
        }
        MysqlText::Time { fsp } if date == [Part::Null; 3] && clock != [Part::Null; 4] => {
            let time = time(clock).ok_or(BROKEN)?;
            column.push_time(time, *fsp, scratch)
        }
        MysqlText::Year => match *parts {
            [Part::Number(year), ref rest @ ..]
                if (year == 0 || (1901..=2155).contains(&year)) && *rest == [Part::Null; 6] =>
            {
                column.push_integer(i128::from(year))
            }
            _ => Err(BROKEN),
        },
        _ => Err(BROKEN),
    }
}

/// The items of a list of numbers and nulls, the JSON form of an Avro record; None for other text.
pub fn printed_parts<const N: usize>(text: &str) -> Option<[Part; N]> {
    let mut rest = text.strip_prefix('[')?.strip_suffix(']')?.as_bytes();
    let mut parts = [Part::Null; N];
    for (place, part) in parts.iter_mut().enumerate() {
        if place > 0 {
            rest = rest.strip_prefix(b",")?;
        }
        if let Some(behind) = rest.strip_prefix(b"null") {
            rest = behind;
            continue;
        }
        let digits = rest.strip_prefix(b"-").unwrap_or(rest);
        let length = digits.iter().take_while(|digit| digit.is_ascii_digit());
        let (digits, behind) = digits.split_at(length.count());
        // Eighteen digits fit into 64 bits; longer numbers are read as JSON.
        if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && digits.len() > 1) {
            return None;
        }
        let value = digits
            .iter()
            .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        *part = Part::Number(if rest[0] == b'-' { -value } else { value });
        rest = behind;
    }
    rest.is_empty().then_some(parts)
}

/// The microseconds of an instant.
pub fn instant(seconds: Part, micros: Part) -> Option<i64> {
    match (seconds, micros) {
        (Part::Number(seconds), Part::Number(micros)) if (0..SECOND).contains(&micros) => {
            seconds.checked_mul(SECOND)?.checked_add(micros)
        }
        _ => None,
    }
}

fn days(date: &[Part]) -> Option<i64> {
    match *date {
        [Part::Number(year), Part::Number(month), Part::Number(day)] => {
            temporal::days_of(year, month, day)
        }
        _ => None,
    }
}

/// Microseconds from hour, minute, second and microsecond; null counts as 0.
fn micros(clock: &[Part], most_hours: i64) -> Option<i64> {
    let mut value = 0;
    for (part, (limit, unit)) in clock.iter().zip([
        (most_hours, 3600 * SECOND),
        (59, 60 * SECOND),
        (59, SECOND),
        (SECOND - 1, 1),
    ]) {
        match *part {
            // Missing parts of a clock are zero, as in Python's `to_datetime`.
            Part::Null => {}
            Part::Number(number) if (0..=limit).contains(&number) => value += number * unit,
            _ => return None,
        }
    }
    Some(value)
}

/// Like `micros`; negative if any part is.
fn time(clock: &[Part]) -> Option<i64> {
    let is_negative = |part: &Part| matches!(part, Part::Number(number) if *number < 0);
    let negative = clock.iter().any(is_negative);
    let mut positive = [Part::Null; 4];
    for (place, part) in clock.iter().enumerate() {
        positive[place] = match *part {
            Part::Number(number) => Part::Number(number.checked_abs()?),
            other => other,
        };
    }
    let value = micros(&positive, 838)?;
    (value <= MAX_TIME).then_some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks() {
        let clock = |parts: [i64; 4]| time(&parts.map(Part::Number));
        assert_eq!(clock([838, 59, 59, 999_999]), Some(MAX_TIME));
        assert_eq!(clock([0, 0, -1, 5]), Some(-1_000_005));
        for parts in [
            [839, 0, 0, 0],
            [0, 60, 0, 0],
            [0, 0, 0, SECOND],
            [i64::MIN, 0, 0, 0],
        ] {
            assert_eq!(clock(parts), None);
        }
        assert_eq!(micros(&[Part::Null; 4], 23), Some(0));
        assert_eq!(micros(&[Part::Number(24)], 23), None);
    }

    #[test]
    fn parts_of_lists() {
        let two = |text: &str| printed_parts::<2>(text);
        assert_eq!(two("[-12,null]"), Some([Part::Number(-12), Part::Null]));
        assert_eq!(two("[0,7]"), Some([Part::Number(0), Part::Number(7)]));
        for other in [
            "[1]",
            "[1,2,3]",
            "[1,2",
            "[1, 2]",
            "[01,2]",
            "[1,\"2\"]",
            "[1,]",
            "[,1]",
            "[1,-]",
            "[1,2.5]",
            "[1,1234567890123456789]",
            "",
            "[]",
        ] {
            assert_eq!(two(other), None, "{other}");
        }
    }

    #[test]
    fn instants() {
        assert_eq!(instant(Part::Number(-1), Part::Number(5)), Some(-999_995));
        assert_eq!(instant(Part::Number(1), Part::Number(SECOND)), None);
        assert_eq!(instant(Part::Number(i64::MAX), Part::Number(0)), None);
    }
}
