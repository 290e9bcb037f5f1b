//! Rows of messages that are Avro records.

use std::sync::Arc;

use crate::avro::Datum;
use crate::avro::Type;
use crate::json::Kind;
use crate::plan::{Op, Role};
use crate::read::batch::Place;
use crate::read::kernel::{Kernel, Outcome};
use crate::read::plans::Plan;
use crate::refusal::{Reason, Refusal, Result};
use crate::text::utf8;

/// Larger documents are not reused for the next message: one large message must not hold its memory
/// for the rest of the task.
const KEPT_BYTES: usize = 1 << 20;

/// The state of a partially read message.
pub struct Opened {
    pub layout: usize,
    /// The slot of the first image, and its position.
    slot: usize,
    at: usize,
}

impl Kernel {
    /// Reads a message; its texts and numbers are collected in a document, to which tokens refer.
    pub(super) fn record(&mut self, value: &[u8], place: Place) -> Result<Outcome> {
        let mut document = std::mem::take(&mut self.document);
        document.clear();
        let outcome = self.record_in(value, place, &mut document);
        if document.capacity() <= KEPT_BYTES {
            self.document = document;
        }
        outcome
    }

    /// Reads the fields before the images, by the first layout that fits.
    pub(super) fn open_record(&mut self, value: &[u8], document: &mut Vec<u8>) -> Result<Opened> {
        // The document may take 32 bytes per byte: numbers of a message have up to twenty digits.
        if value.len() > self.settings.max_message_bytes || value.len() > u32::MAX as usize / 32 {
            return Err(Refusal::of(
                Reason::Size,
                "message is longer than maxMessageBytes",
                0,
            ));
        }
        let layouts = &self.settings.layouts;
        let mut refusal = Refusal::new("unknown schema header", 0);
        // Usually the previous message's layout fits.
        for step in 0..layouts.len() {
            let at = (self.layout + step) % layouts.len();
            let layout = &layouts[at];
            let (Some(avro), true) = (&layout.avro, value.starts_with(layout.begins.as_bytes()))
            else {
                continue;
            };
            document.clear();
            let mut datum = Datum::at(value, layout.begins.len());
            let prints = self.prints;
            match self
                .envelope
                .read_fields(layout, avro, &mut datum, prints, document)
            {
                Ok(slot) => {
                    self.layout = at;
                    return Ok(Opened {
                        layout: at,
                        slot,
                        at: datum.position(),
                    });
                }
                Err(other) => refusal = other,
            }
        }
        Err(refusal)
    }

    fn record_in(&mut self, value: &[u8], place: Place, document: &mut Vec<u8>) -> Result<Outcome> {
        let opened = self.open_record(value, document)?;
        let Some(op) = self.envelope.op else {
            return Err(Refusal::new("missing operation", 0));
        };
        let text = utf8(document)?;
        if let Some(outcome) = self.refused_by_filters(opened.layout, text)? {
            return Ok(outcome);
        }
        let length = document.len();
        // A clone of the pointer, as the plan is used while the kernel changes.
        let guess = self.guess_for(text).cloned();
        if let Some(plan) = guess
            && self.record_by(&plan, &opened, op, value, document)?
        {
            self.rows(&plan, opened.layout, op, utf8(document)?, place)?;
            return Ok(Outcome::Read);
        }
        document.truncate(length);
        let plans = self.plans.of(self.envelope.name(utf8(document)?)).to_vec();
        // The document ends where the envelope's texts end: another plan reads the images anew.
        for plan in plans {
            document.truncate(length);
            if plan.layout == opened.layout
                && self.record_by(&plan, &opened, op, value, document)?
            {
                self.rows(&plan, opened.layout, op, utf8(document)?, place)?;
                self.guess = Some(plan);
                return Ok(Outcome::Read);
            }
        }
        Ok(Outcome::Unknown)
    }

    /// Reads images and the fields after them; false if the plan does not fit the rows.
    fn record_by(
        &mut self,
        plan: &Arc<Plan>,
        opened: &Opened,
        op: Op,
        value: &[u8],
        document: &mut Vec<u8>,
    ) -> Result<bool> {
        let envelope = &mut self.envelope;
        let layout = &self.settings.layouts[opened.layout];
        let Some(avro) = &layout.avro else {
            return Ok(false);
        };
        // The bytes of all fields that determine the schema: no field is parsed for this.
        if plan.key.record != envelope.schema_key || !plan.holds(envelope) {
            return Ok(false);
        }
        envelope.clear_images();
        let mut datum = Datum::at(value, opened.at);
        for slot in &avro.slots[opened.slot..] {
            if !slot.is_image() {
                envelope.field(layout, slot, &mut datum, self.prints, document)?;
                continue;
            }
            let is_map = match &slot.type_ {
                Type::Union(branches) => {
                    let branch = datum.choice(branches.len())?;
                    match branches[branch].type_ {
                        Type::Null => continue,
                        Type::Map(_) => true,
                        Type::Array(_) => false,
                        _ => return datum.refuse("images have an unexpected form"),
                    }
                }
                _ => return datum.refuse("images have an unexpected form"),
            };
            let images = match slot.role {
                Role::After => &mut envelope.images_after,
                _ => &mut envelope.images_before,
            };
            let tokens = images.begin(plan.rows.columns.len());
            let Some(found) = plan.rows.avro_image(is_map, &mut datum, document, tokens)? else {
                return Ok(false);
            };
            if found == 0 && !is_map {
                // A list without values means no image.
                images.clear();
                continue;
            }
            if found < plan.rows.columns.len() {
                return Ok(false);
            }
            if layout.whole(op, slot.role).is_none() {
                return datum.refuse("unexpected image for the operation");
            }
        }
        // Cut or joined messages would otherwise look like whole ones.
        if !datum.is_at_end() {
            return datum.refuse("unexpected data after the message");
        }
        let needed = match layout.whole(op, Role::After) {
            Some(_) => &envelope.images_after,
            None => &envelope.images_before,
        };
        if !needed.are_whole() {
            return Err(Refusal::new("row has no image", 0));
        }
        Ok(true)
    }

    /// The text and integer fields of the envelope, as JSON.
    pub fn envelope_as_json(&mut self, value: &[u8], key: Option<&[u8]>) -> Result<String> {
        let (layout, document) = self.look(value, key)?;
        let mut members = serde_json::Map::new();
        for (path, leaf) in &self.settings.layouts[layout].leaves {
            let token = self.envelope.leaves[*leaf];
            let text = token.text(&document);
            let value = match token.kind {
                Kind::Text => text.into(),
                Kind::Integer => serde_json::from_str(text).unwrap_or_default(),
                Kind::Long => token.long().into(),
                _ => continue,
            };
            let Some((name, outer)) = path.split_last() else {
                continue;
            };
            let mut inner = &mut members;
            for part in outer {
                let object = inner.entry(part.clone());
                let object = object.or_insert_with(|| serde_json::Map::new().into());
                match object.as_object_mut() {
                    Some(object) => inner = object,
                    None => return Err(Refusal::new("member is not an object", 0)),
                }
            }
            inner.insert(name.clone(), value);
        }
        Ok(serde_json::Value::from(members).to_string())
    }
}
