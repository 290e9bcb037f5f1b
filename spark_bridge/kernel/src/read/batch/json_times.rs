//! Wall clocks in JSON images.

use crate::values::temporal::{DAY_MICROS, date_text, print_clock};

/// The last printed day, as most values repeat it.
pub struct Day {
    days: i64,
    text: [u8; 10],
}

impl Default for Day {
    fn default() -> Self {
        Self {
            days: 0,
            text: *b"1970-01-01",
        }
    }
}

impl Day {
    /// Like `temporal::print_datetime`.
    pub fn print_datetime(&mut self, micros: i64, out: &mut Vec<u8>) {
        let days = micros.div_euclid(DAY_MICROS);
        if days != self.days {
            *self = Self {
                days,
                text: date_text(days),
            };
        }
        out.extend_from_slice(&self.text);
        print_clock(micros.rem_euclid(DAY_MICROS), out);
    }
}

/// Prints a text that `temporal::datetime` has accepted.
pub fn reprint_datetime(text: &str, out: &mut Vec<u8>) {
    let text = text.as_bytes();
    if let (Some(date), Some(clock)) = (text.first_chunk::<10>(), text.get(11..19)) {
        out.extend_from_slice(date);
        out.push(b' ');
        out.extend_from_slice(clock);
        let fraction = text.get(19..).unwrap_or_default();
        if let Some(end) = fraction.iter().rposition(|byte| !b".0".contains(byte)) {
            out.extend_from_slice(&fraction[..=end]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::temporal::datetime;

    #[test]
    fn all_ways_print_the_same() {
        let mut day = Day::default();
        for text in [
            "1970-01-01T00:00:00",
            "1970-01-01 00:00:00.000001",
            "0001-01-01 23:59:59.100000",
            "9999-12-31 10:20:30.000",
            "9999-12-31 10:20:30.050",
        ] {
            let (mut printed, mut again) = (Vec::new(), Vec::new());
            day.print_datetime(datetime(text).unwrap(), &mut printed);
            reprint_datetime(text, &mut again);
            assert_eq!(printed, again, "{text}");
        }
    }
}
