//! Numbers in JSON images: plain digits, without trailing zeros of a fraction.

use crate::text::{SHORT, append};

/// Maximum characters of a 64-bit number with 38 fractional digits.
const ROOM: usize = 64;

/// Prints an integer, or a decimal with `scale` fractional digits.
pub fn print(value: i128, scale: u8, out: &mut Vec<u8>) {
    let scale = usize::from(scale);
    match u64::try_from(value.unsigned_abs()) {
        Ok(0) => out.push(b'0'),
        Ok(size) if scale + 22 <= ROOM => print_small(value < 0, size, scale, out),
        _ => print_large(value, scale, out),
    }
}

fn print_small(is_negative: bool, size: u64, scale: usize, out: &mut Vec<u8>) {
    let (mut rest, mut behind) = (size, scale);
    // A decimal 1.50 is 1.5 in JSON, as the reference prints it.
    while behind > 0 && rest % 10 == 0 {
        rest /= 10;
        behind -= 1;
    }
    let mut text = [b'0'; ROOM + SHORT];
    let mut at = ROOM;
    let mut put = |byte: u8| {
        at -= 1;
        text[at] = byte;
    };
    let mut digit = || {
        let digit = (rest % 10) as u8;
        rest /= 10;
        (b'0' + digit, rest)
    };
    if behind > 0 {
        for _ in 0..behind {
            put(digit().0);
        }
        put(b'.');
    }
    loop {
        let (byte, left) = digit();
        put(byte);
        if left == 0 {
            break;
        }
    }
    if is_negative {
        put(b'-');
    }
    append(&text, at, ROOM, out);
}

fn print_large(value: i128, scale: usize, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(value.unsigned_abs()).as_bytes();
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    let zeros = scale - fraction.len();
    if let Some(end) = fraction.iter().rposition(|digit| *digit != b'0') {
        out.push(b'.');
        out.resize(out.len() + zeros, b'0');
        out.extend_from_slice(&fraction[..=end]);
    }
}

/// The part of a number's text to print; None for leading zeros and other forms.
pub fn printed(text: &str) -> Option<&[u8]> {
    let text = text.as_bytes();
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if !matches!(digits, [b'1'..=b'9', ..] | [b'0'] | [b'0', b'.', ..]) {
        return None;
    }
    if memchr::memchr(b'.', digits).is_none() {
        return Some(text);
    }
    let end = text.iter().rposition(|byte| *byte != b'0')?;
    let end = if text[end] == b'.' { end } else { end + 1 };
    Some(&text[..end])
}

/// Whether a text has the fewest digits that identify its double, in the printed form.
///
/// All texts with up to fifteen digits identify different doubles.
pub fn is_shortest(text: &str) -> bool {
    const DIGITS: usize = 15;
    let text = text.as_bytes();
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let Some(point) = memchr::memchr(b'.', digits) else {
        return false;
    };
    let (whole, fraction) = (&digits[..point], &digits[point + 1..]);
    let is_plain = matches!(
        (whole, fraction),
        (b"0", [b'1'..=b'9', ..]) | ([b'1'..=b'9', ..], [_, ..])
    );
    is_plain
        && digits.len() <= DIGITS + 1 // and the point
        && fraction.last() != Some(&b'0')
        && whole.iter().chain(fraction).all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_zeros_at_their_ends() {
        for (value, scale, text) in [
            (-1_2340, 3, "-12.34"),
            (5, 3, "0.005"),
            (-500, 3, "-0.5"),
            (1_000, 3, "1"),
            (0, 9, "0"),
            (1_000, 0, "1000"),
            (-7, 38, "-0.00000000000000000000000000000000000007"),
            (
                i128::from(u64::MAX),
                38,
                "0.00000000000000000018446744073709551615",
            ),
        ] {
            let (mut small, mut large) = (Vec::new(), Vec::new());
            print(value, scale, &mut small);
            let small = String::from_utf8(small).unwrap();
            assert_eq!(small, text);
            if value != 0 {
                print_large(value, usize::from(scale), &mut large);
                assert_eq!(small.as_bytes(), large);
            }
        }
        let mut out = Vec::new();
        print(-(10_i128.pow(38) - 1), 19, &mut out);
        assert_eq!(out, b"-9999999999999999999.9999999999999999999");
    }

    #[test]
    fn parts_of_texts_that_are_printed() {
        for (text, part) in [
            ("0", Some("0")),
            ("-120", Some("-120")),
            ("12.3400", Some("12.34")),
            ("-0.50", Some("-0.5")),
            ("100.00", Some("100")),
            ("00.5", None),
            ("+5", None),
            (".5", None),
            ("-", None),
        ] {
            assert_eq!(printed(text), part.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn shortest_texts_of_doubles() {
        for text in [
            "1.5",
            "-0.1",
            "0.12345678901234",
            "12345678901234.5",
            "99999999999999.9",
            "4503599627370.97",
        ] {
            assert!(is_shortest(text), "{text}");
            let value: f64 = text.parse().unwrap();
            assert_eq!(zmij::Buffer::new().format_finite(value), text);
        }
        for text in [
            "1",
            "1.0",
            "1.50",
            "0.01",
            "00.1",
            "1e5",
            "1.5e3",
            ".5",
            "1.",
            "1.2.3",
            "-",
            "nan",
            "1234567890.123456",
        ] {
            assert!(!is_shortest(text), "{text}");
        }
        let mut bits = 1_u64;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let scale = (bits >> 60) as usize;
            let text = format!(
                "{:.scale$}",
                (bits >> 14) as f64 / 10_f64.powi(scale as i32)
            );
            if is_shortest(&text) {
                let value: f64 = text.parse().unwrap();
                assert_eq!(zmij::Buffer::new().format_finite(value), text);
            }
        }
    }

    #[test]
    fn all_ways_print_the_same() {
        let mut bits = 1_u64;
        for scale in 0..=38 {
            for shift in 0..64 {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let value = i128::from(bits >> shift);
                let (mut one, mut other) = (Vec::new(), Vec::new());
                print(value, scale, &mut one);
                if value != 0 {
                    print_large(value, usize::from(scale), &mut other);
                    assert_eq!(one, other);
                }
            }
        }
    }
}
