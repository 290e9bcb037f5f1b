//! Dates and times as MySQL's text, with the digits of their types.

use crate::refusal::Result;
use crate::values::MAX_TIME;
use crate::values::temporal::{self, DAY_MICROS, FIRST_DAY, LAST_DAY};
use crate::variant::MISFIT;

/// Refuses days outside of the range of Python's dates.
pub fn check_day(days: i32) -> Result<()> {
    match (FIRST_DAY..=LAST_DAY).contains(&days) {
        true => Ok(()),
        false => Err(MISFIT),
    }
}

/// Appends a wall clock, with `fsp` digits of a fraction.
pub fn clock(micros: i64, fsp: Option<u32>, out: &mut Vec<u8>) -> Result<()> {
    temporal::check_instant(micros)?;
    temporal::print_date(micros.div_euclid(DAY_MICROS), out);
    let of_day = micros.rem_euclid(DAY_MICROS);
    let (text, fraction) = (temporal::clock_text(of_day), of_day % 1_000_000);
    let digits = fsp.unwrap_or(0).min(6);
    // A value finer than its type is an error of the limits, not of the printer.
    // Digits beyond those of the type are kept.
    let length = match digits {
        _ if fraction % 10_i64.pow(6 - digits) != 0 => text.len(),
        0 => 9,
        _ => 10 + digits as usize,
    };
    out.extend_from_slice(&text[..length]);
    Ok(())
}

/// Appends a TIME, with `fsp` digits of a fraction.
pub fn time(micros: i64, fsp: Option<u32>, out: &mut Vec<u8>) -> Result<()> {
    if !(-MAX_TIME..=MAX_TIME).contains(&micros) {
        return Err(MISFIT);
    }
    let mut text = String::new();
    temporal::print_time(micros, fsp, &mut text);
    out.extend_from_slice(text.as_bytes());
    Ok(())
}
