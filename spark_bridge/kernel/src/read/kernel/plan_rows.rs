//! Rows by the plan with a message's schema key.

use std::sync::Arc;

use simdutf8::basic::from_utf8;

use crate::connect;
use crate::plan::{Op, Role};
use crate::read::batch::Place;
use crate::read::kernel::{Kernel, Outcome};
use crate::read::plans::Plan;
use crate::read::plans::RowPlan;
use crate::refusal::{Refusal, Result};

/// The position of a part of a message's value.
pub fn place_of(part: &str, value: &[u8]) -> isize {
    let place = part.as_ptr().addr().wrapping_sub(value.as_ptr().addr());
    isize::try_from(place).unwrap_or(0)
}

impl Kernel {
    /// The plan of the previous message, if it is of the same table.
    pub(super) fn guess_for(&self, document: &str) -> Option<&Arc<Plan>> {
        let guess = self.guess.as_ref();
        guess.filter(|plan| {
            plan.layout == self.envelope.layout && plan.has_name(self.envelope.name(document))
        })
    }

    /// Guesses a plan of the table once its name was read.
    pub(super) fn guess_by_name(&mut self, document: &str) {
        if self.guess_for(document).is_none() {
            let plans = self.plans.of(self.envelope.name(document));
            self.guess = plans.first().cloned();
        }
    }

    /// Appends the rows of the envelope by a plan with its schema key.
    pub(super) fn by_plan(
        &mut self,
        layout: usize,
        op: Op,
        document: &str,
        key: Option<&str>,
        place: Place,
    ) -> Result<Outcome> {
        if let Some(plan) = self.guess_for(document).cloned() {
            let fits = self.envelope.guess_fits(&plan) && plan.holds(&self.envelope);
            if fits
                && plan.key.has_message_key(key)?
                && self.images(&plan.rows, layout, op, document)?
            {
                self.rows(&plan, layout, op, document, place)?;
                return Ok(Outcome::Read);
            }
        }
        // Copies of pointers, as plans are used while the envelope changes; tables have few plans.
        let plans = self.plans.of(self.envelope.name(document)).to_vec();
        let mut read_by = self.guess.as_ref().map(|plan| Arc::clone(&plan.rows));
        for plan in plans {
            // Images read by another plan's columns are invalid for this plan.
            if !read_by.is_some_and(|rows| Arc::ptr_eq(&rows, &plan.rows)) {
                self.envelope.clear_images();
            }
            read_by = Some(Arc::clone(&plan.rows));
            if plan.fits(&self.envelope, document)
                && plan.key.has_message_key(key)?
                && self.images(&plan.rows, layout, op, document)?
            {
                self.rows(&plan, layout, op, document, place)?;
                self.guess = Some(plan);
                return Ok(Outcome::Read);
            }
        }
        Ok(Outcome::Unknown)
    }

    /// Reads a message with the schema and the plan of the previous message: parses only the
    /// payload. None for any other message.
    pub(super) fn payload(
        &mut self,
        value: &[u8],
        key: Option<&[u8]>,
        place: Place,
    ) -> Result<Option<Outcome>> {
        let guess = self.guess.clone();
        let Some(plan) = guess.filter(|plan| plan.layout == self.layout) else {
            return Ok(None);
        };
        let (at, layout) = (self.layout, &self.settings.layouts[self.layout]);
        let schema = layout.schema.and_then(|part| plan.key.bytes_of_part(part));
        let payload = schema.and_then(|schema| connect::payload_beside(value, schema));
        let document = payload.and_then(|payload| from_utf8(payload).ok());
        let Some(document) = document.filter(|_| value.len() <= self.settings.max_message_bytes)
        else {
            return Ok(None);
        };
        let envelope = &mut self.envelope;
        let read = envelope.read(layout, document, &mut Some(&plan), None, true);
        let fits = read.is_ok()
            && envelope.has_times()
            && envelope.guess_fits(&plan)
            && plan.has_name(envelope.name(document))
            && plan.holds(envelope);
        let Some(op) = envelope.op.filter(|_| fits) else {
            return Ok(None);
        };
        if !self.is_wanted()? {
            return Ok(Some(Outcome::Skipped));
        }
        if !plan.key.has_message_key(self.keys(key)?)?
            || !self.images(&plan.rows, at, op, document)?
        {
            return Ok(None);
        }
        self.current.document_at = place_of(document, value);
        self.rows(&plan, at, op, document, place)?;
        Ok(Some(Outcome::Read))
    }

    /// Finds the values of all images; false if the columns differ from the plan's.
    fn images(&mut self, plan: &RowPlan, layout: usize, op: Op, document: &str) -> Result<bool> {
        let layout = &self.settings.layouts[layout];
        let envelope = &mut self.envelope;
        let (before, after) = (&mut envelope.images_before, &mut envelope.images_after);
        let (of_before, of_after) = (
            layout.whole(op, Role::Before),
            layout.whole(op, Role::After),
        );
        let both = [
            (&mut *after, envelope.after, of_after),
            (&mut *before, envelope.before, of_before),
        ];
        for (images, token, whole) in both {
            let Some(whole) = whole else {
                images.clear();
                continue;
            };
            if !images.is_read
                && !plan.images_at(images, layout.in_lists, whole, token, document)?
            {
                return Ok(false);
            }
        }
        let needed = if of_after.is_some() {
            &*after
        } else {
            &*before
        };
        if !needed.are_whole() {
            return Err(Refusal::new("row has no image", 0));
        }
        if of_after.is_some() && before.count() > 0 && before.count() != after.count() {
            return Err(Refusal::new(
                "before and after have different numbers of images",
                0,
            ));
        }
        if envelope.has_doubtful_nulls(document, layout) {
            return Err(Refusal::new("NULL may stand for an unknown value", 0));
        }
        Ok(true)
    }
}
