//! The part of a plan that all events of a table share.

use std::sync::Arc;

use serde::Deserialize;

use crate::plan::Layout;
use crate::pool::Pool;
use crate::read::plans::extra::{self, Extra};
use crate::refusal::{Refusal, Result};
use crate::text::Texts;
use crate::variant::Dictionary;
use crate::variant::encode::object_head;

/// The part as described by the bridge.
#[derive(Deserialize)]
pub struct Description {
    key_columns: Vec<String>,
    images: ImagesDescription,
    extra: Vec<extra::Description>,
    columns: Vec<ShownColumn>,
}

/// A column of the table, as in the column `columns` of events.
#[derive(PartialEq, Eq, Hash, Deserialize)]
pub struct ShownColumn {
    pub name: String,
    pub source_type: String,
    pub nullable: Option<bool>,
    pub key: Option<bool>,
}

impl ShownColumn {
    /// Its bytes in a row.
    fn bytes(&self) -> usize {
        self.name.len() + self.source_type.len() + 10
    }
}

/// The order of columns in images, and their names, also as JSON.
#[derive(Deserialize)]
struct ImagesDescription {
    order: Vec<usize>,
    names: Vec<String>,
    labels: Vec<String>,
}

/// How to show a table's rows as events.
#[derive(PartialEq, Eq, Hash)]
pub struct EventPlan {
    pub key_columns: Vec<String>,
    /// Indexes of columns in the order of images.
    pub order: Vec<usize>,
    /// The text before each value in a JSON image.
    pub labels: Texts,
    pub dictionary: Dictionary,
    /// The bytes before the offsets of a variant, by width of the offsets.
    pub heads: [Vec<u8>; 3],
    pub extra: Arc<Extra>,
    /// Empty if events do not show columns.
    pub columns: Vec<ShownColumn>,
    /// Bytes of key names and columns in a row.
    pub name_bytes: usize,
}

impl EventPlan {
    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let heads: usize = self.heads.iter().map(Vec::len).sum();
        let keys = self.name_bytes + size_of_val(&self.key_columns[..]);
        keys + size_of_val(&self.columns[..])
            + size_of_val(&self.order[..])
            + self.labels.bytes()
            + heads
            + self.dictionary.bytes()
    }

    pub fn new(
        description: Description,
        columns: usize,
        layout: &Layout,
        extras: &mut Pool<Extra>,
    ) -> Result<Self> {
        let ImagesDescription {
            order,
            names,
            labels,
        } = description.images;
        if order.iter().any(|place| *place >= columns)
            || names.len() != order.len()
            || labels.len() != order.len()
        {
            return Err(Refusal::new("plan has wrong images", 0));
        }
        let mut before = Texts::default();
        for (at, label) in labels.iter().enumerate() {
            before.push(&format!("{}{label}:", if at == 0 { '{' } else { ',' }));
        }
        // Labels are copied for each value of each row.
        before.pad();
        let ids: Vec<usize> = (0..order.len()).collect();
        // Which width is needed depends on the row's bytes; the names are always the same.
        let heads = [1, 2, 4].map(|width| {
            let mut head = Vec::new();
            object_head(&ids, width, &mut head);
            head
        });
        let keys = description.key_columns.iter().map(|key| key.len() + 4);
        let columns = description.columns.iter().map(ShownColumn::bytes);
        Ok(Self {
            name_bytes: keys.sum::<usize>() + columns.sum::<usize>(),
            columns: description.columns,
            key_columns: description.key_columns,
            order,
            labels: before,
            dictionary: Dictionary::new(&names),
            heads,
            extra: extras.share(Extra::new(description.extra, layout)?),
        })
    }
}
