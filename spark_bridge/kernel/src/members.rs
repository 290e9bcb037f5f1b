//! An object of the schema key: the same members in all messages with the plan, in any order.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::json::{Cursor, Token};
use crate::labels::Label;
use crate::names::{Names, Texts, hash_word};
use crate::refusal::Step;

/// Number of bytes after the quote that usually identify the member.
const HEAD: usize = 8;

/// Members by their first bytes, to find the first one with them.
#[derive(Default)]
struct Heads {
    /// Open addressing: the bytes, and the index plus one; at least half of the slots are 0.
    slots: Vec<(u64, usize)>,
}

impl Heads {
    fn new(wholes: &[Label]) -> Self {
        let slots = vec![(0, 0); (2 * wholes.len()).next_power_of_two()];
        let mut heads = Self { slots };
        for (whole, number) in wholes.iter().zip(1..) {
            if let Some(head) = whole.as_bytes()[1..].first_chunk::<HEAD>() {
                let head = u64::from_le_bytes(*head);
                let slot = heads.slot(head);
                if heads.slots[slot].1 == 0 {
                    heads.slots[slot] = (head, number);
                }
            }
        }
        heads
    }

    /// The slot with these bytes, or for them.
    #[inline]
    fn slot(&self, head: u64) -> usize {
        let last = self.slots.len() - 1;
        #[allow(clippy::cast_possible_truncation)]
        let mut slot = hash_word(head) as usize & last;
        while self.slots[slot].1 != 0 && self.slots[slot].0 != head {
            slot = (slot + 1) & last;
        }
        slot
    }

    #[inline]
    fn find(&self, head: [u8; HEAD]) -> Option<usize> {
        let (_, number) = self.slots[self.slot(u64::from_le_bytes(head))];
        number.checked_sub(1)
    }
}

/// Whether each member was met.
enum Met {
    /// As bits.
    Few(u64),
    Many(Vec<bool>),
}

impl Met {
    fn nothing(all: usize) -> Self {
        if all <= 64 {
            Self::Few(0)
        } else {
            Self::Many(vec![false; all])
        }
    }

    /// Whether a member was not yet met; meets it.
    #[inline]
    fn is_new(&mut self, place: usize) -> bool {
        match self {
            Self::Few(bits) => {
                let before = *bits;
                *bits |= 1 << place;
                before != *bits
            }
            Self::Many(met) => !std::mem::replace(&mut met[place], true),
        }
    }
}

#[derive(Default)]
pub struct Members {
    names: Names,
    values: Texts,
    /// Names and values in their usual form in documents: with only a colon between them.
    wholes: Vec<Label>,
    heads: Heads,
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
                let whole = Label::new(&format!("\"{name}\":{value}"));
                members.wholes.push(whole);
                if !cursor.more(b'}')? {
                    break;
                }
            }
        }
        members.heads = Heads::new(&members.wholes);
        Ok(members)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.texts.iter().zip(self.values.iter())
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let wholes = self.wholes.iter().map(Label::bytes).sum::<usize>();
        let texts = self.names.bytes() + self.values.bytes();
        texts + wholes + size_of_val(&self.heads.slots[..])
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
        if cursor.take(b'}') {
            return Ok(self.values.is_empty());
        }
        let mut met = Met::nothing(self.values.len());
        let (mut expected, mut count) = (0, 0);
        loop {
            let place = match self.take_whole(expected, cursor) {
                Some(place) => place,
                None => match self.take_member(expected, cursor)? {
                    Some(place) => place,
                    None => return Ok(false),
                },
            };
            if !met.is_new(place) {
                return Ok(false);
            }
            expected = place + 1;
            count += 1;
            if !cursor.more(b'}')? {
                return Ok(count == self.values.len());
            }
        }
    }

    /// Takes a member in its usual form, found by its first bytes.
    #[inline]
    fn take_whole(&self, expected: usize, cursor: &mut Cursor) -> Option<usize> {
        let data = cursor.rest();
        let place = self.heads.find(*data.get(1..)?.first_chunk()?)?;
        // Names that begin alike usually come in their order.
        for place in [place, expected] {
            let whole = self.wholes.get(place)?;
            if whole.begins(data) && matches!(data.get(whole.len()), Some(b',' | b'}')) {
                cursor.advance(whole.len());
                return Some(place);
            }
        }
        None
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
