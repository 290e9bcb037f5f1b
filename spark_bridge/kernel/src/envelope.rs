//! The envelope of a JSON document, in one pass.

use crate::json::{Cursor, Kind, Token};
use crate::layout::{Layout, Member, Op, Role, RoleOrMembers};
use crate::refusal::{Refusal, Step};

/// Where the parts of an envelope lie in its document.
pub struct Envelope {
    pub database: Token,
    pub schema: Token,
    pub table: Token,
    pub op: Option<Op>,
    pub commit_ts: Option<i64>,
    pub source_time: Option<i64>,
    pub before: Token,
    pub after: Token,
    /// The parts of the schema key, by their numbers.
    pub key: Vec<Token>,
}

impl Envelope {
    pub fn empty() -> Self {
        Self {
            database: Token::MISSING,
            schema: Token::MISSING,
            table: Token::MISSING,
            op: None,
            commit_ts: None,
            source_time: None,
            before: Token::MISSING,
            after: Token::MISSING,
            key: Vec::new(),
        }
    }

    /// Reads a whole document; the room for the key is used again.
    pub fn read(&mut self, layout: &Layout, document: &str) -> Step<()> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.resize(layout.parts.len(), Token::MISSING);
        *self = Self {
            key,
            ..Self::empty()
        };
        let mut cursor = Cursor::new(document)?;
        self.object(layout, &layout.members, &mut cursor)?;
        cursor.end()
    }

    fn object(&mut self, layout: &Layout, members: &[Member], cursor: &mut Cursor) -> Step<()> {
        cursor.expect(b'{', "no object")?;
        if cursor.take(b'}') {
            return Ok(());
        }
        let mut seen = 0_u64;
        let mut expected = 0;
        loop {
            let name = cursor.name()?;
            let text = name.text(cursor.document);
            let place = find(members, expected, text).ok_or(Refusal::new(
                "a member that the layout lacks",
                name.start as usize,
            ))?;
            if seen >> place & 1 == 1 {
                return Err(Refusal::new("two members of one name", name.start as usize));
            }
            seen |= 1 << place;
            expected = place + 1;
            let member = &members[place];
            match &member.role {
                RoleOrMembers::Members(inner) => self.object(layout, inner, cursor)?,
                RoleOrMembers::Role(role) => {
                    let token = cursor.value()?;
                    self.member(layout, *role, member.part, token, cursor.document)?;
                }
            }
            if !cursor.more(b'}')? {
                return Ok(());
            }
        }
    }

    fn member(
        &mut self,
        layout: &Layout,
        role: Role,
        part: usize,
        token: Token,
        document: &str,
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
            Role::Same => self.key[part] = token,
            Role::Never => {
                if !matches!(token.kind, Kind::False | Kind::Null) {
                    return refuse("a message without rows");
                }
            }
            Role::Op => {
                let word = token.text(document);
                self.op = layout
                    .ops
                    .get(word)
                    .copied()
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
                time(token, document, layout.times.0, layout.times.1)?;
            }
            Role::Before | Role::After => {
                let expected = if layout.in_lists {
                    Kind::Array
                } else {
                    Kind::Object
                };
                if token.kind != expected && token.kind != Kind::Null {
                    return refuse("images of another form");
                }
                *(if role == Role::Before {
                    &mut self.before
                } else {
                    &mut self.after
                }) = token;
            }
            Role::Object => {
                if !matches!(token.kind, Kind::Object | Kind::Null) {
                    return refuse("a member that is no object");
                }
            }
            Role::Extra | Role::Passed => {}
        }
        Ok(())
    }
}

/// Members mostly come in the layout's order.
fn find(members: &[Member], expected: usize, name: &str) -> Option<usize> {
    if members
        .get(expected)
        .is_some_and(|member| member.name == name)
    {
        return Some(expected);
    }
    members.iter().position(|member| member.name == name)
}

fn time(token: Token, document: &str, low: i64, high: i64) -> Step<Option<i64>> {
    if token.kind == Kind::Null {
        return Ok(None);
    }
    let value = match token.kind {
        Kind::Integer => token.text(document).parse::<i64>().ok(),
        _ => None,
    };
    match value {
        Some(value) if (low..=high).contains(&value) => Ok(Some(value)),
        _ => Err(Refusal::new("a time out of range", token.start as usize)),
    }
}
