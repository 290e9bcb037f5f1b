//! The constant text around values in cells: objects with a column's value and type.

use std::collections::HashMap;

use crate::json::{Cursor, Kind, Token};
use crate::refusal::Result;

/// The text around a column's values: its name and the other members of its cells.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    opens: String,
    /// Start of the text after the name's colon.
    behind_name: usize,
    closes: String,
}

impl Cell {
    /// Takes the text before a value, including the column's name.
    pub fn take(&self, cursor: &mut Cursor) -> bool {
        cursor.take_all(&self.opens)
    }

    /// Takes the text between a column's name and its value.
    pub fn open(&self, cursor: &mut Cursor) -> bool {
        cursor.take_all(&self.opens[self.behind_name..])
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.opens.len() + self.closes.len()
    }

    pub fn close(&self, cursor: &mut Cursor) -> bool {
        cursor.take_all(&self.closes)
    }
}

/// The cells of an image by column name; the member `cell` of each has its value.
pub fn cells(token: Token, cell: &str, document: &str) -> Result<HashMap<String, Cell>> {
    let mut found = HashMap::new();
    let mut cursor = Cursor::at(document, token.start)?;
    cursor.expect(b'{', "image has an unexpected form")?;
    loop {
        let name = cursor.name()?;
        let start = name.start as usize - 1;
        let behind_name = cursor.position() - start;
        let value = member_in(&mut cursor, cell)?;
        let end = cursor.position();
        let (from, to) = value.whole_span();
        let one = Cell {
            // Compared as bytes: a cell with another order of members gets a plan of its own.
            opens: document[start..from].to_owned(),
            behind_name,
            closes: document[to..end].to_owned(),
        };
        let twice = found.insert(name.text(document).to_owned(), one);
        if twice.is_some() {
            return cursor.refuse("two columns have one name");
        }
        if !cursor.more(b'}')? {
            return Ok(found);
        }
    }
}

/// Reads a cell; returns the value of this member.
fn member_in(cursor: &mut Cursor, wanted: &str) -> Result<Token> {
    let mut names = Vec::new();
    let mut found = Token::MISSING;
    cursor.expect(b'{', "cell is not an object")?;
    loop {
        let name = cursor.name()?.text(cursor.document);
        let value = cursor.value()?;
        if name == wanted {
            found = value;
        }
        // Few members, so a search is cheaper than a set.
        if names.contains(&name) {
            return cursor.refuse("two members have one name");
        }
        names.push(name);
        if !cursor.more(b'}')? {
            break;
        }
    }
    if found.kind == Kind::Missing {
        return cursor.refuse("cell has no value");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_what_is_around_values() {
        let text = r#"{"a":{"t":3,"v":"x","f":1},"b" : {"v":null}}"#;
        let token = Cursor::new(text).unwrap().value().unwrap();
        let found = cells(token, "v", text).unwrap();
        assert_eq!(found["a"].opens, r#""a":{"t":3,"v":"#);
        assert_eq!(
            &found["a"].opens[found["a"].behind_name..],
            r#"{"t":3,"v":"#
        );
        assert_eq!(found["a"].closes, r#","f":1}"#);
        assert_eq!(found["b"].closes, "}");
        for text in [
            r#"{"a":{"t":3}}"#,
            r#"{"a":{"v":3,"v":3}}"#,
            r#"{"a":{"v":3},"a":{"v":3}}"#,
            r#"{"a":3}"#,
            "{}",
        ] {
            let token = Cursor::new(text).unwrap().value().unwrap();
            assert!(cells(token, "v", text).is_err(), "{text}");
        }
    }
}
