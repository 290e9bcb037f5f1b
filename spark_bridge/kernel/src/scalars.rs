//! Values that JSON writes as numbers and booleans, and binary ones in base64.
//!
//! The Python readers are in `cdcfmt_core/encodings.py`.

use serde::Deserialize;

use crate::cells::Cells;
use crate::columns::plain;
use crate::json::{Kind, Token};
use crate::numbers;
use crate::refusal::{Refusal, Step};
use crate::text_bytes::{self, decode_base64};

const OTHER: Refusal = Refusal::new("a value of another form", 0);
const RANGE: Refusal = Refusal::new("a value that its type does not hold", 0);
/// Of a DECIMAL.
const MAX_DIGITS: usize = 65;
/// The reference takes no more for a DECIMAL.
const MAX_BYTES: usize = 32;
const DAY_MICROS: i64 = 86_400_000_000;
const YEAR_MICROS: u64 = 365 * 86_400_000_000;
/// Of Python's datetimes.
const FIRST_MICROSECOND: i64 = -62_135_596_800_000_000;
const LAST_MICROSECOND: i64 = 253_402_300_799_999_999;
/// 838:59:59.999999
const MAX_TIME: i64 = ((838 * 60 + 59) * 60 + 60) * 1_000_000 - 1;

/// A JSON number of a logical type.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum Number {
    /// `wraps`: one of 64 bits without sign, which a signed one took.
    Int {
        low: i64,
        high: u64,
        wraps: bool,
    },
    Float,
    /// `whole` digits before the point, `scale` behind it.
    /// `doubles`: the shortest digits of a double are all that there is.
    Decimal {
        whole: u8,
        scale: Option<u8>,
        doubles: bool,
    },
    /// 1900 is written for 0.
    Year,
}

/// What a number of units counts: since 1970, or since midnight.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum Clock {
    DateTime { fsp: Option<u32> },
    Time { fsp: Option<u32> },
}

/// Units of a clock; a guessed one is that of most columns, if nothing speaks against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Millis,
    Micros,
    Nanos,
    Guessed,
}

/// The integer of a decimal, or of 64 bits without sign.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum Unscaled {
    Int { low: i64, high: u64 },
    Decimal { scale: u8 },
}

/// Bytes in one of two forms, and how many the column has.
#[derive(Clone, Debug, Deserialize)]
pub struct BytesText {
    form: Form,
    exact: Option<usize>,
    longest: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    Auto,
    Base64,
    Hex,
}

impl BytesText {
    pub fn read(&self, text: &str, out: &mut Vec<u8>) -> Step<()> {
        let as_base64 = (!text.is_empty() && text.len() % 4 == 0).then_some(text.len() / 4 * 3);
        let pairs = text.len() % 2 == 0 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        // The reference takes digits of both cases for base64.
        let mixed = text.bytes().any(|byte| byte.is_ascii_lowercase())
            && text.bytes().any(|byte| byte.is_ascii_uppercase());
        let is_hex = match self.form {
            Form::Base64 => false,
            Form::Hex => true,
            Form::Auto if !pairs || mixed => false,
            Form::Auto => match as_base64 {
                Some(bytes) if self.longest.is_none_or(|longest| bytes <= longest) => {
                    if self.exact != as_base64 {
                        return Err(OTHER);
                    }
                    false
                }
                _ => true,
            },
        };
        if is_hex {
            if !pairs {
                return Err(OTHER);
            }
            text_bytes::decode_hex(text, out)?;
            let doubtful = self.exact.is_some_and(|exact| out.len() != exact);
            if self.form == Form::Hex && doubtful && self.exact == as_base64 {
                return Err(OTHER);
            }
        } else {
            text_bytes::decode_base64(text, out)?;
        }
        if self.longest.is_some_and(|longest| out.len() > longest) {
            return Err(RANGE);
        }
        Ok(())
    }
}

pub fn number(kind: &Number, token: Token, document: &str, cell: &mut impl Cells) -> Step<()> {
    let text = token.text(document);
    match kind {
        Number::Float => cell.push_float(double(token, text)?),
        Number::Decimal {
            whole,
            scale,
            doubles,
        } => {
            let (value, own_scale) = json_decimal(token, text, *doubles)?;
            let limit = 10_i128.checked_pow(u32::from(*whole) + u32::from(own_scale));
            if limit.is_some_and(|limit| value.abs() >= limit) {
                return Err(RANGE);
            }
            decimal(value, own_scale, *scale, cell)
        }
        Number::Int { low, high, wraps } => {
            let value = small(token, text)?;
            let wrapped = *wraps && (-(1 << 63)..0).contains(&value);
            let value = if wrapped { value + (1 << 64) } else { value };
            cell.push_integer(within(value, *low, *high)?)
        }
        Number::Year => match small(token, text)? {
            0 | 1900 => cell.push_integer(0),
            year @ 1901..=2155 => cell.push_integer(year),
            _ => Err(RANGE),
        },
    }
}

/// An integer that Python's parser makes one of, too.
fn small(token: Token, text: &str) -> Step<i128> {
    if token.kind != Kind::Integer {
        return Err(OTHER);
    }
    let value = numbers::integer(text).ok_or(RANGE)?;
    within(value, i64::MIN, u64::MAX)
}

fn within(value: i128, low: i64, high: u64) -> Step<i128> {
    let fits = i128::from(low) <= value && value <= i128::from(high);
    if fits { Ok(value) } else { Err(RANGE) }
}

fn double(token: Token, text: &str) -> Step<f64> {
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

/// A number's digits, and how many of them are behind the point.
fn json_decimal(token: Token, text: &str, doubles: bool) -> Step<(i128, u8)> {
    if token.kind == Kind::Integer {
        return Ok((small(token, text)?, 0));
    }
    if token.kind != Kind::Fraction || !doubles {
        return Err(OTHER);
    }
    let (value, scale) = numbers::decimal(text).ok_or(OTHER)?;
    if value == 0 && text.starts_with('-') {
        return Err(OTHER);
    }
    // Fifteen digits and their double are one to one.
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

/// A decimal; its text has all digits of a column's scale.
fn decimal(value: i128, scale: u8, of_column: Option<u8>, cell: &mut impl Cells) -> Step<()> {
    if !cell.is_text() {
        return cell.push_decimal(value, scale);
    }
    let of_column = of_column.ok_or(OTHER)?;
    let more = of_column.checked_sub(scale).ok_or(OTHER)?;
    let digits = numbers::scaled(value, more).ok_or(RANGE)?;
    let text = with_point(&digits.unsigned_abs().to_string(), digits < 0, of_column);
    cell.push_text(&text.ok_or(RANGE)?)
}

/// Days since 1970, of the years 1 to 9999.
pub fn days(token: Token, document: &str, cell: &mut impl Cells) -> Step<()> {
    let value = small(token, token.text(document))?;
    if !(-719_162..=2_932_896).contains(&value) {
        return Err(RANGE);
    }
    cell.push_date(i32::try_from(value).map_err(|_| RANGE)?)
}

pub fn clock(
    unit: Unit,
    clock: &Clock,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    scratch: &mut String,
) -> Step<()> {
    let value = small(token, token.text(document))?;
    let value = i64::try_from(value).map_err(|_| RANGE)?;
    let micros = match unit {
        Unit::Millis => value.checked_mul(1000),
        Unit::Micros => Some(value),
        Unit::Nanos => (value % 1000 == 0).then_some(value / 1000),
        Unit::Guessed => guessed(value, clock),
    };
    let micros = micros.ok_or(RANGE)?;
    match clock {
        Clock::DateTime { .. } if (FIRST_MICROSECOND..=LAST_MICROSECOND).contains(&micros) => {
            cell.push_datetime(micros)
        }
        Clock::Time { fsp } if (-MAX_TIME..=MAX_TIME).contains(&micros) => {
            cell.push_time(micros, *fsp, scratch)
        }
        _ => Err(RANGE),
    }
}

/// Microseconds in the unit of most columns; None where it may be another one.
fn guessed(value: i64, clock: &Clock) -> Option<i64> {
    match clock {
        Clock::DateTime { fsp } => {
            let near = |micros: i64| {
                let size = micros.unsigned_abs();
                (YEAR_MICROS..=230 * YEAR_MICROS).contains(&size)
            };
            let millis = value.checked_mul(1000)?;
            let usual = if fsp.unwrap_or(0) > 3 { value } else { millis };
            // Nanoseconds, too; a reading with more digits than the column's is refused with them.
            let is_open = near(millis) || near(value) || near(value / 1000);
            (near(usual) || !is_open).then_some(usual)
        }
        Clock::Time { fsp } => {
            let other = value.checked_mul(1000)?;
            let step = 10_i64.checked_pow(6_u32.checked_sub(fsp.unwrap_or(0))?)?;
            let is_none = other.checked_abs()? > MAX_TIME || other % step != 0;
            let is_of_day = (1..DAY_MICROS).contains(&other);
            (value == 0 || is_none || (value % step == 0 && !is_of_day)).then_some(value)
        }
    }
}

pub fn boolean(token: Token, cell: &mut impl Cells) -> Step<()> {
    match token.kind {
        Kind::True => cell.push_boolean(true),
        Kind::False => cell.push_boolean(false),
        _ => Err(OTHER),
    }
}

/// A decimal's unscaled integer, in base64 of its big-endian bytes.
pub fn unscaled(
    kind: &Unscaled,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    data: &mut Vec<u8>,
) -> Step<()> {
    decode(token, document, MAX_BYTES, data)?;
    let first = data.first().ok_or(OTHER)?;
    let negative = first & 0x80 != 0;
    if data.len() > 15 {
        return match kind {
            Unscaled::Decimal { scale } if cell.is_text() => {
                let digits = wide_digits(data, negative);
                cell.push_text(&with_point(&digits, negative, *scale).ok_or(RANGE)?)
            }
            _ => Err(RANGE),
        };
    }
    let mut value = if negative { -1 } else { 0 };
    for byte in data.iter() {
        value = value << 8 | i128::from(*byte);
    }
    match kind {
        Unscaled::Int { low, high } => cell.push_integer(within(value, *low, *high)?),
        Unscaled::Decimal { scale } => decimal(value, *scale, Some(*scale), cell),
    }
}

/// The digits of an integer of any size, without its sign.
fn wide_digits(data: &[u8], negative: bool) -> String {
    let flip = if negative { 0xff } else { 0 };
    let mut size: Vec<u8> = data.iter().map(|byte| byte ^ flip).collect();
    if negative {
        // Two's complement.
        for byte in size.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
    let mut digits = Vec::new();
    while size.iter().any(|byte| *byte != 0) {
        let mut rest = 0;
        for byte in &mut size {
            let value = rest << 8 | u32::from(*byte);
            (*byte, rest) = (u8::try_from(value / 10).unwrap_or(0), value % 10);
        }
        digits.push(char::from_digit(rest, 10).unwrap_or('0'));
    }
    digits.iter().rev().collect()
}

/// A decimal of at most 65 digits, `scale` of them behind the point.
fn with_point(digits: &str, negative: bool, scale: u8) -> Option<String> {
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

/// Text with a point, or an unscaled integer in base64.
pub fn guessed_decimal(
    scale: u8,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    data: &mut Vec<u8>,
) -> Step<()> {
    let text = token.text(document);
    if token.kind == Kind::Integer {
        return Err(OTHER);
    }
    if token.kind == Kind::Text && text.bytes().any(|byte| matches!(byte, b'.' | b'-')) {
        if cell.is_text() {
            return Err(OTHER);
        }
        let (value, scale) = numbers::decimal(text).ok_or(OTHER)?;
        return cell.push_decimal(value, scale);
    }
    // Some letters and digits are numbers, too: 1E5, Infinity.
    let says_number = |byte: u8| byte.is_ascii_digit() || b"+eEnNaAsSiIfFtTyY".contains(&byte);
    if text.bytes().all(says_number) {
        return Err(OTHER);
    }
    unscaled(&Unscaled::Decimal { scale }, token, document, cell, data)
}

/// A value of unknown type.
pub fn any(token: Token, document: &str, cell: &mut impl Cells, scratch: &mut String) -> Step<()> {
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
            let pushed = cell.push_integer(value);
            pushed.or_else(|_| cell.push_float(double(token, text)?))
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

/// Bits: base64 of their little-endian bytes, or one of them as a boolean.
pub fn bits(
    count: u32,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    data: &mut Vec<u8>,
) -> Step<()> {
    let value = match token.kind {
        Kind::Integer => small(token, token.text(document))?,
        Kind::True | Kind::False if count == 1 => i128::from(token.kind == Kind::True),
        _ => {
            decode(token, document, 8, data)?;
            let folded = data.iter().rev();
            folded.fold(0, |value, byte| value << 8 | i128::from(*byte))
        }
    };
    if value < 0 || value >> count != 0 {
        return Err(RANGE);
    }
    cell.push_integer(value)
}

/// The bytes of padded base64, if there are not too many.
fn decode(token: Token, document: &str, most: usize, out: &mut Vec<u8>) -> Step<()> {
    let text = token.text(document);
    out.clear();
    if token.kind != Kind::Text || text.len() > most.div_ceil(3) * 4 {
        return Err(OTHER);
    }
    decode_base64(text, out)?;
    if out.len() > most { Err(RANGE) } else { Ok(()) }
}
