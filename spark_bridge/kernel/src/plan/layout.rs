//! A layout: the structure of a format's row messages, as data (`cdcfmt_toolkit/layout.py`).

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::avro::{Field, Type};
use crate::json::Kind;
use crate::json::Label;
use crate::text::AnyText;

/// The role of a member of the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Database,
    Schema,
    Table,
    /// Database, optional schema, and table, separated by dots.
    ObjectName,
    /// A part of the schema key: equal in all messages with the same plan.
    Same,
    /// Must be false, null or missing.
    MustBeFalse,
    /// Must be one of the words of rows.
    Row,
    Op,
    /// True, or the text `true`, of a deleted row, whatever the operation; only with a writer schema.
    IsDeleted,
    CommitTs,
    SourceTime,
    OtherTime,
    /// An integer that orders the schemas of a stream.
    Position,
    Before,
    After,
    /// The image of a deleted row.
    Deleted,
    /// An integer that only one version of the producer writes.
    RowId,
    /// An integer or null, ignored.
    Integer,
    /// An object or null, ignored.
    Object,
    /// Any value, ignored.
    Extra,
    Passed,
    /// Columns beside the envelope's fields, together the row after its change.
    #[serde(skip)]
    Columns,
}

/// What a member is: a value with a role, or an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum RoleOrMembers {
    Role(Role),
    Members(Vec<Member>),
}

/// A member of an object: its name as in documents, and its role.
#[derive(Clone, Debug, Deserialize)]
pub struct Member {
    pub name: String,
    /// The name as in documents.
    #[serde(skip)]
    pub label: Label,
    pub role: RoleOrMembers,
    /// Index of its part of the schema key.
    #[serde(skip)]
    pub part: usize,
    /// Index among the leaves: the members without inner members.
    #[serde(skip)]
    pub leaf: usize,
    /// Number among all members, starting at 1.
    #[serde(skip)]
    pub number: usize,
}

/// The operation of a row message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Insert,
    Read,
    Update,
    Upsert,
    Delete,
}

/// A row before or after its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    Before,
    After,
}

/// Where one producer dialect puts each field of a row message.
#[derive(Clone, Debug, Deserialize)]
pub struct Layout {
    /// The first bytes of every such message.
    pub begins: String,
    /// Documents may also be the payload of an object with their schema.
    pub connect: bool,
    /// Text that never occurs in documents of rows.
    pub lacks: Vec<String>,
    /// The schema key includes the columns of the message's key.
    pub keyed: bool,
    pub members: Vec<Member>,
    pub ops: HashMap<String, Op>,
    /// Words of rows, as in documents.
    pub row_words: Vec<String>,
    /// Images are in lists, one image per row.
    pub in_lists: bool,
    /// The image with the row of a delete.
    pub deleted_row: Image,
    /// Columns that `before` lacks did not change.
    pub completes_before: bool,
    /// Columns that `before` lacks are unknown.
    pub partial_before: bool,
    /// The minimum and maximum time, and the microseconds per unit.
    pub times: (i64, i64, i64),
    /// Times are ISO texts; then the unit is a microsecond.
    pub iso_times: bool,
    /// A source time is exactly `commit_ts >> 18`.
    pub orders_by_source_time: bool,
    /// The member of the schema key with the type of every column.
    pub column_types: Option<String>,
    /// Maximum number of frames with events; then members are those of an event's key and value.
    pub max_events: Option<usize>,
    /// The member of a column's object with its value.
    pub cell: Option<String>,
    /// Without a row id, NULLs before updates may mean that a value is unknown.
    pub nulls_may_mean_unknown: bool,
    /// Values before updates must be valid, even if no row shows them.
    pub reads_before: bool,
    /// The members with a position in the source's log: server, file, offset in it, and change in
    /// the commit that is the file; some of which a source may lack.
    pub log: Option<[Option<Vec<String>>; 4]>,
    /// Messages are Avro records.
    pub avro: Option<AvroLayout>,
    /// Its index among the layouts of the format.
    #[serde(skip)]
    pub number: usize,
    #[serde(skip)]
    pub parts: Vec<String>,
    /// Index of the payload's schema among the parts.
    #[serde(skip)]
    pub schema: Option<usize>,
    #[serde(skip)]
    foreign: AnyText,
    /// Indexes of leaves by path.
    #[serde(skip)]
    pub leaves: HashMap<Vec<String>, usize>,
    /// Indexes of the leaves of `log`.
    #[serde(skip)]
    pub log_leaves: Option<[Option<usize>; 4]>,
    /// Whether messages may have a `commit_ts`.
    #[serde(skip)]
    pub has_commit_ts: bool,
    /// Whether messages may have any time.
    #[serde(skip)]
    pub has_times: bool,
    #[serde(skip)]
    pub has_source_time: bool,
    #[serde(skip)]
    pub has_other_time: bool,
    /// Whether messages have a word for the operation; otherwise it is that of the empty word.
    #[serde(skip)]
    pub has_op: bool,
    /// Whether messages have a member for deleted rows.
    #[serde(skip)]
    pub has_deleted: bool,
    /// Number of members, including nested ones.
    #[serde(skip)]
    pub member_count: usize,
}

impl Layout {
    /// Numbers the parts of the schema key, and all leaves.
    pub fn prepare(&mut self, place: usize) {
        self.number = place;
        self.has_commit_ts = has_role(&self.members, Role::CommitTs);
        let times = [Role::CommitTs, Role::SourceTime, Role::OtherTime];
        self.has_op = has_role(&self.members, Role::Op);
        self.has_deleted = has_role(&self.members, Role::IsDeleted);
        self.has_times = times.iter().any(|role| has_role(&self.members, *role));
        self.has_source_time = has_role(&self.members, Role::SourceTime);
        self.has_other_time = has_role(&self.members, Role::OtherTime);
        number(
            &mut self.members,
            &mut self.parts,
            &mut self.leaves,
            &mut Vec::new(),
            &mut self.member_count,
        );
        // Resolved once per layout: messages are read by index.
        let leaf = |path: &Option<Vec<String>>| self.leaves.get(path.as_ref()?).copied();
        self.log_leaves = self.log.as_ref().map(|paths| paths.each_ref().map(leaf));
        if let Some(avro) = &mut self.avro {
            // The schema key consists of bytes instead of these parts.
            self.parts.clear();
            avro.prepare(&self.members);
        }
        if self.connect {
            // After the parts of members: the schema is beside the payload, not in it.
            self.schema = Some(self.parts.len());
            self.parts.push("schema".into());
        }
        self.foreign = AnyText::new(&self.lacks);
    }
}

impl Layout {
    /// Whether a text contains something that never occurs in documents of rows.
    pub fn has_foreign_text(&self, text: &str) -> bool {
        self.foreign.is_in(text)
    }

    /// The kind of members with images, and their first byte.
    pub fn form(&self) -> (Kind, u8) {
        if self.in_lists {
            (Kind::Array, b'[')
        } else {
            (Kind::Object, b'{')
        }
    }

    /// Whether row messages may lack the word.
    pub fn may_lack_word(&self) -> bool {
        self.row_words.iter().any(|word| word == "null")
    }

    /// The inner members of a member, with its number.
    pub fn inner_members(&self, place: usize) -> (&[Member], usize) {
        let member = self.members.get(place);
        match member.map(|member| (&member.role, member.number)) {
            Some((RoleOrMembers::Members(inner), number)) => (inner, number),
            _ => (&[], 0),
        }
    }

    /// Whether images must be whole, if the operation may still follow.
    pub fn guessed_whole(&self, op: Option<Op>, role: Role) -> Option<bool> {
        match op {
            Some(op) => self.whole(op, role),
            // Frames have no member for the operation; only updates have a `before` beside the row.
            None if role == Role::Before && self.max_events.is_some() => {
                Some(!self.completes_before)
            }
            // If that is wrong, the images are read again, by the operation.
            None => Some(true),
        }
    }

    /// Whether the images before or after must be whole; None if the operation does not have them.
    pub fn whole(&self, op: Op, role: Role) -> Option<bool> {
        let deletes = op == Op::Delete;
        match role {
            Role::After => (!deletes || self.deleted_row == Image::After).then_some(true),
            _ if deletes => (self.deleted_row == Image::Before).then_some(true),
            // A column may be missing only if the layout gives that a meaning: unchanged, or
            // unknown.
            _ => (op == Op::Update).then_some(!self.completes_before && !self.partial_before),
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
        member.label = Label::of_name(&member.name);
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

/// The writer's schema, and facts that it does not express (`cdcfmt_toolkit/layout.py`).
#[derive(Clone, Debug, Deserialize)]
pub struct AvroLayout {
    schema: Type,
    /// By record in images: the field with the value.
    pub values: HashMap<String, String>,
    /// The symbol of an enumeration in images that means NULL; other symbols mean a missing value.
    pub null: Option<String>,
    /// Trailing fields that a message may lack.
    optional: Vec<String>,
    /// By field: the smallest number besides 0.
    least: HashMap<String, i64>,
    /// By map: names whose values are parts of the schema key.
    key_names: HashMap<String, Vec<String>>,
    /// Fields without a role are columns.
    #[serde(default)]
    has_columns: bool,
    #[serde(skip)]
    pub slots: Vec<Slot>,
}

/// A field of the message, or consecutive columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    pub name: String,
    /// Null for images of messages with a writer schema of their own.
    pub type_: Type,
    pub role: Role,
    /// Number of columns.
    pub columns: usize,
    /// For images of records: the branch of null, if they are optional.
    pub null: Option<usize>,
    /// Index among the slots.
    pub number: usize,
    pub leaf: Option<usize>,
    pub is_optional: bool,
    pub least: Option<i64>,
    pub key_names: Vec<String>,
    /// Whether it is needed for nothing but `extra`.
    pub is_extra: bool,
}

impl AvroLayout {
    /// Assigns the members' roles to the fields; fields without a role are skipped.
    pub fn prepare(&mut self, members: &[Member]) {
        let mut slots = Vec::new();
        self.add_slots(&self.schema, members, &mut slots);
        self.slots = slots;
    }

    fn add_slots(&self, record: &Type, members: &[Member], slots: &mut Vec<Slot>) {
        let Type::Record(fields) = record else {
            return;
        };
        for field in fields.iter() {
            let member = members.iter().find(|member| member.name == field.name);
            let (role, leaf) = match member.map(|member| (&member.role, member.leaf)) {
                Some((RoleOrMembers::Members(inner), _)) => {
                    self.add_slots(&field.type_, inner, slots);
                    continue;
                }
                Some((RoleOrMembers::Role(role), leaf)) => (*role, Some(leaf)),
                // Avro's fields have no names in the message, so all of them must be passed in
                // order.
                None => (Role::Passed, None),
            };
            slots.push(Slot {
                name: field.name.clone(),
                type_: field.type_.clone(),
                role,
                columns: 0,
                null: None,
                number: slots.len(),
                leaf,
                is_optional: self.optional.contains(&field.name),
                least: self.least.get(&field.name).copied(),
                key_names: self.key_names.get(&field.name).cloned().unwrap_or_default(),
                is_extra: false,
            });
        }
    }

    /// The fields of a writer schema's messages, and the columns of their rows.
    ///
    /// Rows are records, or beside the fields with a role.
    pub fn of_writer(
        &self,
        record: &Type,
        members: &[Member],
    ) -> Result<(Vec<Slot>, Arc<[Field]>), String> {
        let mut all = Vec::new();
        self.add_slots(record, members, &mut all);
        let mut slots: Vec<Slot> = Vec::new();
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        for mut slot in all {
            slot.number = slots.len();
            if slot.is_image() {
                let row = slot.type_.record().ok_or("images that are no records")?;
                rows.push(Arc::clone(row));
                slot.null = match &slot.type_ {
                    Type::Union(branches) => branches
                        .iter()
                        .position(|branch| branch.type_ == Type::Null),
                    _ => None,
                };
                slot.type_ = Type::Null;
            } else if slot.role == Role::Passed && self.has_columns {
                columns.push(Field {
                    name: std::mem::take(&mut slot.name),
                    type_: std::mem::replace(&mut slot.type_, Type::Null),
                });
                if let Some(last) = slots.last_mut().filter(|last| last.role == Role::Columns) {
                    last.columns += 1;
                    continue;
                }
                (slot.role, slot.columns) = (Role::Columns, 1);
            }
            slots.push(slot);
        }
        if self.has_columns {
            rows.push(columns.into());
        }
        let first = rows.pop().ok_or("a record without images")?;
        // A plan has one list of columns, for both images.
        if rows.iter().any(|row| *row != first) {
            return Err("images that differ in their columns".into());
        }
        Ok((slots, first))
    }

    /// The type of values in images (of a map or a list), and whether it is a map.
    pub fn cells(&self) -> Option<(&Type, bool)> {
        let slot = self.slots.iter().find(|slot| slot.is_image())?;
        let branches = match &slot.type_ {
            Type::Union(branches) => branches.iter().map(|branch| &branch.type_).collect(),
            other => vec![other],
        };
        branches.into_iter().find_map(|type_| match type_ {
            Type::Map(inner) => Some((&**inner, true)),
            Type::Array(inner) => Some((&**inner, false)),
            _ => None,
        })
    }
}

impl Slot {
    pub fn is_image(&self) -> bool {
        matches!(self.role, Role::Before | Role::After)
    }

    /// Notes whether it is needed for nothing but `extra`; `log`: the leaves of a log position.
    pub fn prepare(&mut self, log: &[Option<usize>]) {
        let is_logged = self.leaf.is_some() && log.contains(&self.leaf);
        let has_rule = self.is_optional || self.least.is_some() || !self.key_names.is_empty();
        let is_passed = matches!(self.role, Role::Extra | Role::Passed);
        self.is_extra = is_passed && !is_logged && !has_rule;
    }

    /// Whether it is an image, or a part of one.
    pub fn has_row(&self) -> bool {
        self.is_image() || self.role == Role::Columns
    }
}
