//! A layout: how rows lie in a format's messages, as data (`cdcfmt_core/layout.py`).

use std::collections::HashMap;

use memchr::memmem::Finder;
use serde::Deserialize;

use crate::avro_layout::AvroLayout;
use crate::json::Kind;

/// What a member of the envelope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Database,
    Schema,
    Table,
    /// Database, perhaps schema, and table, with dots between them.
    ObjectName,
    /// A part of the schema key: equal in all messages of a plan.
    Same,
    /// Must be false, null or missing.
    MustBeFalse,
    /// Must be one of the words of rows.
    Row,
    Op,
    CommitTs,
    SourceTime,
    OtherTime,
    /// An integer by which the schemas of a stream are ordered.
    Position,
    Before,
    After,
    /// The image of a deleted row.
    Deleted,
    /// An integer that only one of a producer's versions writes.
    RowId,
    /// An integer or null, not read.
    Integer,
    /// An object or null, not read.
    Object,
    /// Any value, not read.
    Extra,
    Passed,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum RoleOrMembers {
    Role(Role),
    Members(Vec<Member>),
}

/// A member of an object: its name, as it stands in the document, and what it is.
#[derive(Clone, Debug, Deserialize)]
pub struct Member {
    pub name: String,
    pub role: RoleOrMembers,
    /// The number of the part of the schema key.
    #[serde(skip)]
    pub part: usize,
    /// The number of the member that is no object of members.
    #[serde(skip)]
    pub leaf: usize,
    /// Its number among all members, from 1 on.
    #[serde(skip)]
    pub number: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Insert,
    Read,
    Update,
    Upsert,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    Before,
    After,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Layout {
    /// Bytes that every such message begins with.
    pub begins: String,
    /// Documents may be the payload of an object that has their schema, too.
    pub connect: bool,
    /// Text that no document of rows holds.
    pub lacks: Vec<String>,
    /// The schema key has the columns of the message's key.
    pub keyed: bool,
    pub members: Vec<Member>,
    pub ops: HashMap<String, Op>,
    /// Words of rows, as they stand in documents.
    pub row_words: Vec<String>,
    /// Images lie in lists, one for each row.
    pub in_lists: bool,
    /// Where the row of a delete lies.
    pub deleted_row: Image,
    /// A column that `before` lacks did not change.
    pub completes_before: bool,
    /// The smallest and the largest time, and the microseconds in one.
    pub times: (i64, i64, i64),
    /// Times are ISO texts in UTC; the unit is a microsecond.
    pub iso_times: bool,
    /// A source time is exactly `commit_ts >> 18`.
    pub orders_by_source_time: bool,
    /// The member of the schema key that has the type of every column.
    pub column_types: Option<String>,
    /// Messages are frames of events, at most so many; the members are an event's key and value.
    pub max_events: Option<usize>,
    /// The member of a column that has its value.
    pub cell: Option<String>,
    /// Without a row id NULLs before updates may be something else.
    pub doubts_nulls: bool,
    /// Values before updates have to be good ones, also where no row has them.
    pub reads_before: bool,
    /// Messages are Avro records.
    pub avro: Option<AvroLayout>,
    /// Its place among the layouts of the format.
    #[serde(skip)]
    pub number: usize,
    #[serde(skip)]
    pub parts: Vec<String>,
    /// The number of the schema beside payloads, among the parts.
    #[serde(skip)]
    pub schema: Option<usize>,
    #[serde(skip)]
    finders: Vec<Finder<'static>>,
    /// Numbers of leaves by their paths.
    #[serde(skip)]
    pub leaves: HashMap<Vec<String>, usize>,
    /// Messages may have a commit_ts.
    #[serde(skip)]
    pub has_commit_ts: bool,
    /// How many members there are, those in other members included.
    #[serde(skip)]
    pub member_count: usize,
}

impl Layout {
    /// Numbers the parts of the schema key, and all leaves.
    pub fn prepare(&mut self, place: usize) {
        self.number = place;
        self.has_commit_ts = has_role(&self.members, Role::CommitTs);
        number(
            &mut self.members,
            &mut self.parts,
            &mut self.leaves,
            &mut Vec::new(),
            &mut self.member_count,
        );
        if let Some(avro) = &mut self.avro {
            // The bytes of these parts are the schema key.
            self.parts.clear();
            avro.prepare(&self.members);
        }
        if self.connect {
            self.schema = Some(self.parts.len());
            self.parts.push("schema".into());
        }
        let finders = self.lacks.iter().filter(|text| !text.is_empty());
        self.finders = finders.map(|text| Finder::new(text).into_owned()).collect();
    }
}

impl Layout {
    /// Whether a text has something that no document of rows holds.
    pub fn is_odd(&self, text: &str) -> bool {
        self.finders
            .iter()
            .any(|finder| finder.find(text.as_bytes()).is_some())
    }

    /// The kind of a member that holds images, and the byte that it begins with.
    pub fn form(&self) -> (Kind, u8) {
        if self.in_lists {
            (Kind::Array, b'[')
        } else {
            (Kind::Object, b'{')
        }
    }

    /// Whether messages of rows may have no word.
    pub fn may_lack_word(&self) -> bool {
        self.row_words.iter().any(|word| word == "null")
    }

    /// The members of the object that is this member, and its number.
    pub fn inner_members(&self, place: usize) -> (&[Member], usize) {
        let member = self.members.get(place);
        match member.map(|member| (&member.role, member.number)) {
            Some((RoleOrMembers::Members(inner), number)) => (inner, number),
            _ => (&[], 0),
        }
    }

    /// Whether images must be whole, where the operation may still come.
    pub fn guessed_whole(&self, op: Option<Op>, role: Role) -> Option<bool> {
        match op {
            Some(op) => self.whole(op, role),
            None if role == Role::Before && self.max_events.is_some() => {
                Some(!self.completes_before)
            }
            None => Some(true),
        }
    }

    /// Whether the images before or after must be whole; None where the operation has none.
    pub fn whole(&self, op: Op, role: Role) -> Option<bool> {
        let deletes = op == Op::Delete;
        match role {
            Role::After => (!deletes || self.deleted_row == Image::After).then_some(true),
            _ if deletes => (self.deleted_row == Image::Before).then_some(true),
            _ => (op == Op::Update).then_some(!self.completes_before),
        }
    }
}

fn has_role(members: &[Member], wanted: Role) -> bool {
    members.iter().any(|member| match &member.role {
        RoleOrMembers::Role(role) => *role == wanted,
        RoleOrMembers::Members(inner) => has_role(inner, wanted),
    })
}

fn number(
    members: &mut [Member],
    parts: &mut Vec<String>,
    leaves: &mut HashMap<Vec<String>, usize>,
    path: &mut Vec<String>,
    count: &mut usize,
) {
    for member in members {
        *count += 1;
        member.number = *count;
        path.push(member.name.clone());
        match &mut member.role {
            RoleOrMembers::Role(role) => {
                if *role == Role::Same {
                    member.part = parts.len();
                    parts.push(member.name.clone());
                }
                member.leaf = leaves.len();
                leaves.insert(path.clone(), member.leaf);
            }
            RoleOrMembers::Members(inner) => number(inner, parts, leaves, path, count),
        }
        path.pop();
    }
}
