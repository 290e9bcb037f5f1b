//! The plan that a message probably has, before its whole schema key was read.

use std::sync::Arc;

use crate::json::{Cursor, Kind};
use crate::read::envelope::Envelope;
use crate::read::plans::{Plan, PlanTable};
use crate::refusal::Result;

/// The guessed plan, and all plans.
pub struct PlanGuess<'g, 'p> {
    pub plan: &'g mut Option<&'p Arc<Plan>>,
    pub plans: Option<&'p PlanTable>,
}

impl Envelope {
    /// Guesses a plan of the table, once the table is known.
    pub fn guess(&mut self, document: &str, guess: &mut PlanGuess) -> Result<()> {
        // A producer may write the images first; then the previous plan is tried.
        if self.table.kind == Kind::Missing {
            return Ok(());
        }
        self.has_guessed = true;
        let name = self.name(document);
        if guess.plan.is_some_and(|plan| plan.has_name(name)) {
            return Ok(());
        }
        // Images read by another plan's columns are invalid.
        self.clear_images();
        let mut plans = guess.plans.map_or(&[][..], |plans| plans.of(name)).iter();
        *guess.plan = plans.find(|plan| plan.layout == self.layout);
        let Some(plan) = *guess.plan else {
            self.missed = true;
            return Ok(());
        };
        self.missed = false;
        for (part, token) in self.key.iter().enumerate() {
            if token.kind != Kind::Missing {
                let start = token.start - u32::from(token.is_text());
                // Parts that came before the table's name were not compared with this plan.
                self.missed |= !plan.key.has_part(part, &mut Cursor::at(document, start)?);
            }
        }
        Ok(())
    }
}
