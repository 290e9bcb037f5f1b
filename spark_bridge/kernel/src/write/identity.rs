//! The identity of an event's table: names, keys, columns and protocol, as bytes.

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, ListArray, StringArray};

use crate::write::arrow::{bytes, span};

/// The columns `columns` and `key_columns` of all rows of a batch.
pub struct Described {
    pub key_columns: Option<ListArray>,
    keys: Option<StringArray>,
    columns: ListArray,
    names: StringArray,
    source_types: StringArray,
    nullable: Option<BooleanArray>,
    key: Option<BooleanArray>,
}

impl Described {
    /// None if columns have other types.
    pub fn new(columns: ListArray, key_columns: Option<ListArray>) -> Option<Self> {
        let items = columns.values().as_struct_opt()?.clone();
        let text = |name| items.column_by_name(name)?.as_string_opt().cloned();
        let flag = |name| match items.column_by_name(name) {
            None => Some(None),
            Some(array) => array.as_boolean_opt().cloned().map(Some),
        };
        let keys = match &key_columns {
            None => None,
            Some(lists) => Some(lists.values().as_string_opt()?.clone()),
        };
        // A NULL in place of a column has no name to compare.
        if items.null_count() > 0 {
            return None;
        }
        Some(Self {
            names: text("name")?,
            source_types: text("source_type")?,
            nullable: flag("nullable")?,
            key: flag("key")?,
            keys,
            columns,
            key_columns,
        })
    }

    /// Appends a row's columns and keys; None if it has no columns.
    pub fn append(&self, row: usize, out: &mut Vec<u8>) -> Option<()> {
        if let (Some(lists), Some(keys)) = (&self.key_columns, &self.keys) {
            texts(keys, span(lists, row).unwrap_or_default(), out)?;
        }
        let items = span(&self.columns, row)?;
        texts(&self.names, items.clone(), out)?;
        texts(&self.source_types, items.clone(), out)?;
        for flags in [&self.nullable, &self.key].into_iter().flatten() {
            for item in items.clone() {
                out.push(match flags.is_null(item) {
                    true => 2,
                    false => flags.value(item).into(),
                });
            }
        }
        Some(())
    }
}

/// Appends consecutive texts; None if one is NULL.
fn texts(array: &StringArray, items: std::ops::Range<usize>, out: &mut Vec<u8>) -> Option<()> {
    if array.null_count() > 0 && items.clone().any(|item| array.is_null(item)) {
        return None;
    }
    // Lengths and ends keep apart what concatenation would join: `a`, `bc` and `ab`, `c`.
    out.extend_from_slice(&items.len().to_le_bytes());
    let offsets = array.value_offsets().get(items.start..=items.end)?;
    let first = *offsets.first()?;
    for offset in offsets {
        out.extend_from_slice(&(offset - first).to_le_bytes());
    }
    let place = |offset: &i32| usize::try_from(*offset).ok();
    let data = array.value_data();
    out.extend_from_slice(data.get(place(&first)?..place(offsets.last()?)?)?);
    Some(())
}

/// Appends a text, or a mark for NULL.
pub fn text(array: Option<&StringArray>, row: usize, out: &mut Vec<u8>) {
    match array.and_then(|array| bytes(array, row)) {
        Some(text) => {
            out.extend_from_slice(&text.len().to_le_bytes());
            out.extend_from_slice(text);
        }
        None => out.extend_from_slice(&usize::MAX.to_le_bytes()),
    }
}
