//! An object of the schema key: the same members in all messages with the plan, in any order.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::json::{Cursor, Token};
use crate::names::{Names, Texts};
use crate::refusal::Step;

/// Number of bytes after the quote that usually identify the member.
const HEAD: usize = 8;

#[derive(Default)]
pub struct Members {
    names: Names,
    values: Texts,
    /// Names and values in their usual form in documents: with only a colon between them.
    wholes: Texts,
    /// The first bytes of these, to find the first member with them.
    heads: Names,
    of_heads: Vec<u32>,
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        let is_in = |(name, value)| {
            let place = self.names.find(name);
            place.and_then(|place| self.values.get(place)) == Some(value)
        };
        self.values.len() == other.values.len() && other.iter().all(is_in)
    }
}

impl Eq for Members {}

impl Hash for Members {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let of_member = |member: (&str, &str)| {
            let mut hasher = DefaultHasher::new();
            member.hash(&mut hasher);
            hasher.finish()
        };
        // Independent of the order.
        state.write_u64(self.iter().map(of_member).fold(0, u64::wrapping_add));
    }
}

impl Members {
    pub fn read(token: Token, document: &str) -> Step<Self> {
        let mut members = Self::default();
        let mut cursor = Cursor::at(document, token.start + 1)?;
        if !cursor.take(b'}') {
            loop {
                let name = cursor.name()?.text(document);
                let place = members.names.add(name, 0);
                if place != members.values.len() {
                    return cursor.refuse("two members of one name");
                }
                let value = cursor.value()?.whole_text(document);
                members.values.push(value);
                let whole = format!("\"{name}\":{value}");
                members.add_head(&whole, place);
                members.wholes.push(&whole);
                if !cursor.more(b'}')? {
                    break;
                }
            }
        }
        Ok(members)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.texts.iter().zip(self.values.iter())
    }

    fn add_head(&mut self, whole: &str, place: usize) {
        let head = whole
            .get(1..=HEAD)
            .filter(|head| self.heads.find(head).is_none());
        if let (Some(head), Ok(place)) = (head, u32::try_from(place)) {
            self.heads.add(head, 0);
            self.of_heads.push(place);
        }
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let names = self.names.bytes() + self.heads.bytes();
        names + self.values.bytes() + self.wholes.bytes() + size_of_val(&self.of_heads[..])
    }

    /// Whether a member is non-blank text.
    pub fn is_text(&self, name: &str) -> bool {
        let place = self.names.find(name);
        let value = place.and_then(|place| self.values.get(place));
        value
            .unwrap_or_default()
            .strip_prefix('"')
            .is_some_and(|rest| !rest.trim_end_matches('"').trim().is_empty())
    }

    /// Whether an object has exactly these members.
    pub fn are(&self, cursor: &mut Cursor) -> Step<bool> {
        cursor.expect(b'{', "no object")?;
        let mut expected = 0;
        // The members found so far, once the order differs.
        let mut met: Option<Vec<bool>> = None;
        let mut count = 0;
        if cursor.take(b'}') {
            return Ok(self.values.is_empty());
        }
        loop {
            let whole = if met.is_none() && self.take_whole(expected, cursor) {
                Some(expected)
            } else {
                let head = cursor
                    .ahead::<HEAD>(1)
                    .and_then(|head| self.heads.find(head));
                let place = head.map(|head| self.of_heads[head] as usize);
                place.filter(|place| self.take_whole(*place, cursor))
            };
            let place = match whole {
                Some(place) => place,
                None => match self.take_member(expected, cursor)? {
                    Some(place) => place,
                    None => return Ok(false),
                },
            };
            if met.is_some() || place != expected {
                let met = met.get_or_insert_with(|| {
                    let mut met = vec![false; self.values.len()];
                    met[..count].fill(true);
                    met
                });
                if std::mem::replace(&mut met[place], true) {
                    return Ok(false);
                }
            }
            expected = place + 1;
            count += 1;
            if !cursor.more(b'}')? {
                return Ok(count == self.values.len());
            }
        }
    }

    fn take_whole(&self, place: usize, cursor: &mut Cursor) -> bool {
        let start = cursor.position();
        let whole = self.wholes.bytes_of(place);
        let is_next = whole.is_some_and(|whole| cursor.take_all(whole)) && cursor.ends_value();
        if !is_next {
            cursor.go_back(start);
        }
        is_next
    }

    /// Takes a member in any form; None if it equals no member.
    fn take_member(&self, expected: usize, cursor: &mut Cursor) -> Step<Option<usize>> {
        let name = cursor.name()?;
        let place = self.names.find_from(expected, cursor.bytes_of(name));
        cursor.blanks();
        Ok(place.filter(|place| {
            let value = self.values.bytes_of(*place).unwrap_or_default();
            cursor.take_all(value) && cursor.ends_value()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_members_come_in_any_order() {
        let read = |document: &str| {
            let token = Cursor::new(document).unwrap().document().unwrap();
            Members::read(token, document).unwrap()
        };
        let hash = |members: &Members| {
            let mut hasher = DefaultHasher::new();
            members.hash(&mut hasher);
            hasher.finish()
        };
        let (one, other) = (read(r#"{"a":1,"b":"x"}"#), read(r#"{"b":"x","a":1}"#));
        assert!(one == other);
        assert_eq!(hash(&one), hash(&other));
        for document in [r#"{"a":1}"#, r#"{"a":1,"b":"y"}"#, r#"{"a":"x","b":1}"#] {
            assert!(one != read(document) && read(document) != one);
        }
    }

    #[test]
    fn members_come_in_any_order() {
        let document = r#"{"customer_id":"bigint","customer_no":12,"a":"b","attrs":{"x":[1]}}"#;
        let token = Cursor::new(document).unwrap().document().unwrap();
        let members = Members::read(token, document).unwrap();
        let are = |other: &str| members.are(&mut Cursor::new(other).unwrap()) == Ok(true);
        for same in [
            document,
            r#"{"a":"b","attrs":{"x":[1]},"customer_no":12,"customer_id":"bigint"}"#,
            r#" { "customer_no" : 12, "a":"b" ,"customer_id":"bigint","attrs": {"x":[1]} }"#,
        ] {
            assert!(are(same), "{same}");
        }
        for other in [
            "{}",
            r#"{"customer_id":"bigint","customer_no":12,"a":"b"}"#,
            r#"{"customer_id":"bigint","customer_no":123,"a":"b","attrs":{"x":[1]}}"#,
            r#"{"customer_id":"bigint","customer_no":1,"a":"b","attrs":{"x":[1]}}"#,
            r#"{"customer_no":12,"customer_no":12,"a":"b","attrs":{"x":[1]}}"#,
            r#"{"a":"b","a":"b","customer_no":12,"attrs":{"x":[1]}}"#,
            r#"{"customer_id":"bigint","customer_no":12,"a":"b","attrs":{"x":[1]},"c":1}"#,
            r#"{"customer_id":"bigint""#,
        ] {
            assert!(!are(other), "{other}");
        }
    }
}
