//! Values that are lists or objects of a fixed form.

use crate::json::{Cursor, Kind, Token, plain};
use crate::plan::Form;
use crate::refusal::{Reason, Refusal, Result};
use crate::values::calendar::{self, Part};
use crate::values::cells::Cells;
use crate::values::scalars::{BROKEN, OTHER, small};
use crate::values::tools::Tools;

/// Appends the instant of a text in the named zone.
pub fn zoned(
    name: Token,
    text: Token,
    document: &str,
    column: &mut impl Cells,
    tools: &mut Tools,
) -> Result<()> {
    let name = name.text(document);
    let Some(zone) = tools.zones.get(name) else {
        // The bridge adds the zone's offsets, and offers the message again.
        tools.missing_zone = Some(name.to_owned());
        return Err(Refusal::of(
            Reason::UnknownZone,
            "unknown time zone",
            text.start as usize,
        ));
    };
    column.push_instant(zone.instant(text.text(document)).ok_or(BROKEN)?)
}

/// The numbers in a list.
pub fn parts<const N: usize>(token: Token, document: &str) -> Result<[Part; N]> {
    match calendar::printed_parts(token.text(document)) {
        Some(parts) => Ok(parts),
        None => Ok(items(token, document)?.map(|item| part(item, document))),
    }
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

/// The items of a list of exactly `N` items; texts have no escapes.
pub fn items<const N: usize>(token: Token, document: &str) -> Result<[Token; N]> {
    let mut found = [Token::MISSING; N];
    let mut cursor = Cursor::at(document, token.start)?;
    cursor.expect(b'[', "expected a list")?;
    for (place, item) in found.iter_mut().enumerate() {
        *item = cursor.value()?;
        // Zone names and times need no escapes.
        if item.kind == Kind::Escaped || cursor.more(b']')? != (place + 1 < N) {
            return cursor.refuse("list has an unexpected form");
        }
    }
    Ok(found)
}

/// The members of an object with exactly these members, each of its kind.
pub fn members<const N: usize>(
    token: Token,
    document: &str,
    known: [(&str, Kind); N],
) -> Result<[Token; N]> {
    let mut found = [Token::MISSING; N];
    let mut cursor = Cursor::at(document, token.start)?;
    cursor.expect(b'{', "expected an object")?;
    loop {
        let name = cursor.name()?;
        let value = cursor.value()?;
        let wanted = (name.text(document), value.kind);
        let place = known.iter().position(|member| *member == wanted);
        match place {
            // Another member could change the meaning: the reference reads it.
            Some(place) if found[place].kind == Kind::Missing => found[place] = value,
            _ => {
                return Err(Refusal::new(
                    "object has an unexpected form",
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
            "object has an unexpected form",
            token.start as usize,
        ));
    }
    Ok(found)
}

/// The members of an object of any names.
pub fn members_of(token: Token, document: &str) -> Result<Vec<(String, Token)>> {
    if token.kind != Kind::Object {
        return Err(OTHER);
    }
    let mut found: Vec<(String, Token)> = Vec::new();
    let mut cursor = Cursor::at(document, token.start + 1)?;
    if !cursor.take(b'}') {
        loop {
            let name = plain(cursor.name()?, document, &mut Vec::new()).to_owned();
            found.push((name, cursor.value()?));
            if !cursor.more(b'}')? {
                break;
            }
        }
    }
    let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    // Python's parser keeps the last of them.
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Refusal::new(
            "two members have one name",
            token.start as usize,
        ));
    }
    Ok(found)
}

/// The fields of a geometry in Spark.
const GEOMETRY: [&str; 3] = ["srid", "wkb", "wkt"];

/// Appends a geometry: the members `wkb` and `srid` of an object.
pub fn geometry(token: Token, document: &str, column: &mut impl Cells) -> Result<()> {
    let found = members_of(token, document)?;
    let member = |name: &str| {
        let found = found.iter().find(|(each, _)| each == name);
        found.map_or(Token::MISSING, |(_, value)| *value)
    };
    let (srid, wkb) = (member("srid"), member("wkb"));
    let srid = match srid.kind {
        // Debezium writes SRID 0 as null.
        Kind::Null | Kind::Missing => 0,
        _ => small(srid, srid.text(document))?,
    };
    if srid < 0 || wkb.kind != Kind::Text {
        return Err(OTHER);
    }
    column.begin_object(&GEOMETRY)?;
    column
        .member(0, GEOMETRY[0], Form::Plain)?
        .push_integer(srid)?;
    column
        .member(1, GEOMETRY[1], Form::Plain)?
        .push_base64(wkb.text(document))?;
    column.member(2, GEOMETRY[2], Form::Plain)?.push_null()?;
    column.end_object()
}
