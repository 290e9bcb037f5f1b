//! Plans: how the rows of one table schema become columns, found by the schema key.

use std::sync::Arc;

use serde::Deserialize;

use crate::avro_cells::{Branches, Forms};
use crate::cells::Form;
use crate::columns::Target;
use crate::connect::{self, Key};
use crate::encodings::{Encoding, Reader};
use crate::envelope::Envelope;
use crate::event_plan::{self, EventPlan};
use crate::json::{Cursor, Kind, Token};
use crate::layout::Layout;
use crate::members::Members;
use crate::names::Names;
use crate::noted::Noted;
use crate::numbered::Numbers;
use crate::open_protocol::{self, Cell};
use crate::plan_table::NameRef;
use crate::refusal::{Refusal, Step};

/// Of a plan and of each of its columns, besides texts.
const PLAN_BYTES: usize = 1000;
const COLUMN_BYTES: usize = 200;

/// A plan as the bridge describes it.
#[derive(Deserialize)]
pub struct Description {
    columns: Vec<ColumnDescription>,
    /// The names in `_absent`.
    absent: Vec<String>,
    keyed: bool,
    /// Bytes of names that every row of a message repeats.
    repeats: usize,
    event: Option<event_plan::Description>,
    /// First and last commit_ts, source time or position for which the schema holds.
    #[serde(default)]
    commit_ts: Option<(i64, i64)>,
    #[serde(default)]
    source_time: Option<(i64, i64)>,
    #[serde(default)]
    position: Option<(i64, i64)>,
}

#[derive(Deserialize)]
struct ColumnDescription {
    /// As it stands in documents.
    name: String,
    #[serde(flatten)]
    encoding: Encoding,
    #[serde(rename = "use")]
    use_: Use,
    /// A change of its value is a change of the key.
    key: bool,
    /// A value that is counted.
    #[serde(default)]
    noted: Option<Noted>,
    /// Of a union of types.
    #[serde(default)]
    branches: Branches,
    /// Names whose numbers the output has.
    #[serde(default)]
    numbers: Option<Numbers>,
}

/// What becomes of a column's values.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Use {
    /// The number of the batch's column.
    Output(usize),
    /// In images, with integers of this form.
    Image(Form),
    /// Parsed as this type, not kept.
    Check(Target),
    /// Must be NULL.
    Null,
    Nothing,
}

pub enum Sink {
    Output(usize),
    Image(Form),
    Check(Target),
    Null,
    Nothing,
}

pub struct PlanColumn {
    pub reader: Reader,
    pub sink: Sink,
    pub key: bool,
    pub numbers: Option<Numbers>,
}

/// Of one part of the schema key.
#[derive(PartialEq, Eq)]
enum Part {
    Missing,
    /// The bytes of the value.
    Bytes(String),
    Members(Box<Members>),
}

impl Part {
    /// About what it takes.
    fn bytes(&self) -> usize {
        match self {
            Self::Missing => 0,
            Self::Bytes(text) => text.len(),
            Self::Members(members) => members.bytes(),
        }
    }
}

pub struct Plan {
    /// Database, schema and table.
    table: [String; 3],
    /// The number of the layout, whose parts the key has.
    pub layout: usize,
    key: Vec<Part>,
    /// Of Avro.
    pub schema_key: Vec<u8>,
    pub columns: Vec<PlanColumn>,
    pub names: Names,
    /// The column that mostly is the first, and the ones behind each of them.
    next: Vec<u32>,
    /// Of the columns, where values lie in unions.
    pub forms: Vec<Forms>,
    /// Of the columns, where values lie in cells.
    cells: Vec<Cell>,
    pub absent: Arc<[String]>,
    /// Bytes of `_absent` in a row.
    pub absent_bytes: usize,
    /// Columns of the batch that the table lacks.
    pub lacking: Vec<usize>,
    pub keyed: bool,
    pub repeats: usize,
    pub event: Option<EventPlan>,
    /// About what the plan takes.
    pub bytes: usize,
    commit_ts: Option<(i64, i64)>,
    source_time: Option<(i64, i64)>,
    position: Option<(i64, i64)>,
    message_key: MessageKey,
}

/// What the schema key has of messages' keys.
#[derive(PartialEq, Eq)]
enum MessageKey {
    Nothing,
    /// There is none.
    Missing,
    Columns(Key),
}

impl Plan {
    pub fn new(
        description: Description,
        outputs: usize,
        layout: &Layout,
        envelope: &Envelope,
        document: &str,
        key_document: Option<&str>,
    ) -> Step<Self> {
        let mut lacking: Vec<bool> = vec![true; outputs];
        let mut names = Names::default();
        let mut columns = Vec::new();
        let mut forms = Vec::new();
        for column in description.columns {
            if let Some(avro) = &layout.avro {
                let are_bytes = column.encoding.is_of_bytes();
                forms.push(Forms::new(avro, &column.branches, are_bytes)?);
            }
            if names.add(&column.name, 0) != columns.len() {
                return Err(Refusal::new("two columns of one name", 0));
            }
            let sink = match column.use_ {
                Use::Output(place) => {
                    if lacking.get(place) != Some(&true) {
                        return Err(Refusal::new("a plan with a wrong column", 0));
                    }
                    lacking[place] = false;
                    Sink::Output(place)
                }
                Use::Image(form) => Sink::Image(form),
                Use::Check(target) => Sink::Check(target),
                Use::Null => Sink::Null,
                Use::Nothing => Sink::Nothing,
            };
            columns.push(PlanColumn {
                reader: Reader::new(column.encoding, column.noted),
                sink,
                key: column.key,
                numbers: column.numbers,
            });
        }
        let mut key = Vec::new();
        for (place, (token, name)) in envelope.key.iter().zip(&layout.parts).enumerate() {
            let part = if layout.schema == Some(place) && token.kind != Kind::Missing {
                let schema = token.text(document);
                connect::check_schema(schema)?;
                if layout.is_odd(schema) {
                    return Err(Refusal::new("text that rows lack", token.start as usize));
                }
                Part::Bytes(schema.to_owned())
            } else {
                part_of(*token, document)?
            };
            if layout.column_types.as_ref() == Some(name) {
                let Part::Members(types) = &part else {
                    return Err(Refusal::new("no types of columns", token.start as usize));
                };
                if !names.texts.iter().all(|name| types.is_text(name)) {
                    return Err(Refusal::new(
                        "a column without a type",
                        token.start as usize,
                    ));
                }
            }
            key.push(part);
        }
        let mut cells = Vec::new();
        if let Some(cell) = &layout.cell {
            let mut found = open_protocol::cells(envelope.row_token(), cell, document)?;
            for name in names.texts.iter() {
                let cell = found.remove(name);
                cells.push(cell.ok_or(Refusal::new("a column without a cell", 0))?);
            }
            if !found.is_empty() {
                return Err(Refusal::new("cells of other columns", 0));
            }
        }
        let next = if layout.avro.is_none() && cells.is_empty() {
            next_of(&names, envelope.row_token(), document)?
        } else {
            Vec::new()
        };
        let lacking = (0..outputs).filter(|place| lacking[*place]).collect();
        let table = [envelope.database, envelope.schema, envelope.table];
        let event = match description.event {
            Some(event) => Some(EventPlan::new(event, columns.len(), layout)?),
            None => None,
        };
        let bytes = PLAN_BYTES
            + names.bytes()
            + columns.len() * COLUMN_BYTES
            + columns
                .iter()
                .map(|column| {
                    column.reader.bytes() + column.numbers.as_ref().map_or(0, Numbers::bytes)
                })
                .sum::<usize>()
            + key.iter().map(Part::bytes).sum::<usize>()
            + cells.iter().map(Cell::bytes).sum::<usize>()
            + forms.iter().map(Forms::bytes).sum::<usize>()
            + envelope.schema_key.len()
            + event.as_ref().map_or(0, EventPlan::all_bytes);
        Ok(Self {
            table: table.map(|token| token.text(document).to_owned()),
            layout: layout.number,
            key,
            schema_key: envelope.schema_key.clone(),
            columns,
            bytes,
            next,
            names,
            forms,
            cells,
            absent_bytes: description.absent.iter().map(|name| name.len() + 4).sum(),
            absent: description.absent.into(),
            lacking,
            keyed: description.keyed,
            repeats: description.repeats,
            event,
            commit_ts: description.commit_ts,
            source_time: description.source_time,
            position: description.position,
            message_key: match key_document {
                _ if !layout.keyed => MessageKey::Nothing,
                None => MessageKey::Missing,
                Some(document) => MessageKey::Columns(Key::new(document)?),
            },
        })
    }

    /// Whether the plan is for messages with the same key and columns as the other one.
    pub fn replaces(&self, other: &Self) -> bool {
        self.layout == other.layout
            && self.key == other.key
            && self.schema_key == other.schema_key
            && self.forms == other.forms
            && self.names.texts == other.names.texts
            && self.cells == other.cells
            && self.commit_ts == other.commit_ts
            && self.source_time == other.source_time
            && self.position == other.position
            && self.message_key == other.message_key
    }

    /// Whether the envelope's schema key is the plan's.
    pub fn fits(&self, envelope: &Envelope, document: &str) -> bool {
        self.layout == envelope.layout
            && self.holds(envelope)
            && self
                .key
                .iter()
                .zip(&envelope.key)
                .all(|(part, token)| match part {
                    Part::Missing => token.kind == Kind::Missing,
                    Part::Bytes(bytes) => token.whole_text(document) == bytes,
                    Part::Members(members) => {
                        let cursor = Cursor::at(document, token.start);
                        token.kind == Kind::Object
                            && cursor.and_then(|mut cursor| members.are(&mut cursor)) == Ok(true)
                    }
                })
    }

    /// Whether the columns of a message's key are the plan's.
    pub fn has_key(&self, document: Option<&str>) -> Step<bool> {
        match (&self.message_key, document) {
            (MessageKey::Nothing, _) | (MessageKey::Missing, None) => Ok(true),
            (MessageKey::Columns(key), Some(document)) => key.is(document),
            _ => Ok(false),
        }
    }

    /// The bytes of a part of the schema key that is no object in any order.
    pub fn bytes_of_part(&self, part: usize) -> Option<&str> {
        match &self.key[part] {
            Part::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether the missing parts of a schema key are missing in the plan's, too.
    pub fn lacks_parts(&self, key: &[Token]) -> bool {
        key.iter()
            .zip(&self.key)
            .all(|(token, part)| token.kind != Kind::Missing || *part == Part::Missing)
    }

    /// Whether a part of the key is next in the document; it is taken then.
    pub fn has_part(&self, part: usize, cursor: &mut Cursor) -> bool {
        match &self.key[part] {
            Part::Missing => false,
            Part::Bytes(bytes) => cursor.take_all(bytes) && cursor.ends_value(),
            Part::Members(members) => members.are(cursor) == Ok(true),
        }
    }

    /// Whether the plan is of this table.
    pub fn has_name(&self, name: NameRef) -> bool {
        self.table == [name.0, name.1, name.2]
    }

    /// Whether the schema holds at the envelope's position.
    pub fn holds(&self, envelope: &Envelope) -> bool {
        let within = |span: Option<(i64, i64)>, time: Option<i64>| match span {
            None => true,
            Some((low, high)) => time.is_some_and(|time| low <= time && time <= high),
        };
        // A commit_ts goes before any other position.
        let in_position = self.position.is_none() || envelope.commit_ts.is_none();
        within(self.commit_ts, envelope.commit_ts)
            && within(self.source_time, envelope.source_time)
            && within(self.position, envelope.position)
            && in_position
    }

    /// The values of an image, by the places of their columns, appended to `tokens`.
    ///
    /// None where the columns are others; `whole`: none may be missing.
    pub fn image(
        &self,
        cursor: &mut Cursor,
        whole: bool,
        tokens: &mut Vec<Token>,
    ) -> Step<Option<()>> {
        let start = tokens.len();
        tokens.resize(start + self.columns.len(), Token::MISSING);
        cursor.expect(b'{', "an image that is no object")?;
        let mut count = 0;
        let mut expected = self.next.first().map_or(0, |place| *place as usize);
        if !cursor.take(b'}') {
            loop {
                let at = cursor.position();
                let is_expected = match self.cells.get(expected) {
                    Some(cell) => cell.take(cursor),
                    None if !self.cells.is_empty() => false,
                    None => {
                        let name = self.names.texts.bytes_of(expected);
                        name.is_some_and(|name| cursor.take_name(name))
                    }
                };
                let place = if is_expected {
                    expected
                } else {
                    let name = cursor.name()?;
                    let Some(place) = self.names.find_from(expected, cursor.bytes_of(name)) else {
                        return Ok(None);
                    };
                    if let Some(cell) = self.cells.get(place) {
                        // The order of a whole row's cells is that of the key's columns.
                        let in_order = !whole || place == expected;
                        if !in_order || !cell.open(cursor) {
                            return Ok(None);
                        }
                    }
                    place
                };
                let token = &mut tokens[start + place];
                if token.kind != Kind::Missing {
                    return Err(Refusal::new("two members of one name", at));
                }
                *token = cursor.value()?;
                if self
                    .cells
                    .get(place)
                    .is_some_and(|cell| !cell.close(cursor))
                {
                    return Ok(None);
                }
                count += 1;
                expected = self
                    .next
                    .get(place + 1)
                    .map_or(place + 1, |place| *place as usize);
                if !cursor.more(b'}')? {
                    break;
                }
            }
        }
        Ok((!whole || count == self.columns.len()).then_some(()))
    }
}

/// In which order columns lie in a row, as `Plan::next`.
fn next_of(names: &Names, row: Token, document: &str) -> Step<Vec<u32>> {
    let mut next: Vec<u32> = (0..=names.texts.len())
        .zip(0..)
        .map(|(_, place)| place)
        .collect();
    let mut cursor = Cursor::at(document, row.start)?;
    let mut before = 0;
    cursor.take(b'[');
    if cursor.take(b'{') && !cursor.take(b'}') {
        while let Some(place) = names.find(cursor.name()?.text(document)) {
            next[before] = u32::try_from(place).unwrap_or(0);
            before = place + 1;
            cursor.value()?;
            if !cursor.more(b'}')? {
                break;
            }
        }
    }
    Ok(next)
}

fn part_of(token: Token, document: &str) -> Step<Part> {
    match token.kind {
        Kind::Missing => Ok(Part::Missing),
        Kind::Object => Ok(Part::Members(Box::new(Members::read(token, document)?))),
        _ => Ok(Part::Bytes(token.whole_text(document).to_owned())),
    }
}
