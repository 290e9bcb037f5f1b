//! MySQL's numbers as text; the Python readers are in `cdcfmt_mysql/numbers.py`.
//!
//! Each reader accepts a subset of what its Python equivalent accepts, with the same value. None
//! leaves the message to the reference.

use std::borrow::Cow;

/// Maximum digits of a number; 10^38 is the limit of a 128-bit decimal.
const MAX_DIGITS: usize = 38;

/// An integer, with optional leading zeros and sign.
pub fn integer(text: impl AsRef<[u8]>) -> Option<i128> {
    let (negative, digits) = sign(text.as_ref());
    let value = digits_of(digits)?;
    Some(if negative { -value } else { value })
}

fn sign(data: &[u8]) -> (bool, &[u8]) {
    match data {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, data),
    }
}

fn digits_of(digits: &[u8]) -> Option<i128> {
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return None;
    }
    // Eighteen digits fit into 64 bits, whose arithmetic is several times as fast as that of 128.
    let (head, tail) = digits.split_at(digits.len().min(18));
    let mut value = i128::from(small(head)?);
    for digit in tail {
        value = value * 10 + i128::from(digit_of(*digit)?);
    }
    Some(value)
}

fn small(digits: &[u8]) -> Option<i64> {
    let mut value = 0;
    for digit in digits {
        value = value * 10 + i64::from(digit_of(*digit)?);
    }
    Some(value)
}

fn digit_of(byte: u8) -> Option<u8> {
    let digit = byte.wrapping_sub(b'0');
    (digit < 10).then_some(digit)
}

/// A decimal without exponent: its digits as an integer, and the number of fractional digits.
pub fn decimal(text: &str) -> Option<(i128, u8)> {
    let data = text.as_bytes();
    let (negative, data) = match data {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, data),
    };
    let (value, scale) = match memchr::memchr(b'.', data) {
        None => (digits_of(data)?, 0),
        Some(point) => {
            let (whole, fraction) = (&data[..point], &data[point + 1..]);
            // `.5` and `5.` are no forms of MySQL or JSON.
            if whole.is_empty() || fraction.is_empty() || whole.len() + fraction.len() > MAX_DIGITS
            {
                return None;
            }
            let mut value = digits_of(whole)?;
            for digit in fraction {
                value = value * 10 + i128::from(digit_of(*digit)?);
            }
            (value, u8::try_from(fraction.len()).ok()?)
        }
    };
    Some((if negative { -value } else { value }, scale))
}

/// A JSON number of at most 38 digits: its digits as an integer, and the number of fractional ones.
///
/// As `unscaled` in `pyspark_cdcfmt/rows/variant_scalars.py`, which writes numbers without exponent.
pub fn exact(text: &str) -> Option<(i128, u8)> {
    decimal(text).or_else(|| Digits::of(text).unscaled())
}

pub fn has_exponent(text: &str) -> bool {
    memchr::memchr2(b'e', b'E', text.as_bytes()).is_some()
}

/// A JSON number without exponent, with all its digits.
pub fn plain(text: &str) -> Cow<'_, str> {
    if has_exponent(text) {
        Cow::Owned(Digits::of(text).plain())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether a decimal has a short exponent.
pub fn is_scientific(text: &str) -> bool {
    // Its digits are written out, so an exponent must not be able to ask for millions of them.
    const EXPONENT: usize = 4;
    let exponent = text.split_once(['e', 'E']).map(|(_, exponent)| exponent);
    exponent.is_some_and(|exponent| exponent.len() <= EXPONENT) && float(text).is_some()
}

/// The double whose shortest text is this JSON number.
pub fn equal_double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let is_equal = value.is_finite()
        && Digits::of(zmij::Buffer::new().format_finite(value)).equals(&Digits::of(text));
    is_equal.then_some(value)
}

/// The digits of a JSON number, without leading zeros.
pub struct Digits {
    negative: bool,
    digits: Vec<u8>,
    /// Number of digits before the point; may be negative.
    point: i64,
}

impl Digits {
    pub fn of(text: &str) -> Self {
        let (text, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse().unwrap_or(0)),
            None => (text, 0),
        };
        let (negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let all = || whole.bytes().chain(fraction.bytes());
        let zeros = all().take_while(|digit| *digit == b'0').count();
        Self {
            negative,
            digits: all().skip(zeros).collect(),
            point: whole.len() as i64 - zeros as i64 + exponent,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Number of digits behind the point of the plain form.
    pub fn scale(&self) -> i64 {
        (self.digits.len() as i64 - self.point).max(0)
    }

    /// Digits before the point, or minus the number of zeros behind it.
    pub fn point(&self) -> i64 {
        self.point
    }

    /// The number as an integer, and its number of fractional digits; None beyond 38 digits.
    pub fn unscaled(&self) -> Option<(i128, u8)> {
        // A zero may have any scale, also beyond 38 digits or a byte.
        let scale = u8::try_from(self.scale()).ok();
        let scale = scale.filter(|scale| usize::from(*scale) <= MAX_DIGITS);
        if self.is_zero() {
            return Some((0, scale.unwrap_or(0)));
        }
        let zeros = u8::try_from((self.point - self.digits.len() as i64).max(0)).ok()?;
        let value = scaled(digits_of(&self.digits)?, zeros)?;
        let value = if self.negative { -value } else { value };
        (value.abs() < POWERS[MAX_DIGITS]).then_some((value, scale?))
    }

    /// All digits, without exponent.
    pub fn plain(&self) -> String {
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        let digits = String::from_utf8_lossy(&self.digits);
        let size = digits.len() as i64;
        let mut text = String::from(if self.negative { "-" } else { "" });
        let point = usize::try_from(self.point).unwrap_or(0).min(digits.len());
        let (whole, fraction) = digits.split_at(point);
        text.push_str(if whole.is_empty() { "0" } else { whole });
        if !self.is_zero() {
            text.push_str(&zeros(self.point - size));
        }
        if self.scale() > 0 {
            text.push('.');
            text.push_str(&zeros(self.scale() - fraction.len() as i64));
            text.push_str(fraction);
        }
        text
    }

    fn equals(&self, other: &Self) -> bool {
        let significant = |all: &Self| {
            let end = all.digits.iter().rposition(|digit| *digit != b'0');
            all.digits[..end.map_or(0, |end| end + 1)].to_vec()
        };
        self.negative == other.negative
            && self.point == other.point
            && significant(self) == significant(other)
    }
}

/// Whether a decimal has its printed form, with all digits of a column's scale.
///
/// Scale 0 means any scale.
pub fn is_printed_decimal(text: &str, scale: usize) -> bool {
    // A DECIMAL of MySQL has at most 65 digits.
    const MOST: usize = 65;
    let plain = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = plain
        .split_once('.')
        .map_or((plain, None), |(whole, fraction)| (whole, Some(fraction)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let as_printed = match fraction {
        None => scale == 0,
        Some(fraction) => digits(fraction) && (scale == 0 || fraction.len() == scale),
    };
    let count = whole.len() + fraction.map_or(0, str::len);
    // Leading zeros are another text of the same number, so a comparison of texts would differ.
    as_printed && digits(whole) && (whole == "0" || !whole.starts_with('0')) && count <= MOST
}

/// Any decimal with this number of digits is the shortest text of a 64-bit float.
pub const DIGITS_OF_DOUBLE: u32 = 15;
/// Like [`DIGITS_OF_DOUBLE`], for 32 bits.
pub const DIGITS_OF_FLOAT: u32 = 6;
/// The largest power of ten that is exact as a 64-bit float.
const MAX_SCALE: u8 = 22;

/// A decimal of at most `digits` digits, as the nearest float.
pub fn held(value: i128, scale: u8, digits: u32) -> Option<f64> {
    // With more digits, the nearest double has other shortest digits than the text.
    let value = i64::try_from(value).ok()?;
    if value.unsigned_abs() >= 10_u64.pow(digits) || scale > MAX_SCALE {
        return None;
    }
    // Both are exact, so only their quotient is rounded.
    let (number, power) = (value as f64, 10_u128.pow(u32::from(scale)) as f64);
    Some(number / power)
}

/// A finite double: digits, an optional point with digits, an optional exponent.
pub fn float(text: &str) -> Option<f64> {
    let data = text.as_bytes();
    let (_, mut rest) = match data {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, data),
    };
    rest = skip_digits(rest)?;
    if let [b'.', fraction @ ..] = rest {
        rest = skip_digits(fraction)?;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        rest = skip_digits(sign(exponent).1)?;
    }
    if !rest.is_empty() {
        return None;
    }
    // Rust reads `inf` and `nan`, too, but the forms above were checked: what is infinite now was
    // too large.
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(value)
}

fn skip_digits(data: &[u8]) -> Option<&[u8]> {
    let count = data.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| &data[count..])
}

/// YEAR: 0 or 1901 to 2155.
pub fn year(text: &str) -> Option<i128> {
    // MySQL prints the zero year as 0000; JSON numbers have one digit.
    if text == "0" {
        return Some(0);
    }
    if text.len() != 4 {
        return None;
    }
    let value = digits_of(text.as_bytes())?;
    (value == 0 || (1901..=2155).contains(&value)).then_some(value)
}

/// `value` × 10^`power`, if it fits.
pub fn scaled(value: i128, power: u8) -> Option<i128> {
    match power {
        0 => Some(value),
        _ => value.checked_mul(power_of_ten(power)?),
    }
}

/// 10^`power`, up to 10^38.
pub fn power_of_ten(power: u8) -> Option<i128> {
    POWERS.get(usize::from(power)).copied()
}

const POWERS: [i128; MAX_DIGITS + 1] = {
    let mut powers = [1; MAX_DIGITS + 1];
    let mut place = 1;
    while place < powers.len() {
        powers[place] = 10 * powers[place - 1];
        place += 1;
    }
    powers
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        assert_eq!(integer("-0012"), Some(-12));
        assert_eq!(
            integer("18446744073709551615"),
            Some(18_446_744_073_709_551_615)
        );
        for text in ["", "-", "1_0", "0x1F", "1.0", " 1", "1 "] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal("-1.50"), Some((-150, 2)));
        assert_eq!(decimal("7"), Some((7, 0)));
        for text in [".5", "5.", "1e2", "+1", "1.5.2", ""] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_json() {
        for (text, number, plainly) in [
            ("1.50", Some((150, 2)), "1.50"),
            ("-1.50e1", Some((-150, 1)), "-15.0"),
            ("0.5E3", Some((500, 0)), "500"),
            ("1E-7", Some((1, 7)), "0.0000001"),
            ("0e5", Some((0, 0)), "0"),
            ("0e-5", Some((0, 5)), "0.00000"),
            (
                "0.0e-39",
                Some((0, 0)),
                "0.0000000000000000000000000000000000000000",
            ),
            ("-0.0", Some((0, 1)), "-0.0"),
            (
                "1e37",
                Some((10_i128.pow(37), 0)),
                "10000000000000000000000000000000000000",
            ),
            ("1e38", None, "100000000000000000000000000000000000000"),
            ("1e-39", None, "0.000000000000000000000000000000000000001"),
            (
                "0.00000000000000000000000000000000000001",
                Some((1, 38)),
                "0.00000000000000000000000000000000000001",
            ),
        ] {
            assert_eq!(exact(text), number, "{text}");
            assert_eq!(plain(text), plainly, "{text}");
            assert_eq!(
                exact(&plain(text)).map(|found| found.0),
                number.map(|found| found.0)
            );
        }
        for (text, double) in [
            ("1e300", Some(1e300)),
            ("1.0E300", Some(1e300)),
            (
                "-1.2345678901234567e-30",
                Some(-1.234_567_890_123_456_7e-30),
            ),
            ("1.00000000000000000001e300", None),
            ("4.9E-324", None),
            ("5e-324", Some(5e-324)),
            ("1e400", None),
            ("1e-400", None),
        ] {
            assert_eq!(equal_double(text), double, "{text}");
        }
    }

    #[test]
    fn floats() {
        assert_eq!(float("4.9E-324"), Some(4.9e-324));
        assert_eq!(float("-0"), Some(-0.0));
        for text in ["nan", "inf", "1e999", ".5", "1.", "1e", "1_0"] {
            assert_eq!(float(text), None, "{text}");
        }
    }

    #[test]
    fn held_decimals() {
        assert_eq!(held(-9351, 2, DIGITS_OF_DOUBLE), Some(-93.51));
        assert_eq!(
            held(999_999_999_999_999, 22, DIGITS_OF_DOUBLE),
            Some(9.999_999_999_999_99e-8)
        );
        assert_eq!(held(1_000_000_000_000_000, 0, DIGITS_OF_DOUBLE), None);
        assert_eq!(held(1_000_000, 0, DIGITS_OF_FLOAT), None);
        assert_eq!(held(1, 23, DIGITS_OF_DOUBLE), None);
        assert_eq!(held(i128::MIN, 0, DIGITS_OF_DOUBLE), None);
    }

    #[test]
    fn years() {
        assert_eq!(year("0000"), Some(0));
        assert_eq!(year("1900"), None);
        assert_eq!(year("2155"), Some(2155));
    }
}
