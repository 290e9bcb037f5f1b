//! MySQL's text of values, as in canal-json and other formats.

use crate::json::{Kind, Token};
use crate::plan::{Encoding, MysqlText};
use crate::pool::Weighed;
use crate::refusal::Result;
use crate::text::ByText;
use crate::text::bytes::Bound;
use crate::text::numbers;
use crate::values::cells::Cells;
use crate::values::scalars::{self, BROKEN};
use crate::values::temporal;
use crate::values::tools::TextTools;
use crate::values::zones::zoned_text;

/// What MySQL's text of a column may be, besides its logical type.
#[derive(PartialEq, Eq)]
pub struct Domain {
    /// Text → name, for an ENUM.
    names: ByText<String>,
    /// For binary columns.
    pub bound: Option<Bound>,
}

impl Weighed for Domain {
    fn bytes(&self) -> usize {
        let names = self.names.iter();
        names
            .map(|(text, name)| 2 * (text.len() + name.len()) + 100)
            .sum()
    }
}

impl Domain {
    /// The domain of a column with this encoding.
    pub fn new(encoding: &Encoding, bound: Option<Bound>) -> Self {
        let mut known = ByText::default();
        if let Encoding::MysqlText(logical) | Encoding::MysqlJson(logical) = encoding
            && let MysqlText::Enum { names: Some(names) } = logical
        {
            known.extend(names.iter().map(|name| (name.clone(), name.clone())));
            // MySQL stores the empty text with index 0 for a value that it did not accept.
            known.insert("0".into(), String::new());
            // An index has priority over a name that consists of digits.
            known.extend(
                names
                    .iter()
                    .enumerate()
                    .map(|(at, name)| ((at + 1).to_string(), name.clone())),
            );
        }
        Self {
            names: known,
            bound,
        }
    }

    /// Appends the value of MySQL's text.
    pub fn read(
        &self,
        logical: &MysqlText,
        text: &str,
        column: &mut impl Cells,
        tools: &mut TextTools,
    ) -> Result<()> {
        match logical {
            MysqlText::Int { low, high } => {
                // Leading zeros are valid: ZEROFILL prints them.
                let value = numbers::integer(text).ok_or(BROKEN)?;
                if value < i128::from(*low) || value > i128::from(*high) {
                    return Err(BROKEN);
                }
                column.push_number_text(value, None, text)
            }
            MysqlText::Text => column.push_text(text),
            // DECIMALs of more than 38 digits are columns of text: the message's is kept if MySQL
            // prints the same.
            MysqlText::Decimal { scale } if column.is_text() => {
                if numbers::is_printed_decimal(text, scale.unwrap_or(0)) {
                    return column.push_text(text);
                }
                scalars::decimal_of_text(text, *scale, column)
            }
            MysqlText::Decimal { scale } => {
                if let Some((value, scale)) = numbers::decimal(text) {
                    return column.push_number_text(value, Some(scale), text);
                }
                if column.is_image() && numbers::is_printed_decimal(text, 0) {
                    return match numbers::exact(text) {
                        Some((value, scale)) => column.push_decimal(value, scale),
                        None => column.push_text(text),
                    };
                }
                scalars::decimal_of_text(text, *scale, column)
            }
            MysqlText::Float => {
                column.push_float_text(text, |text| numbers::float(text).ok_or(BROKEN))
            }
            MysqlText::Date => column.push_date(temporal::date(text).ok_or(BROKEN)?),
            MysqlText::DateTime => {
                column.push_datetime_text(temporal::datetime(text).ok_or(BROKEN)?, text)
            }
            MysqlText::Timestamp => {
                // A zone in the text overrides that of the source, but few producers write one.
                let instant = tools.zone.instant(text).or_else(|| zoned_text(text));
                column.push_instant(instant.ok_or(BROKEN)?)
            }
            MysqlText::Time { fsp } => {
                column.push_time(temporal::time(text).ok_or(BROKEN)?, *fsp, &mut tools.time)
            }
            MysqlText::Year => column.push_integer(numbers::year(text).ok_or(BROKEN)?),
            MysqlText::Json => column.push_json(text, &mut tools.variants),
            MysqlText::Binary { padded } => {
                if let Some(bound) = &self.bound {
                    bound.check_text(text)?;
                }
                column.push_latin1(text, *padded)
            }
            MysqlText::Bool => match text {
                "0" | "false" => column.push_boolean(false),
                "1" | "true" => column.push_boolean(true),
                _ => Err(BROKEN),
            },
            MysqlText::Enum { names } => match (names, self.names.get(text)) {
                (Some(_), Some(name)) => column.push_text(name),
                // A name that the column lacks is kept, as by Python: its schema may be an older
                // one.
                (Some(_), None) if !is_number(text) => column.push_text(text),
                // Without names, a number is the index that MySQL stores.
                (None, _) if is_number(text) => {
                    column.push_integer(within(numbers::integer(text), 65_535)?)
                }
                _ => Err(BROKEN),
            },
            MysqlText::Set { names } => match names {
                // Names joined by commas are the form of the column itself.
                Some(_) if !is_number(text) => column.push_text(text),
                Some(names) => {
                    let most = 1_i128.checked_shl(u32::try_from(names.len()).unwrap_or(127));
                    let bitmap = within(numbers::integer(text), most.unwrap_or(0) - 1)?;
                    let of_bits = names.iter().enumerate();
                    let some: Vec<&str> = of_bits
                        .filter(|(bit, _)| bitmap >> bit & 1 == 1)
                        .map(|(_, name)| name.as_str())
                        .collect();
                    column.push_text(&some.join(","))
                }
                None if is_number(text) => {
                    column.push_integer(within(numbers::integer(text), i128::from(u64::MAX))?)
                }
                None => Err(BROKEN),
            },
        }
    }
}

/// The equivalent text of a number or boolean.
pub fn text_of<'a>(logical: &MysqlText, token: Token, document: &'a str) -> Result<&'a str> {
    let text = token.text(document);
    let is_integer = token.kind == Kind::Integer;
    let is_valid = match logical {
        MysqlText::Int { .. } | MysqlText::Year => is_integer,
        // A negative number as text would be a name.
        MysqlText::Enum { .. } | MysqlText::Set { .. } => is_integer && !text.starts_with('-'),
        // JSON's -0 is the integer 0.
        MysqlText::Float | MysqlText::Decimal { .. } => {
            (is_integer && text != "-0") || token.kind == Kind::Fraction
        }
        MysqlText::Bool => is_integer || matches!(token.kind, Kind::True | Kind::False),
        _ => false,
    };
    is_valid.then_some(text).ok_or(BROKEN)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn within(value: Option<i128>, most: i128) -> Result<i128> {
    value.filter(|value| *value <= most).ok_or(BROKEN)
}
