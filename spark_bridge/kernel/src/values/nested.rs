//! Values that are lists or objects of a fixed form.

use crate::json::{Cursor, Kind, Token};
use crate::refusal::{Reason, Refusal, Result};
use crate::values::calendar::{self, Part};
use crate::values::cells::Cells;
use crate::values::scalars::BROKEN;
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
