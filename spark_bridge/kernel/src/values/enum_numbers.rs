//! Members of an ENUM or SET in columns of numbers: indexes, and bitmaps of their names.
//!
//! Equivalent to `_from_members` in `pyspark_cdcfmt/rows/values.py`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::refusal::{Refusal, Result};
use crate::values::cells::Cells;
use crate::variant::Variants;

/// The number of each name of a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "Description")]
pub struct Numbers {
    by_name: BTreeMap<String, i128>,
    is_set: bool,
}

#[derive(Deserialize)]
struct Description {
    names: Vec<String>,
    is_set: bool,
}

impl From<Description> for Numbers {
    fn from(description: Description) -> Self {
        let Description { names, is_set } = description;
        let number = |place: usize| match is_set {
            // A SET has at most 64 members; a longer list has no numbers beyond.
            true => 1_i128.checked_shl(u32::try_from(place).unwrap_or(127)),
            false => Some(place as i128 + 1),
        };
        let numbers = names.into_iter().enumerate();
        let numbers = numbers.filter_map(|(place, name)| Some((name, number(place)?)));
        Self {
            by_name: numbers.collect(),
            is_set,
        }
    }
}

impl Numbers {
    fn number(&self, text: &str) -> Result<i128> {
        // Members of a SET are distinct in the source, so their numbers add up to the bitmap.
        let found = if self.is_set {
            let numbers = text.split(',').map(|name| self.by_name.get(name));
            numbers.sum::<Option<i128>>()
        } else {
            self.by_name.get(text).copied()
        };
        // The empty text is an invalid ENUM, or a SET without members.
        found
            .or(text.is_empty().then_some(0))
            .ok_or(Refusal::new("text is not a name of the column", 0))
    }

    /// Approximate bytes of its texts.
    pub fn bytes(&self) -> usize {
        self.by_name.keys().map(|name| name.len() + 60).sum()
    }
}

/// A column of numbers that accepts names.
pub struct NumberedCells<'a, C> {
    pub output: &'a mut C,
    pub numbers: &'a Numbers,
}

const WRONG: Refusal = Refusal::new("value is neither a name nor a number of the column", 0);

impl<C: Cells> Cells for NumberedCells<'_, C> {
    fn is_text(&self) -> bool {
        false
    }

    fn push_null(&mut self) -> Result<()> {
        self.output.push_null()
    }

    fn push_integer(&mut self, value: i128) -> Result<()> {
        self.output.push_integer(value)
    }

    fn push_text(&mut self, text: &str) -> Result<()> {
        self.output.push_integer(self.numbers.number(text)?)
    }

    fn push_decimal(&mut self, _: i128, _: u8) -> Result<()> {
        Err(WRONG)
    }

    fn push_float(&mut self, _: f64) -> Result<()> {
        Err(WRONG)
    }

    fn push_boolean(&mut self, _: bool) -> Result<()> {
        Err(WRONG)
    }

    fn push_bytes(&mut self, _: &[u8]) -> Result<()> {
        Err(WRONG)
    }

    fn push_latin1(&mut self, _: &str, _: usize) -> Result<()> {
        Err(WRONG)
    }

    fn push_base64(&mut self, _: &str) -> Result<()> {
        Err(WRONG)
    }

    fn push_date(&mut self, _: i32) -> Result<()> {
        Err(WRONG)
    }

    fn push_datetime(&mut self, _: i64) -> Result<()> {
        Err(WRONG)
    }

    fn push_instant(&mut self, _: i64) -> Result<()> {
        Err(WRONG)
    }

    fn push_time(&mut self, _: i64, _: Option<u32>, _: &mut String) -> Result<()> {
        Err(WRONG)
    }

    fn push_json(&mut self, _: &str, _: &mut Variants) -> Result<()> {
        Err(WRONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(names: &[&str], is_set: bool) -> Numbers {
        let names = names.iter().map(ToString::to_string).collect();
        Description { names, is_set }.into()
    }

    #[test]
    fn names_of_an_enum_have_indexes() {
        let of_enum = numbers(&["small", "large"], false);
        assert_eq!(of_enum.number("large"), Ok(2));
        assert_eq!(of_enum.number(""), Ok(0));
        assert!(of_enum.number("huge").is_err());
        assert_eq!(numbers(&["small", ""], false).number(""), Ok(2));
    }

    #[test]
    fn names_of_a_set_have_bits() {
        let of_set = numbers(&["a", "b", "c"], true);
        assert_eq!(of_set.number("a,c"), Ok(5));
        assert_eq!(of_set.number(""), Ok(0));
        assert!(of_set.number("a,").is_err());
    }
}
