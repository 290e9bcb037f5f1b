//! MySQL's dates and times as text; the Python readers are in `cdcfmt_mysql/temporal.py`.
//! None leaves the message to the reference.

use crate::refusal::{Refusal, Result};

pub const DAY_MICROS: i64 = 86_400_000_000;

/// Two digits, at most `most`.
pub fn pair(data: &[u8], at: usize, most: i64) -> Option<i64> {
    let (high, low) = (
        data.get(at)?.wrapping_sub(b'0'),
        data.get(at + 1)?.wrapping_sub(b'0'),
    );
    let value = i64::from(high) * 10 + i64::from(low);
    (high < 10 && low < 10 && value <= most).then_some(value)
}

fn mark(data: &[u8], at: usize, byte: u8) -> Option<()> {
    (*data.get(at)? == byte).then_some(())
}

/// Days since 1970 of `YYYY-MM-DD`, from the year 1 on; ignores the rest of `data`.
fn day(data: &[u8]) -> Option<i64> {
    let year = pair(data, 0, 99)? * 100 + pair(data, 2, 99)?;
    mark(data, 4, b'-')?;
    let month = pair(data, 5, 12)?;
    mark(data, 7, b'-')?;
    days_of(year, month, pair(data, 8, 31)?)
}

/// Days since 1970, for the years 1 to 9999.
pub fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    // `0000-00-00` and `2024-00-01` are values of MySQL, which the reference keeps as invalid
    // values.
    let fits = (1..=9999).contains(&year) && (1..=12).contains(&month);
    if !fits || !(1..=last).contains(&day) {
        return None;
    }
    // Without a crate for calendars: only the years 1 to 9999 are needed, the range of Python.
    // Howard Hinnant's days_from_civil; the year begins in March.
    let shifted = year - i64::from(month <= 2);
    let era = shifted / 400;
    let of_era = shifted - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Microseconds of `hh:mm:ss` with up to six fractional digits.
fn clock(data: &[u8], most_hours: i64) -> Option<i64> {
    let hours = pair(data, 0, most_hours)?;
    mark(data, 2, b':')?;
    let minutes = pair(data, 3, 59)?;
    mark(data, 5, b':')?;
    let seconds = pair(data, 6, 59)?;
    let fraction = match data.get(8..)? {
        [] => 0,
        [b'.', digits @ ..] if (1..=6).contains(&digits.len()) => {
            let mut value = 0;
            for place in 0..6 {
                let digit = digits.get(place).map_or(0, |byte| byte.wrapping_sub(b'0'));
                if digit > 9 {
                    return None;
                }
                value = value * 10 + i64::from(digit);
            }
            value
        }
        _ => return None,
    };
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction)
}

/// DATE: days since 1970.
pub fn date(text: &str) -> Option<i32> {
    let data = text.as_bytes();
    if data.len() != 10 {
        return None;
    }
    i32::try_from(day(data)?).ok()
}

/// DATETIME: microseconds since 1970 of the wall clock.
pub fn datetime(text: &str) -> Option<i64> {
    let data = text.as_bytes();
    let days = day(data)?;
    // Producers differ: MySQL prints a blank, ISO has `T`.
    if !matches!(data.get(10)?, b' ' | b'T') {
        return None;
    }
    Some(days * DAY_MICROS + clock(data.get(11..)?, 23)?)
}

/// The largest TIME: 838:59:59.999999
pub const MAX_TIME: i64 = ((838 * 60 + 59) * 60 + 60) * 1_000_000 - 1;

/// TIME: microseconds, within ±838:59:59.
pub fn time(text: &str) -> Option<i64> {
    let data = text.as_bytes();
    let (negative, data) = match data {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, data),
    };
    // TIME has two or three digits of hours.
    let value = if data.get(3) == Some(&b':') {
        let hundreds = i64::from(data[0].wrapping_sub(b'0'));
        if hundreds > 9 {
            return None;
        }
        hundreds * 360_000_000_000 + clock(&data[1..], 99)?
    } else {
        clock(data, 99)?
    };
    (value <= MAX_TIME).then_some(if negative { -value } else { value })
}

/// TIME as printed by MySQL, with `fsp` fractional digits.
///
/// Without `fsp`, or if it is too small for the fraction, prints six digits of a fraction.
pub fn print_time(micros: i64, fsp: Option<u32>, out: &mut String) {
    use std::fmt::Write;
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let _ = write!(out, "{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60);
    let digits = match fsp {
        // The type's digits; a value with more than these is not cut.
        Some(fsp) if fsp <= 6 && fraction % 10_u64.pow(6 - fsp) == 0 => fsp,
        _ if fraction != 0 => 6,
        _ => 0,
    };
    if digits > 0 {
        let _ = write!(
            out,
            ".{:0width$}",
            fraction / 10_u64.pow(6 - digits),
            width = digits as usize
        );
    }
}

/// Whether it is a time with an offset as `cdcfmt_toolkit/intervals.py` prints it.
pub fn is_time_tz(text: &str) -> bool {
    let (clock_text, is_usual) = match text.strip_suffix('Z') {
        Some(clock) => (clock, true),
        None => match text.split_at_checked(text.len().saturating_sub(6)) {
            Some((clock, offset)) => (clock, is_offset(offset.as_bytes())),
            None => return false,
        },
    };
    let has_zeros = clock_text.contains('.') && clock_text.ends_with('0');
    is_usual && !has_zeros && clock(clock_text.as_bytes(), 23).is_some()
}

/// `+05:30`, of less than a day; that of UTC is `Z`.
fn is_offset(data: &[u8]) -> bool {
    let minutes = || {
        mark(data, 3, b':')?;
        Some(pair(data, 1, 23)? * 60 + pair(data, 4, 59)?)
    };
    matches!(data, [b'+' | b'-', ..]) && data.len() == 6 && minutes().is_some_and(|some| some > 0)
}

/// An interval, whose parts are never converted into each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    months: i64,
    days: i64,
    micros: i64,
}

impl Interval {
    pub fn of_micros(micros: i64) -> Self {
        Self {
            months: 0,
            days: 0,
            micros,
        }
    }

    /// The same time as days and what is left of a day.
    pub fn of_days(micros: i64) -> Self {
        Self {
            months: 0,
            days: micros.div_euclid(DAY_MICROS),
            micros: micros.rem_euclid(DAY_MICROS),
        }
    }

    /// Its microseconds, if it has no other parts.
    pub fn only_micros(self) -> Option<i64> {
        (self.months == 0 && self.days == 0).then_some(self.micros)
    }

    /// The interval of `P1Y2M3DT4H5M6.5S`, each part of which has its own sign or is left out.
    pub fn parse(text: &str) -> Option<Self> {
        fn digits(text: &str, most: usize) -> Option<i64> {
            let is_number =
                (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
            text.parse().ok().filter(|_| is_number)
        }
        fn part(rest: &mut &str, unit: char) -> Option<i64> {
            let Some((number, after)) = rest.split_once(unit) else {
                return Some(0);
            };
            *rest = after;
            match number.strip_prefix('-') {
                Some(number) => Some(-digits(number, 9)?),
                None => digits(number, 9),
            }
        }
        let text = text.strip_prefix('P').filter(|text| !text.is_empty())?;
        let (mut date, mut clock) = match text.split_once('T') {
            Some((_, "")) => return None,
            Some((date, clock)) => (date, clock),
            None => (text, ""),
        };
        let months = part(&mut date, 'Y')? * 12 + part(&mut date, 'M')?;
        let days = part(&mut date, 'D')?;
        let minutes = part(&mut clock, 'H')? * 60 + part(&mut clock, 'M')?;
        let mut micros = 0;
        if let Some(number) = clock.strip_suffix('S') {
            let size = number.strip_prefix('-').unwrap_or(number);
            let (whole, fraction) = size.split_once('.').unwrap_or((size, "0"));
            // Rounding is the reference's.
            digits(fraction, 6)?;
            micros = digits(whole, 9)? * 1_000_000 + digits(&format!("{fraction:0<6}"), 6)?;
            if number.starts_with('-') {
                micros = -micros;
            }
            clock = "";
        }
        (date.is_empty() && clock.is_empty()).then_some(Self {
            months,
            days,
            micros: minutes * 60_000_000 + micros,
        })
    }

    /// Its text in ISO 8601, `P1Y2M3DT-4H-5M-6.5S`; parts of zero are left out.
    pub fn text(self, out: &mut String) -> &str {
        use std::fmt::Write;
        out.clear();
        let Self {
            months,
            days,
            micros,
        } = self;
        let parts = |some: &[(i64, char)], out: &mut String| {
            for (number, unit) in some.iter().filter(|(number, _)| *number != 0) {
                let _ = write!(out, "{number}{unit}");
            }
        };
        out.push('P');
        parts(&[(months / 12, 'Y'), (months % 12, 'M'), (days, 'D')], out);
        out.push('T');
        let (minutes, rest) = (micros / 60_000_000, micros % 60_000_000);
        parts(&[(minutes / 60, 'H'), (minutes % 60, 'M')], out);
        if rest != 0 {
            let sign = if rest < 0 { "-" } else { "" };
            let (seconds, fraction) = (rest.abs() / 1_000_000, rest.abs() % 1_000_000);
            let _ = write!(out, "{sign}{seconds}");
            if fraction != 0 {
                let digits = format!(".{fraction:06}");
                out.push_str(digits.trim_end_matches('0'));
            }
            out.push('S');
        }
        if out == "PT" {
            out.push_str("0S");
        } else if out.ends_with('T') {
            out.pop();
        }
        out
    }
}

/// The range of Python's dates: the years 1 to 9999.
pub const FIRST_DAY: i32 = -719_162;
pub const LAST_DAY: i32 = 2_932_896;

/// The range of Python's datetimes.
pub const FIRST_MICROSECOND: i64 = -62_135_596_800_000_000;
pub const LAST_MICROSECOND: i64 = 253_402_300_799_999_999;

/// Refuses times outside of the range of Python's datetimes.
pub fn check_instant(micros: i64) -> Result<()> {
    if (FIRST_MICROSECOND..=LAST_MICROSECOND).contains(&micros) {
        Ok(())
    } else {
        Err(Refusal::new("time is out of range", 0))
    }
}

/// Writes two digits at a position.
fn put_pair(value: i64, at: usize, out: &mut [u8]) {
    let value = value as u8;
    out[at] = b'0' + value / 10;
    out[at + 1] = b'0' + value % 10;
}

/// `YYYY-MM-DD` from days since 1970, for four-digit years.
pub fn print_date(days: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&date_text(days));
}

pub fn date_text(days: i64) -> [u8; 10] {
    let [year, month, day] = civil(days);
    let mut text = *b"0000-00-00";
    put_pair(year / 100, 0, &mut text);
    put_pair(year % 100, 2, &mut text);
    put_pair(month, 5, &mut text);
    put_pair(day, 8, &mut text);
    text
}

/// `YYYY-MM-DD hh:mm:ss` from microseconds since 1970, and the fraction without trailing
/// zeros.
pub fn print_datetime(micros: i64, out: &mut Vec<u8>) {
    print_date(micros.div_euclid(DAY_MICROS), out);
    print_clock(micros.rem_euclid(DAY_MICROS), out);
}

/// ` hh:mm:ss` and the fraction without trailing zeros.
pub fn print_clock(of_day: i64, out: &mut Vec<u8>) {
    let text = clock_text(of_day);
    let mut length = " 00:00:00".len();
    if of_day % 1_000_000 != 0 {
        length = text.len();
        while text[length - 1] == b'0' {
            length -= 1;
        }
    }
    out.extend_from_slice(&text[..length]);
}

/// ` hh:mm:ss.ffffff`
#[inline]
pub fn clock_text(of_day: i64) -> [u8; 16] {
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let mut text = *b" 00:00:00.000000";
    put_pair(seconds / 3600, 1, &mut text);
    put_pair(seconds / 60 % 60, 4, &mut text);
    put_pair(seconds % 60, 7, &mut text);
    if fraction != 0 {
        put_pair(fraction / 10_000, 10, &mut text);
        put_pair(fraction / 100 % 100, 12, &mut text);
        put_pair(fraction % 100, 14, &mut text);
    }
    text
}

/// Year, month and day from days since 1970.
pub fn civil(days: i64) -> [i64; 3] {
    // Howard Hinnant's civil_from_days; the year begins in March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let part = (5 * of_year + 2) / 153;
    let day = of_year - (153 * part + 2) / 5 + 1;
    let month = if part < 10 { part + 3 } else { part - 9 };
    [year + era * 400 + i64::from(month <= 2), month, day]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date("1970-01-01"), Some(0));
        assert_eq!(date("0001-01-01"), Some(-719_162));
        assert_eq!(date("9999-12-31"), Some(2_932_896));
        assert_eq!(date("2024-02-29"), Some(19_782));
        for text in [
            "2023-02-29",
            "0000-01-01",
            "2023-00-01",
            "2023-1-1",
            "2023-01-010",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn datetimes() {
        assert_eq!(datetime("1970-01-02 00:00:01.5"), Some(86_401_500_000));
        assert_eq!(datetime("1969-12-31T23:59:59"), Some(-1_000_000));
        for text in ["1970-01-01", "1970-01-01 24:00:00", "1970-01-01 00:00:00."] {
            assert_eq!(datetime(text), None, "{text}");
        }
    }

    #[test]
    fn printed() {
        for text in [
            "0001-01-01",
            "1969-12-31",
            "2000-02-29",
            "2100-03-01",
            "9999-12-31",
        ] {
            let mut out = Vec::new();
            print_date(date(text).unwrap().into(), &mut out);
            assert_eq!(out, text.as_bytes());
        }
        for text in ["1969-12-31 23:59:59.99", "2024-01-01 00:00:00"] {
            let mut out = Vec::new();
            print_datetime(datetime(text).unwrap(), &mut out);
            assert_eq!(out, text.as_bytes());
        }
    }

    #[test]
    fn times() {
        let mut out = String::new();
        for text in ["-838:59:59.000001", "00:00:01", "100:00:00"] {
            out.clear();
            print_time(time(text).unwrap(), None, &mut out);
            assert_eq!(out, text);
        }
        assert_eq!(time("839:00:00"), None);
        for text in ["01:02:03.5Z", "23:59:59+05:30", "00:00:00-11:00"] {
            assert!(is_time_tz(text), "{text}");
        }
        for text in [
            "24:00:00Z",
            "01:02:03.50Z",
            "01:02:03+00:00",
            "01:02:03",
            "é+05:30",
            "",
        ] {
            assert!(!is_time_tz(text), "{text}");
        }
    }

    #[test]
    fn intervals() {
        let mut out = String::new();
        for (text, printed) in [
            ("P0Y0M0DT0H0M0S", "PT0S"),
            ("P0Y-1M2DT-3H0M0S", "P-1M2DT-3H"),
            ("P1Y14M0DT0H61M-0.000001S", "P2Y2MT1H59.999999S"),
            ("P0Y0M-1DT0H0M0.50S", "P-1DT0.5S"),
            ("P1000Y0M0DT0H0M0S", "P1000Y"),
            ("P-3D", "P-3D"),
            ("PT61M", "PT1H1M"),
        ] {
            let interval = Interval::parse(text).unwrap();
            assert_eq!(interval.text(&mut out), printed, "{text}");
        }
        for text in [
            "P",
            "P1YT",
            "P1D1Y",
            "PT1S1M",
            "P0Y0M0DT0H0M0.1234567S",
            "P0Y0M+1DT0H0M0S",
            "P0Y0M0DT0H0M.5S",
        ] {
            assert_eq!(Interval::parse(text), None, "{text}");
        }
        let least = Interval::of_micros(i64::MIN);
        assert_eq!(least.text(&mut out), "PT-2562047788H-54.775808S");
    }
}
