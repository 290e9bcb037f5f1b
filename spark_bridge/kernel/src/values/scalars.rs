//! Values that are numbers and booleans in JSON.
//!
//! The Python readers are in `cdcfmt_toolkit/value_readers.py`.

use std::ops::RangeInclusive;

use crate::json::{Kind, Token, append_python_json, plain};
use crate::plan::{MAX_DIGITS, Number};
use crate::refusal::{Refusal, Result};
use crate::text::numbers;
use crate::values::cells::Cells;
use crate::variant::Variants;
use crate::variant::encode::MAX_UNSCALED;

pub const BROKEN: Refusal = Refusal::new("text is not a value of the column's type", 0);
pub const OTHER: Refusal = Refusal::new("value has an unexpected form", 0);
pub const RANGE: Refusal = Refusal::new("value is out of the range of its type", 0);
/// Appends a JSON number of a known type.
pub fn number(kind: &Number, token: Token, document: &str, cell: &mut impl Cells) -> Result<()> {
    let text = token.text(document);
    match kind {
        Number::Float if token.kind == Kind::Fraction => {
            cell.push_float_text(text, |text| double(token, text))
        }
        Number::Float => cell.push_float(double(token, text)?),
        Number::Decimal {
            whole,
            scale,
            doubles,
        } => decimal_number(token, text, (*whole, *scale, *doubles), cell),
        Number::Int { low, high, wraps } => {
            let value = whole_number(token, text)?;
            let wrapped =
                // The producer's signed number has the bits of the unsigned one.
                *wraps && token.kind != Kind::Fraction && (-(1 << 63)..0).contains(&value);
            let value = if wrapped { value + (1 << 64) } else { value };
            let value = within(value, *low, *high)?;
            // The text is not that of the value.
            if wrapped || token.kind != Kind::Integer {
                return cell.push_integer(value);
            }
            cell.push_number_text(value, None, text)
        }
        Number::Year => match whole_number(token, text)? {
            // Debezium's connectors write 1900 for 0000, as YEAR begins in 1901.
            0 | 1900 => cell.push_integer(0),
            year @ 1901..=2155 => cell.push_integer(year),
            _ => Err(RANGE),
        },
    }
}

/// An integer that Python's parser also reads as an integer.
pub fn small(token: Token, text: &str) -> Result<i128> {
    if let Some(value) = token.long() {
        return Ok(value.into());
    }
    if token.kind != Kind::Integer {
        return Err(OTHER);
    }
    let value = numbers::integer(text).ok_or(RANGE)?;
    within(value, i64::MIN, u64::MAX)
}

/// An integer within bounds; refuses others.
pub fn within(value: i128, low: i64, high: u64) -> Result<i128> {
    let fits = i128::from(low) <= value && value <= i128::from(high);
    if fits { Ok(value) } else { Err(RANGE) }
}

fn double(token: Token, text: &str) -> Result<f64> {
    if let Some(value) = token.double().or(token.long().map(|value| value as f64)) {
        return Ok(value);
    }
    if !matches!(token.kind, Kind::Integer | Kind::Fraction) {
        return Err(OTHER);
    }
    // JSON's -0 is Python's integer 0, which has no sign.
    if text == "-0" {
        return Ok(0.0);
    }
    let value: f64 = text.parse().map_err(|_| OTHER)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(RANGE)
    }
}

/// An integer, perhaps written with an exponent or with zeros behind its point.
fn whole_number(token: Token, text: &str) -> Result<i128> {
    if token.kind != Kind::Fraction {
        return small(token, text);
    }
    let (value, scale) = numbers::exact(text).ok_or(RANGE)?;
    let one = numbers::power_of_ten(scale).ok_or(RANGE)?;
    // 1.0 and 1e3 are integers of the column, 1.5 is an error of the reference.
    if value % one == 0 {
        Ok(value / one)
    } else {
        Err(OTHER)
    }
}

/// Appends a decimal whose text has an exponent, a plus sign, or other zeros than its type.
pub fn decimal_of_text(text: &str, scale: Option<usize>, cell: &mut impl Cells) -> Result<()> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if !numbers::is_scientific(text) && !numbers::is_printed_decimal(text, 0) {
        return Err(BROKEN);
    }
    let token = Token::new(Kind::Fraction, 0, text.len());
    number(&Number::decimal(scale), token, text, cell)
}

/// The exponents of a zero that Python's decimals of 65 digits have; the reference decides others.
const ZERO_POINTS: RangeInclusive<i64> = -129..=64;

/// Appends a number of a DECIMAL of `whole` digits before the point and `scale` digits after it.
fn decimal_number(
    token: Token,
    text: &str,
    (whole, of_column, doubles): (u8, Option<u8>, bool),
    cell: &mut impl Cells,
) -> Result<()> {
    let printed;
    let text = match (token.kind, token.long()) {
        (_, Some(value)) => {
            printed = value.to_string();
            &printed
        }
        (Kind::Integer, _) if text == "-0" => "0",
        (Kind::Integer | Kind::Fraction, _) => text,
        _ => return Err(OTHER),
    };
    // Most numbers are plain, so only the others are searched for an exponent.
    let of_plain = numbers::decimal(text);
    let has_exponent = of_plain.is_none() && numbers::has_exponent(text);
    let exact = of_plain.or_else(|| numbers::Digits::of(text).unscaled());
    let fits = match exact {
        Some((0, _)) if has_exponent => ZERO_POINTS.contains(&numbers::Digits::of(text).point()),
        Some((value, scale)) => {
            let limit = numbers::power_of_ten(whole.saturating_add(scale));
            limit.is_none_or(|limit| value.abs() < limit)
        }
        None => numbers::Digits::of(text).point() <= i64::from(whole),
    };
    if !fits {
        return Err(RANGE);
    }
    // Integers have no negative zero, and Python's decimals do.
    if doubles && text.starts_with('-') && exact.is_some_and(|(value, _)| value == 0) {
        return Err(OTHER);
    }
    let number = match exact {
        Some((value, scale)) if doubles => with_zeros(value, scale, of_column),
        found => found,
    };
    if !cell.is_text()
        && let Some((value, scale)) = number
    {
        // The text has other digits than the value.
        return if doubles || token.kind == Kind::Long || has_exponent {
            cell.push_decimal(value, scale)
        } else {
            cell.push_number_text(value, Some(scale), text)
        };
    }
    // More than 38 digits: only text and images have room for them.
    if !cell.is_text() && !cell.is_image() {
        return Err(RANGE);
    }
    let mut plain = numbers::plain(text).into_owned();
    let fraction = plain.find('.').map_or(0, |point| plain.len() - point - 1);
    let mut zeros = usize::from(of_column.unwrap_or(0)).saturating_sub(fraction);
    // An image has the message's digits; a typed column those of its scale.
    if !doubles && cell.is_image() {
        zeros = 0;
    }
    if zeros > 0 && fraction == 0 {
        plain.push('.');
    }
    plain.push_str(&"0".repeat(zeros));
    // A double has no trailing zeros of its own: those beyond the scale come from its exponent.
    if let (true, Some(least)) = (doubles, of_column) {
        let more = fraction.saturating_sub(least.into());
        let ends = plain.bytes().rev().take(more);
        let ends = ends.take_while(|digit| *digit == b'0').count();
        plain.truncate(plain.len() - ends);
        if plain.ends_with('.') {
            plain.pop();
        }
    }
    if plain.bytes().filter(u8::is_ascii_digit).count() > MAX_DIGITS {
        return Err(RANGE);
    }
    cell.push_text(&plain)
}

/// The digits of a number that was a double, with zeros up to the column's scale and none beyond.
fn with_zeros(mut value: i128, mut scale: u8, of_column: Option<u8>) -> Option<(i128, u8)> {
    let Some(least) = of_column else {
        return Some((value, scale));
    };
    while scale > least && value % 10 == 0 {
        (value, scale) = (value / 10, scale - 1);
    }
    let more = least.saturating_sub(scale);
    let value = numbers::scaled(value, more)?;
    (value.abs() < MAX_UNSCALED).then_some((value, scale + more))
}

/// Appends a decimal; its text has all digits of the column's scale.
pub fn decimal(value: i128, scale: u8, of_column: Option<u8>, cell: &mut impl Cells) -> Result<()> {
    if !cell.is_text() {
        return cell.push_decimal(value, scale);
    }
    let of_column = of_column.ok_or(OTHER)?;
    let more = of_column.checked_sub(scale).ok_or(OTHER)?;
    let digits = numbers::scaled(value, more).ok_or(RANGE)?;
    // As MySQL prints it, with all digits of the scale.
    let text = with_point(&digits.unsigned_abs().to_string(), digits < 0, of_column);
    cell.push_text(&text.ok_or(RANGE)?)
}

pub fn boolean(token: Token, cell: &mut impl Cells) -> Result<()> {
    match token.kind {
        Kind::True => cell.push_boolean(true),
        Kind::False => cell.push_boolean(false),
        _ => Err(OTHER),
    }
}

/// The text of a decimal of at most 65 digits, with `scale` fractional digits.
pub fn with_point(digits: &str, negative: bool, scale: u8) -> Option<String> {
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let sign = if negative { "-" } else { "" };
    let width = usize::from(scale) + 1;
    let mut text = format!("{sign}{digits:0>width$}");
    if scale > 0 {
        text.insert(text.len() - usize::from(scale), '.');
    }
    Some(text)
}

/// A JSON value of unknown type.
pub fn any(
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    scratch: &mut Vec<u8>,
    variants: &mut Variants,
) -> Result<()> {
    let text = token.text(document);
    match token.kind {
        Kind::Text | Kind::Escaped => cell.push_text(plain(token, document, scratch)),
        Kind::True | Kind::False if cell.is_text() => cell.push_text(text),
        Kind::True | Kind::False => cell.push_boolean(token.kind == Kind::True),
        // JSON's -0 is the integer 0.
        Kind::Integer if text == "-0" => any_number(Kind::Integer, "0", cell),
        Kind::Integer | Kind::Fraction => any_number(token.kind, text, cell),
        Kind::Object | Kind::Array if cell.is_text() => {
            scratch.clear();
            append_python_json(text, scratch)?;
            cell.push_text(std::str::from_utf8(scratch).map_err(|_| OTHER)?)
        }
        Kind::Object | Kind::Array => cell.push_nested(text, variants),
        Kind::Null => cell.push_null(),
        _ => Err(OTHER),
    }
}

/// Appends a number of unknown type with all its digits; only a float may round it.
fn any_number(kind: Kind, text: &str, cell: &mut impl Cells) -> Result<()> {
    /// As `decimal_text` in `pyspark_cdcfmt/rows/variant_scalars.py`.
    const MOST_DIGITS: i64 = 500;
    if cell.is_text() {
        return cell.push_text(&numbers::plain(text));
    }
    if kind == Kind::Integer {
        let value = numbers::integer(text).filter(|value| value.abs() < MAX_UNSCALED);
        return match value {
            Some(value) => cell.push_integer(value),
            None if cell.is_image() => cell.push_text(text),
            None => Err(RANGE),
        };
    }
    if cell.is_float() {
        let value: f64 = text.parse().map_err(|_| OTHER)?;
        let is_zero = || numbers::Digits::of(text).is_zero();
        // Rounding is wanted, but neither infinity nor a zero for digits.
        return if value.is_finite() && (value != 0.0 || is_zero()) {
            cell.push_float(value)
        } else {
            Err(RANGE)
        };
    }
    if let Some((value, scale)) = numbers::exact(text) {
        return cell.push_decimal(value, scale);
    }
    if !cell.is_image() {
        return Err(RANGE);
    }
    if let Some(value) = numbers::equal_double(text) {
        return cell.push_float(value);
    }
    let digits = numbers::Digits::of(text);
    // 1e600 would be 601 characters of text in every row.
    if (digits.point() - 1).abs() > MOST_DIGITS {
        return Err(RANGE);
    }
    cell.push_text(&digits.plain())
}
