//! Reads a column's values.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::json::{Kind, Token, plain, unescape_latin1};
use crate::plan::Number;
use crate::plan::{Encoding, MysqlText};
use crate::pool::Weighed;
use crate::refusal::{Reason, Refusal, Result};
use crate::text::ByText;
use crate::text::bytes;
use crate::text::bytes::Bound;
use crate::text::numbers;
use crate::text::unquote_go;
use crate::values::calendar;
use crate::values::cells::Cells;
use crate::values::clocks::{self, Unit};
use crate::values::default_nulls::DefaultNull;
use crate::values::mysql_text::text_of;
use crate::values::nested::{items, members, parts, zoned};
use crate::values::packed;
use crate::values::scalars::BROKEN;
use crate::values::scalars::{self, OTHER};
use crate::values::tools::Tools;
use crate::values::zones::zoned_instant;

/// Reader of the values of a column.
#[derive(PartialEq, Eq)]
pub struct Reader {
    encoding: Encoding,
    /// Text → name, for an enum.
    pub names: ByText<String>,
    default_null: Option<DefaultNull>,
    /// For binary columns.
    pub bound: Option<Bound>,
}

impl Hash for Reader {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.encoding, &self.default_null, &self.bound).hash(state);
    }
}

impl Weighed for Reader {
    fn bytes(&self) -> usize {
        let names = self.names.iter();
        let texts = names.map(|(text, name)| 2 * (text.len() + name.len()) + 100);
        size_of::<Self>() + texts.sum::<usize>()
    }
}

impl Reader {
    pub fn new(
        encoding: Encoding,
        default_null: Option<DefaultNull>,
        bound: Option<Bound>,
    ) -> Self {
        let mut known = ByText::default();
        if let Encoding::MysqlText(logical) | Encoding::MysqlJson(logical) = &encoding
            && let MysqlText::Enum { names: Some(names) } = logical
        {
            known.extend(names.iter().map(|name| (name.clone(), name.clone())));
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
            encoding,
            names: known,
            default_null,
            bound,
        }
    }

    /// Whether some values are counted.
    pub fn counts(&self) -> bool {
        self.default_null.is_some()
    }

    pub fn encoding(&self) -> &'static str {
        self.encoding.name()
    }

    /// Appends a value to the column.
    ///
    /// A refusal has no place yet: see [`Refusal::in_column`].
    #[inline]
    pub fn read(
        &self,
        token: Token,
        document: &str,
        column: &mut impl Cells,
        tools: &mut Tools,
    ) -> Result<()> {
        if token.kind == Kind::Null {
            return column.push_null();
        }
        match &self.encoding {
            Encoding::MysqlText(logical)
                if token.kind == Kind::Text && self.default_null.is_none() =>
            {
                if *logical == MysqlText::Text {
                    return column.push_string(token, document, &mut tools.plain);
                }
                let text = token.text(document);
                let Tools {
                    zone,
                    variants,
                    more,
                    ..
                } = tools;
                self.mysql_text(logical, text, column, zone, variants, more)
            }
            _ => self.read_any(token, document, column, tools),
        }
    }

    /// Appends a value of any encoding; apart, as its frame is large.
    #[inline(never)]
    fn read_any(
        &self,
        token: Token,
        document: &str,
        column: &mut impl Cells,
        tools: &mut Tools,
    ) -> Result<()> {
        if matches!(token.kind, Kind::Long | Kind::Double)
            && (self.default_null.is_some() || !self.encoding.takes(token))
        {
            return self.read_printed(token, column, tools);
        }
        if let Some(default_null) = &self.default_null
            && default_null.is(token, document, &mut tools.plain)?
        {
            tools.notes.push(Arc::clone(&default_null.note));
        }
        match &self.encoding {
            Encoding::MysqlText(logical) | Encoding::MysqlJson(logical)
                if token.is_text()
                    && (*logical == MysqlText::Text
                        || *logical == MysqlText::Json && column.is_text()) =>
            {
                column.push_string(token, document, &mut tools.plain)
            }
            Encoding::MysqlText(MysqlText::Binary { padded }) if token.kind == Kind::Escaped => {
                let bytes = &mut tools.bytes;
                unescape_latin1(token.text(document), bytes)?;
                if let Some(bound) = &self.bound {
                    bound.check_latin1(bytes)?;
                }
                bytes.resize(bytes.len().max(*padded), 0);
                column.push_bytes(bytes)
            }
            Encoding::MysqlJson(MysqlText::Decimal { scale }) if !token.is_text() => {
                scalars::number(&Number::decimal(*scale), token, document, column)
            }
            Encoding::MysqlJson(MysqlText::Int { low, high }) if token.kind == Kind::Fraction => {
                let (low, high, wraps) = (*low, *high, false);
                scalars::number(&Number::Int { low, high, wraps }, token, document, column)
            }
            Encoding::MysqlText(logical) | Encoding::MysqlJson(logical) => {
                let Tools {
                    zone,
                    variants,
                    plain: unescaped,
                    more,
                    ..
                } = tools;
                let text = match &self.encoding {
                    _ if token.is_text() => plain(token, document, unescaped),
                    Encoding::MysqlJson(logical) => text_of(logical, token, document)?,
                    _ => return Err(Refusal::new("value is not text", 0)),
                };
                self.mysql_text(logical, text, column, zone, variants, more)
            }
            Encoding::Base64 if token.kind == Kind::Text && self.bound.is_none() => {
                column.push_base64(token.text(document))
            }
            Encoding::BytesText(form) if token.kind == Kind::Text => {
                tools.bytes.clear();
                form.read(token.text(document), &mut tools.bytes)?;
                column.push_bytes(&tools.bytes)
            }
            Encoding::JsonNumber(kind) => scalars::number(kind, token, document, column),
            Encoding::JsonBoolean => scalars::boolean(token, column),
            Encoding::JsonValue => {
                let Tools {
                    plain, variants, ..
                } = tools;
                scalars::any(token, document, column, plain, variants)
            }
            Encoding::Text {
                json: false,
                aliases,
            } if aliases.is_empty() && token.is_text() => {
                column.push_string(token, document, &mut tools.plain)
            }
            Encoding::Text { json, aliases } if token.is_text() => {
                let text = plain(token, document, &mut tools.plain);
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
                let text = token.text(document);
                let micros = zoned_instant(text).ok_or(BROKEN)?;
                match text.strip_suffix('Z') {
                    Some(clock) => column.push_instant_text(micros, clock),
                    None => column.push_instant(micros),
                }
            }
            Encoding::EpochDays => clocks::days(token, document, column),
            Encoding::EpochMillis(clock) => clocks::clock(
                Unit::Millis,
                clock,
                token,
                document,
                column,
                &mut tools.text,
            ),
            Encoding::EpochMicros(clock) => clocks::clock(
                Unit::Micros,
                clock,
                token,
                document,
                column,
                &mut tools.text,
            ),
            Encoding::EpochNanos(clock) => {
                clocks::clock(Unit::Nanos, clock, token, document, column, &mut tools.text)
            }
            Encoding::EpochGuessed(clock) => clocks::clock(
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
                bytes::decode_base64(token.text(document), &mut tools.bytes)?;
                column.push_text(std::str::from_utf8(&tools.bytes).map_err(|_| BROKEN)?)
            }
            Encoding::Base64
            | Encoding::Hex
            | Encoding::GoQuoted
            | Encoding::DetectedBytes { .. }
                if token.is_text() =>
            {
                let text = plain(token, document, &mut tools.plain);
                let bytes = &mut tools.bytes;
                bytes.clear();
                match &self.encoding {
                    Encoding::Base64 => bytes::decode_base64(text, bytes)?,
                    Encoding::Hex => bytes::decode_hex(text, bytes)?,
                    Encoding::DetectedBytes { exact, longest } => {
                        bytes::detect(text, *exact, *longest, bytes)?;
                    }
                    _ => unquote_go(text, bytes)?,
                }
                if let Some(bound) = &self.bound {
                    bound.check_length(bytes.len())?;
                    bound.pad(bytes);
                }
                column.push_bytes(bytes)
            }
            Encoding::CharsetText { is_latin1 } if token.kind == Kind::Text => {
                let text = token.text(document);
                let is_same = |letter| *is_latin1 && ('\u{a0}'..='\u{ff}').contains(&letter);
                if !text.is_ascii() && !text.chars().all(|c| c.is_ascii() || is_same(c)) {
                    return Err(Refusal::of(Reason::Doubt, "text in another charset", 0));
                }
                column.push_text(text)
            }
            Encoding::IntegerText if token.kind == Kind::Text => {
                let value = numbers::integer(token.text(document)).ok_or(BROKEN)?;
                let value = scalars::within(value, i64::MIN, u64::MAX)?;
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
                let parts = parts(token, document)?;
                calendar::push(logical, &parts, column, &mut tools.text)
            }
            Encoding::EpochPair if token.kind == Kind::Array => {
                let [seconds, micros] = parts(token, document)?;
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
            _ => Err(OTHER),
        }
    }

    /// Reads a number from its text.
    fn read_printed(&self, token: Token, column: &mut impl Cells, tools: &mut Tools) -> Result<()> {
        let mut text = std::mem::take(&mut tools.number);
        text.clear();
        let kind = if let Some(value) = token.double() {
            text.push_str(zmij::Buffer::new().format(value));
            Kind::Fraction
        } else {
            let value = token.long().unwrap_or(0);
            text.push_str(itoa::Buffer::new().format(value));
            Kind::Integer
        };
        let read = self.read(Token::new(kind, 0, text.len()), &text, column, tools);
        tools.number = text;
        read
    }
}
