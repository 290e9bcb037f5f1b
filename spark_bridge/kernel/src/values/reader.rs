//! Reads a column's values.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::json::{Cursor, Kind, Token, plain, unescape_latin1};
use crate::plan::{Encoding, MysqlText, Number, Part, UsualText};
use crate::pool::Weighed;
use crate::refusal::{Reason, Refusal, Result};
use crate::text::bytes::{self, Bound};
use crate::text::{numbers, unquote_go};
use crate::values::calendar;
use crate::values::cells::Cells;
use crate::values::default_nulls::DefaultNull;
use crate::values::epochs::{Unit, clock, days};
use crate::values::mysql_text::{Domain, text_of};
use crate::values::nested::{self, items, members, parts, zoned};
use crate::values::packed;
use crate::values::scalars::{self, BROKEN, OTHER};
use crate::values::temporal::{self, Interval};
use crate::values::tools::Tools;
use crate::values::zones::zoned_instant;

/// Reader of the values of a column.
#[derive(PartialEq, Eq)]
pub struct Reader {
    encoding: Encoding,
    domain: Domain,
    default_null: Option<DefaultNull>,
    /// Of the items of a list, the values of a map, or the fields of a struct.
    parts: Vec<Self>,
}

impl Hash for Reader {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The names follow from the encoding.
        (&self.encoding, &self.default_null, &self.domain.bound).hash(state);
    }
}

impl Weighed for Reader {
    fn bytes(&self) -> usize {
        let parts = self.parts.iter().map(Self::bytes).sum::<usize>();
        size_of::<Self>() + self.domain.bytes() + parts
    }
}

impl Reader {
    pub fn new(
        encoding: Encoding,
        default_null: Option<DefaultNull>,
        bound: Option<Bound>,
    ) -> Self {
        let of_part = |part: &Part| Self::new(part.encoding.clone(), None, part.bound.clone());
        Self {
            parts: encoding.parts().iter().map(of_part).collect(),
            domain: Domain::new(&encoding, bound),
            encoding,
            default_null,
        }
    }

    /// Whether some values are counted.
    pub fn counts(&self) -> bool {
        self.default_null.is_some()
    }

    /// Whether it reads an unscaled integer instead of its bytes.
    pub fn takes_unscaled(&self) -> bool {
        matches!(self.encoding, Encoding::ConnectDecimal(_)) && !self.counts()
    }

    /// The name of its value encoding.
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
        // Nearly all values of canal-json and its relatives: without a call of `read_any`.
        match &self.encoding {
            Encoding::MysqlText(logical) | Encoding::MysqlJson(logical)
                if token.kind == Kind::Text && self.default_null.is_none() =>
            {
                if *logical == MysqlText::Text {
                    return column.push_string(token, document, &mut tools.plain);
                }
                let text = token.text(document);
                self.domain.read(logical, text, column, &mut tools.texts)
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
        // A default is compared as text, so Avro's numbers are printed for it, too.
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
            Encoding::MysqlText(logical) | Encoding::MysqlJson(logical) => {
                self.read_mysql(logical, token, document, column, tools)
            }
            Encoding::Text {
                only: Some(only), ..
            } => read_usual(*only, token, document, column),
            Encoding::List { items } => self.read_list(items, token, document, column, tools),
            Encoding::Map { .. } | Encoding::Struct { .. } => {
                self.read_object(token, document, column, tools)
            }
            Encoding::Geometry => nested::geometry(token, document, column),
            Encoding::Text { json, aliases, .. } => {
                read_text(*json, aliases, token, document, column, tools)
            }
            Encoding::CharsetText { is_latin1 } => {
                read_charset_text(*is_latin1, token, document, column)
            }
            Encoding::Base64
            | Encoding::Base64Text
            | Encoding::BytesText(_)
            | Encoding::DetectedBytes { .. }
            | Encoding::GoQuoted
            | Encoding::Hex => self.read_bytes(token, document, column, tools),
            Encoding::JsonNumber(kind) => scalars::number(kind, token, document, column),
            Encoding::JsonBoolean => scalars::boolean(token, column),
            Encoding::JsonValue => {
                let variants = &mut tools.texts.variants;
                scalars::any(token, document, column, &mut tools.plain, variants)
            }
            Encoding::IntegerText if token.kind == Kind::Text => {
                let value = numbers::integer(token.text(document)).ok_or(BROKEN)?;
                let value = scalars::within(value, i64::MIN, u64::MAX)?;
                column.push_decimal(value, 0)
            }
            Encoding::ConnectDecimal(kind) => {
                packed::unscaled(kind, token, document, column, &mut tools.bytes)
            }
            Encoding::VariableScaleDecimal => {
                packed::scaled(token, document, column, &mut tools.bytes)
            }
            Encoding::GuessedDecimal { scale } => {
                packed::guessed_decimal(*scale, token, document, column, &mut tools.bytes)
            }
            Encoding::LittleEndianBits { bits } => {
                packed::bits(*bits, false, token, document, column, &mut tools.bytes)
            }
            Encoding::BigEndianBits { bits } => {
                packed::bits(*bits, true, token, document, column, &mut tools.bytes)
            }
            Encoding::EpochDays
            | Encoding::EpochMillis(_)
            | Encoding::EpochMicros(_)
            | Encoding::EpochNanos(_)
            | Encoding::EpochGuessed(_)
            | Encoding::EpochPair
            | Encoding::CalendarParts(_)
            | Encoding::IsoText(_)
            | Encoding::IsoDuration
            | Encoding::IsoInstant
            | Encoding::ZonedText { .. } => self.read_time(token, document, column, tools),
            Encoding::IntegerText | Encoding::Other => Err(OTHER),
        }
    }

    fn read_list(
        &self,
        items: &Part,
        token: Token,
        document: &str,
        column: &mut impl Cells,
        tools: &mut Tools,
    ) -> Result<()> {
        if token.kind != Kind::Array {
            return Err(OTHER);
        }
        let mut cursor = Cursor::at(document, token.start + 1)?;
        column.begin_list()?;
        if !cursor.take(b']') {
            loop {
                let item = cursor.value()?;
                self.read_part(0, item, document, column.item(items.form)?, tools)?;
                if !cursor.more(b']')? {
                    break;
                }
            }
        }
        column.end_list()
    }

    fn read_object(
        &self,
        token: Token,
        document: &str,
        column: &mut impl Cells,
        tools: &mut Tools,
    ) -> Result<()> {
        let mut members = nested::members_of(token, document)?;
        let parts = self.encoding.parts();
        let is_struct = matches!(self.encoding, Encoding::Struct { .. });
        if is_struct {
            // In the order of the fields, all of which an object has.
            let mut by_field = vec![None; parts.len()];
            for member in members {
                let place = parts.iter().position(|part| part.name == member.0);
                by_field[place.ok_or(OTHER)?] = Some(member);
            }
            members = by_field.into_iter().collect::<Option<_>>().ok_or(OTHER)?;
        }
        let mut order: Vec<usize> = (0..members.len()).collect();
        let by = column.order_of_names();
        order.sort_by(|one, other| by.compare(&members[*one].0, &members[*other].0));
        let names: Vec<&str> = order.iter().map(|at| &*members[*at].0).collect();
        column.begin_object(&names)?;
        for (place, at) in order.iter().enumerate() {
            let part = if is_struct { *at } else { 0 };
            let cell = column.member(place, names[place], parts[part].form)?;
            self.read_part(part, members[*at].1, document, cell, tools)?;
        }
        column.end_object()
    }

    fn read_part(
        &self,
        part: usize,
        token: Token,
        document: &str,
        column: &mut impl Cells,
        tools: &mut Tools,
    ) -> Result<()> {
        if token.kind == Kind::Null && !self.encoding.parts()[part].has_nulls {
            return Err(OTHER);
        }
        self.parts[part].read(token, document, column, tools)
    }

    /// MySQL's text, or a number or a boolean in its place.
    fn read_mysql(
        &self,
        logical: &MysqlText,
        token: Token,
        document: &str,
        column: &mut impl Cells,
        tools: &mut Tools,
    ) -> Result<()> {
        let is_json = matches!(self.encoding, Encoding::MysqlJson(_));
        match logical {
            MysqlText::Text if token.is_text() => {
                return column.push_string(token, document, &mut tools.plain);
            }
            MysqlText::Json if token.is_text() && column.is_text() => {
                return column.push_string(token, document, &mut tools.plain);
            }
            MysqlText::Binary { padded } if token.kind == Kind::Escaped => {
                let bytes = &mut tools.bytes;
                unescape_latin1(token.text(document), bytes)?;
                if let Some(bound) = &self.domain.bound {
                    bound.check_latin1(bytes)?;
                }
                bytes.resize(bytes.len().max(*padded), 0);
                return column.push_bytes(bytes);
            }
            MysqlText::Decimal { scale } if is_json && !token.is_text() => {
                return scalars::number(&Number::decimal(*scale), token, document, column);
            }
            MysqlText::Int { low, high } if is_json && token.kind == Kind::Fraction => {
                let (low, high, wraps) = (*low, *high, false);
                return scalars::number(&Number::Int { low, high, wraps }, token, document, column);
            }
            _ => {}
        }
        let text = match is_json {
            _ if token.is_text() => plain(token, document, &mut tools.plain),
            true => text_of(logical, token, document)?,
            false => return Err(Refusal::new("value is not text", 0)),
        };
        self.domain.read(logical, text, column, &mut tools.texts)
    }

    /// Bytes that are encoded in text.
    fn read_bytes(
        &self,
        token: Token,
        document: &str,
        column: &mut impl Cells,
        tools: &mut Tools,
    ) -> Result<()> {
        let bound = self.domain.bound.as_ref();
        let is_plain = token.kind == Kind::Text;
        if matches!(self.encoding, Encoding::Base64) && is_plain && bound.is_none() {
            return column.push_base64(token.text(document));
        }
        if !token.is_text() {
            return Err(OTHER);
        }
        let text = plain(token, document, &mut tools.plain);
        let bytes = &mut tools.bytes;
        bytes.clear();
        match &self.encoding {
            Encoding::Base64 => bytes::decode_base64(text, bytes)?,
            Encoding::Hex => bytes::decode_hex(text, bytes)?,
            Encoding::GoQuoted => unquote_go(text, bytes)?,
            Encoding::DetectedBytes { exact, longest } => {
                bytes::detect(text, *exact, *longest, bytes)?;
            }
            Encoding::BytesText(form) if is_plain => {
                form.read(text, bytes)?;
                return column.push_bytes(bytes);
            }
            Encoding::Base64Text if is_plain => {
                bytes::decode_base64(text, bytes)?;
                return column.push_text(std::str::from_utf8(bytes).map_err(|_| BROKEN)?);
            }
            _ => return Err(OTHER),
        }
        if let Some(bound) = bound {
            bound.check_length(bytes.len())?;
            bound.pad(bytes);
        }
        column.push_bytes(bytes)
    }

    /// Dates and times that are numbers, parts, or ISO text.
    fn read_time(
        &self,
        token: Token,
        document: &str,
        column: &mut impl Cells,
        tools: &mut Tools,
    ) -> Result<()> {
        let time = &mut tools.texts.time;
        match (&self.encoding, token.kind) {
            (Encoding::EpochDays, _) => days(token, document, column),
            (Encoding::EpochMillis(kind), _) => {
                clock(Unit::Millis, kind, token, document, column, time)
            }
            (Encoding::EpochMicros(kind), _) => {
                clock(Unit::Micros, kind, token, document, column, time)
            }
            (Encoding::EpochNanos(kind), _) => {
                clock(Unit::Nanos, kind, token, document, column, time)
            }
            (Encoding::EpochGuessed(kind), _) => {
                clock(Unit::Guessed, kind, token, document, column, time)
            }
            (Encoding::EpochPair, Kind::Array) => {
                let [seconds, micros] = parts(token, document)?;
                column.push_instant(calendar::instant(seconds, micros).ok_or(BROKEN)?)
            }
            (Encoding::CalendarParts(logical), Kind::Array) => {
                calendar::push(logical, &parts(token, document)?, column, time)
            }
            (Encoding::CalendarParts(logical), Kind::Text) => {
                let text = token.text(document);
                self.domain.read(logical, text, column, &mut tools.texts)
            }
            (Encoding::IsoText(logical), Kind::Text) => {
                let text = token.text(document);
                let text = text.strip_suffix('Z').unwrap_or(text);
                self.domain.read(logical, text, column, &mut tools.texts)
            }
            (Encoding::IsoDuration, Kind::Text) => {
                let value = Interval::parse(token.text(document)).ok_or(BROKEN)?;
                column.push_interval(value, time)
            }
            (Encoding::IsoInstant, Kind::Text) => {
                let text = token.text(document);
                let micros = zoned_instant(text).ok_or(BROKEN)?;
                match text.strip_suffix('Z') {
                    Some(clock) => column.push_instant_text(micros, clock),
                    None => column.push_instant(micros),
                }
            }
            (Encoding::ZonedText { .. }, Kind::Text) => {
                let micros = tools.texts.zone.instant(token.text(document));
                column.push_instant(micros.ok_or(BROKEN)?)
            }
            (
                Encoding::ZonedText {
                    zone_member,
                    text_member,
                },
                Kind::Object,
            ) => {
                let names = [zone_member, text_member].map(|name| (name.as_str(), Kind::Text));
                let [name, text] = members(token, document, names)?;
                zoned(name, text, document, column, tools)
            }
            // Avro's form of the same object.
            (Encoding::ZonedText { .. }, Kind::Array) => {
                let [name, text] = items(token, document)?;
                zoned(name, text, document, column, tools)
            }
            _ => Err(OTHER),
        }
    }

    /// Reads a number from its text.
    fn read_printed(&self, token: Token, column: &mut impl Cells, tools: &mut Tools) -> Result<()> {
        // Taken out, as the other buffers are used while it is read.
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

/// Text unchanged, except for aliases and variants.
fn read_text(
    is_json: bool,
    aliases: &BTreeMap<String, String>,
    token: Token,
    document: &str,
    column: &mut impl Cells,
    tools: &mut Tools,
) -> Result<()> {
    if !token.is_text() {
        return Err(OTHER);
    }
    if !is_json && aliases.is_empty() {
        return column.push_string(token, document, &mut tools.plain);
    }
    let text = plain(token, document, &mut tools.plain);
    if is_json {
        return column.push_json(text, &mut tools.texts.variants);
    }
    column.push_text(aliases.get(text).map_or(text, String::as_str))
}

/// Text in the usual form of its type; other forms are the reference's.
fn read_usual(
    only: UsualText,
    token: Token,
    document: &str,
    column: &mut impl Cells,
) -> Result<()> {
    let text = token.text(document);
    let is_usual = match only {
        UsualText::Uuid => is_uuid(text),
        UsualText::TimeTz => temporal::is_time_tz(text),
    };
    if token.kind != Kind::Text || !is_usual {
        return Err(OTHER);
    }
    column.push_text(text)
}

/// Whether it is a UUID as databases print it.
pub fn is_uuid(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_at_home = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => is_digit(byte),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_at_home)
}

/// Text whose bytes were read in another charset.
fn read_charset_text(
    is_latin1: bool,
    token: Token,
    document: &str,
    column: &mut impl Cells,
) -> Result<()> {
    if token.kind != Kind::Text {
        return Err(OTHER);
    }
    let text = token.text(document);
    let is_same = |letter| is_latin1 && ('\u{a0}'..='\u{ff}').contains(&letter);
    if !text.is_ascii() && !text.chars().all(|c| c.is_ascii() || is_same(c)) {
        return Err(Refusal::of(Reason::Doubt, "text in another charset", 0));
    }
    column.push_text(text)
}
