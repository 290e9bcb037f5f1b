//! Texts one behind the other, and names that are found by their texts.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

#[derive(Default, PartialEq, Eq)]
pub struct Texts {
    pub text: String,
    pub ends: Vec<usize>,
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
        self.ends.push(self.text.len());
    }

    pub fn get(&self, place: usize) -> Option<&str> {
        let end = *self.ends.get(place)?;
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        Some(&self.text[start..end])
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|place| self.get(place))
    }
}

/// Names, of which no two are equal, by their numbers.
#[derive(Default)]
pub struct Names {
    pub texts: Texts,
    places: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl Names {
    pub fn clear(&mut self) {
        self.texts.text.clear();
        self.texts.ends.clear();
        self.places.clear();
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        if self.texts.is_empty() {
            return None;
        }
        let is = |place: &usize| self.texts.get(*place) == Some(name);
        self.places.find(self.hasher.hash_one(name), is).copied()
    }

    /// The number of a name, which is mostly the expected one.
    pub fn find_from(&self, expected: usize, name: &str) -> Option<usize> {
        if self.texts.get(expected) == Some(name) {
            return Some(expected);
        }
        self.find(name)
    }

    /// The number of a name, which is added if it is new; they begin at `first`.
    pub fn add(&mut self, name: &str, first: usize) -> usize {
        if let Some(place) = self.find(name) {
            return first + place;
        }
        let place = self.texts.len();
        self.texts.push(name);
        let (texts, hasher) = (&self.texts, &self.hasher);
        let hash = |place: &usize| hasher.hash_one(texts.get(*place).unwrap_or_default());
        self.places
            .insert_unique(hasher.hash_one(name), place, hash);
        first + place
    }

    /// About what they take.
    pub fn bytes(&self) -> usize {
        self.texts.text.len() + 24 * self.texts.len()
    }
}
