//! The part of a plan that the events of its table have in common.

use serde::Deserialize;

use crate::extra::{self, Extra};
use crate::layout::Layout;
use crate::refusal::{Refusal, Step};
use crate::variant::{Dictionary, object_head};

#[derive(Deserialize)]
pub struct Description {
    database: String,
    schema: Option<String>,
    table: String,
    key_columns: Vec<String>,
    images: ImagesDescription,
    extra: Vec<extra::Description>,
}

/// Places of the columns in the order of images, their names, and these as JSON.
#[derive(Deserialize)]
struct ImagesDescription {
    order: Vec<usize>,
    names: Vec<String>,
    labels: Vec<String>,
}

pub struct EventPlan {
    pub database: String,
    pub schema: Option<String>,
    pub table: String,
    pub key_columns: Vec<String>,
    /// Columns by their order in images.
    pub order: Vec<usize>,
    /// What stands before each value of a JSON image.
    pub labels: Vec<Vec<u8>>,
    pub dictionary: Dictionary,
    /// What stands before the offsets of a variant, by their width.
    pub heads: [Vec<u8>; 3],
    pub extra: Extra,
    /// Bytes of the names in a row.
    pub bytes: usize,
}

impl EventPlan {
    /// About what it takes.
    pub fn all_bytes(&self) -> usize {
        let labels: usize = self.labels.iter().map(|label| label.len() + 40).sum();
        let heads: usize = self.heads.iter().map(Vec::len).sum();
        self.bytes + labels + heads + self.dictionary.bytes()
    }

    pub fn new(description: Description, columns: usize, layout: &Layout) -> Step<Self> {
        let ImagesDescription {
            order,
            names,
            labels,
        } = description.images;
        if order.iter().any(|place| *place >= columns)
            || names.len() != order.len()
            || labels.len() != order.len()
        {
            return Err(Refusal::new("a plan with wrong images", 0));
        }
        let labels = labels
            .iter()
            .enumerate()
            .map(|(at, label)| format!("{}{label}:", if at == 0 { '{' } else { ',' }).into_bytes())
            .collect();
        let ids: Vec<usize> = (0..order.len()).collect();
        let heads = [1, 2, 4].map(|width| {
            let mut head = Vec::new();
            object_head(&ids, width, &mut head);
            head
        });
        let key_bytes: usize = description
            .key_columns
            .iter()
            .map(|key| key.len() + 4)
            .sum();
        Ok(Self {
            bytes: description.database.len()
                + description.schema.as_ref().map_or(0, String::len)
                + description.table.len()
                + key_bytes,
            database: description.database,
            schema: description.schema,
            table: description.table,
            key_columns: description.key_columns,
            order,
            labels,
            dictionary: Dictionary::new(&names),
            heads,
            extra: Extra::new(description.extra, layout)?,
        })
    }
}
