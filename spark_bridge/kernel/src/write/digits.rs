//! Digits of numbers; the Python printers are in `cdcfmt_core/mysql/number_output.py`.

use std::fmt::{Display, LowerExp};
use std::io::Write;

use crate::refusal::Step;
use crate::write::cell::MISFIT;

/// Texts of so many characters are few enough digits for a float of 32 bits.
const SHORT_FLOAT: usize = 10;
/// The fewest that are kept, and the most that tell two floats of 32 bits apart.
const DIGITS_OF_FLOAT: std::ops::RangeInclusive<usize> = 6..=9;

pub fn integer(value: i64, out: &mut Vec<u8>) {
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
    double(shortest(value)?, out)
}

/// The double with the digits of a FLOAT.
pub fn shortest(value: f64) -> Step<f64> {
    if value == 0.0 {
        return Ok(value);
    }
    if !is_common(value) {
        return Err(MISFIT);
    }
    let mut text = zmij::Buffer::new();
    let text = text.format_finite(value).as_bytes();
    if text.len() <= SHORT_FLOAT {
        return Ok(value);
    }
    #[allow(clippy::cast_possible_truncation)]
    let nearest = |value: f64| value as f32;
    if zmij::Buffer::new().format_finite(nearest(value)).as_bytes() == text {
        return Ok(value);
    }
    for digits in DIGITS_OF_FLOAT {
        let short: f64 = format!("{value:.*e}", digits - 1)
            .parse()
            .map_err(|_| MISFIT)?;
        if nearest(short) == nearest(value) {
            return Ok(short);
        }
    }
    Err(MISFIT)
}

/// A finite float as Go's `encoding/json` writes it: an exponent below 1e-6 and from 1e21 on.
pub fn go_json(value: f64, exponent_digits: usize, out: &mut Vec<u8>) {
    if is_common(value) {
        let mut text = zmij::Buffer::new();
        let text = text.format_finite(value).as_bytes();
        out.extend_from_slice(text.strip_suffix(b".0").unwrap_or(text));
    } else {
        go_json_any(value, exponent_digits, out);
    }
}

/// The same of any float.
pub fn go_json_any(value: impl Display + LowerExp, exponent_digits: usize, out: &mut Vec<u8>) {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    if (-6..21).contains(&exponent.parse().unwrap_or(0)) {
        let _ = write!(out, "{value}");
        return;
    }
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    let _ = write!(out, "{mantissa}e{sign}{digits:0>exponent_digits$}");
}

/// The double nearest to a decimal, and whether it has the decimal's digits.
pub fn nearest_double(value: i128, scale: u8) -> Step<(f64, bool)> {
    const EXACT: u128 = 1 << 53;
    const MOST_DIGITS: u32 = 15;
    if value.unsigned_abs() < EXACT && scale <= 22 {
        #[allow(clippy::cast_precision_loss)]
        let number = value as f64 / 10_f64.powi(scale.into());
        if value.unsigned_abs() < 10_u128.pow(MOST_DIGITS) {
            return Ok((number, true));
        }
    }
    let mut text = Vec::new();
    decimal(value, scale, &mut text);
    let text = std::str::from_utf8(&text).map_err(|_| MISFIT)?;
    let number: f64 = text.parse().map_err(|_| MISFIT)?;
    let shown = number.to_string();
    let trimmed = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    };
    Ok((number, shown == trimmed))
}

pub fn single(value: f32, out: &mut Vec<u8>) -> Step<()> {
    if !(value == 0.0 || value.is_normal()) {
        return Err(MISFIT);
    }
    write!(out, "{value}").map_err(|_| MISFIT)
}
