//! Consecutive members whose values repeat from document to document: compared, not read.

use crate::json::Label;
use crate::json::{Cursor, Token};
use crate::plan::{Layout, Member, Role};
use crate::read::envelope::member_order::MemberOrder;

/// A member that differed this often is always read: comparing it first costs more than it saves.
const MAX_MISSES: u8 = 4;

/// Longer runs are not kept: a difference near their end costs the whole comparison.
const MAX_BYTES: usize = 4 << 10;

/// Members of an object, from the first name to the end of the last value.
pub struct Run {
    text: Label,
    /// Numbers of the members, and the ends of their values in the document.
    ends: Vec<(usize, usize)>,
    /// Their leaves and values, by positions in the document where they were read.
    pub tokens: Vec<(usize, Token)>,
    /// Those of them that name the table, or that only messages of rows have.
    pub named: Vec<(Role, Token)>,
    /// Their indexes in the object, as bits.
    places: u64,
    /// Keys of the order before the first and after the last member.
    first: usize,
    pub last: usize,
    /// Start of the text in the document.
    pub start: usize,
    /// Number of values before the text, and in it.
    values_before: u32,
    values: u32,
}

impl Run {
    /// An empty run that begins at a position, after this many values.
    pub fn new(first: usize, start: usize, values_before: u32) -> Self {
        Self {
            text: Label::default(),
            ends: Vec::new(),
            tokens: Vec::new(),
            named: Vec::new(),
            places: 0,
            first,
            last: first,
            start,
            values_before,
            values: 0,
        }
    }

    /// Adds a member that ends at the cursor.
    pub fn add(
        &mut self,
        (member, place): (&Member, usize),
        role: Role,
        token: Token,
        cursor: &Cursor,
    ) {
        self.ends.push((member.number, cursor.position()));
        self.values = cursor.values - self.values_before;
        self.tokens.push((member.leaf, token));
        if matches!(
            role,
            Role::Database | Role::Schema | Role::Table | Role::Row | Role::RowId
        ) {
            self.named.push((role, token));
        }
        // A bit per member of the object, like `seen` in `read/object.rs`.
        self.places |= 1 << place;
        self.last = MemberOrder::behind(member.number);
    }
}

/// The runs of a layout, by key of the order before them, and the misses of its members.
#[derive(Default)]
struct OfLayout {
    runs: Vec<Option<Box<Run>>>,
    misses: Vec<u8>,
}

/// The runs of all layouts.
#[derive(Default)]
pub struct Unchanged {
    of_layouts: Vec<OfLayout>,
    layout: usize,
}

impl Unchanged {
    /// Switches to the documents of a layout.
    pub fn begin(&mut self, layout: &Layout) {
        self.layout = layout.number;
        while self.of_layouts.len() <= layout.number {
            self.of_layouts.push(OfLayout::default());
        }
        let known = &mut self.of_layouts[layout.number];
        if known.misses.is_empty() {
            known.misses.resize(layout.member_count + 1, 0);
            known.runs.resize_with(2 * layout.member_count + 2, || None);
        }
    }

    /// Whether a member may belong to a run: it depends on nothing but its own bytes.
    pub fn may_repeat(&self, role: Role, number: usize) -> bool {
        // The others fill fields that a message must set anew, or images and keys that are read by
        // a plan.
        let is_alone = !matches!(
            role,
            Role::Same
                | Role::ObjectName
                | Role::Op
                | Role::CommitTs
                | Role::SourceTime
                | Role::OtherTime
                | Role::Position
                | Role::Before
                | Role::After
                | Role::Deleted
                | Role::Object
        );
        is_alone && self.of_layouts[self.layout].misses[number] < MAX_MISSES
    }

    /// Keeps a run that was just read, if there is one.
    #[inline]
    pub fn keep(&mut self, run: Option<Box<Run>>, cursor: &Cursor) {
        if let Some(run) = run {
            self.keep_new(run, cursor);
        }
    }

    #[cold]
    fn keep_new(&mut self, mut run: Box<Run>, cursor: &Cursor) {
        let end = run.ends.last().map_or(run.start, |(_, end)| *end);
        if end - run.start <= MAX_BYTES {
            run.text = Label::new(&cursor.document[run.start..end]);
            let first = run.first;
            self.of_layouts[self.layout].runs[first] = Some(run);
        }
    }

    /// Takes a run if it is next, and none of its members was `seen` in the object.
    ///
    /// Adds them to `seen`.
    pub fn take(&mut self, first: usize, seen: &mut u64, cursor: &mut Cursor) -> Option<&Run> {
        let known = &mut self.of_layouts[self.layout];
        let run = known.runs[first].as_ref()?;
        let start = cursor.position();
        if *seen & run.places != 0 {
            return None;
        }
        // A number may go on behind the text, such as `1` in `12`.
        if !cursor.take_label(&run.text) || !cursor.ends_value() {
            cursor.go_back(start);
            // The next run ends before a member that differs too often.
            let rest = &cursor.document.as_bytes()[start..];
            let text = run.text.as_bytes().iter();
            let common = text.zip(rest).take_while(|(one, other)| one == other);
            let common = run.start + common.count();
            let other = run.ends.iter().find(|(_, end)| *end > common);
            if let Some((number, _)) = other.or(run.ends.last()) {
                known.misses[*number] += 1;
            }
            known.runs[first] = None;
            return None;
        }
        cursor.values += run.values;
        *seen |= run.places;
        known.runs[first].as_deref()
    }
}
