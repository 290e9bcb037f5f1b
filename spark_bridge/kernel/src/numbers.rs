//! MySQL's numbers as text; the Python readers are in `cdcfmt_core/mysql/numbers.py`.
//!
//! Each reader accepts a subset of what its Python equivalent accepts, with the same value. None
//! leaves the message to the reference.

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

/// Whether a decimal has its printed form, with all digits of a column's scale.
///
/// Scale 0 means any scale.
pub fn is_printed_decimal(text: &str, scale: usize) -> bool {
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
    as_printed && digits(whole) && (whole == "0" || !whole.starts_with('0')) && text.len() <= MOST
}

/// Any decimal with this number of digits is the shortest text of a 64-bit float.
pub const DIGITS_OF_DOUBLE: u32 = 15;
/// Like [`DIGITS_OF_DOUBLE`], for 32 bits.
pub const DIGITS_OF_FLOAT: u32 = 6;
/// The largest power of ten that is exact as a 64-bit float.
const MAX_SCALE: u8 = 22;

/// A decimal of at most `digits` digits, as the nearest float.
pub fn held(value: i128, scale: u8, digits: u32) -> Option<f64> {
    let value = i64::try_from(value).ok()?;
    if value.unsigned_abs() >= 10_u64.pow(digits) || scale > MAX_SCALE {
        return None;
    }
    // Both are exact, so only their quotient is rounded.
    #[allow(clippy::cast_precision_loss)]
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
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(value)
}

fn skip_digits(data: &[u8]) -> Option<&[u8]> {
    let count = data.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| &data[count..])
}

/// YEAR: 0 or 1901 to 2155.
pub fn year(text: &str) -> Option<i128> {
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
