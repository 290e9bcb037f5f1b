//! Reads a JSON document's envelope in one pass, with a guess of its plan.

use std::ops::Range;
use std::sync::Arc;

use crate::connect::{self, Form};
use crate::json::{Cursor, Kind, Token};
use crate::plan::{Layout, Member};
use crate::read::envelope::Envelope;
use crate::read::plan_guess::PlanGuess;
use crate::read::plans::{Plan, PlanTable};
use crate::refusal::{Refusal, Result};

impl Envelope {
    /// Reads an object of a document: an event's key or value.
    pub fn part(
        &mut self,
        layout: &Layout,
        (members, number): (&[Member], usize),
        cursor: &mut Cursor,
        guess: Option<&Arc<Plan>>,
    ) -> Result<()> {
        // The guess needs no part of the schema key.
        self.missed = guess.is_none() || !layout.parts.is_empty();
        self.has_guessed = true;
        let mut plan = guess;
        let mut guess = PlanGuess {
            plan: &mut plan,
            plans: None,
        };
        self.object(layout, members, number, cursor, &mut guess)
    }

    /// Reads a whole document.
    ///
    /// If names come before all that a plan reads, the guess is taken from `plans`.
    /// `is_payload`: the document is a payload, whose schema was that of the guess.
    pub fn read<'p>(
        &mut self,
        layout: &Layout,
        document: &str,
        guess: &mut Option<&'p Arc<Plan>>,
        plans: Option<&'p PlanTable>,
        is_payload: bool,
    ) -> Result<()> {
        self.start(layout);
        // The schema key of another layout has different parts.
        *guess = guess.filter(|plan| plan.layout == layout.number);
        self.missed = guess.is_none();
        self.has_guessed = plans.is_none();
        let mut cursor = Cursor::new(document)?;
        let guess = &mut PlanGuess { plan: guess, plans };
        let Some(part) = layout.schema else {
            self.object(layout, &layout.members, 0, &mut cursor, guess)?;
            return cursor.end();
        };
        let known = guess.plan.and_then(|plan| plan.key.bytes_of_part(part));
        // Payloads have their names after the images.
        self.has_guessed = true;
        let form = if is_payload {
            Form::Bare
        } else {
            connect::open(&mut cursor, known)?
        };
        let start = cursor.position();
        if let Form::SchemaFirst(schema) = form {
            self.missed |= known != Some(schema.text(document));
        }
        self.object(layout, &layout.members, 0, &mut cursor, guess)?;
        // Only the images: a text that rows lack, such as a placeholder, stands for a value.
        if layout.has_foreign_text(self.images_text(document, start..cursor.position())) {
            return Err(Refusal::new("unexpected text between fields", start));
        }
        let schema = connect::close(&mut cursor, form)?;
        if is_payload {
            self.key[part] = Token::ELSEWHERE;
            return Ok(());
        }
        self.missed |= schema.kind != Kind::Missing && known != Some(schema.text(document));
        self.key[part] = schema;
        Ok(())
    }

    /// The part of an envelope that has its images, or the whole if they are not objects.
    fn images_text<'a>(&self, document: &'a str, envelope: Range<usize>) -> &'a str {
        let images = [self.before, self.after];
        let is_known = |image: &Token| matches!(image.kind, Kind::Object | Kind::Null);
        if !images.iter().all(is_known) {
            return &document[envelope];
        }
        let images = images.iter().filter(|image| image.kind == Kind::Object);
        let start = images.clone().map(|image| image.start).min().unwrap_or(0);
        let end = images.map(|image| image.end).max().unwrap_or(0);
        &document[start as usize..end as usize]
    }

    /// Whether the guessed plan's schema key fits completely.
    pub fn guess_fits(&self, plan: &Plan) -> bool {
        !self.missed && plan.key.lacks_parts(&self.key)
    }
}
