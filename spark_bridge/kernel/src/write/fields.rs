//! Images of events: which field of a variant is which column.

use std::collections::HashMap;

use crate::refusal::{Refusal, Step};
use crate::write::plan::Table;
use crate::write::variants::{Items, Variant};

pub const NO_IMAGE: Refusal = Refusal::new("an image that has not all columns", 0);

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
    /// An image's values, and which of them are the columns'.
    pub fn of<'a>(
        &'a mut self,
        image: Variant<'a>,
        table: &EventTable,
    ) -> Step<(Items<'a>, &'a [usize])> {
        if !image.is_object() {
            return Err(NO_IMAGE);
        }
        let items = image.items()?;
        let count = table.table.columns.len();
        if items.count != count {
            return Err(NO_IMAGE);
        }
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

    /// Forgets the last image, which was one of another table.
    pub fn clear(&mut self) {
        self.fields.clear();
    }
}

/// Which field of an image is which column, of the last image.
#[derive(Default)]
pub struct Fields {
    metadata: Vec<u8>,
    ids: Vec<u8>,
    /// By column.
    fields: Vec<usize>,
}
