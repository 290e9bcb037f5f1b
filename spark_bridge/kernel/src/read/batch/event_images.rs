//! The columns `before` and `after` of events under construction.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StructArray};
use arrow_schema::ArrowError;
use serde::Deserialize;

use crate::json::Token;
use crate::read::batch::columns::{Bytes, binary, take_nulls, variant_fields};
use crate::read::batch::image_cells::{Source, cell_of, column_of};
use crate::read::batch::json_cells::{JsonCells, Scratch};
use crate::read::batch::variant_cells::VariantCells;
use crate::read::plans::EventPlan;
use crate::refusal::Result;
use crate::text::append;
use crate::values::Tools;
use crate::variant::Variants;
use crate::variant::encode::{check_size, push_all, width};

/// The type of the columns `before` and `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Json,
    Variant,
}

/// Both columns of images.
pub struct EventImages {
    format: Format,
    before: ImageColumn,
    after: ImageColumn,
    scratch: Scratch,
}

/// A column of images; remembers the cells of the last image.
#[derive(Default)]
struct ImageColumn {
    rows: Bytes,
    /// Only for variants.
    metadata: Bytes,
    valid: Vec<bool>,
    nulls: usize,
    /// Ranges of the last image's cells: for JSON in `rows`, for a variant in `bytes`.
    cells: Vec<Range<usize>>,
    bytes: Vec<u8>,
    /// Whether each cell was a JSON column.
    are_json: Vec<bool>,
    names: Variants,
}

impl EventImages {
    pub fn new(format: Format) -> Self {
        Self {
            format,
            before: ImageColumn::default(),
            after: ImageColumn::default(),
            scratch: Scratch::default(),
        }
    }

    /// Appends the images of an event; values that `before` lacks are taken from `after`.
    pub fn push(
        &mut self,
        source: Source,
        before: Option<&[Token]>,
        after: Option<&[Token]>,
        tools: &mut Tools,
    ) -> Result<()> {
        let Self {
            format, scratch, ..
        } = self;
        // The image after first: most values before an update are equal, and are copied from it.
        self.after
            .push(*format, source, after, None, tools, scratch)?;
        let earlier = after.map(|tokens| (tokens, &self.after));
        self.before
            .push(*format, source, before, earlier, tools, scratch)
    }

    pub fn truncate(&mut self, rows: usize) {
        self.before.truncate(rows);
        self.after.truncate(rows);
    }

    /// Whether images are JSON.
    pub fn are_text(&self) -> bool {
        self.format == Format::Json
    }

    /// Total bytes of all images.
    pub fn size(&self) -> usize {
        self.before.size() + self.after.size()
    }

    /// Returns the images before and after, and clears them.
    pub fn finish(&mut self) -> Result<(ArrayRef, ArrayRef), ArrowError> {
        Ok((
            self.before.finish(self.format)?,
            self.after.finish(self.format)?,
        ))
    }
}

/// An already written image, and its values.
type Earlier<'a> = Option<(&'a [Token], &'a ImageColumn)>;

impl ImageColumn {
    fn push(
        &mut self,
        format: Format,
        source: Source,
        image: Option<&[Token]>,
        earlier: Earlier,
        tools: &mut Tools,
        scratch: &mut Scratch,
    ) -> Result<()> {
        match (image, format) {
            (None, _) => {}
            (Some(image), Format::Json) => self.json(source, image, earlier, tools, scratch)?,
            (Some(image), Format::Variant) => self.variant(source, image, earlier, tools)?,
        }
        self.valid.push(image.is_some());
        self.nulls += usize::from(image.is_none());
        self.rows.end()?;
        self.metadata.end()
    }

    fn json(
        &mut self,
        source: Source,
        image: &[Token],
        earlier: Earlier,
        tools: &mut Tools,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let out = &mut self.rows.data;
        self.cells.clear();
        let EventPlan { order, labels, .. } = source.event;
        for (at, place) in order.iter().enumerate() {
            labels.append(at, out);
            let start = out.len();
            let mut token = image[*place];
            if let Some((tokens, written)) = earlier {
                let cell = cell_of(image, Some(tokens), *place, source);
                if cell.is_earlier {
                    let Range { start, end } = written.cells[at];
                    append(&written.rows.data, start, end, out);
                    continue;
                }
                token = cell.token;
            }
            let (column, form) = column_of(source, *place)?;
            let mut cells = JsonCells {
                out,
                form,
                is_json: !source.plan.is_avro(),
                scratch,
            };
            column
                .reader
                .read(token, source.document, &mut cells, tools)
                .map_err(|refusal| source.plan.refused(refusal, *place, token))?;
            self.cells.push(start..out.len());
        }
        if order.is_empty() {
            out.push(b'{');
        }
        out.push(b'}');
        Ok(())
    }

    fn variant(
        &mut self,
        source: Source,
        image: &[Token],
        earlier: Earlier,
        tools: &mut Tools,
    ) -> Result<()> {
        // JSON columns refer to names by their index in the image, so copies need the same names.
        let mut same_names = earlier.is_some_and(|(tokens, written)| {
            let mut cells = source.event.order.iter().zip(&written.are_json);
            cells.all(|(place, is_json)| {
                !is_json || cell_of(image, Some(tokens), *place, source).is_earlier
            })
        });
        let notes = tools.notes.len();
        self.variant_cells(source, image, earlier, same_names, tools)?;
        // Only then are the cells written twice.
        if same_names && self.names.has_any() {
            // A JSON column adds names that the earlier image lacks.
            same_names = false;
            tools.notes.truncate(notes);
            self.variant_cells(source, image, earlier, same_names, tools)?;
        }
        let out = &mut self.rows.data;
        let (start, before) = (out.len(), self.metadata.data.len());
        let width = width(self.bytes.len());
        out.extend_from_slice(&source.event.heads[usize::from(width / 2)]);
        push_all(&[0], width, out);
        for cell in &self.cells {
            push_all(&[cell.end], width, out);
        }
        out.extend_from_slice(&self.bytes);
        match earlier {
            Some((_, written)) if same_names => {
                written
                    .names
                    .metadata(&source.event.dictionary, &mut self.metadata.data);
            }
            _ => self
                .names
                .metadata(&source.event.dictionary, &mut self.metadata.data),
        }
        check_size(self.rows.data.len() - start)?;
        check_size(self.metadata.data.len() - before)
    }

    /// Writes the cells to `bytes`; `same_names`: JSON of the earlier image may be copied.
    fn variant_cells(
        &mut self,
        source: Source,
        image: &[Token],
        earlier: Earlier,
        same_names: bool,
        tools: &mut Tools,
    ) -> Result<()> {
        self.bytes.clear();
        self.cells.clear();
        self.are_json.clear();
        self.names.clear();
        for (at, place) in source.event.order.iter().enumerate() {
            let start = self.bytes.len();
            let cell = cell_of(image, earlier.map(|(tokens, _)| tokens), *place, source);
            let mut is_json = false;
            match earlier {
                Some((_, written)) if cell.is_earlier && (same_names || !written.are_json[at]) => {
                    self.bytes
                        .extend_from_slice(&written.bytes[written.cells[at].clone()]);
                }
                _ => {
                    let (column, form) = column_of(source, *place)?;
                    let mut cells = VariantCells {
                        out: &mut self.bytes,
                        form,
                        dictionary: &source.event.dictionary,
                        names: &mut self.names,
                        is_json: false,
                        open: Vec::new(),
                    };
                    column
                        .reader
                        .read(cell.token, source.document, &mut cells, tools)
                        .map_err(|refusal| source.plan.refused(refusal, *place, cell.token))?;
                    is_json = cells.is_json;
                }
            }
            self.are_json.push(is_json);
            self.cells.push(start..self.bytes.len());
        }
        Ok(())
    }

    fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
        self.metadata.truncate(rows);
        self.nulls -= self.valid[rows.min(self.valid.len())..]
            .iter()
            .filter(|valid| !**valid)
            .count();
        self.valid.truncate(rows);
    }

    fn size(&self) -> usize {
        self.rows.data.len() + self.metadata.data.len()
    }

    fn finish(&mut self, format: Format) -> Result<ArrayRef, ArrowError> {
        let nulls = take_nulls(&mut self.valid, &mut self.nulls);
        let metadata = binary(&mut self.metadata, None)?;
        if format == Format::Variant {
            let values: BinaryArray = binary(&mut self.rows, None)?;
            let arrays: Vec<ArrayRef> = vec![Arc::new(values), Arc::new(metadata)];
            return Ok(Arc::new(StructArray::try_new(
                variant_fields(),
                arrays,
                nulls,
            )?));
        }
        Ok(Arc::new(binary(&mut self.rows, nulls)?))
    }
}
