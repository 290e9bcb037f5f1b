//! Value encodings: how a column's values stand on the wire.
//!
//! The table of their names is in `cdcfmt_core/encodings.py`, with the Python readers.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::Deserialize;

use crate::calendar::{self, Part};
use crate::cells::Cells;
use crate::columns::{Column, Target, plain};
use crate::extra;
use crate::json::{Cursor, Kind, Token};
use crate::names::ByText;
use crate::noted::Noted;
use crate::packed::{self, BytesText, Unscaled};
use crate::refusal::{Refusal, Step};
use crate::scalars::{self, Any, Clock, Number, Unit};
use crate::shared::Weighed;
use crate::temporal::Zone;
use crate::variant::Variants;
use crate::{numbers, temporal, text_bytes};

/// MySQL's text of a logical type (`cdcfmt_core/types.py`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "logical", rename_all = "snake_case")]
pub enum MysqlText {
    Bool,
    /// Integers between the bounds.
    Int {
        low: i64,
        high: u64,
    },
    Float,
    /// `scale` digits behind the point, if that is known.
    Decimal {
        scale: Option<usize>,
    },
    Text,
    /// Padded with zeros to so many bytes.
    Binary {
        padded: usize,
    },
    Date,
    DateTime,
    Timestamp,
    Time {
        fsp: Option<u32>,
    },
    Year,
    /// An index or a name; `names` are the column's.
    Enum {
        names: Option<Vec<String>>,
    },
    /// A bitmap, or names joined by commas.
    Set {
        names: Option<Vec<String>>,
    },
    Json,
}

/// An encoding with what it takes from the column's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "encoding", rename_all = "kebab-case")]
pub enum Encoding {
    MysqlText(MysqlText),
    /// The same, or a number or boolean instead of text.
    MysqlJson(MysqlText),
    /// Bytes in padded base64.
    Base64,
    /// Text in padded base64.
    Base64Text,
    /// Bytes in hexadecimal.
    Hex,
    /// Bytes as Go's `strconv.Quote` writes them.
    GoQuoted,
    /// Bytes in Latin-1, base64 or hexadecimal, whichever alone fits.
    DetectedBytes {
        exact: Option<usize>,
        longest: Option<usize>,
    },
    /// Bytes in base64 or hexadecimal.
    BytesText(BytesText),
    JsonNumber(Number),
    JsonBoolean,
    /// Any JSON value whose type is not known.
    JsonValue(Any),
    /// Text as it stands; some of it stands for other text.
    Text {
        json: bool,
        aliases: BTreeMap<String, String>,
    },
    /// MySQL's text, perhaps with a `Z` behind it.
    IsoText(MysqlText),
    /// `2024-01-01T00:00:00.5Z`
    IsoInstant,
    /// Days since 1970.
    EpochDays,
    EpochMillis(Clock),
    EpochMicros(Clock),
    EpochNanos(Clock),
    EpochGuessed(Clock),
    /// Kafka Connect's Decimal.
    ConnectDecimal(Unscaled),
    /// Kafka Connect's Decimal or text, whichever alone fits.
    GuessedDecimal {
        scale: u8,
    },
    LittleEndianBits {
        bits: u32,
    },
    /// Text of one character a byte, in a charset that has ASCII.
    CharsetText {
        is_latin1: bool,
    },
    /// An integer that is a decimal.
    IntegerText,
    /// Year to microsecond, some of them null; or MySQL's text.
    CalendarParts(MysqlText),
    /// Seconds since 1970, and microseconds.
    EpochPair,
    /// Refused, if it is not NULL.
    Other,
    /// An object of a time zone's name and of a TIMESTAMP's text, or text in the source's own.
    ZonedText {
        zone_member: String,
        text_member: String,
    },
}

/// What readers share: scratch space, and the zone of TIMESTAMP text.
#[derive(Default)]
pub struct Tools {
    /// Of text that brings none.
    pub zone: Zone,
    /// By the names that values bring.
    pub zones: ByText<Zone>,
    pub variants: Variants,
    pub extra: extra::Kept,
    pub text: String,
    pub more: String,
    pub bytes: Vec<u8>,
    pub number: String,
    /// Of the values of a message that are counted.
    pub notes: Vec<Arc<str>>,
    /// Of the last value with a zone that is not among `zones`.
    pub missing_zone: Option<String>,
}

impl Encoding {
    /// Whether a number is read in place of its text.
    fn takes(&self, token: Token) -> bool {
        match self {
            Self::JsonNumber(Number::Decimal { .. }) => token.kind == Kind::Long,
            Self::JsonNumber(_) | Self::EpochDays => true,
            Self::EpochMillis(_) | Self::EpochMicros(_) | Self::EpochNanos(_) => true,
            _ => false,
        }
    }

    /// Whether values are bytes, as text of one character a byte.
    pub fn is_of_bytes(&self) -> bool {
        matches!(
            self,
            Self::MysqlText(MysqlText::Binary { .. }) | Self::CharsetText { .. }
        )
    }
}

pub const UNKNOWN_ZONE: &str = "a time zone that the kernel lacks";

impl Hash for Reader {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.encoding, &self.noted).hash(state);
    }
}

impl Weighed for Reader {
    fn bytes(&self) -> usize {
        let names = self.names.iter();
        let texts = names.map(|(text, name)| 2 * (text.len() + name.len()) + 100);
        size_of::<Self>() + texts.sum::<usize>()
    }
}

const BROKEN: Refusal = Refusal::new("text that is no value of the column's type", 0);

/// Reads the values of a column.
#[derive(PartialEq, Eq)]
pub struct Reader {
    encoding: Encoding,
    /// Text → name, of an enum.
    names: ByText<String>,
    noted: Option<Noted>,
}

impl Reader {
    pub fn new(encoding: Encoding, noted: Option<Noted>) -> Self {
        let mut known = ByText::default();
        if let Encoding::MysqlText(logical) | Encoding::MysqlJson(logical) = &encoding
            && let MysqlText::Enum { names: Some(names) } = logical
        {
            known.extend(names.iter().map(|name| (name.clone(), name.clone())));
            known.insert("0".into(), String::new());
            // An index wins over a name that is made of digits.
            known.extend(
                names
                    .iter()
                    .enumerate()
                    .map(|(at, name)| ((at + 1).to_string(), name.clone())),
            );
        }
        Self {
            encoding,
            names: known,
            noted,
        }
    }

    /// Whether some values are counted.
    pub fn counts(&self) -> bool {
        self.noted.is_some()
    }

    /// Appends a value to the column.
    pub fn read(
        &self,
        token: Token,
        document: &str,
        column: &mut impl Cells,
        tools: &mut Tools,
    ) -> Step<()> {
        if token.kind == Kind::Null {
            return column.push_null();
        }
        if matches!(token.kind, Kind::Long | Kind::Double)
            && (self.noted.is_some() || !self.encoding.takes(token))
        {
            return self.read_printed(token, column, tools);
        }
        let at = token.start as usize;
        let located = |refusal| Refusal { at, ..refusal };
        if let Some(noted) = &self.noted
            && noted.is(token, document, &mut tools.text)?
        {
            tools.notes.push(Arc::clone(&noted.note));
        }
        match &self.encoding {
            Encoding::MysqlText(logical) | Encoding::MysqlJson(logical) => {
                let Tools {
                    zone,
                    variants,
                    text,
                    more,
                    ..
                } = tools;
                let text = match &self.encoding {
                    _ if token.is_text() => plain(token, document, text),
                    Encoding::MysqlJson(logical) => {
                        text_of(logical, token, document).map_err(located)?
                    }
                    _ => return Err(Refusal::new("a value that is no text", at)),
                };
                self.mysql_text(logical, text, column, zone, variants, more)
                    .map_err(located)
            }
            Encoding::Base64 if token.kind == Kind::Text => {
                column.push_base64(token.text(document))
            }
            Encoding::BytesText(form) if token.kind == Kind::Text => {
                tools.bytes.clear();
                form.read(token.text(document), &mut tools.bytes)?;
                column.push_bytes(&tools.bytes)
            }
            Encoding::JsonNumber(kind) => scalars::number(kind, token, document, column),
            Encoding::JsonBoolean => scalars::boolean(token, column),
            Encoding::JsonValue(kind) => {
                scalars::any(*kind, token, document, column, &mut tools.text)
            }
            Encoding::Text { json, aliases } if token.is_text() => {
                let text = plain(token, document, &mut tools.text);
                if *json {
                    return column.push_json(text, &mut tools.variants);
                }
                column.push_text(aliases.get(text).map_or(text, String::as_str))
            }
            Encoding::IsoText(logical) if token.kind == Kind::Text => {
                let Tools {
                    zone,
                    variants,
                    more,
                    ..
                } = tools;
                let text = token.text(document);
                let text = text.strip_suffix('Z').unwrap_or(text);
                self.mysql_text(logical, text, column, zone, variants, more)
            }
            Encoding::IsoInstant if token.kind == Kind::Text => {
                let text = token.text(document).strip_suffix('Z').ok_or(BROKEN)?;
                let micros = temporal::datetime(text).filter(|_| text.as_bytes()[10] == b'T');
                column.push_instant(micros.ok_or(BROKEN)?)
            }
            Encoding::EpochDays => scalars::days(token, document, column),
            Encoding::EpochMillis(clock) => scalars::clock(
                Unit::Millis,
                clock,
                token,
                document,
                column,
                &mut tools.text,
            ),
            Encoding::EpochMicros(clock) => scalars::clock(
                Unit::Micros,
                clock,
                token,
                document,
                column,
                &mut tools.text,
            ),
            Encoding::EpochNanos(clock) => {
                scalars::clock(Unit::Nanos, clock, token, document, column, &mut tools.text)
            }
            Encoding::EpochGuessed(clock) => scalars::clock(
                Unit::Guessed,
                clock,
                token,
                document,
                column,
                &mut tools.text,
            ),
            Encoding::ConnectDecimal(kind) => {
                packed::unscaled(kind, token, document, column, &mut tools.bytes)
            }
            Encoding::GuessedDecimal { scale } => {
                packed::guessed_decimal(*scale, token, document, column, &mut tools.bytes)
            }
            Encoding::LittleEndianBits { bits } => {
                packed::bits(*bits, token, document, column, &mut tools.bytes)
            }
            Encoding::Base64Text if token.kind == Kind::Text => {
                tools.bytes.clear();
                text_bytes::decode_base64(token.text(document), &mut tools.bytes)?;
                column.push_text(std::str::from_utf8(&tools.bytes).map_err(|_| BROKEN)?)
            }
            Encoding::Hex | Encoding::GoQuoted | Encoding::DetectedBytes { .. }
                if token.is_text() =>
            {
                let text = plain(token, document, &mut tools.text);
                let bytes = &mut tools.bytes;
                bytes.clear();
                match &self.encoding {
                    Encoding::Hex => text_bytes::decode_hex(text, bytes)?,
                    Encoding::DetectedBytes { exact, longest } => {
                        text_bytes::detect(text, *exact, *longest, bytes)?;
                    }
                    _ => text_bytes::unquote_go(text, bytes)?,
                }
                column.push_bytes(bytes)
            }
            Encoding::CharsetText { is_latin1 } if token.kind == Kind::Text => {
                let text = token.text(document);
                let is_same = |letter| *is_latin1 && ('\u{a0}'..='\u{ff}').contains(&letter);
                if !text.is_ascii() && !text.chars().all(|c| c.is_ascii() || is_same(c)) {
                    return Err(Refusal::new("text in another charset", at));
                }
                column.push_text(text)
            }
            Encoding::IntegerText if token.kind == Kind::Text => {
                let value = numbers::integer(token.text(document)).ok_or(BROKEN)?;
                let value = scalars::within(value, i64::MIN, u64::MAX).map_err(located)?;
                column.push_decimal(value, 0)
            }
            Encoding::CalendarParts(logical) if token.kind == Kind::Text => {
                let Tools {
                    zone,
                    variants,
                    more,
                    ..
                } = tools;
                let text = token.text(document);
                self.mysql_text(logical, text, column, zone, variants, more)
            }
            Encoding::CalendarParts(logical) if token.kind == Kind::Array => {
                let parts = items(token, document)?.map(|item| part(item, document));
                calendar::push(logical, &parts, column, &mut tools.text)
            }
            Encoding::EpochPair if token.kind == Kind::Array => {
                let [seconds, micros] = items(token, document)?.map(|item| part(item, document));
                column.push_instant(calendar::instant(seconds, micros).ok_or(BROKEN)?)
            }
            Encoding::ZonedText { .. } if token.kind == Kind::Text => {
                let micros = tools.zone.instant(token.text(document));
                column.push_instant(micros.ok_or(BROKEN)?)
            }
            Encoding::ZonedText {
                zone_member,
                text_member,
            } if token.kind == Kind::Object => {
                let names = [zone_member.as_str(), text_member.as_str()];
                let [name, text] = members(token, document, names)?;
                zoned(name, text, document, column, tools)
            }
            Encoding::ZonedText { .. } if token.kind == Kind::Array => {
                let [name, text] = items(token, document)?;
                zoned(name, text, document, column, tools)
            }
            _ => Err(Refusal::new("a value of another form", at)),
        }
    }

    /// Reads a number by its text.
    fn read_printed(&self, token: Token, column: &mut impl Cells, tools: &mut Tools) -> Step<()> {
        use std::fmt::Write;
        let mut text = std::mem::take(&mut tools.number);
        text.clear();
        // Writing to text does not fail.
        let (kind, _) = match token.double() {
            Some(value) => (Kind::Fraction, write!(text, "{value:?}")),
            None => (Kind::Integer, write!(text, "{}", token.long().unwrap_or(0))),
        };
        let read = self.read(Token::new(kind, 0, text.len()), &text, column, tools);
        tools.number = text;
        read
    }

    /// Reads a value that is not kept.
    pub fn check(
        &self,
        token: Token,
        document: &str,
        target: &Target,
        tools: &mut Tools,
    ) -> Step<()> {
        self.read(token, document, &mut Column::new(target, true), tools)
    }

    fn mysql_text(
        &self,
        logical: &MysqlText,
        text: &str,
        column: &mut impl Cells,
        zone: &Zone,
        variants: &mut Variants,
        scratch: &mut String,
    ) -> Step<()> {
        match logical {
            MysqlText::Int { low, high } => {
                let value = numbers::integer(text).ok_or(BROKEN)?;
                if value < i128::from(*low) || value > i128::from(*high) {
                    return Err(BROKEN);
                }
                column.push_integer(value)
            }
            MysqlText::Text => column.push_text(text),
            MysqlText::Decimal { scale } if column.is_text() => {
                if !numbers::is_printed_decimal(text, scale.unwrap_or(0)) {
                    return Err(BROKEN);
                }
                column.push_text(text)
            }
            MysqlText::Decimal { .. } => {
                let (value, scale) = numbers::decimal(text).ok_or(BROKEN)?;
                column.push_decimal(value, scale)
            }
            MysqlText::Float => column.push_float(numbers::float(text).ok_or(BROKEN)?),
            MysqlText::Date => column.push_date(temporal::date(text).ok_or(BROKEN)?),
            MysqlText::DateTime => column.push_datetime(temporal::datetime(text).ok_or(BROKEN)?),
            MysqlText::Timestamp => column.push_instant(zone.instant(text).ok_or(BROKEN)?),
            MysqlText::Time { fsp } => {
                column.push_time(temporal::time(text).ok_or(BROKEN)?, *fsp, scratch)
            }
            MysqlText::Year => column.push_integer(numbers::year(text).ok_or(BROKEN)?),
            MysqlText::Json => column.push_json(text, variants),
            MysqlText::Binary { padded } => column.push_latin1(text, *padded),
            MysqlText::Bool => match text {
                "0" | "false" => column.push_boolean(false),
                "1" | "true" => column.push_boolean(true),
                _ => Err(BROKEN),
            },
            MysqlText::Enum { names } => match (names, self.names.get(text)) {
                (Some(_), Some(name)) => column.push_text(name),
                (Some(_), None) if !is_number(text) => column.push_text(text),
                (None, _) if is_number(text) => {
                    column.push_integer(within(numbers::integer(text), 65_535)?)
                }
                _ => Err(BROKEN),
            },
            MysqlText::Set { names } => match names {
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

/// The text that says the same as a number or boolean.
fn text_of<'a>(logical: &MysqlText, token: Token, document: &'a str) -> Step<&'a str> {
    let text = token.text(document);
    let is_integer = token.kind == Kind::Integer;
    let says_it = match logical {
        MysqlText::Int { .. } | MysqlText::Year => is_integer,
        // As text a number below zero is a name.
        MysqlText::Enum { .. } | MysqlText::Set { .. } => is_integer && !text.starts_with('-'),
        // JSON's -0 is the integer 0.
        MysqlText::Float | MysqlText::Decimal { .. } => {
            (is_integer && text != "-0") || token.kind == Kind::Fraction
        }
        MysqlText::Bool => is_integer || matches!(token.kind, Kind::True | Kind::False),
        _ => false,
    };
    says_it.then_some(text).ok_or(BROKEN)
}

/// Appends the instant of a text in a zone of this name.
fn zoned(
    name: Token,
    text: Token,
    document: &str,
    column: &mut impl Cells,
    tools: &mut Tools,
) -> Step<()> {
    let name = name.text(document);
    let Some(zone) = tools.zones.get(name) else {
        tools.missing_zone = Some(name.to_owned());
        return Err(Refusal::new(UNKNOWN_ZONE, text.start as usize));
    };
    column.push_instant(zone.instant(text.text(document)).ok_or(BROKEN)?)
}

/// A number in a list.
fn part(item: Token, document: &str) -> Part {
    match item.kind {
        Kind::Null => Part::Null,
        Kind::Integer => {
            let number = item.text(document).parse();
            number.map_or(Part::Other, Part::Number)
        }
        _ => Part::Other,
    }
}

/// The items of a list, which has no others; texts have no escapes.
fn items<const N: usize>(token: Token, document: &str) -> Step<[Token; N]> {
    let mut found = [Token::MISSING; N];
    let mut cursor = Cursor::at(document, token.start)?;
    cursor.expect(b'[', "no list")?;
    for (place, item) in found.iter_mut().enumerate() {
        *item = cursor.value()?;
        if item.kind == Kind::Escaped || cursor.more(b']')? != (place + 1 < N) {
            return cursor.refuse("a list of another form");
        }
    }
    Ok(found)
}

/// The text members of an object, which has no others.
fn members<const N: usize>(token: Token, document: &str, names: [&str; N]) -> Step<[Token; N]> {
    let mut found = [Token::MISSING; N];
    let mut cursor = Cursor::at(document, token.start)?;
    cursor.expect(b'{', "no object")?;
    loop {
        let name = cursor.name()?;
        let value = cursor.value()?;
        let place = names.iter().position(|known| *known == name.text(document));
        match place {
            Some(place) if found[place].kind == Kind::Missing && value.kind == Kind::Text => {
                found[place] = value;
            }
            _ => {
                return Err(Refusal::new(
                    "an object of another form",
                    name.start as usize,
                ));
            }
        }
        if !cursor.more(b'}')? {
            break;
        }
    }
    if found.iter().any(|token| token.kind == Kind::Missing) {
        return Err(Refusal::new(
            "an object of another form",
            token.start as usize,
        ));
    }
    Ok(found)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn within(value: Option<i128>, most: i128) -> Step<i128> {
    value.filter(|value| *value <= most).ok_or(BROKEN)
}
