//! How rows become columns: the part that plans of equal tables share.

use std::sync::Arc;

use serde::Deserialize;

use crate::avro_cells::{Branches, Forms};
use crate::cells::Form;
use crate::columns::Target;
use crate::encodings::Encoding;
use crate::envelope::Envelope;
use crate::event_plan::{self, EventPlan};
use crate::json::{Cursor, Kind, Token};
use crate::layout::Layout;
use crate::names::Names;
use crate::noted::Noted;
use crate::numbered::Numbers;
use crate::open_cells::{self, Cell};
use crate::reader::Reader;
use crate::refusal::{Refusal, Step};
use crate::shared::{Shared, Weighed};

/// The columns of a table and their use, as described by the bridge.
#[derive(Deserialize)]
pub struct Description {
    columns: Vec<ColumnDescription>,
    /// Names in `_absent`.
    absent: Vec<String>,
    keyed: bool,
    /// Whether columns are shown in the order of whole rows.
    #[serde(default)]
    in_order: bool,
    event: Option<event_plan::Description>,
}

#[derive(Deserialize)]
struct ColumnDescription {
    /// As in documents.
    name: String,
    #[serde(flatten)]
    encoding: Encoding,
    #[serde(rename = "use")]
    use_: Sink,
    /// Whether a change of its value is a change of the key.
    key: bool,
    /// A value to count.
    #[serde(default)]
    noted: Option<Noted>,
    /// Branches, if the type is a union.
    #[serde(default)]
    branches: Branches,
    /// Names, if the output has their numbers.
    #[serde(default)]
    numbers: Option<Numbers>,
}

/// The use of a column's values.
#[derive(Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sink {
    /// Index of the batch's column.
    Output(usize),
    /// Only in images, with this form of integers.
    Image(Form),
    /// Parsed as this type, then dropped.
    Check(Target),
    /// Must be NULL.
    Null,
    Nothing,
}

#[derive(PartialEq, Eq, Hash)]
pub struct PlanColumn {
    pub reader: Arc<Reader>,
    pub sink: Sink,
    pub key: bool,
    pub numbers: Option<Box<Numbers>>,
}

#[derive(PartialEq, Eq, Hash)]
pub struct RowPlan {
    pub columns: Vec<PlanColumn>,
    pub names: Names,
    /// The expected first column, and for each column the expected next one.
    next: Vec<u32>,
    /// By column, if values are in unions.
    pub forms: Vec<Forms>,
    /// By column, if values are in cells.
    cells: Vec<Cell>,
    pub absent: Arc<[String]>,
    /// Bytes of `_absent` in a row.
    pub absent_bytes: usize,
    /// Columns of the batch that the table lacks.
    pub lacking: Vec<usize>,
    pub keyed: bool,
    in_order: bool,
    pub event: Option<EventPlan>,
}

impl RowPlan {
    /// Assumes the order of columns in the row of the document just read.
    pub fn new(
        description: Description,
        outputs: usize,
        layout: &Layout,
        envelope: &Envelope,
        document: &str,
        shared: &mut Shared,
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
            if let Sink::Output(place) = column.use_ {
                if lacking.get(place) != Some(&true) {
                    return Err(Refusal::new("a plan with a wrong column", 0));
                }
                lacking[place] = false;
            }
            let reader = Reader::new(column.encoding, column.noted);
            columns.push(PlanColumn {
                reader: shared.readers.share(reader),
                sink: column.use_,
                key: column.key,
                numbers: column.numbers.map(Box::new),
            });
        }
        let mut cells = Vec::new();
        if let Some(cell) = &layout.cell {
            let mut found = open_cells::cells(envelope.row_token(), cell, document)?;
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
        let event = match description.event {
            Some(event) => Some(EventPlan::new(event, columns.len(), layout, shared)?),
            None => None,
        };
        Ok(Self {
            columns,
            next,
            names,
            forms,
            cells,
            absent_bytes: description.absent.iter().map(|name| name.len() + 4).sum(),
            absent: description.absent.into(),
            lacking: (0..outputs).filter(|place| lacking[*place]).collect(),
            keyed: description.keyed,
            in_order: description.in_order,
            event,
        })
    }

    /// Whether the other plan reads the same rows from the same messages.
    pub fn reads_same(&self, other: &Self) -> bool {
        self.forms == other.forms && self.names == other.names && self.cells == other.cells
    }

    /// Appends the values of an image to `tokens`, in the order of the plan's columns.
    ///
    /// None if the columns differ; `whole`: no column may be missing.
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
                    if self.in_order && whole && place != expected {
                        return Ok(None);
                    }
                    if let Some(cell) = self.cells.get(place) {
                        // The cells of a whole row must be in the order of the key's columns.
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

impl Weighed for RowPlan {
    fn bytes(&self) -> usize {
        let absent = self
            .absent
            .iter()
            .map(|name| size_of::<String>() + name.len());
        let numbers = self
            .columns
            .iter()
            .filter_map(|column| column.numbers.as_ref());
        size_of::<Self>()
            + size_of_val(&self.columns[..])
            + numbers.map(|numbers| numbers.bytes()).sum::<usize>()
            + self.names.bytes()
            + size_of_val(&self.next[..])
            + self.forms.iter().map(Forms::bytes).sum::<usize>()
            + self.cells.iter().map(Cell::bytes).sum::<usize>()
            + absent.sum::<usize>()
            + size_of_val(&self.lacking[..])
            + self.event.as_ref().map_or(0, EventPlan::bytes)
    }
}

/// The order of columns in a row, as in `RowPlan::next`.
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
