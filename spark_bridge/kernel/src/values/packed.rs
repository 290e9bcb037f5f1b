//! Values whose bytes are text in JSON: binary, decimals and bits.
//!
//! The Python readers are in `cdcfmt_toolkit/value_readers.py`.

use crate::json::{Kind, Token};
use crate::plan::{BytesForm, BytesText, Number, Unscaled};
use crate::refusal::Result;
use crate::text::bytes::{self, decode_base64};
use crate::text::numbers;
use crate::values::cells::Cells;
use crate::values::nested::members;
use crate::values::scalars::{self, OTHER, RANGE, decimal, small, with_point, within};

/// The reference's limit for a DECIMAL.
const MAX_BYTES: usize = 32;

impl BytesText {
    /// Appends the bytes of a text; refuses one that has both forms.
    pub fn read(&self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        let as_base64 = (!text.is_empty() && text.len() % 4 == 0).then_some(text.len() / 4 * 3);
        // All hexadecimal text of a length divisible by four is base64, too.
        let pairs = text.len() % 2 == 0 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        // The reference takes text with upper and lower case digits as base64.
        let mixed = text.bytes().any(|byte| byte.is_ascii_lowercase())
            && text.bytes().any(|byte| byte.is_ascii_uppercase());
        let is_hex = match self.form {
            BytesForm::Base64 => false,
            BytesForm::Hex => true,
            BytesForm::Auto if !pairs || mixed => false,
            BytesForm::Auto => match as_base64 {
                Some(bytes) if self.longest.is_none_or(|longest| bytes <= longest) => {
                    // Both forms fit: only the exact length of BINARY(n) proves one of them.
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
            bytes::decode_hex(text, out)?;
            let doubtful = self.exact.is_some_and(|exact| out.len() != exact);
            if self.form == BytesForm::Hex && doubtful && self.exact == as_base64 {
                return Err(OTHER);
            }
        } else {
            bytes::decode_base64(text, out)?;
        }
        if self.longest.is_some_and(|longest| out.len() > longest) {
            return Err(RANGE);
        }
        Ok(())
    }
}

/// A decimal's unscaled integer as a number of Avro, or base64 of its big-endian bytes; or a number
/// of JSON.
pub fn unscaled(
    kind: &Unscaled,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    data: &mut Vec<u8>,
) -> Result<()> {
    if let Some(value) = token.long() {
        return of_unscaled(kind, value.into(), cell);
    }
    if let (Unscaled::Decimal { whole, scale }, Kind::Integer | Kind::Fraction) = (kind, token.kind)
    {
        return of_number(*whole, *scale, token, document, cell);
    }
    decode(token, document, MAX_BYTES, data)?;
    let first = data.first().ok_or(OTHER)?;
    let negative = first & 0x80 != 0;
    // Fifteen bytes leave room for the sign in 128 bits.
    if data.len() > 15 {
        return match kind {
            Unscaled::Decimal { scale, .. } if cell.is_text() || cell.is_image() => {
                let digits = wide_digits(data, negative);
                if let (false, Some(value)) = (cell.is_text(), numbers::integer(&digits)) {
                    return cell.push_decimal(if negative { -value } else { value }, *scale);
                }
                cell.push_text(&with_point(&digits, negative, *scale).ok_or(RANGE)?)
            }
            _ => Err(RANGE),
        };
    }
    let mut value = if negative { -1 } else { 0 };
    for byte in data.iter() {
        value = value << 8 | i128::from(*byte);
    }
    of_unscaled(kind, value, cell)
}

fn of_unscaled(kind: &Unscaled, value: i128, cell: &mut impl Cells) -> Result<()> {
    match kind {
        Unscaled::Int { low, high } => cell.push_integer(within(value, *low, *high)?),
        Unscaled::Decimal { scale, .. } => decimal(value, *scale, Some(*scale), cell),
    }
}

/// A decimal that is a number in JSON (`decimal.format=NUMERIC`).
fn of_number(
    whole: u8,
    scale: u8,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
) -> Result<()> {
    if token.kind == Kind::Integer {
        // The reference adds the zeros of the scale to an integer only.
        let value = numbers::integer(token.text(document)).ok_or(RANGE)?;
        let limit = numbers::power_of_ten(whole);
        let value =
            numbers::scaled(value, scale).filter(|_| limit.is_none_or(|limit| value.abs() < limit));
        return decimal(value.ok_or(RANGE)?, scale, Some(scale), cell);
    }
    let number = Number::Decimal {
        whole,
        scale: Some(scale),
        doubles: false,
    };
    scalars::number(&number, token, document, cell)
}

/// A decimal of any scale: an object of the scale and the unscaled integer.
pub fn scaled(
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    data: &mut Vec<u8>,
) -> Result<()> {
    if token.kind != Kind::Object {
        return Err(OTHER);
    }
    let known = [("scale", Kind::Integer), ("value", Kind::Text)];
    let [scale, value] = members(token, document, known)?;
    // A negative one is the reference's.
    let scale = scale.text(document).parse().map_err(|_| RANGE)?;
    unscaled(&Unscaled::decimal(scale), value, document, cell, data)
}

/// The digits of an integer of any size, without sign.
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

/// Text with a point, or an unscaled integer as base64.
pub fn guessed_decimal(
    scale: u8,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    data: &mut Vec<u8>,
) -> Result<()> {
    let text = token.text(document);
    if token.kind != Kind::Text {
        return Err(OTHER);
    }
    if text.bytes().any(|byte| matches!(byte, b'.' | b'-')) {
        if cell.is_text() {
            return Err(OTHER);
        }
        let (value, scale) = numbers::decimal(text).ok_or(OTHER)?;
        return cell.push_decimal(value, scale);
    }
    // Some base64 texts are also numbers: 1E5, Infinity.
    let is_of_number = |byte: u8| byte.is_ascii_digit() || b"+eEnNaAsSiIfFtTyY".contains(&byte);
    if text.bytes().all(is_of_number) {
        return Err(OTHER);
    }
    unscaled(&Unscaled::decimal(scale), token, document, cell, data)
}

/// Bits: base64 of their bytes, lowest or highest first, or one bit as a boolean.
pub fn bits(
    count: u32,
    highest_first: bool,
    token: Token,
    document: &str,
    cell: &mut impl Cells,
    data: &mut Vec<u8>,
) -> Result<()> {
    let value = match token.kind {
        Kind::Integer => small(token, token.text(document))?,
        // Debezium writes BIT(1) as a boolean.
        Kind::True | Kind::False if count == 1 => i128::from(token.kind == Kind::True),
        _ => {
            decode(token, document, 8, data)?;
            if !highest_first {
                data.reverse();
            }
            let bytes = data.iter();
            bytes.fold(0, |value, byte| value << 8 | i128::from(*byte))
        }
    };
    if value < 0 || value >> count != 0 {
        return Err(RANGE);
    }
    cell.push_integer(value)
}

/// The bytes of padded base64, at most `most`.
fn decode(token: Token, document: &str, most: usize, out: &mut Vec<u8>) -> Result<()> {
    let text = token.text(document);
    out.clear();
    // Before decoding: a text of megabytes is no decimal.
    if token.kind != Kind::Text || text.len() > most.div_ceil(3) * 4 {
        return Err(OTHER);
    }
    decode_base64(text, out)?;
    if out.len() > most { Err(RANGE) } else { Ok(()) }
}
