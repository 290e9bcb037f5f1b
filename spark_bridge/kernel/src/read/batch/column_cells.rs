//! Cells of typed columns: the values that each type accepts.

use crate::json::{Kind, Token, append_unescaped, plain};
use crate::plan::Form;
use crate::read::batch::columns::{Column, Values};
use crate::refusal::{Reason, Refusal, Result};
use crate::text::append;
use crate::text::bytes::{decode_base64, latin1};
use crate::text::numbers;
use crate::values::Cells;
use crate::values::temporal::{self, Interval};
use crate::variant::Variants;

const WRONG: Refusal = Refusal::of(Reason::Target, "value does not have the column's type", 0);
const RANGE: Refusal = Refusal::of(Reason::Target, "value is out of the column's range", 0);

impl Cells for Column {
    fn is_text(&self) -> bool {
        matches!(self.values, Values::String(_))
    }

    fn is_float(&self) -> bool {
        matches!(self.values, Values::Float(_) | Values::Double(_))
    }

    fn push_null(&mut self) -> Result<()> {
        if !self.nullable {
            let text = "NULL in a column that is NOT NULL";
            return Err(Refusal::of(Reason::Target, text, 0));
        }
        self.push_nothing()
    }

    fn push_integer(&mut self, value: i128) -> Result<()> {
        match &mut self.values {
            Values::Byte(values) => values.push(value.try_into().map_err(|_| RANGE)?),
            Values::Short(values) => values.push(value.try_into().map_err(|_| RANGE)?),
            Values::Integer(values) => values.push(value.try_into().map_err(|_| RANGE)?),
            Values::Long(values) => values.push(value.try_into().map_err(|_| RANGE)?),
            Values::Boolean(values) if (0..=1).contains(&value) => values.push(value == 1),
            Values::Decimal(..) | Values::Float(..) | Values::Double(..) => {
                return self.push_decimal(value, 0);
            }
            _ => return Err(WRONG),
        }
        self.added();
        Ok(())
    }

    fn push_decimal(&mut self, value: i128, scale: u8) -> Result<()> {
        let most = match &self.values {
            Values::Double(_) => numbers::DIGITS_OF_DOUBLE,
            Values::Float(_) => numbers::DIGITS_OF_FLOAT,
            _ => 0,
        };
        if most > 0 {
            // A decimal that the double would round is converted by the reference, which decides.
            return self.push_float(numbers::held(value, scale, most).ok_or(RANGE)?);
        }
        let (values, precision, column_scale) = match &mut self.values {
            Values::Decimal(values, precision, scale) => (values, precision, scale),
            Values::Byte(_) | Values::Short(_) | Values::Integer(_) | Values::Long(_) => {
                let one = numbers::power_of_ten(scale).ok_or(RANGE)?;
                // A decimal without a fraction is an integer of the column.
                let whole = (value % one == 0).then_some(value / one);
                return self.push_integer(whole.ok_or(RANGE)?);
            }
            _ => return Err(WRONG),
        };
        let value = match column_scale.checked_sub(scale) {
            Some(more) => numbers::scaled(value, more).ok_or(RANGE)?,
            None => {
                let less = numbers::power_of_ten(scale - *column_scale).ok_or(RANGE)?;
                if value % less != 0 {
                    return Err(RANGE);
                }
                value / less
            }
        };
        if value.abs() >= numbers::power_of_ten(*precision).ok_or(RANGE)? {
            return Err(RANGE);
        }
        values.push(value);
        self.added();
        Ok(())
    }

    fn push_float(&mut self, value: f64) -> Result<()> {
        match &mut self.values {
            Values::Double(values) => values.push(value),
            Values::Float(values) => {
                let rounded = value as f32;
                // The reference reports what does not fit into a 32-bit float.
                if rounded.is_infinite() {
                    return Err(RANGE);
                }
                values.push(rounded);
            }
            _ => return Err(WRONG),
        }
        self.added();
        Ok(())
    }

    fn push_boolean(&mut self, value: bool) -> Result<()> {
        let Values::Boolean(values) = &mut self.values else {
            return Err(WRONG);
        };
        values.push(value);
        self.added();
        Ok(())
    }

    fn push_text(&mut self, text: &str) -> Result<()> {
        let Values::String(bytes) = &mut self.values else {
            return Err(WRONG);
        };
        bytes.data.extend_from_slice(text.as_bytes());
        bytes.end()?;
        self.added();
        Ok(())
    }

    fn push_string(&mut self, token: Token, document: &str, scratch: &mut Vec<u8>) -> Result<()> {
        match &mut self.values {
            Values::String(bytes) if token.kind == Kind::Text => {
                let (start, end) = (token.start as usize, token.end as usize);
                append(document.as_bytes(), start, end, &mut bytes.data);
                bytes.end()?;
                self.added();
                Ok(())
            }
            Values::String(bytes) if token.kind == Kind::Escaped => {
                append_unescaped(token.text(document), &mut bytes.data);
                bytes.end()?;
                self.added();
                Ok(())
            }
            _ => self.push_text(plain(token, document, scratch)),
        }
    }

    fn push_bytes(&mut self, data: &[u8]) -> Result<()> {
        let Values::Binary(bytes) = &mut self.values else {
            return Err(WRONG);
        };
        bytes.data.extend_from_slice(data);
        bytes.end()?;
        self.added();
        Ok(())
    }

    fn push_latin1(&mut self, text: &str, padded: usize) -> Result<()> {
        let Values::Binary(bytes) = &mut self.values else {
            return Err(WRONG);
        };
        latin1(text, padded, &mut bytes.data)?;
        bytes.end()?;
        self.added();
        Ok(())
    }

    fn push_base64(&mut self, text: &str) -> Result<()> {
        let Values::Binary(bytes) = &mut self.values else {
            return Err(WRONG);
        };
        decode_base64(text, &mut bytes.data)?;
        bytes.end()?;
        self.added();
        Ok(())
    }

    fn push_date(&mut self, days: i32) -> Result<()> {
        let Values::Date(values) = &mut self.values else {
            return Err(WRONG);
        };
        values.push(days);
        self.added();
        Ok(())
    }

    fn push_datetime(&mut self, micros: i64) -> Result<()> {
        match (&mut self.values, &self.zone) {
            (Values::TimestampNtz(values), _) => values.push(micros),
            (Values::Timestamp(values), Some(zone)) => {
                // The user declared an instant for a wall clock: it is one of the source's zone.
                let instant = zone.of_wall(micros).ok_or(RANGE)?;
                temporal::check_instant(instant)?;
                values.push(instant);
            }
            _ => return Err(WRONG),
        }
        self.added();
        Ok(())
    }

    fn push_instant(&mut self, micros: i64) -> Result<()> {
        let Values::Timestamp(values) = &mut self.values else {
            return Err(WRONG);
        };
        temporal::check_instant(micros)?;
        values.push(micros);
        self.added();
        Ok(())
    }

    fn push_time(&mut self, micros: i64, fsp: Option<u32>, scratch: &mut String) -> Result<()> {
        match &mut self.values {
            Values::Interval(values) | Values::Long(values) => values.push(micros),
            Values::String(bytes) => {
                scratch.clear();
                temporal::print_time(micros, fsp, scratch);
                bytes.data.extend_from_slice(scratch.as_bytes());
                bytes.end()?;
            }
            _ => return Err(WRONG),
        }
        self.added();
        Ok(())
    }

    fn push_interval(&mut self, value: Interval, scratch: &mut String) -> Result<()> {
        if let Values::Interval(values) | Values::Long(values) = &mut self.values {
            // Days and months are converted by the reference, or an error.
            values.push(value.only_micros().ok_or(RANGE)?);
            self.added();
            return Ok(());
        }
        self.push_text(value.text(scratch))
    }

    fn begin_list(&mut self) -> Result<()> {
        match self.values {
            Values::List(..) => Ok(()),
            _ => Err(WRONG),
        }
    }

    fn item(&mut self, _: Form) -> Result<&mut Self> {
        match &mut self.values {
            Values::List(items, _) => Ok(items),
            _ => Err(WRONG),
        }
    }

    fn end_list(&mut self) -> Result<()> {
        let Values::List(items, ends) = &mut self.values else {
            return Err(WRONG);
        };
        ends.push(items.end()?);
        self.added();
        Ok(())
    }

    fn begin_object(&mut self, names: &[&str]) -> Result<()> {
        let is_same = match &self.values {
            Values::Map(..) => true,
            // Another selection or order of fields is the reference's.
            Values::Struct(fields) => fields
                .iter()
                .map(|(name, _)| name.as_str())
                .eq(names.iter().copied()),
            _ => false,
        };
        is_same.then_some(()).ok_or(WRONG)
    }

    fn member(&mut self, place: usize, name: &str, _: Form) -> Result<&mut Self> {
        match &mut self.values {
            Values::Map(names, values, _) => {
                names.data.extend_from_slice(name.as_bytes());
                names.end()?;
                Ok(values)
            }
            Values::Struct(fields) => Ok(&mut fields.get_mut(place).ok_or(WRONG)?.1),
            _ => Err(WRONG),
        }
    }

    fn end_object(&mut self) -> Result<()> {
        if let Values::Map(_, values, ends) = &mut self.values {
            ends.push(values.end()?);
        }
        self.added();
        Ok(())
    }

    fn push_json(&mut self, text: &str, variants: &mut Variants) -> Result<()> {
        match &mut self.values {
            Values::Variant(value, metadata) => {
                variants.append(text, &mut value.data, &mut metadata.data)?;
                value.end()?;
                metadata.end()?;
                self.added();
                Ok(())
            }
            // Text of JSON is unchanged in a STRING column.
            _ => self.push_text(text),
        }
    }
}
