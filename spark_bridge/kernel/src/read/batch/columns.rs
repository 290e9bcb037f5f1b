//! Columns of a batch under construction, in Spark's Arrow types.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, PrimitiveArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use crate::plan::Target;
use crate::refusal::{Reason, Refusal, Result};
use crate::values::Zone;

/// Maximum number of values, or bytes of text, that a new batch has room for at once: a message may
/// be much larger than the next ones, and the memory of Python workers limited.
const MAX_ROOM: usize = 1 << 20;

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
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        start as usize..self.ends[row] as usize
    }

    fn repeat_last(&mut self) -> Result<()> {
        let range = self.row(self.ends.len() - 1);
        self.data.extend_from_within(range);
        self.end()
    }

    pub fn offsets(&mut self) -> OffsetBuffer<i32> {
        let mut offsets = Vec::with_capacity(self.ends.len() + 1);
        offsets.push(0);
        offsets.append(&mut self.ends);
        OffsetBuffer::new(ScalarBuffer::from(offsets))
    }
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
        let values = match *target {
            Target::Boolean => Values::Boolean(Vec::new()),
            Target::Byte => Values::Byte(Vec::new()),
            Target::Short => Values::Short(Vec::new()),
            Target::Integer => Values::Integer(Vec::new()),
            Target::Long => Values::Long(Vec::new()),
            Target::Float => Values::Float(Vec::new()),
            Target::Double => Values::Double(Vec::new()),
            Target::Decimal { precision, scale } => Values::Decimal(Vec::new(), precision, scale),
            Target::String => Values::String(Bytes::default()),
            Target::Binary => Values::Binary(Bytes::default()),
            Target::Date => Values::Date(Vec::new()),
            Target::Timestamp => Values::Timestamp(Vec::new()),
            Target::TimestampNtz => Values::TimestampNtz(Vec::new()),
            Target::Interval => Values::Interval(Vec::new()),
            Target::Variant => Values::Variant(Bytes::default(), Bytes::default()),
        };
        Self {
            values,
            valid: Vec::new(),
            nulls: 0,
            nullable,
            zone: None,
        }
    }

    /// The same column, with the zone of its wall clocks.
    pub fn in_zone(self, zone: &Arc<Zone>) -> Self {
        Self {
            zone: Some(Arc::clone(zone)),
            ..self
        }
    }

    /// Notes that the last row is not NULL; its value was appended.
    pub fn added(&mut self) {
        self.valid.push(true);
    }

    /// Appends a copy of the last row.
    pub fn repeat_last(&mut self) -> Result<()> {
        fn again<T: Copy>(values: &mut Vec<T>) {
            if let Some(last) = values.last().copied() {
                values.push(last);
            }
        }
        let valid = self.valid.last().copied().unwrap_or(false);
        self.valid.push(valid);
        self.nulls += usize::from(!valid);
        match &mut self.values {
            Values::Boolean(values) => again(values),
            Values::Byte(values) => again(values),
            Values::Short(values) => again(values),
            Values::Integer(values) | Values::Date(values) => again(values),
            Values::Long(values)
            | Values::Timestamp(values)
            | Values::TimestampNtz(values)
            | Values::Interval(values) => again(values),
            Values::Float(values) => again(values),
            Values::Double(values) => again(values),
            Values::Decimal(values, _, _) => again(values),
            Values::String(bytes) | Values::Binary(bytes) => bytes.repeat_last()?,
            Values::Variant(value, metadata) => {
                value.repeat_last()?;
                metadata.repeat_last()?;
            }
        }
        Ok(())
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
        }
        self.nulls -= self.valid[rows.min(self.valid.len())..]
            .iter()
            .filter(|valid| !**valid)
            .count();
        self.valid.truncate(rows);
    }

    /// Bytes of all text and binary values.
    pub fn size(&self) -> usize {
        match &self.values {
            Values::String(bytes) | Values::Binary(bytes) => bytes.data.len(),
            Values::Variant(value, metadata) => value.data.len() + metadata.data.len(),
            _ => 0,
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
        };
        Ok(array)
    }
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
