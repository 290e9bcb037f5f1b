//! The partition of a row; the Python equivalent is `cdcfmt_core/partitioning.py`.

use crate::plan::Image;
use crate::refusal::{Refusal, Result};
use crate::write::key_text;
use crate::write::message::Row;
use crate::write::plan::{PartitionBy, Partitions, Table};

const NO_COLUMN: Refusal = Refusal::new("table lacks a column of the partitioner", 0);
const NO_COMMIT_TS: Refusal = Refusal::new("row has no commit_ts", 0);

impl Partitions {
    /// The partition of a row; `text` is a buffer.
    pub fn of(&self, row: &impl Row, table: &Table, text: &mut Vec<u8>) -> Result<i32> {
        let number = match &self.by {
            _ if self.count == 1 => 0,
            PartitionBy::CommitTs => {
                let commit_ts = row.facts().commit_ts.ok_or(NO_COMMIT_TS)?;
                u32::try_from(commit_ts.rem_euclid(self.count.into())).map_err(|_| NO_COLUMN)?
            }
            PartitionBy::Table => hash(row, table, [].into_iter(), text)? % self.count,
            PartitionBy::Key => hash(row, table, table.keys.iter().copied(), text)? % self.count,
            PartitionBy::Columns(names) => {
                let place =
                    |name: &String| table.columns.iter().position(|column| column.name == *name);
                let places: Option<Vec<usize>> = names.iter().map(place).collect();
                let places = places.ok_or(NO_COLUMN)?;
                hash(row, table, places.into_iter(), text)? % self.count
            }
        };
        i32::try_from(number).map_err(|_| NO_COLUMN)
    }
}

/// Hash of the table's name and the values of columns.
fn hash(
    row: &impl Row,
    table: &Table,
    places: impl Iterator<Item = usize>,
    text: &mut Vec<u8>,
) -> Result<u32> {
    let image = match row.has(Image::After) {
        true => Image::After,
        false => Image::Before,
    };
    text.clear();
    // Joined as in Python: both must choose the same partition.
    text.extend_from_slice(table.name.join("\0").as_bytes());
    for place in places {
        let column = &table.columns[place];
        text.push(0);
        text.extend_from_slice(column.name.as_bytes());
        text.push(0);
        key_text::append(&column.printer, row.cell(image, place)?, text)?;
    }
    Ok(crc32(text, 0))
}

// Keys are short: a table of 1 KiB is fast enough without another crate.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = value >> 1 ^ if value & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// As in zlib; `sum` is the checksum of the data before.
pub fn crc32(data: &[u8], sum: u32) -> u32 {
    !data.iter().fold(!sum, |value, byte| {
        value >> 8 ^ TABLE[usize::from(value.to_le_bytes()[0] ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum() {
        assert_eq!(crc32(b"56789", crc32(b"1234", 0)), 0xcbf4_3926);
    }
}
