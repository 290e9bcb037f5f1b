//! The envelope of a JSON document, read in one pass.

mod avro_fields;
mod images;
mod member_order;
mod names;
mod previous;
mod roles;
mod unchanged;

pub use images::Images;
pub use member_order::MemberOrder;
pub use names::{Name, NameRef};
pub use roles::long;
pub use unchanged::Run;

use crate::json::{Kind, Token};
use crate::plan::{Layout, Op};
use crate::read::envelope::previous::PreviousDatum;
use crate::read::envelope::unchanged::Unchanged;

/// Larger objects are not kept for the next message: they rarely repeat, and would fill the cache.
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
    /// The row is deleted, whatever the operation.
    pub is_deleted: bool,
    pub has_row_id: bool,
    pub has_row_word: bool,
    /// The parts of the schema key, by index.
    pub key: Vec<Token>,
    /// The parts for Avro, concatenated.
    pub schema_key: Vec<u8>,
    /// The numbers of the writer schemas of value and key, if messages name them.
    pub writers: [usize; 2],
    /// A part of the key differs from the guessed plan's.
    pub missed: bool,
    /// The guess is a plan of the table, or the table comes too late for a guess.
    pub has_guessed: bool,
    /// All members by index; a member read by the guess has no kind.
    pub leaves: Vec<Token>,
    pub images_before: Images,
    pub images_after: Images,
    /// Columns of the row that were read beside the envelope's fields.
    pub columns_read: usize,
    pub order: MemberOrder,
    pub unchanged: Unchanged,
    /// The last unread object.
    pub kept: String,
    /// The same for Avro, by slot.
    pub previous_values: Vec<PreviousDatum>,
}

impl Envelope {
    /// Resets for the next document.
    pub fn start(&mut self, layout: &Layout) {
        // Slots of another layout have other types.
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
        self.is_deleted = false;
        (self.op, self.commit_ts, self.source_time) = (None, None, None);
        (self.other_time, self.position) = (None, None);
        self.clear_images();
    }

    /// The image with all columns of the row.
    pub fn row_token(&self) -> Token {
        if self.after.kind == Kind::Missing {
            self.before
        } else {
            self.after
        }
    }

    pub fn clear_images(&mut self) {
        self.columns_read = 0;
        self.images_before.clear();
        self.images_after.clear();
    }

    /// Whether the word of rows was read, or may be missing.
    pub fn is_row(&self, layout: &Layout) -> bool {
        self.has_row_word || layout.row_words.is_empty() || layout.may_lack_word()
    }

    /// Whether a row lacks the time that it needs: any time, if messages have no `commit_ts`; none,
    /// if they have no times.
    pub fn lacks_time(&self, layout: &Layout) -> bool {
        // Where messages may have a `commit_ts`, the emit time alone does not order them.
        let lacks_other = self.other_time.is_none() || layout.has_commit_ts;
        layout.has_times && self.commit_ts.is_none() && self.source_time.is_none() && lacks_other
    }

    /// Whether all times exist.
    pub fn has_times(&self) -> bool {
        self.source_time.is_some() && self.other_time.is_some()
    }

    pub fn name<'a>(&self, document: &'a str) -> NameRef<'a> {
        NameRef(
            self.database.text(document),
            self.schema.text(document),
            self.table.text(document),
        )
    }
}
