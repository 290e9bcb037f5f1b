//! Digits of numbers; the Python printers are in `cdcfmt_core/mysql/number_output.py`.

use crate::refusal::Step;
use crate::write::printing::MISFIT;

/// Texts of so many characters are few enough digits for a float of 32 bits.
const SHORT_FLOAT: usize = 10;
/// The fewest that are kept, and the most that tell two floats of 32 bits apart.
const DIGITS_OF_FLOAT: std::ops::RangeInclusive<usize> = 6..=9;

pub fn integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

pub fn unsigned(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// All digits, and never an exponent.
pub fn decimal(value: i128, scale: u8, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(value.unsigned_abs()).as_bytes();
    if value < 0 {
        out.push(b'-');
    }
    let scale = usize::from(scale);
    if scale == 0 {
        out.extend_from_slice(digits);
        return;
    }
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    out.push(b'.');
    out.resize(out.len() + scale - fraction.len(), b'0');
    out.extend_from_slice(fraction);
}

/// Whether all writers print a number without an exponent.
pub fn is_common(value: f64) -> bool {
    1e-4 < value.abs() && value.abs() < 1e15
}

/// The shortest digits without an exponent.
pub fn double(value: f64, out: &mut Vec<u8>) -> Step<()> {
    use std::io::Write;
    if is_common(value) {
        let mut text = zmij::Buffer::new();
        let text = text.format_finite(value).as_bytes();
        out.extend_from_slice(text.strip_suffix(b".0").unwrap_or(text));
    } else if value.is_finite() {
        write!(out, "{value}").map_err(|_| MISFIT)?;
    } else {
        return Err(MISFIT);
    }
    Ok(())
}

/// Of a FLOAT that came as a double: no more digits than tell it from its neighbours.
pub fn float(value: f64, out: &mut Vec<u8>) -> Step<()> {
    if value == 0.0 {
        return double(value, out);
    }
    if !is_common(value) {
        return Err(MISFIT);
    }
    let mut text = zmij::Buffer::new();
    let text = text.format_finite(value).as_bytes();
    if text.len() <= SHORT_FLOAT {
        out.extend_from_slice(text.strip_suffix(b".0").unwrap_or(text));
        return Ok(());
    }
    #[allow(clippy::cast_possible_truncation)]
    let nearest = |value: f64| value as f32;
    if zmij::Buffer::new().format_finite(nearest(value)).as_bytes() == text {
        out.extend_from_slice(text);
        return Ok(());
    }
    for digits in DIGITS_OF_FLOAT {
        let short: f64 = format!("{value:.*e}", digits - 1)
            .parse()
            .map_err(|_| MISFIT)?;
        if nearest(short) == nearest(value) {
            return double(short, out);
        }
    }
    Err(MISFIT)
}

pub fn single(value: f32, out: &mut Vec<u8>) -> Step<()> {
    use std::io::Write;
    if !(value == 0.0 || value.is_normal()) {
        return Err(MISFIT);
    }
    write!(out, "{value}").map_err(|_| MISFIT)
}
