//! Digits of numbers; the Python printers are in `cdcfmt_mysql/numbers.py`.

use std::io::Write;

use crate::refusal::Result;
use crate::variant::MISFIT;

/// Texts of at most this length always have few enough digits for a 32-bit float.
const SHORT_FLOAT: usize = 10;
/// Minimum digits to keep, and maximum digits that identify a 32-bit float.
const DIGITS_OF_FLOAT: std::ops::RangeInclusive<usize> = 6..=9;

pub fn integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends all digits, without exponent.
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

/// A float of either size.
pub trait Float: zmij::Float + Copy {
    /// Whether the shortest form of all writers has no exponent.
    fn is_common(self) -> bool;
}

impl Float for f64 {
    fn is_common(self) -> bool {
        1e-4 < self.abs() && self.abs() < 1e15
    }
}

impl Float for f32 {
    fn is_common(self) -> bool {
        1e-4 < self.abs() && self.abs() < 1e12
    }
}

/// Appends the shortest digits, without exponent.
pub fn double(value: f64, out: &mut Vec<u8>) -> Result<()> {
    if !value.is_finite() {
        return Err(MISFIT);
    }
    plain(value, out);
    Ok(())
}

/// Like [`double`], for 32 bits.
pub fn single(value: f32, out: &mut Vec<u8>) -> Result<()> {
    if !(value == 0.0 || value.is_normal()) {
        return Err(MISFIT);
    }
    plain(value, out);
    Ok(())
}

fn plain(value: impl Float, out: &mut Vec<u8>) {
    if value.is_common() {
        common(value, out);
    } else {
        Digits::of(value).plain(out);
    }
}

fn common(value: impl Float, out: &mut Vec<u8>) {
    let mut text = zmij::Buffer::new();
    let text = text.format_finite(value).as_bytes();
    out.extend_from_slice(text.strip_suffix(b".0").unwrap_or(text));
}

/// Appends a FLOAT given as a double, with only the digits that identify the float.
pub fn float(value: f64, out: &mut Vec<u8>) -> Result<()> {
    double(shortest(value)?, out)
}

/// The double with the digits of the FLOAT.
pub fn shortest(value: f64) -> Result<f64> {
    // Zero is in every width, but not in the range below.
    if value == 0.0 {
        return Ok(value);
    }
    if !value.is_common() {
        return Err(MISFIT);
    }
    let mut text = zmij::Buffer::new();
    let text = text.format_finite(value).as_bytes();
    if text.len() <= SHORT_FLOAT {
        return Ok(value);
    }
    let nearest = |value: f64| value as f32;
    // The double has the float's digits already, as in Spark's conversion of a column.
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

/// Appends a finite float like Go's `encoding/json`: with an exponent below 1e-6 and from 1e21 on.
pub fn go_json(value: impl Float, exponent_digits: usize, out: &mut Vec<u8>) {
    if value.is_common() {
        common(value, out);
    } else {
        Digits::of(value).go_json(exponent_digits, out);
    }
}

/// Sign, digits and exponent of the shortest decimal that identifies the float.
///
/// Of two equally near decimals it is the even one, as in Python and Go; Rust rounds up.
struct Digits {
    sign: &'static str,
    digits: String,
    /// The power of ten of the first digit.
    exponent: i32,
}

impl Digits {
    fn of(value: impl Float) -> Digits {
        let mut text = zmij::Buffer::new();
        let text = text.format_finite(value);
        let (sign, text) = match text.strip_prefix('-') {
            Some(text) => ("-", text),
            None => ("", text),
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let every = format!("{whole}{fraction}");
        let digits = every.trim_start_matches('0');
        let before = every.len() - digits.len() + 1;
        let exponent = exponent.parse().unwrap_or(0) + as_i32(whole.len()) - as_i32(before);
        match digits.trim_end_matches('0') {
            "" => Digits {
                sign,
                digits: "0".to_owned(),
                exponent: 0,
            },
            digits => Digits {
                sign,
                digits: digits.to_owned(),
                exponent,
            },
        }
    }

    fn plain(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.sign.as_bytes());
        let digits = self.digits.as_bytes();
        let Ok(last) = usize::try_from(self.exponent) else {
            out.extend_from_slice(b"0.");
            let zeros = self.exponent.unsigned_abs() as usize - 1;
            out.resize(out.len() + zeros, b'0');
            out.extend_from_slice(digits);
            return;
        };
        if let Some((whole, fraction)) = digits.split_at_checked(last + 1) {
            out.extend_from_slice(whole);
            if !fraction.is_empty() {
                out.push(b'.');
                out.extend_from_slice(fraction);
            }
        } else {
            out.extend_from_slice(digits);
            out.resize(out.len() + last + 1 - digits.len(), b'0');
        }
    }

    fn go_json(&self, exponent_digits: usize, out: &mut Vec<u8>) {
        if (-6..21).contains(&self.exponent) {
            self.plain(out);
            return;
        }
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let sign = if self.exponent < 0 { '-' } else { '+' };
        let exponent = self.exponent.unsigned_abs();
        // Writing to a vector does not fail.
        let _ = write!(
            out,
            "{}{first}{point}{rest}e{sign}{exponent:0>exponent_digits$}",
            self.sign
        );
    }
}

/// Converts the length of a number's text.
fn as_i32(length: usize) -> i32 {
    length as i32
}

/// The double nearest to a decimal, and whether it preserves the decimal's digits.
pub fn nearest_double(value: i128, scale: u8) -> Result<(f64, bool)> {
    const EXACT: u128 = 1 << 53;
    const MAX_DIGITS: u32 = 15;
    // Both numbers are exact doubles, so the quotient is rounded once.
    if value.unsigned_abs() < EXACT && scale <= 22 {
        let number = value as f64 / 10_f64.powi(scale.into());
        if value.unsigned_abs() < 10_u128.pow(MAX_DIGITS) {
            return Ok((number, true));
        }
    }
    let mut text = Vec::new();
    decimal(value, scale, &mut text);
    let text = std::str::from_utf8(&text).map_err(|_| MISFIT)?;
    let number: f64 = text.parse().map_err(|_| MISFIT)?;
    let mut shown = Vec::new();
    double(number, &mut shown)?;
    // Trailing zeros are no digits that a double could lose.
    let trimmed = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    };
    Ok((number, shown == trimmed.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        print(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn digits_without_an_exponent() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e-4, "0.0001"),
            (-1.5e-7, "-0.00000015"),
            (1e15, "1000000000000000"),
            (1.25e22, "12500000000000000000000"),
            (5e-324, &format!("0.{}5", "0".repeat(323))),
        ] {
            assert_eq!(printed(|out| double(value, out).unwrap()), text);
        }
        assert_eq!(printed(|out| single(1e13, out).unwrap()), "10000000000000");
    }

    #[test]
    fn exponents_of_go() {
        for (value, text) in [
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (1e20, "100000000000000000000"),
            (-1e21, "-1e+21"),
        ] {
            assert_eq!(printed(|out| go_json(value, 1, out)), text);
        }
        assert_eq!(printed(|out| go_json(1e-7_f32, 2, out)), "1e-07");
    }

    #[test]
    fn of_two_as_near_the_even_digits() {
        // 473.453125
        let value = 30_301.0 / 64.0;
        assert_eq!(printed(|out| single(value, out).unwrap()), "473.45312");
        let value = 129.0 / f64::from(1 << 21);
        assert_eq!(
            printed(|out| double(value, out).unwrap()),
            "0.00006151199340820312"
        );
    }

    #[test]
    fn every_text_is_its_number() {
        for bits in (0..=u32::MAX).step_by(4_099) {
            let value = f32::from_bits(bits);
            if value == 0.0 || value.is_normal() {
                for text in [
                    printed(|out| single(value, out).unwrap()),
                    printed(|out| go_json(value, 2, out)),
                ] {
                    assert_eq!(text.parse(), Ok(value));
                    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
                    let mantissa = text.split('e').next().unwrap_or_default();
                    assert!(digits(mantissa) <= digits(&value.to_string()));
                }
            }
        }
    }
}
