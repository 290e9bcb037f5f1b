//! Reads the fields of Avro records, except their images.

use crate::avro::Datum;
use crate::avro::Type;
use crate::plan::{AvroLayout, Layout, Role, Slot};
use crate::read::envelope::previous::PreviousDatum;
use crate::read::envelope::roles::long;
use crate::read::envelope::{Envelope, KEPT_BYTES};
use crate::refusal::Result;

impl Envelope {
    /// Reads the fields of a message up to the first image; returns the index of its slot.
    ///
    /// `prints`: objects and lists are needed for `extra`.
    pub fn read_fields(
        &mut self,
        layout: &Layout,
        avro: &AvroLayout,
        datum: &mut Datum,
        prints: bool,
        document: &mut Vec<u8>,
    ) -> Result<usize> {
        self.start(layout);
        for (place, slot) in avro.slots.iter().enumerate() {
            if slot.is_image() {
                return Ok(place);
            }
            self.field(layout, slot, datum, prints, document)?;
        }
        datum.refuse("record without images")
    }

    /// Reads a field that is not an image.
    pub fn field(
        &mut self,
        layout: &Layout,
        slot: &Slot,
        datum: &mut Datum,
        prints: bool,
        document: &mut Vec<u8>,
    ) -> Result<()> {
        // Optional fields are the last ones: a message may end before them.
        if slot.is_optional && datum.is_at_end() {
            return Ok(());
        }
        // Read a second time below, if the map has members of the schema key.
        let (start, mut ahead) = (datum.position(), *datum);
        let is_printed = prints && slot.role == Role::Extra;
        // Parts of `extra` and words of rows are read as text.
        let is_bare = !prints && !matches!(slot.role, Role::Row | Role::Op | Role::IsDeleted);
        let previous = self.previous_values.get(slot.number);
        let token = if let Some(previous) = previous.filter(|previous| previous.is_next(datum)) {
            previous.token(is_printed, document)
        } else if let Some(token) = slot.type_.scalar(datum, is_bare, document)? {
            token
        } else {
            // After the index of the branch, if it is a union.
            *datum = Datum::clone(&ahead);
            let begin = document.len();
            if is_printed {
                slot.type_.print(datum, false, document)?;
            } else {
                slot.type_.skip(datum)?;
            }
            // Grows as slots are met: most layouts have few nested fields.
            if slot.number >= self.previous_values.len() {
                self.previous_values
                    .resize_with(slot.number + 1, PreviousDatum::default);
            }
            let previous = &mut self.previous_values[slot.number];
            previous.set(datum.since(start), &document[begin..]);
            document.truncate(begin);
            let token = previous.token(is_printed, document);
            if previous.size() > KEPT_BYTES {
                *previous = PreviousDatum::default();
            }
            token
        };
        if let Some(least) = slot.least
            && long(token, document).is_none_or(|number| number != 0 && number < least)
        {
            return datum.refuse("number is too small");
        }
        if slot.role == Role::Same {
            self.schema_key.extend_from_slice(datum.since(start));
        }
        if !slot.key_names.is_empty() {
            self.key_of_map(slot, &mut ahead)?;
        }
        if let Some(leaf) = slot.leaf {
            self.leaves[leaf] = token;
        }
        self.member(layout, slot.role, 0, token, document)
    }

    /// Adds a map's values of the key names to the schema key.
    fn key_of_map(&mut self, slot: &Slot, datum: &mut Datum) -> Result<()> {
        let Type::Map(inner) = &slot.type_ else {
            return datum.refuse("members of the schema key are not in a map");
        };
        let mut found = vec![None; slot.key_names.len()];
        let mut all = 0;
        loop {
            let count = datum.block(all)?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                let name = datum.text()?;
                let start = datum.position();
                inner.skip(datum)?;
                let place = slot.key_names.iter().position(|known| known == name);
                if let Some(place) = place
                    && found[place].replace(datum.since(start)).is_some()
                {
                    return datum.refuse("two members have one name");
                }
            }
            all += count;
        }
        for value in found {
            // A missing member is not an empty one.
            self.schema_key.push(u8::from(value.is_some()));
            self.schema_key.extend_from_slice(value.unwrap_or_default());
        }
        Ok(())
    }
}
