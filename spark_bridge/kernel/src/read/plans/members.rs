//! An object of the schema key: the same members in all messages with the plan, in any order.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::json::Label;
use crate::json::{Cursor, Token};
use crate::refusal::Result;
use crate::text::{Names, Texts};

/// Number of bytes after the quote that usually identify the member.
const HEAD: usize = 8;

/// Members by a hash of their first bytes; those that lost their slot are found by their names.
#[derive(Default)]
struct Heads {
    /// The index of a member, or one that no member has, and the length of its usual form.
    slots: Vec<(u32, u32)>,
    multiplier: u64,
    shift: u32,
}

impl Heads {
    /// Of some hashes, that with the fewest collisions.
    fn new(wholes: &[Label]) -> Self {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let hashes = (0..64).map(|number| Self::with(ODD.wrapping_add(number << 40), wholes));
        hashes.max_by_key(Self::count).unwrap_or_default()
    }

    fn with(multiplier: u64, wholes: &[Label]) -> Self {
        // Eight slots per member: few collisions, and still a small part of the plan.
        let places = (8 * wholes.len()).next_power_of_two();
        let mut heads = Self {
            slots: vec![(u32::MAX, 0); places],
            multiplier,
            shift: 64 - places.trailing_zeros(),
        };
        for (whole, place) in wholes.iter().zip(0..) {
            if let Some(head) = whole.as_bytes()[1..].first_chunk() {
                let slot = heads.slot(*head);
                heads.slots[slot] = (place, u32::try_from(whole.len()).unwrap_or(0));
            }
        }
        heads
    }

    fn count(&self) -> usize {
        let slots = self.slots.iter();
        slots.filter(|(place, _)| *place != u32::MAX).count()
    }

    #[inline]
    fn slot(&self, head: [u8; HEAD]) -> usize {
        let hash = u64::from_le_bytes(head).wrapping_mul(self.multiplier);
        (hash >> (self.shift & 63)) as usize
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

/// The members of an object, with their values.
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
        // TiCDC writes the members of `mysqlType` in random order.
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
    /// Reads the object at a token; refuses a name that occurs twice.
    pub fn read(token: Token, document: &str) -> Result<Self> {
        let mut members = Self::default();
        let mut cursor = Cursor::at(document, token.start + 1)?;
        if !cursor.take(b'}') {
            loop {
                let name = cursor.name()?.text(document);
                let place = members.names.add(name, 0);
                // Python's parser would keep the last of them.
                if place != members.values.len() {
                    return cursor.refuse("two members have one name");
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
    pub fn are(&self, cursor: &mut Cursor) -> Result<bool> {
        cursor.expect(b'{', "expected an object")?;
        if cursor.take(b'}') {
            return Ok(self.values.is_empty());
        }
        let mut met = Met::nothing(self.values.len());
        let (mut expected, mut count) = (0, 0);
        loop {
            let (place, follows) = match self.take_whole(cursor) {
                Some(found) => found,
                None => match self.take_member(expected, cursor)? {
                    Some(place) => (place, cursor.more(b'}')?),
                    None => return Ok(false),
                },
            };
            // A repeated member leaves another one out, which the count alone would not show.
            if !met.is_new(place) {
                return Ok(false);
            }
            expected = place + 1;
            count += 1;
            if !follows {
                return Ok(count == self.values.len());
            }
        }
    }

    /// Takes a member in its usual form, found by its first bytes, and what is behind it.
    ///
    /// Returns whether that is a comma.
    #[inline]
    fn take_whole(&self, cursor: &mut Cursor) -> Option<(usize, bool)> {
        let data = cursor.rest();
        let slot = self.heads.slot(*data.get(1..)?.first_chunk()?);
        let (place, length) = *self.heads.slots.get(slot)?;
        // Known before the member itself is loaded, so that the next one can be looked for.
        let (place, length) = (place as usize, length as usize);
        let next = *data.get(length)?;
        if !self.wholes.get(place)?.begins(data) || !matches!(next, b',' | b'}') {
            return None;
        }
        cursor.advance(length + 1);
        Some((place, next == b','))
    }

    /// Takes a member in any form; None if it equals no member.
    #[inline(never)]
    fn take_member(&self, expected: usize, cursor: &mut Cursor) -> Result<Option<usize>> {
        // Members whose first bytes are equal usually come in their order.
        let usual = self.wholes.get(expected);
        if let Some(whole) = usual.filter(|whole| whole.begins(cursor.rest())) {
            cursor.advance(whole.len());
            return Ok(cursor.ends_value().then_some(expected));
        }
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
