//! Concatenated texts, and lookup of names.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use hashbrown::DefaultHashBuilder;

use crate::text::appending::{SHORT, append};

/// Faster than std's map: finds short texts in half the time.
pub type ByText<T> = HashMap<String, T, DefaultHashBuilder>;

/// Whether bytes are equal, without a call for lengths that are usual for names.
#[inline]
pub fn equal(one: &[u8], other: &[u8]) -> bool {
    fn ends<const N: usize>(one: &[u8], other: &[u8]) -> bool {
        one.first_chunk::<N>() == other.first_chunk::<N>()
            && one.last_chunk::<N>() == other.last_chunk::<N>()
    }
    one.len() == other.len()
        && match one.len() {
            0..=3 => one.iter().eq(other),
            // Two loads that overlap compare all bytes of a length without a loop.
            4..=7 => ends::<4>(one, other),
            8..=16 => ends::<8>(one, other),
            _ => one == other,
        }
}

/// Texts by index.
#[derive(Default, PartialEq, Eq, Hash)]
pub struct Texts {
    pub text: String,
    /// Ends of texts of less than 4 GiB in total, like documents; a small type saves cache.
    ends: Vec<u32>,
}

impl Texts {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends
            .push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }

    pub fn ends(&self) -> impl Iterator<Item = usize> {
        self.ends.iter().map(|end| *end as usize)
    }

    fn span(&self, place: usize) -> Option<(usize, usize)> {
        let end = *self.ends.get(place)?;
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        Some((start as usize, end as usize))
    }

    pub fn get(&self, place: usize) -> Option<&str> {
        let (start, end) = self.span(place)?;
        Some(&self.text[start..end])
    }

    pub fn bytes_of(&self, place: usize) -> Option<&[u8]> {
        let (start, end) = self.span(place)?;
        self.text.as_bytes().get(start..end)
    }

    /// Adds room after the last text, so that `append` can copy it like the others.
    pub fn pad(&mut self) {
        self.text.push_str(&" ".repeat(SHORT));
    }

    #[inline]
    pub fn append(&self, place: usize, out: &mut Vec<u8>) {
        if let Some((start, end)) = self.span(place) {
            append(self.text.as_bytes(), start, end, out);
        }
    }

    #[inline]
    fn is(&self, place: usize, bytes: &[u8]) -> bool {
        self.bytes_of(place).is_some_and(|text| equal(text, bytes))
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&self.ends[..])
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|place| self.get(place))
    }
}

/// Distinct names, by index.
#[derive(Default)]
pub struct Names {
    pub texts: Texts,
    /// Index of a name plus one, by hash with open addressing; at least half of the slots are 0.
    slots: Vec<u32>,
}

// Names come from messages: with a constant seed, a hostile table could make all its columns
// collide.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));

/// Multiplies two numbers, and folds the product.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    let low = product as u64;
    low ^ (product >> 64) as u64
}

fn hash(name: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = *SEED ^ name.len() as u64;
    // The last eight bytes may overlap the words before: no loop over the rest.
    // May hash some bytes twice.
    let last = if let Some(last) = name.last_chunk::<8>() {
        for chunk in name[..name.len() - 1].chunks_exact(8) {
            let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
            state = fold(state ^ word, MULTIPLIER);
        }
        u64::from_le_bytes(*last)
    } else if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
    } else {
        name.iter()
            .fold(0, |last, byte| last << 8 | u64::from(*byte))
    };
    fold(state ^ last, MULTIPLIER)
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Names {}

impl Hash for Names {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.texts.hash(state);
    }
}

impl Names {
    pub fn clear(&mut self) {
        if !self.texts.is_empty() {
            self.texts.text.clear();
            self.texts.ends.clear();
            self.slots.clear();
        }
    }

    pub fn find(&self, name: impl AsRef<[u8]>) -> Option<usize> {
        let name = name.as_ref();
        let places = self.slots.len().checked_sub(1)?;
        let mut at = hash(name) as usize;
        loop {
            let place = (self.slots[at & places] as usize).checked_sub(1)?;
            if self.texts.is(place, name) {
                return Some(place);
            }
            at = at.wrapping_add(1);
        }
    }

    /// The index of a name, which is usually the expected one.
    pub fn find_from(&self, expected: usize, name: &[u8]) -> Option<usize> {
        if self.texts.is(expected, name) {
            return Some(expected);
        }
        self.find(name)
    }

    /// The number of a name, counted from `first`; adds new names.
    pub fn add(&mut self, name: &str, first: usize) -> usize {
        if let Some(place) = self.find(name) {
            return first + place;
        }
        let place = self.texts.len();
        self.texts.push(name);
        // Half of the slots stay empty, so that a search for an unknown name ends soon.
        if 2 * self.texts.len() > self.slots.len() {
            let places = (2 * self.texts.len()).next_power_of_two().max(8);
            self.slots.clear();
            self.slots.resize(places, 0);
            for place in 0..self.texts.len() {
                self.insert(place);
            }
        } else {
            self.insert(place);
        }
        first + place
    }

    fn insert(&mut self, place: usize) {
        let places = self.slots.len() - 1;
        let name = self.texts.bytes_of(place).unwrap_or_default();
        let mut at = hash(name) as usize;
        while self.slots[at & places] != 0 {
            at = at.wrapping_add(1);
        }
        {
            self.slots[at & places] = place as u32 + 1;
        }
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        self.texts.bytes() + size_of_val(&self.slots[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes() {
        let bytes: Vec<u8> = (0..40).collect();
        for length in 0..bytes.len() {
            let one = &bytes[..length];
            assert!(equal(one, one));
            assert!(!equal(one, &bytes[..=length]));
            for place in 0..length {
                let mut other = one.to_vec();
                other[place] ^= 1;
                assert!(!equal(one, &other), "{length} {place}");
            }
        }
    }
}
