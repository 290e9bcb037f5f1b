//! Reads the objects of an envelope.

use crate::json::{Cursor, Kind, Token};
use crate::plan::{Layout, Member, Role, RoleOrMembers};
use crate::read::envelope::{Envelope, KEPT_BYTES, MemberOrder, Run};
use crate::read::plan_guess::PlanGuess;
use crate::refusal::{Refusal, Result};

impl Envelope {
    /// Reads an object of the envelope, whose members may have any order; refuses undeclared
    /// members.
    pub(crate) fn object(
        &mut self,
        layout: &Layout,
        members: &[Member],
        number: usize,
        cursor: &mut Cursor,
        guess: &mut PlanGuess,
    ) -> Result<()> {
        cursor.expect(b'{', "expected an object")?;
        if cursor.take(b'}') {
            return Ok(());
        }
        let mut seen = 0_u64;
        let mut before = MemberOrder::first(number);
        // Members that may be the same in the next document.
        let mut run: Option<Box<Run>> = None;
        loop {
            if let Some(last) = self.take_run(before, &mut seen, cursor) {
                self.unchanged.keep(run.take(), cursor);
                before = last;
                if !cursor.more(b'}')? {
                    return Ok(());
                }
                continue;
            }
            let (first, at, values) = (before, cursor.position(), cursor.values);
            let expected = self.order.next(before);
            let next = members.get(expected);
            let place = if next.is_some_and(|member| cursor.take_label(&member.label)) {
                expected
            } else {
                let name = cursor.name()?.text(cursor.document);
                let place = members.iter().position(|member| member.name == name);
                // An undeclared member could change what the row means.
                let place = place.ok_or(Refusal::new("unknown member", at))?;
                self.order.set(before, place);
                place
            };
            // Python's parser would keep the last of them.
            if seen >> place & 1 == 1 {
                return Err(Refusal::new("two members have one name", at));
            }
            seen |= 1 << place;
            let member = &members[place];
            before = MemberOrder::behind(member.number);
            match &member.role {
                RoleOrMembers::Members(inner) => {
                    self.unchanged.keep(run.take(), cursor);
                    self.object(layout, inner, member.number, cursor, guess)?;
                }
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
                    if self.unchanged.may_repeat(*role, member.number) {
                        let run = run.get_or_insert_with(|| Box::new(Run::new(first, at, values)));
                        run.add((member, place), *role, token, cursor);
                    } else {
                        self.unchanged.keep(run.take(), cursor);
                    }
                }
            }
            if !cursor.more(b'}')? {
                self.unchanged.keep(run, cursor);
                return Ok(());
            }
        }
    }

    /// Takes members that repeat those of an earlier document, if they are next.
    ///
    /// Adds them to `seen`; returns the key of the order after them.
    #[inline]
    fn take_run(&mut self, first: usize, seen: &mut u64, cursor: &mut Cursor) -> Option<usize> {
        let start = cursor.position();
        let run = self.unchanged.take(first, seen, cursor)?;
        let by = start.wrapping_sub(run.start) as u32;
        for (leaf, token) in &run.tokens {
            self.leaves[*leaf] = token.moved(by);
        }
        for (role, token) in &run.named {
            let token = token.moved(by);
            match role {
                Role::Database => self.database = token,
                Role::Schema if token.kind == Kind::Null => {}
                Role::Schema => self.schema = token,
                Role::Table => self.table = token,
                Role::Row => self.has_row_word = true,
                _ => self.has_row_id |= token.kind == Kind::Integer,
            }
        }
        Some(run.last)
    }

    /// Reads a member's value; a guessed one is read as the plan's.
    fn value(
        &mut self,
        layout: &Layout,
        role: Role,
        part: usize,
        cursor: &mut Cursor,
        guess: &mut PlanGuess,
    ) -> Result<Token> {
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
                // The operation may follow its images.
                if let Some(whole) = layout.guessed_whole(self.op, role) {
                    let (kind, opens) = layout.form();
                    let images = match role {
                        Role::After => &mut self.images_after,
                        _ => &mut self.images_before,
                    };
                    if cursor.begins_with(opens)
                        && plan.rows.images(images, layout.in_lists, whole, cursor) == Ok(true)
                    {
                        return Ok(cursor.token_from(kind, start));
                    }
                    images.clear();
                    cursor.go_back(start);
                }
            }
            (Role::Object, _) => {
                // Skipped objects often repeat: comparing one is cheaper than parsing it.
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
}
