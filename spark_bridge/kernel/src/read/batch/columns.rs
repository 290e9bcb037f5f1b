//! Columns of a batch under construction, in Spark's Arrow types.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, ListArray, MapArray, PrimitiveArray,
    StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use crate::plan::{Target, TargetField};
use crate::refusal::{Reason, Refusal, Result};
use crate::values::Zone;

/// Maximum number of values, or bytes of text, that a new batch has room for at once: a message may
/// be much larger than the next ones, and the memory of Python workers limited.
const MAX_ROOM: usize = 1 << 20;
const OFFSET_BYTES: usize = 4;
/// The name of items in Spark's Arrow types.
const ELEMENT: &str = "element";

/// Text or bytes of all rows, concatenated.
#[derive(Default)]
pub struct Bytes {
    pub data: Vec<u8>,
    ends: Vec<i32>,
}

impl Bytes {
    /// Ends the row whose bytes were appended to `data`.
    pub fn end(&mut self) -> Result<()> {
        let end = i32::try_from(self.data.len());
        self.ends.push(
            // Offsets of Arrow's strings have 32 bits.
            end.map_err(|_| Refusal::of(Reason::Size, "column of a batch reaches 2 GiB", 0))?,
        );
        Ok(())
    }

    pub fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.data
            .truncate(self.ends.last().map_or(0, |end| *end as usize));
    }

    /// Start and end of a row in `data`.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        span(&self.ends, row)
    }

    fn repeat(&mut self, row: usize) -> Result<()> {
        let range = self.row(row);
        self.data.extend_from_within(range);
        self.end()
    }

    pub fn offsets(&mut self) -> OffsetBuffer<i32> {
        take_offsets(&mut self.ends)
    }
}

fn take_offsets(ends: &mut Vec<i32>) -> OffsetBuffer<i32> {
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(0);
    offsets.append(ends);
    OffsetBuffer::new(ScalarBuffer::from(offsets))
}

/// The values of all rows; those of NULLs have no meaning.
pub enum Values {
    Boolean(Vec<bool>),
    Byte(Vec<i8>),
    Short(Vec<i16>),
    Integer(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Decimal(Vec<i128>, u8, u8),
    String(Bytes),
    Binary(Bytes),
    Date(Vec<i32>),
    Timestamp(Vec<i64>),
    TimestampNtz(Vec<i64>),
    Interval(Vec<i64>),
    Variant(Bytes, Bytes),
    /// The items of all lists, and their number up to the end of each.
    List(Box<Column>, Vec<i32>),
    /// The names and the values of all maps, and their number up to the end of each.
    Map(Bytes, Box<Column>, Vec<i32>),
    Struct(Vec<(String, Column)>),
}

/// One column; rows are appended, and can be removed from the end.
pub struct Column {
    pub values: Values,
    pub valid: Vec<bool>,
    pub nulls: usize,
    pub nullable: bool,
    /// The zone of wall clocks that become instants.
    pub zone: Option<Arc<Zone>>,
}

impl Column {
    pub fn new(target: &Target, nullable: bool) -> Self {
        let values = match target {
            Target::Boolean => Values::Boolean(Vec::new()),
            Target::Byte => Values::Byte(Vec::new()),
            Target::Short => Values::Short(Vec::new()),
            Target::Integer => Values::Integer(Vec::new()),
            Target::Long => Values::Long(Vec::new()),
            Target::Float => Values::Float(Vec::new()),
            Target::Double => Values::Double(Vec::new()),
            Target::Decimal { precision, scale } => Values::Decimal(Vec::new(), *precision, *scale),
            Target::String => Values::String(Bytes::default()),
            Target::Binary => Values::Binary(Bytes::default()),
            Target::Date => Values::Date(Vec::new()),
            Target::Timestamp => Values::Timestamp(Vec::new()),
            Target::TimestampNtz => Values::TimestampNtz(Vec::new()),
            Target::Interval => Values::Interval(Vec::new()),
            Target::Variant => Values::Variant(Bytes::default(), Bytes::default()),
            Target::Array { element } => {
                Values::List(Box::new(Self::of_field(element)), Vec::new())
            }
            Target::Map { value } => Values::Map(
                Bytes::default(),
                Box::new(Self::of_field(value)),
                Vec::new(),
            ),
            Target::Struct { fields } => Values::Struct(
                fields
                    .iter()
                    .map(|field| (field.name.clone(), Self::of_field(field)))
                    .collect(),
            ),
        };
        Self {
            values,
            valid: Vec::new(),
            nulls: 0,
            nullable,
            zone: None,
        }
    }

    fn of_field(field: &TargetField) -> Self {
        Self::new(&field.target, field.nullable)
    }

    /// The same column, with the zone of its wall clocks.
    pub fn in_zone(mut self, zone: &Arc<Zone>) -> Self {
        self.set_zone(zone);
        self
    }

    fn set_zone(&mut self, zone: &Arc<Zone>) {
        self.zone = Some(Arc::clone(zone));
        match &mut self.values {
            Values::List(items, _) | Values::Map(_, items, _) => items.set_zone(zone),
            Values::Struct(fields) => fields
                .iter_mut()
                .for_each(|(_, field)| field.set_zone(zone)),
            _ => {}
        }
    }

    /// Appends NULL, which has a value, too: Arrow's arrays have one for each row.
    pub fn push_nothing(&mut self) -> Result<()> {
        self.valid.push(false);
        self.nulls += 1;
        match &mut self.values {
            Values::Boolean(values) => values.push(false),
            Values::Byte(values) => values.push(0),
            Values::Short(values) => values.push(0),
            Values::Integer(values) | Values::Date(values) => values.push(0),
            Values::Long(values)
            | Values::Timestamp(values)
            | Values::TimestampNtz(values)
            | Values::Interval(values) => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Double(values) => values.push(0.0),
            Values::Decimal(values, _, _) => values.push(0),
            Values::String(bytes) | Values::Binary(bytes) => bytes.end()?,
            Values::Variant(value, metadata) => {
                value.end()?;
                metadata.end()?;
            }
            Values::List(items, ends) | Values::Map(_, items, ends) => ends.push(items.end()?),
            Values::Struct(fields) => {
                for (_, field) in fields {
                    field.push_nothing()?;
                }
            }
        }
        Ok(())
    }

    /// Notes that the last row is not NULL; its value was appended.
    pub fn added(&mut self) {
        self.valid.push(true);
    }

    /// Appends a copy of the last row.
    pub fn repeat_last(&mut self) -> Result<()> {
        match self.valid.len() {
            0 => Ok(()),
            rows => self.repeat(rows - 1),
        }
    }

    /// Appends a copy of a row.
    fn repeat(&mut self, row: usize) -> Result<()> {
        let valid = self.valid[row];
        self.valid.push(valid);
        self.nulls += usize::from(!valid);
        match &mut self.values {
            Values::Boolean(values) => values.push(values[row]),
            Values::Byte(values) => values.push(values[row]),
            Values::Short(values) => values.push(values[row]),
            Values::Integer(values) | Values::Date(values) => values.push(values[row]),
            Values::Long(values)
            | Values::Timestamp(values)
            | Values::TimestampNtz(values)
            | Values::Interval(values) => values.push(values[row]),
            Values::Float(values) => values.push(values[row]),
            Values::Double(values) => values.push(values[row]),
            Values::Decimal(values, _, _) => values.push(values[row]),
            Values::String(bytes) | Values::Binary(bytes) => bytes.repeat(row)?,
            Values::Variant(value, metadata) => {
                value.repeat(row)?;
                metadata.repeat(row)?;
            }
            Values::List(items, ends) => {
                for item in span(ends, row) {
                    items.repeat(item)?;
                }
                ends.push(items.end()?);
            }
            Values::Map(names, values, ends) => {
                for item in span(ends, row) {
                    names.repeat(item)?;
                    values.repeat(item)?;
                }
                ends.push(values.end()?);
            }
            Values::Struct(fields) => {
                for (_, field) in fields {
                    field.repeat(row)?;
                }
            }
        }
        Ok(())
    }

    /// The number of its rows, as the end of a list whose items they are.
    pub fn end(&self) -> Result<i32> {
        let end = i32::try_from(self.valid.len());
        end.map_err(|_| Refusal::of(Reason::Size, "lists of a batch have 2^31 items", 0))
    }

    /// Keeps only the first rows; also drops the beginning of an unfinished row.
    pub fn truncate(&mut self, rows: usize) {
        match &mut self.values {
            Values::Boolean(values) => values.truncate(rows),
            Values::Byte(values) => values.truncate(rows),
            Values::Short(values) => values.truncate(rows),
            Values::Integer(values) | Values::Date(values) => values.truncate(rows),
            Values::Long(values)
            | Values::Timestamp(values)
            | Values::TimestampNtz(values)
            | Values::Interval(values) => values.truncate(rows),
            Values::Float(values) => values.truncate(rows),
            Values::Double(values) => values.truncate(rows),
            Values::Decimal(values, _, _) => values.truncate(rows),
            Values::String(bytes) | Values::Binary(bytes) => bytes.truncate(rows),
            Values::Variant(value, metadata) => {
                value.truncate(rows);
                metadata.truncate(rows);
            }
            Values::List(items, ends) => {
                ends.truncate(rows);
                items.truncate(ends.last().map_or(0, |end| *end as usize));
            }
            Values::Map(names, values, ends) => {
                ends.truncate(rows);
                let rows = ends.last().map_or(0, |end| *end as usize);
                names.truncate(rows);
                values.truncate(rows);
            }
            Values::Struct(fields) => fields
                .iter_mut()
                .for_each(|(_, field)| field.truncate(rows)),
        }
        self.nulls -= self.valid[rows.min(self.valid.len())..]
            .iter()
            .filter(|valid| !**valid)
            .count();
        self.valid.truncate(rows);
    }

    /// Bytes of all text and binary values, and of the items of lists, which no row has by its type.
    pub fn size(&self) -> usize {
        match &self.values {
            Values::String(bytes) | Values::Binary(bytes) => bytes.data.len(),
            Values::Variant(value, metadata) => value.data.len() + metadata.data.len(),
            Values::List(items, _) => items.size() + items.valid.len() * items.row_bytes(),
            Values::Map(names, values, _) => {
                let bytes = OFFSET_BYTES + values.row_bytes();
                names.data.len() + values.size() + values.valid.len() * bytes
            }
            Values::Struct(fields) => fields.iter().map(|(_, field)| field.size()).sum(),
            _ => 0,
        }
    }

    /// Bytes of a row that is NULL or empty.
    fn row_bytes(&self) -> usize {
        match &self.values {
            Values::Struct(fields) => {
                1 + fields
                    .iter()
                    .map(|(_, field)| field.row_bytes())
                    .sum::<usize>()
            }
            Values::Decimal(..) => 17,
            Values::Variant(..) => 1 + 2 * OFFSET_BYTES,
            _ => 1 + 8,
        }
    }

    /// Returns the rows as an array, text as bytes, and clears the column.
    pub fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        fn primitive<T: ArrowPrimitiveType>(
            values: &mut Vec<T::Native>,
            nulls: Option<NullBuffer>,
        ) -> Result<PrimitiveArray<T>, ArrowError> {
            PrimitiveArray::try_new(ScalarBuffer::from(take_values(values)), nulls)
        }
        let nulls = take_nulls(&mut self.valid, &mut self.nulls);
        let array: ArrayRef = match &mut self.values {
            Values::Boolean(values) => {
                Arc::new(BooleanArray::new(take_values(values).into(), nulls))
            }
            Values::Byte(values) => Arc::new(primitive::<Int8Type>(values, nulls)?),
            Values::Short(values) => Arc::new(primitive::<Int16Type>(values, nulls)?),
            Values::Integer(values) => Arc::new(primitive::<Int32Type>(values, nulls)?),
            Values::Long(values) => Arc::new(primitive::<Int64Type>(values, nulls)?),
            Values::Float(values) => Arc::new(primitive::<Float32Type>(values, nulls)?),
            Values::Double(values) => Arc::new(primitive::<Float64Type>(values, nulls)?),
            Values::Decimal(values, precision, scale) => {
                let scale = i8::try_from(*scale).unwrap_or(i8::MAX);
                let array = primitive::<Decimal128Type>(values, nulls)?;
                Arc::new(array.with_precision_and_scale(*precision, scale)?)
            }
            Values::String(bytes) | Values::Binary(bytes) => Arc::new(binary(bytes, nulls)?),
            Values::Date(values) => Arc::new(primitive::<Date32Type>(values, nulls)?),
            Values::Timestamp(values) => {
                let array = primitive::<TimestampMicrosecondType>(values, nulls)?;
                Arc::new(array.with_timezone("UTC"))
            }
            Values::TimestampNtz(values) => {
                Arc::new(primitive::<TimestampMicrosecondType>(values, nulls)?)
            }
            Values::Interval(values) => {
                Arc::new(primitive::<DurationMicrosecondType>(values, nulls)?)
            }
            Values::Variant(value, metadata) => {
                let fields = variant_fields();
                let arrays: Vec<ArrayRef> = vec![
                    Arc::new(binary(value, None)?),
                    Arc::new(binary(metadata, None)?),
                ];
                Arc::new(StructArray::try_new(fields, arrays, nulls)?)
            }
            Values::List(items, ends) => {
                let nullable = items.nullable;
                let items = items.finish()?;
                let field = Field::new(ELEMENT, items.data_type().clone(), nullable);
                let offsets = take_offsets(ends);
                Arc::new(ListArray::try_new(field.into(), offsets, items, nulls)?)
            }
            Values::Map(names, values, ends) => {
                let nullable = values.nullable;
                let arrays = vec![Arc::new(binary(names, None)?) as ArrayRef, values.finish()?];
                let fields = map_fields(DataType::Binary, arrays[1].data_type().clone(), nullable);
                let entries = StructArray::try_new(fields.clone(), arrays, None)?;
                let offsets = take_offsets(ends);
                Arc::new(MapArray::try_new(
                    entries_field(fields),
                    offsets,
                    entries,
                    nulls,
                    false,
                )?)
            }
            Values::Struct(fields) => {
                let arrays = fields.iter_mut().map(|(_, field)| field.finish());
                let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
                let of_array = |((name, field), array): (&(String, Column), &ArrayRef)| {
                    Field::new(name, array.data_type().clone(), field.nullable)
                };
                let fields: Fields = fields.iter().zip(&arrays).map(of_array).collect();
                Arc::new(StructArray::try_new(fields, arrays, nulls)?)
            }
        };
        Ok(array)
    }
}

/// Start and end of a row, by the ends of all rows.
fn span(ends: &[i32], row: usize) -> std::ops::Range<usize> {
    let start = if row == 0 { 0 } else { ends[row - 1] };
    start as usize..ends[row] as usize
}

/// The type of a target's array in Spark, where its text is an array of bytes here.
pub fn shown_type(target: &Target, found: &DataType) -> DataType {
    match (target, found) {
        (Target::String, _) => DataType::Utf8,
        (Target::Array { element }, DataType::List(field)) => {
            let inner = shown_type(&element.target, field.data_type());
            DataType::List(Field::new(ELEMENT, inner, field.is_nullable()).into())
        }
        (Target::Map { value }, DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(fields) => {
                let inner = shown_type(&value.target, fields[1].data_type());
                let fields = map_fields(DataType::Utf8, inner, value.nullable);
                DataType::Map(entries_field(fields), false)
            }
            _ => found.clone(),
        },
        (Target::Struct { fields }, DataType::Struct(arrays)) => {
            let shown = |(field, array): (&TargetField, &Arc<Field>)| {
                let inner = shown_type(&field.target, array.data_type());
                Field::new(&field.name, inner, field.nullable)
            };
            DataType::Struct(fields.iter().zip(arrays).map(shown).collect())
        }
        _ => found.clone(),
    }
}

/// The fields of maps, as Spark names them.
fn map_fields(names: DataType, values: DataType, nullable: bool) -> Fields {
    vec![
        Field::new("key", names, false),
        Field::new("value", values, nullable),
    ]
    .into()
}

fn entries_field(fields: Fields) -> Arc<Field> {
    Field::new("entries", DataType::Struct(fields), false).into()
}

/// Returns the rows as an array, and clears them.
pub fn binary(bytes: &mut Bytes, nulls: Option<NullBuffer>) -> Result<BinaryArray, ArrowError> {
    let offsets = bytes.offsets();
    BinaryArray::try_new(offsets, take_values(&mut bytes.data).into(), nulls)
}

/// Which rows of a batch are valid, if not all; `count`: the number of the others.
pub fn take_nulls(valid: &mut Vec<bool>, count: &mut usize) -> Option<NullBuffer> {
    let nulls = (*count > 0).then(|| NullBuffer::from(&valid[..]));
    valid.clear();
    *count = 0;
    nulls
}

/// Takes the values of a batch, and leaves room for those of the next one: probably as many.
fn take_values<T>(values: &mut Vec<T>) -> Vec<T> {
    // Without growing again and again, which copies.
    let room = (values.len() + values.len() / 8).min(MAX_ROOM);
    std::mem::replace(values, Vec::with_capacity(room))
}

/// The fields of Spark's variants in Arrow.
pub fn variant_fields() -> Fields {
    ["value", "metadata"]
        .map(|name| Field::new(name, DataType::Binary, false))
        .to_vec()
        .into()
}
