//! Values that are numbers and booleans in JSON.
//!
//! The Python readers are in `cdcfmt_core/toolkit/value_readers.py`.

use serde::Deserialize;

use crate::cells::Cells;
use crate::json::{Kind, Token, append_spaced, plain};
use crate::numbers;
use crate::refusal::{Refusal, Step};

pub const OTHER: Refusal = Refusal::new("a value of another form", 0);
pub const RANGE: Refusal = Refusal::new("a value that its type does not hold", 0);
const PLAIN_DIGITS: i128 = 10_000_000_000_000_000;
/// Maximum digits of a DECIMAL.
const MAX_DIGITS: usize = 65;

/// A JSON number of a logical type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum Number {
    /// `wraps`: unsigned 64-bit values are written as signed ones with the same bits.
    Int {
        low: i64,
        high: u64,
        wraps: bool,
    },
    Float,
    /// `whole` digits before the point, `scale` after it.
    /// `doubles`: the value is known only by the shortest digits of a double.
    Decimal {
        whole: u8,
        scale: Option<u8>,
        doubles: bool,
    },
    /// 0 is written as 1900.
    Year,
}

pub fn number(kind: &Number, token: Token, document: &str, cell: &mut impl Cells) -> Step<()> {
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
        } => {
            let (value, own_scale) = json_decimal(token, text, *doubles)?;
            let limit = numbers::power_of_ten(whole.saturating_add(own_scale));
            if limit.is_some_and(|limit| value.abs() >= limit) {
                return Err(RANGE);
            }
            if cell.is_text() {
                return decimal(value, own_scale, *scale, cell);
            }
            let (value, scale) = if *doubles {
                with_zeros(value, own_scale, *scale)?
            } else {
                (value, own_scale)
            };
            if token.kind == Kind::Long {
                return cell.push_decimal(value, scale);
            }
            cell.push_number_text(value, Some(scale), text)
        }
        Number::Int { low, high, wraps } => {
            let value = small(token, text)?;
            let wrapped = *wraps && (-(1 << 63)..0).contains(&value);
            if wrapped || token.kind == Kind::Long {
                let value = if wrapped { value + (1 << 64) } else { value };
                return cell.push_integer(within(value, *low, *high)?);
            }
            cell.push_number_text(within(value, *low, *high)?, None, text)
        }
        Number::Year => match small(token, text)? {
            0 | 1900 => cell.push_integer(0),
            year @ 1901..=2155 => cell.push_integer(year),
            _ => Err(RANGE),
        },
    }
}

/// An integer that Python's parser also reads as an integer.
pub fn small(token: Token, text: &str) -> Step<i128> {
    if let Some(value) = token.long() {
        return Ok(value.into());
    }
    if token.kind != Kind::Integer {
        return Err(OTHER);
    }
    let value = numbers::integer(text).ok_or(RANGE)?;
    within(value, i64::MIN, u64::MAX)
}

pub fn within(value: i128, low: i64, high: u64) -> Step<i128> {
    let fits = i128::from(low) <= value && value <= i128::from(high);
    if fits { Ok(value) } else { Err(RANGE) }
}

fn double(token: Token, text: &str) -> Step<f64> {
    if let Some(value) = token.double().or(token.long().map(|value| value as f64)) {
        return Ok(value);
    }
    if !matches!(token.kind, Kind::Integer | Kind::Fraction) || text == "-0" {
        return Err(OTHER);
    }
    let value: f64 = text.parse().map_err(|_| OTHER)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(RANGE)
    }
}

/// A number's digits, and the number of fractional digits.
fn json_decimal(token: Token, text: &str, doubles: bool) -> Step<(i128, u8)> {
    if matches!(token.kind, Kind::Integer | Kind::Long) {
        return Ok((small(token, text)?, 0));
    }
    if token.kind != Kind::Fraction || !doubles {
        return Err(OTHER);
    }
    let (value, scale) = numbers::decimal(text).ok_or(OTHER)?;
    if value == 0 && text.starts_with('-') {
        return Err(OTHER);
    }
    // Up to fifteen digits identify their double, and vice versa.
    if value.abs() < 1_000_000_000_000_000 {
        return Ok((value, scale));
    }
    let shortest = double(token, text)?.to_string();
    let (other, other_scale) = numbers::decimal(&shortest).ok_or(OTHER)?;
    let more = scale.checked_sub(other_scale).ok_or(OTHER)?;
    if numbers::scaled(other, more) == Some(value) {
        return Ok((value, scale));
    }
    Err(OTHER)
}

/// The digits of a number with the same zeros as in the reference: up to the column's scale, or
/// as in Python's text of a double.
fn with_zeros(mut value: i128, mut scale: u8, of_column: Option<u8>) -> Step<(i128, u8)> {
    let least = of_column.unwrap_or(scale.min(1));
    while scale > least && value % 10 == 0 {
        (value, scale) = (value / 10, scale - 1);
    }
    if of_column.is_none() {
        // Python prints larger numbers with an exponent.
        let limit = numbers::scaled(PLAIN_DIGITS, scale).ok_or(RANGE)?;
        return if value.abs() < limit {
            Ok((value, scale))
        } else {
            Err(RANGE)
        };
    }
    if scale > least {
        // More digits than the column's scale: keeps all but trailing zeros.
        return Ok((value, scale));
    }
    let value = numbers::scaled(value, least - scale).ok_or(RANGE)?;
    Ok((value, least))
}

/// Appends a decimal; its text has all digits of the column's scale.
pub fn decimal(value: i128, scale: u8, of_column: Option<u8>, cell: &mut impl Cells) -> Step<()> {
    if !cell.is_text() {
        return cell.push_decimal(value, scale);
    }
    let of_column = of_column.ok_or(OTHER)?;
    let more = of_column.checked_sub(scale).ok_or(OTHER)?;
    let digits = numbers::scaled(value, more).ok_or(RANGE)?;
    let text = with_point(&digits.unsigned_abs().to_string(), digits < 0, of_column);
    cell.push_text(&text.ok_or(RANGE)?)
}

pub fn boolean(token: Token, cell: &mut impl Cells) -> Step<()> {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Any {
    /// Whether fractions are doubles.
    doubles: bool,
    /// Whether the target is an image, which keeps the value's own type.
    in_image: bool,
}

/// Whether a fraction has no exponent, and no more digits than the reference accepts.
fn is_plain(text: &str) -> bool {
    text.len() < 1000 && !text.bytes().any(|byte| matches!(byte, b'e' | b'E'))
}

pub fn any(
    kind: Any,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    scratch: &mut Vec<u8>,
) -> Step<()> {
    let text = token.text(document);
    match token.kind {
        Kind::Text | Kind::Escaped => cell.push_text(plain(token, document, scratch)),
        Kind::True | Kind::False if cell.is_text() => cell.push_text(text),
        Kind::True | Kind::False => cell.push_boolean(token.kind == Kind::True),
        Kind::Integer => {
            let value = small(token, text)?;
            if cell.is_text() && text != "-0" {
                return cell.push_text(text);
            }
            cell.push_integer(value)
        }
        Kind::Fraction if kind.in_image && !kind.doubles => {
            let (value, scale) = numbers::decimal(text).ok_or(OTHER)?;
            cell.push_decimal(value, scale)
        }
        // Decimals are printed without exponent, so this is already their text.
        Kind::Fraction if cell.is_text() && !kind.doubles && is_plain(text) => cell.push_text(text),
        Kind::Object | Kind::Array if cell.is_text() && !kind.doubles => {
            scratch.clear();
            append_spaced(text, scratch)?;
            cell.push_text(std::str::from_utf8(scratch).map_err(|_| OTHER)?)
        }
        Kind::Fraction if !cell.is_text() => {
            let pushed = cell.push_float(double(token, text)?);
            pushed.or_else(|_| {
                let (value, scale) = json_decimal(token, text, true)?;
                cell.push_decimal(value, scale)
            })
        }
        _ => Err(OTHER),
    }
}
