//! Images of events: maps fields of a variant to columns.

use std::collections::HashMap;

use crate::refusal::{Refusal, Result};
use crate::variant::{Items, Variant};
use crate::write::plan::Table;

pub const NO_IMAGE: Refusal = Refusal::new("image is incomplete", 0);

/// A table's plan with its columns by name.
pub struct EventTable {
    pub table: Table,
    places: HashMap<Vec<u8>, usize>,
}

impl EventTable {
    pub fn new(table: Table) -> Self {
        let places = table.columns.iter().enumerate();
        let places = places.map(|(place, column)| (column.name.clone().into_bytes(), place));
        Self {
            places: places.collect(),
            table,
        }
    }
}

impl Fields {
    /// An image's values, and the field index of each column.
    pub fn of<'a>(
        &'a mut self,
        image: Variant<'a>,
        table: &EventTable,
    ) -> Result<(Items<'a>, &'a [usize])> {
        if !image.is_object() {
            return Err(NO_IMAGE);
        }
        let items = image.items()?;
        let count = table.table.columns.len();
        if items.count != count {
            return Err(NO_IMAGE);
        }
        // Images of one writer have the same names in the same order, so the mapping is kept.
        if self.fields.len() != count || self.ids != items.ids || self.metadata != items.metadata {
            self.fields.clear();
            self.fields.resize(count, usize::MAX);
            for number in 0..count {
                let place = *table.places.get(items.name(number)?).ok_or(NO_IMAGE)?;
                self.fields[place] = number;
            }
            if self.fields.contains(&usize::MAX) {
                self.fields.clear();
                return Err(NO_IMAGE);
            }
            self.ids.clear();
            self.ids.extend_from_slice(items.ids);
            self.metadata.clear();
            self.metadata.extend_from_slice(items.metadata);
        }
        Ok((items, &self.fields))
    }

    /// Clears the mapping, as the last image was of another table.
    pub fn clear(&mut self) {
        self.fields.clear();
    }
}

/// The mapping of the last image.
#[derive(Default)]
pub struct Fields {
    metadata: Vec<u8>,
    ids: Vec<u8>,
    /// Field index by column.
    fields: Vec<usize>,
}
