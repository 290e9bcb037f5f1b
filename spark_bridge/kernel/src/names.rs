//! The names of a variant's metadata, by their numbers.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

#[derive(Default)]
pub struct Names {
    /// All names, one behind the other.
    pub text: String,
    pub ends: Vec<usize>,
    places: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl Names {
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.places.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|place| of(&self.text, &self.ends, place))
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        if self.ends.is_empty() {
            return None;
        }
        let is = |place: &usize| of(&self.text, &self.ends, *place) == name;
        self.places.find(self.hasher.hash_one(name), is).copied()
    }

    /// The number of a name, which is added if it is new; they begin at `first`.
    pub fn add(&mut self, name: &str, first: usize) -> usize {
        if let Some(place) = self.find(name) {
            return first + place;
        }
        let place = self.ends.len();
        self.text.push_str(name);
        self.ends.push(self.text.len());
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        let hash = |place: &usize| hasher.hash_one(of(text, ends, *place));
        self.places
            .insert_unique(hasher.hash_one(name), place, hash);
        first + place
    }
}

fn of<'a>(text: &'a str, ends: &[usize], place: usize) -> &'a str {
    let start = if place == 0 { 0 } else { ends[place - 1] };
    &text[start..ends[place]]
}
