//! The order of a table's columns in documents.

use crate::json::Label;
use crate::json::{Cursor, Token};
use crate::refusal::Result;
use crate::text::Names;

/// By default, the order of the plan's columns.
#[derive(Default, PartialEq, Eq, Hash)]
pub struct RowOrder {
    /// The columns' names and indexes.
    columns: Vec<(Label, u32)>,
    /// By column, its index in this order.
    ranks: Vec<usize>,
}

impl RowOrder {
    /// The order of a row; the columns that it lacks are the last ones.
    pub fn new(names: &Names, row: Token, document: &str) -> Result<Self> {
        let mut order = Vec::new();
        let mut is_missing = vec![true; names.texts.len()];
        let mut cursor = Cursor::at(document, row.start)?;
        cursor.take(b'[');
        if cursor.take(b'{') && !cursor.take(b'}') {
            while let Some(place) = names.find(cursor.name()?.text(document)) {
                if std::mem::replace(&mut is_missing[place], false) {
                    order.push(place);
                }
                cursor.value()?;
                if !cursor.more(b'}')? {
                    break;
                }
            }
        }
        // Partial images lack columns; they keep a rank, so that each column has one.
        order.extend((0..names.texts.len()).filter(|place| is_missing[*place]));
        let mut ranks = vec![0; order.len()];
        for (rank, place) in order.iter().enumerate() {
            ranks[*place] = rank;
        }
        let columns = order.into_iter().map(|place| {
            let name = names.texts.get(place).unwrap_or_default();
            (Label::of_name(name), u32::try_from(place).unwrap_or(0))
        });
        Ok(Self {
            columns: columns.collect(),
            ranks,
        })
    }

    /// The columns from a rank on.
    pub fn from(&self, rank: usize) -> &[(Label, u32)] {
        self.columns.get(rank..).unwrap_or_default()
    }

    pub fn rank(&self, column: usize) -> usize {
        self.ranks.get(column).copied().unwrap_or(column)
    }

    pub fn column(&self, rank: usize) -> usize {
        let column = self.columns.get(rank);
        column.map_or(rank, |(_, place)| *place as usize)
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(|(label, _)| 8 + label.bytes());
        columns.sum::<usize>() + size_of_val(&self.ranks[..])
    }
}
