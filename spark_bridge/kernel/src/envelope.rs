//! The envelope of a JSON document, in one pass.

use std::sync::Arc;

use crate::avro_layout::Kept;
use crate::connect::{self, Form};
use crate::images::Images;
use crate::json::{Cursor, Kind, Token};
use crate::layout::{Layout, Member, Op, Role, RoleOrMembers};
use crate::numbers;
use crate::plan_table::{NameRef, PlanTable};
use crate::plans::Plan;
use crate::refusal::{Refusal, Step};

/// A longer object is not kept for the next message.
pub const KEPT_BYTES: usize = 64 << 10;

/// Where the parts of an envelope lie in its document.
///
/// Most messages have the table of the one before. Its plan is a guess: while no part of the schema
/// key is another one, images are read at once.
#[derive(Default)]
pub struct Envelope {
    /// The number of the document's layout.
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
    /// The image before is that of a deleted row.
    pub deleted: bool,
    pub has_row_id: bool,
    has_row_word: bool,
    /// The parts of the schema key, by their numbers.
    pub key: Vec<Token>,
    /// Those of Avro, one behind the other.
    pub schema_key: Vec<u8>,
    /// A part of the key is not that of the guessed plan.
    missed: bool,
    /// The guess is one of the table's plans, or such a guess cannot be.
    has_guessed: bool,
    /// All members by their numbers; what was guessed of them has no kind.
    pub leaves: Vec<Token>,
    pub images_before: Images,
    pub images_after: Images,
    /// The last object that is not read.
    kept: String,
    /// Those of Avro, by their slots.
    pub kept_values: Vec<Kept>,
}

/// The plan that a message may have, and all plans.
struct Guessing<'g, 'p> {
    plan: &'g mut Option<&'p Arc<Plan>>,
    plans: Option<&'p PlanTable>,
}

impl Envelope {
    /// Forgets the document before.
    pub fn start(&mut self, layout: &Layout) {
        if self.layout != layout.number {
            self.kept_values.clear();
        }
        self.layout = layout.number;
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

    /// Reads an object of a document that is an event's key or value.
    pub fn part(
        &mut self,
        layout: &Layout,
        members: &[Member],
        cursor: &mut Cursor,
        guess: Option<&Arc<Plan>>,
    ) -> Step<()> {
        // No part of the schema key is in a guess's way.
        self.missed = guess.is_none() || !layout.parts.is_empty();
        self.has_guessed = true;
        let mut plan = guess;
        let mut guessing = Guessing {
            plan: &mut plan,
            plans: None,
        };
        self.object(layout, members, cursor, &mut guessing)
    }

    /// Reads a whole document.
    ///
    /// Where names come before what a plan reads, the guess is one of `plans`.
    /// `is_payload`: it lay beside the schema of the guess.
    pub fn read<'p>(
        &mut self,
        layout: &Layout,
        document: &str,
        guess: &mut Option<&'p Arc<Plan>>,
        plans: Option<&'p PlanTable>,
        is_payload: bool,
    ) -> Step<()> {
        self.start(layout);
        // The schema key of another layout has other parts.
        *guess = guess.filter(|plan| plan.layout == layout.number);
        self.missed = guess.is_none();
        self.has_guessed = plans.is_none();
        let mut cursor = Cursor::new(document)?;
        let mut guessing = Guessing { plan: guess, plans };
        let guess = &mut guessing;
        let Some(part) = layout.schema else {
            self.object(layout, &layout.members, &mut cursor, guess)?;
            return cursor.end();
        };
        let known = guess.plan.and_then(|plan| plan.key.bytes_of_part(part));
        // Payloads have their names behind the images.
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
        self.object(layout, &layout.members, &mut cursor, guess)?;
        if layout.is_odd(&document[start..cursor.position()]) {
            return Err(Refusal::new("text that rows lack", start));
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

    pub fn clear_images(&mut self) {
        self.images_before.clear();
        self.images_after.clear();
    }

    /// Whether the word of rows is there, or may be missing.
    pub fn is_row(&self, layout: &Layout) -> bool {
        self.has_row_word || layout.row_words.is_empty() || layout.may_lack_word()
    }

    /// Whether all times are there.
    pub fn has_times(&self) -> bool {
        self.source_time.is_some() && self.other_time.is_some()
    }

    /// Whether the guessed plan has the whole schema key.
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

    /// Once the table is known, guesses one of its plans.
    fn guess(&mut self, document: &str, guess: &mut Guessing) -> Step<()> {
        if self.table.kind == Kind::Missing {
            return Ok(());
        }
        self.has_guessed = true;
        let name = self.name(document);
        if guess.plan.is_some_and(|plan| plan.has_name(name)) {
            return Ok(());
        }
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
                self.missed |= !plan.key.has_part(part, &mut Cursor::at(document, start)?);
            }
        }
        Ok(())
    }

    fn object(
        &mut self,
        layout: &Layout,
        members: &[Member],
        cursor: &mut Cursor,
        guess: &mut Guessing,
    ) -> Step<()> {
        cursor.expect(b'{', "no object")?;
        if cursor.take(b'}') {
            return Ok(());
        }
        let mut seen = 0_u64;
        let mut expected = 0;
        loop {
            let at = cursor.position();
            let next = members.get(expected);
            // Members mostly come in the layout's order.
            let place = if next.is_some_and(|member| cursor.take_name(member.name.as_bytes())) {
                expected
            } else {
                let name = cursor.name()?.text(cursor.document);
                let place = members.iter().position(|member| member.name == name);
                place.ok_or(Refusal::new("a member that the layout lacks", at))?
            };
            if seen >> place & 1 == 1 {
                return Err(Refusal::new("two members of one name", at));
            }
            seen |= 1 << place;
            expected = place + 1;
            let member = &members[place];
            match &member.role {
                RoleOrMembers::Members(inner) => self.object(layout, inner, cursor, guess)?,
                RoleOrMembers::Role(role) => {
                    let token = self.value(layout, *role, member.part, cursor, guess)?;
                    self.leaves[member.leaf] = token;
                    self.member(
                        layout,
                        *role,
                        member.part,
                        token,
                        cursor.document.as_bytes(),
                    )?;
                }
            }
            if !cursor.more(b'}')? {
                return Ok(());
            }
        }
    }

    /// A member's value; what is guessed of it is read as that.
    fn value(
        &mut self,
        layout: &Layout,
        role: Role,
        part: usize,
        cursor: &mut Cursor,
        guess: &mut Guessing,
    ) -> Step<Token> {
        cursor.blanks();
        let start = cursor.position();
        if matches!(role, Role::Same | Role::Before | Role::After) && !self.has_guessed {
            self.guess(cursor.document, guess)?;
        }
        match (role, *guess.plan) {
            (Role::Same, Some(plan)) => {
                if plan.key.has_part(part, cursor) {
                    return Ok(cursor.token_from(Kind::Object, start));
                }
                self.missed = true;
                cursor.go_back(start);
            }
            (Role::Before | Role::After | Role::Deleted, Some(plan)) if !self.missed => {
                // The operation may come behind its images.
                if let Some(whole) = layout.guessed_whole(self.op, role) {
                    let (kind, opens) = layout.form();
                    let images = match role {
                        Role::After => &mut self.images_after,
                        _ => &mut self.images_before,
                    };
                    if cursor.begins_with(opens)
                        && images.read(&plan.rows, layout.in_lists, whole, cursor) == Ok(true)
                    {
                        return Ok(cursor.token_from(kind, start));
                    }
                    images.clear();
                    cursor.go_back(start);
                }
            }
            (Role::Object, _) => {
                if !self.kept.is_empty() && cursor.take_all(&self.kept) {
                    return Ok(cursor.token_from(Kind::Object, start));
                }
                let token = cursor.value()?;
                let text = token.text(cursor.document);
                if token.kind == Kind::Object && text.len() <= KEPT_BYTES {
                    self.kept.clear();
                    self.kept.push_str(text);
                }
                return Ok(token);
            }
            _ => {}
        }
        cursor.value()
    }

    pub fn member(
        &mut self,
        layout: &Layout,
        role: Role,
        part: usize,
        token: Token,
        document: &[u8],
    ) -> Step<()> {
        let refuse = |reason| Err(Refusal::new(reason, token.start as usize));
        match role {
            Role::Database | Role::Schema | Role::Table => {
                if token.kind != Kind::Text {
                    return refuse("a name that is no plain text");
                }
                match role {
                    Role::Database => self.database = token,
                    Role::Schema => self.schema = token,
                    _ => self.table = token,
                }
            }
            Role::Same if layout.avro.is_some() => {}
            Role::Same => self.key[part] = token,
            Role::Never => {
                if !matches!(token.kind, Kind::False | Kind::Null) {
                    return refuse("a message without rows");
                }
            }
            Role::Row => {
                let (start, end) = token.whole_span();
                let word = document.get(start..end);
                if !layout
                    .row_words
                    .iter()
                    .any(|known| Some(known.as_bytes()) == word)
                {
                    return refuse("a message without rows");
                }
                self.has_row_word = true;
            }
            Role::Op => {
                let word = token.bytes(document);
                let known = layout.ops.iter().find(|known| known.0.as_bytes() == word);
                self.op = known
                    .map(|known| *known.1)
                    .filter(|_| token.kind == Kind::Text);
                if self.op.is_none() {
                    return refuse("a message without rows");
                }
            }
            Role::CommitTs => {
                self.commit_ts = time(token, document, 0, i64::MAX)?;
            }
            Role::SourceTime => {
                self.source_time = time(token, document, layout.times.0, layout.times.1)?;
            }
            Role::OtherTime => {
                self.other_time = time(token, document, layout.times.0, layout.times.1)?;
            }
            Role::Position => self.position = time(token, document, i64::MIN, i64::MAX)?,
            Role::Before | Role::After | Role::Deleted => {
                let (expected, _) = layout.form();
                if token.kind != expected && token.kind != Kind::Null {
                    return refuse("images of another form");
                }
                let image = match role {
                    Role::After => &mut self.after,
                    _ => &mut self.before,
                };
                if image.kind != Kind::Missing {
                    return refuse("a deleted row with an image before an update");
                }
                *image = token;
                self.deleted |= role == Role::Deleted;
            }
            Role::Object => {
                if !matches!(token.kind, Kind::Object | Kind::Null) {
                    return refuse("a member that is no object");
                }
            }
            Role::RowId | Role::Integer => {
                let number = (token.kind == Kind::Integer)
                    .then(|| numbers::integer(token.bytes(document)))
                    .flatten();
                let fits = |number| (i64::MIN.into()..=u64::MAX.into()).contains(&number);
                let is_integer = token.kind == Kind::Long || number.is_some_and(fits);
                if !is_integer && token.kind != Kind::Null {
                    return refuse("a member that is no integer of 64 bits");
                }
                self.has_row_id |= role == Role::RowId && is_integer;
            }
            Role::ObjectName | Role::Extra | Role::Passed => {}
        }
        Ok(())
    }
}

/// An integer of 64 bits.
pub fn long(token: Token, document: &[u8]) -> Option<i64> {
    match token.kind {
        Kind::Integer => i64::try_from(numbers::integer(token.bytes(document))?).ok(),
        _ => token.long(),
    }
}

fn time(token: Token, document: &[u8], low: i64, high: i64) -> Step<Option<i64>> {
    if token.kind == Kind::Null {
        return Ok(None);
    }
    match long(token, document) {
        Some(value) if (low..=high).contains(&value) => Ok(Some(value)),
        _ => Err(Refusal::new("a time out of range", token.start as usize)),
    }
}
