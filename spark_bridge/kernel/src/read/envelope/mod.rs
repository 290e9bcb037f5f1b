//! The envelope of a JSON document, read in one pass.

mod avro_layout;
mod layout;
mod object;
mod order;
mod roles;
mod unchanged;

pub use avro_layout::AvroLayout;
pub use layout::{Image, Layout, Op, Role};
pub use roles::long;

use std::ops::Range;
use std::sync::Arc;

use crate::connect::{self, Form};
use crate::json::{Cursor, Kind, Token};
use crate::read::envelope::avro_layout::PreviousDatum;
use crate::read::envelope::layout::Member;
use crate::read::envelope::order::Order;
use crate::read::envelope::unchanged::Unchanged;
use crate::read::plans::Images;
use crate::read::plans::Plan;
use crate::read::plans::PlanCache;
use crate::read::plans::{NameRef, PlanTable};
use crate::refusal::{Refusal, Result};

/// Larger objects are not kept for the next message.
pub const KEPT_BYTES: usize = 64 << 10;

/// Positions of the parts of an envelope in its document.
///
/// Most messages have the table of the previous one. Its plan is the guess: as long as all parts
/// of the schema key are equal, images are read at once.
#[derive(Default)]
pub struct Envelope {
    /// The index of the document's layout.
    pub layout: usize,
    pub database: Token,
    pub schema: Token,
    pub table: Token,
    pub op: Option<Op>,
    pub commit_ts: Option<i64>,
    pub source_time: Option<i64>,
    pub other_time: Option<i64>,
    pub position: Option<i64>,
    pub before: Token,
    pub after: Token,
    /// The before image is that of a deleted row.
    pub deleted: bool,
    pub has_row_id: bool,
    pub has_row_word: bool,
    /// The parts of the schema key, by index.
    pub key: Vec<Token>,
    /// The parts for Avro, concatenated.
    pub schema_key: Vec<u8>,
    /// A part of the key differs from the guessed plan's.
    pub missed: bool,
    /// The guess is a plan of the table, or cache is impossible.
    pub has_guessed: bool,
    /// All members by index; a member read by the guess has no kind.
    pub leaves: Vec<Token>,
    pub images_before: Images,
    pub images_after: Images,
    pub order: Order,
    pub unchanged: Unchanged,
    /// The last unread object.
    pub kept: String,
    /// The same for Avro, by slot.
    pub previous_values: Vec<PreviousDatum>,
}

impl Envelope {
    /// Resets for the next document.
    pub fn start(&mut self, layout: &Layout) {
        if self.layout != layout.number {
            self.previous_values.clear();
        }
        self.layout = layout.number;
        self.order.begin(layout);
        self.unchanged.begin(layout);
        self.schema_key.clear();
        self.key.clear();
        self.key.resize(layout.parts.len(), Token::MISSING);
        self.leaves.clear();
        self.leaves.resize(layout.leaves.len(), Token::MISSING);
        for name in [&mut self.database, &mut self.schema, &mut self.table] {
            *name = Token::MISSING;
        }
        (self.before, self.after) = (Token::MISSING, Token::MISSING);
        (self.deleted, self.has_row_id, self.has_row_word) = (false, false, false);
        (self.op, self.commit_ts, self.source_time) = (None, None, None);
        (self.other_time, self.position) = (None, None);
        self.clear_images();
    }

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
        let mut cache = PlanCache {
            plan: &mut plan,
            plans: None,
        };
        self.object(layout, members, number, cursor, &mut cache)
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
        let mut cache = PlanCache { plan: guess, plans };
        let guess = &mut cache;
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

    /// The part of an envelope that has its images, or the whole if they are no objects.
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

    pub fn clear_images(&mut self) {
        self.images_before.clear();
        self.images_after.clear();
    }

    /// Whether the word of rows was read, or may be missing.
    pub fn is_row(&self, layout: &Layout) -> bool {
        self.has_row_word || layout.row_words.is_empty() || layout.may_lack_word()
    }

    /// Whether a row lacks the time that it needs: any time, if messages have no commit_ts; none,
    /// if they have no times.
    pub fn lacks_time(&self, layout: &Layout) -> bool {
        let lacks_other = self.other_time.is_none() || layout.has_commit_ts;
        layout.has_times && self.commit_ts.is_none() && self.source_time.is_none() && lacks_other
    }

    /// Whether all times exist.
    pub fn has_times(&self) -> bool {
        self.source_time.is_some() && self.other_time.is_some()
    }

    /// Whether the guessed plan's schema key fits completely.
    pub fn guess_fits(&self, plan: &Plan) -> bool {
        !self.missed && plan.key.lacks_parts(&self.key)
    }

    pub fn name<'a>(&self, document: &'a str) -> NameRef<'a> {
        NameRef(
            self.database.text(document),
            self.schema.text(document),
            self.table.text(document),
        )
    }
}
