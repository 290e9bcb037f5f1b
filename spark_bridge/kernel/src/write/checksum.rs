//! The checksum of a row's columns as TiDB computes it, in TiCDC's Simple Protocol.
//!
//! The Python equivalent is `cdcfmt_simple/encode.py`.

use crate::avro::encode_long;
use crate::plan::Image;
use crate::refusal::{Refusal, Result};
use crate::values::Offsets;
use crate::variant::{Cell, MISFIT};
use crate::write::digits::integer;
use crate::write::json_text;
use crate::write::message::Row;
use crate::write::partition::crc32;
use crate::write::plan::{Checksum, Summed, SummedKind, Table, Wire};

const UNUSUAL: Refusal = Refusal::new("unsupported checksum", 0);
const VERSION: i64 = 2;

impl Checksum {
    /// Appends the event's checksum, or a computed one.
    pub fn append(
        &self,
        row: &impl Row,
        table: &Table,
        wire: Wire,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (version, corrupted, current, previous) = match row.facts().of_extra("checksum")? {
            Some(came @ Cell::Nested(object)) if object.is_object() => {
                // JSON repeats the object that came with the event, digit by digit.
                if wire != Wire::Avro {
                    let items = object.items()?;
                    for number in 0..items.count {
                        if !matches!(items.value(number)?.cell()?, Cell::Int(_) | Cell::Bool(_)) {
                            return Err(UNUSUAL);
                        }
                    }
                    return json_text::document(came, out);
                }
                let items = object.items()?;
                let number = |name| match items.find(name)?.ok_or(UNUSUAL)?.cell()? {
                    Cell::Int(number) => Ok(number),
                    _ => Err(UNUSUAL),
                };
                let Cell::Bool(corrupted) = items.find("corrupted")?.ok_or(UNUSUAL)?.cell()? else {
                    return Err(UNUSUAL);
                };
                let numbers = (number("current")?, number("previous")?);
                (number("version")?, corrupted, numbers.0, numbers.1)
            }
            Some(Cell::Other) => return Err(UNUSUAL),
            _ => {
                let current = self.of(row, Image::After, table, scratch)?;
                let previous = self.of(row, Image::Before, table, scratch)?;
                (VERSION, false, current.into(), previous.into())
            }
        };
        if wire == Wire::Avro {
            encode_long(version, out);
            out.push(corrupted.into());
            encode_long(current, out);
            encode_long(previous, out);
            return Ok(());
        }
        out.extend_from_slice(b"{\"version\":2,\"corrupted\":false,\"current\":");
        integer(current, out);
        out.extend_from_slice(b",\"previous\":");
        integer(previous, out);
        out.push(b'}');
        Ok(())
    }

    fn of(
        &self,
        row: &impl Row,
        image: Image,
        table: &Table,
        scratch: &mut Vec<u8>,
    ) -> Result<u32> {
        let mut sum = 0;
        if !row.has(image) {
            return Ok(sum);
        }
        let utc = Offsets::utc();
        for Summed { place, kind } in &self.columns {
            let cell = row.cell(image, *place)?;
            if cell == Cell::Null {
                continue;
            }
            let printer = &table.columns[*place].printer;
            scratch.clear();
            // A value that cannot be printed has no checksum.
            // TiDB computes checksums of TIMESTAMPs in UTC, whatever zone the message has.
            printer.plain(cell, &utc, scratch)?;
            sum = match (kind, cell) {
                (SummedKind::Number, cell) => {
                    let number = printer.integer(cell)? as u64;
                    crc32(&number.to_le_bytes(), sum)
                }
                (SummedKind::Float, Cell::Single(value)) => double(value.into(), sum),
                // A FLOAT is summed as the double of its 32 bits.
                (SummedKind::Float, Cell::Double(value)) => double((value as f32).into(), sum),
                (SummedKind::Double, Cell::Double(value)) => double(value, sum),
                (SummedKind::Text, _) => {
                    let length = u32::try_from(scratch.len()).map_err(|_| MISFIT)?;
                    crc32(scratch, crc32(&length.to_le_bytes(), sum))
                }
                _ => return Err(MISFIT),
            };
        }
        Ok(sum)
    }
}

fn double(value: f64, sum: u32) -> u32 {
    crc32(&value.to_le_bytes(), sum)
}
