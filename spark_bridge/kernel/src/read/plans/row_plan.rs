//! How rows become columns: the part that plans of equal tables share.

use std::sync::Arc;

use serde::Deserialize;

use crate::avro::{Datum, Field};
use crate::json::{Cursor, Kind, Token};
use crate::plan::{Encoding, Form, Layout, Target};
use crate::pool::{Pool, Weighed};
use crate::read::envelope::Images;
use crate::read::plans::avro_cells::{Branches, Forms, RecordCell};
use crate::read::plans::event_plan::{self, EventPlan};
use crate::read::plans::example::Example;
use crate::read::plans::extra::Extra;
use crate::read::plans::open_cells::{self, Cell};
use crate::read::plans::row_order::RowOrder;
use crate::refusal::{Refusal, Result};
use crate::text::Names;
use crate::text::bytes::Bound;
use crate::values::DefaultNull;
use crate::values::Numbers;
use crate::values::Reader;

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
    default_null: Option<DefaultNull>,
    bound: Option<Bound>,
    /// Branches, if the type is a union.
    #[serde(default)]
    branches: Branches,
    /// Names, if the output has their numbers.
    #[serde(default)]
    numbers: Option<Numbers>,
    /// Negative integers that only `extra` shows are left to the reference.
    #[serde(default)]
    signless: bool,
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

/// Parts that the rows of several plans share.
#[derive(Default)]
pub struct RowParts {
    readers: Pool<Reader>,
    extras: Pool<Extra>,
}

impl RowParts {
    pub fn bytes(&self) -> usize {
        self.readers.bytes() + self.extras.bytes()
    }

    /// Drops what no plan uses.
    pub fn sweep(&mut self) {
        self.readers.sweep();
        self.extras.sweep();
    }
}

/// How to read a column, and where its values go.
#[derive(PartialEq, Eq, Hash)]
pub struct PlanColumn {
    pub reader: Arc<Reader>,
    pub sink: Sink,
    pub key: bool,
    pub numbers: Option<Box<Numbers>>,
    pub signless: bool,
}

/// How to read the rows of a table.
#[derive(PartialEq, Eq, Hash)]
pub struct RowPlan {
    pub columns: Vec<PlanColumn>,
    pub names: Names,
    /// Of the columns in documents, unless values are in cells.
    order: RowOrder,
    /// By column, if values are in unions.
    pub forms: Vec<Forms>,
    /// By field, if rows are records.
    pub record: Vec<RecordCell>,
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
        example: &Example,
        shared: &mut RowParts,
    ) -> Result<Self> {
        let &Example {
            layout,
            envelope,
            document,
            row,
            ..
        } = example;
        let mut lacking: Vec<bool> = vec![true; outputs];
        let mut names = Names::default();
        let mut columns = Vec::new();
        let mut forms = Vec::new();
        for column in description.columns {
            if let (Some(avro), None) = (&layout.avro, row) {
                let are_bytes = column.encoding.is_of_bytes();
                forms.push(Forms::new(avro, &column.branches, are_bytes)?);
            }
            if names.add(&column.name, 0) != columns.len() {
                return Err(Refusal::new("two columns have one name", 0));
            }
            if let Sink::Output(place) = column.use_ {
                // Two columns for one output would give it two values per row.
                if lacking.get(place) != Some(&true) {
                    return Err(Refusal::new("plan has a wrong column", 0));
                }
                lacking[place] = false;
            }
            let reader = Reader::new(column.encoding, column.default_null, column.bound);
            columns.push(PlanColumn {
                reader: shared.readers.share(reader),
                sink: column.use_,
                key: column.key,
                numbers: column.numbers.map(Box::new),
                signless: column.signless,
            });
        }
        let record = record_cells(layout, row.unwrap_or_default(), &names, &columns)?;
        let mut cells = Vec::new();
        if let Some(cell) = &layout.cell {
            let mut found = open_cells::cells(envelope.row_token(), cell, document)?;
            for name in names.texts.iter() {
                let cell = found.remove(name);
                cells.push(cell.ok_or(Refusal::new("column without a cell", 0))?);
            }
            // A column that the plan lacks would be read as unknown, or not at all.
            if !found.is_empty() {
                return Err(Refusal::new("cells of unknown columns", 0));
            }
        }
        let mut order = RowOrder::default();
        // Cells are compared one by one, and Avro's names have no quotes: only plain objects have
        // labels.
        if layout.avro.is_none() && cells.is_empty() {
            order = RowOrder::new(&names, envelope.row_token(), document)?;
        }
        let event = match description.event {
            Some(event) => Some(EventPlan::new(
                event,
                columns.len(),
                layout,
                &mut shared.extras,
            )?),
            None => None,
        };
        Ok(Self {
            columns,
            order,
            names,
            forms,
            record,
            cells,
            absent_bytes: description.absent.iter().map(|name| name.len() + 4).sum(),
            absent: description.absent.into(),
            lacking: (0..outputs).filter(|place| lacking[*place]).collect(),
            keyed: description.keyed,
            in_order: description.in_order,
            event,
        })
    }

    /// The refusal of a column's value.
    pub fn refused(&self, refusal: Refusal, column: usize, token: Token) -> Refusal {
        // Tokens of Avro refer to no byte of the message.
        let is_json = !self.is_avro();
        refusal.in_column(column, is_json.then(|| token.whole_span().0 as u32))
    }

    /// Whether values are read from Avro.
    pub fn is_avro(&self) -> bool {
        !(self.forms.is_empty() && self.record.is_empty())
    }

    /// Whether the other plan reads the same rows from the same messages.
    pub fn reads_same(&self, other: &Self) -> bool {
        let same_cells = self.forms == other.forms && self.record == other.record;
        same_cells && self.names == other.names && self.cells == other.cells
    }

    /// Reads an image, or a list of images; false if the columns differ from the plan's.
    ///
    /// `whole`: no column may be missing.
    pub fn images(
        &self,
        images: &mut Images,
        in_list: bool,
        whole: bool,
        cursor: &mut Cursor,
    ) -> Result<bool> {
        images.begin_rows(self.columns.len());
        if !in_list {
            images.add_row(true);
            images.is_read = self.image(cursor, whole, &mut images.tokens)?.is_some();
            return Ok(images.is_read);
        }
        cursor.expect(b'[', "images are not a list")?;
        if cursor.take(b']') {
            images.is_read = true;
            return Ok(true);
        }
        loop {
            cursor.blanks();
            let has_image = cursor.begins_with(b'{');
            if has_image {
                if self.image(cursor, whole, &mut images.tokens)?.is_none() {
                    return Ok(false);
                }
            } else {
                let value = cursor.value()?;
                if value.kind != Kind::Null {
                    let at = value.start as usize;
                    return Err(Refusal::new("image is not an object", at));
                }
            }
            images.add_row(has_image);
            if !cursor.more(b']')? {
                images.is_read = true;
                return Ok(true);
            }
        }
    }

    /// Reads images again that another plan read at this token.
    pub fn images_at(
        &self,
        images: &mut Images,
        in_list: bool,
        whole: bool,
        token: Token,
        document: &str,
    ) -> Result<bool> {
        if matches!(token.kind, Kind::Missing | Kind::Null) {
            images.clear();
            return Ok(true);
        }
        let mut cursor = Cursor::at(document, token.start)?;
        self.images(images, in_list, whole, &mut cursor)
    }

    /// Appends the values of an image to `tokens`, in the order of the plan's columns.
    ///
    /// None if the columns differ; `whole`: no column may be missing.
    fn image(
        &self,
        cursor: &mut Cursor,
        whole: bool,
        tokens: &mut Vec<Token>,
    ) -> Result<Option<()>> {
        let start = tokens.len();
        tokens.resize(start + self.columns.len(), Token::MISSING);
        cursor.expect(b'{', "image has an unexpected form")?;
        if cursor.take(b'}') {
            return Ok((!whole || self.columns.is_empty()).then_some(()));
        }
        let (mut count, mut rank) = (0, 0);
        loop {
            let order = self.order.from(rank);
            let (members, follows) = cursor.fast_members(order, &mut tokens[start..]);
            count += members;
            rank += members;
            // The last member was read, or the next one has another form.
            if !follows {
                if !cursor.more(b'}')? {
                    break;
                }
                continue;
            }
            let Some(place) = self.member(cursor, whole, rank, &mut tokens[start..])? else {
                return Ok(None);
            };
            count += 1;
            rank = self.order.rank(place) + 1;
            if !cursor.more(b'}')? {
                break;
            }
        }
        Ok((!whole || count == self.columns.len()).then_some(()))
    }

    /// Reads a member in any form, whose rank is probably `rank`; the column, if it is the plan's.
    fn member(
        &self,
        cursor: &mut Cursor,
        whole: bool,
        rank: usize,
        tokens: &mut [Token],
    ) -> Result<Option<usize>> {
        let at = cursor.position();
        let expected = self.order.column(rank);
        let is_expected = self.cells.get(expected);
        let place = if is_expected.is_some_and(|cell| cell.take(cursor)) {
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
        let token = &mut tokens[place];
        if token.kind != Kind::Missing {
            return Err(Refusal::new("two members have one name", at));
        }
        *token = cursor.value()?;
        let closes = self.cells.get(place).is_none_or(|cell| cell.close(cursor));
        Ok(closes.then_some(place))
    }
}

impl RowPlan {
    /// The values of an image, in the order of the plan's columns; a map or a list, after the index
    /// of its branch.
    ///
    /// None if columns or their types differ from the plan; `tokens` must be all missing before.
    pub fn avro_image(
        &self,
        is_map: bool,
        datum: &mut Datum,
        document: &mut Vec<u8>,
        tokens: &mut [Token],
    ) -> Result<Option<usize>> {
        let mut found = 0;
        let mut expected = 0;
        loop {
            let count = datum.block(found)?;
            if count == 0 {
                return Ok(Some(found));
            }
            // Before the loop: the count is claimed by the message.
            if count > tokens.len() - found {
                return Ok(None);
            }
            for _ in 0..count {
                let place = if is_map {
                    let name = datum.bytes()?;
                    let Some(place) = self.names.find_from(expected, name) else {
                        return Ok(None);
                    };
                    place
                } else {
                    expected
                };
                let token = &mut tokens[place];
                if token.kind != Kind::Missing {
                    return datum.refuse("two members have one name");
                }
                match self.forms[place].read(datum, document)? {
                    Some(value) => *token = value,
                    None => return Ok(None),
                }
                expected = place + 1;
            }
            found += count;
        }
    }
}

/// How to read the fields of a record, each of which must be a column.
fn record_cells(
    layout: &Layout,
    fields: &[Field],
    names: &Names,
    columns: &[PlanColumn],
) -> Result<Vec<RecordCell>> {
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let mut cells = Vec::new();
    let mut is_found = vec![false; columns.len()];
    for field in fields {
        let place = names.find(&field.name);
        let place = place.ok_or(Refusal::new("record has an unknown column", 0))?;
        if std::mem::replace(&mut is_found[place], true) {
            return Err(Refusal::new("two fields have one name", 0));
        }
        // A text that stands for an unknown value counts in any column.
        let PlanColumn {
            sink, key, reader, ..
        } = &columns[place];
        let is_needed = *key || *sink != Sink::Nothing || !layout.lacks.is_empty();
        let is_unscaled = reader.takes_unscaled();
        cells.push(RecordCell::new(&field.type_, place, is_needed, is_unscaled));
    }
    if is_found.contains(&false) {
        return Err(Refusal::new("record lacks a column", 0));
    }
    Ok(cells)
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
            + self.order.bytes()
            + self.forms.iter().map(Forms::bytes).sum::<usize>()
            + size_of_val(&self.record[..])
            + self.cells.iter().map(Cell::bytes).sum::<usize>()
            + absent.sum::<usize>()
            + size_of_val(&self.lacking[..])
            + self.event.as_ref().map_or(0, EventPlan::bytes)
    }
}
