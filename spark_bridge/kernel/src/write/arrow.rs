//! Columns of a record batch, cell by cell.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ByteArrayType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, BinaryArray, BooleanArray, GenericByteArray, ListArray, PrimitiveArray, RecordBatch,
    StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Fields, TimeUnit};

use crate::refusal::Result;
use crate::variant::{Cell, MISFIT, Nested, NestedRow, Variant};

/// A column of cells.
pub enum Column {
    Bool(BooleanArray),
    Byte(PrimitiveArray<Int8Type>),
    Short(PrimitiveArray<Int16Type>),
    Int(PrimitiveArray<Int32Type>),
    Long(PrimitiveArray<Int64Type>),
    Float(PrimitiveArray<Float32Type>),
    Double(PrimitiveArray<Float64Type>),
    Decimal(PrimitiveArray<Decimal128Type>, u8),
    Text(StringArray),
    Bytes(BinaryArray),
    Date(PrimitiveArray<Date32Type>),
    Clock(PrimitiveArray<TimestampMicrosecondType>),
    Instant(PrimitiveArray<TimestampMicrosecondType>),
    Duration(PrimitiveArray<DurationMicrosecondType>),
    Variant(Box<Variants>),
    Nested(Box<NestedColumn>),
    /// Of a type that no printer supports.
    Other(arrow_array::ArrayRef),
}

impl Column {
    pub fn new(array: &dyn Array) -> Self {
        match array.data_type() {
            DataType::Boolean => Column::Bool(array.as_boolean().clone()),
            DataType::Int8 => Column::Byte(array.as_primitive().clone()),
            DataType::Int16 => Column::Short(array.as_primitive().clone()),
            DataType::Int32 => Column::Int(array.as_primitive().clone()),
            DataType::Int64 => Column::Long(array.as_primitive().clone()),
            DataType::Float32 => Column::Float(array.as_primitive().clone()),
            DataType::Float64 => Column::Double(array.as_primitive().clone()),
            // Spark's decimals have no negative scale.
            DataType::Decimal128(_, scale) if *scale >= 0 => {
                Column::Decimal(array.as_primitive().clone(), scale.unsigned_abs())
            }
            DataType::Utf8 => Column::Text(array.as_string().clone()),
            DataType::Binary => Column::Bytes(array.as_binary().clone()),
            DataType::Date32 => Column::Date(array.as_primitive().clone()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Column::Clock(array.as_primitive().clone())
            }
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
                Column::Instant(array.as_primitive().clone())
            }
            DataType::Duration(TimeUnit::Microsecond) => {
                Column::Duration(array.as_primitive().clone())
            }
            _ => {
                if let Some(variants) = Variants::new(array) {
                    Column::Variant(Box::new(variants))
                } else if let Some(nested) = NestedColumn::new(array) {
                    Column::Nested(Box::new(nested))
                } else {
                    Column::Other(arrow_array::make_array(array.to_data()))
                }
            }
        }
    }

    /// The value of a row; refuses unreadable variants.
    pub fn cell(&self, row: usize) -> Result<Cell<'_>> {
        Ok(match self {
            Column::Bool(array) if !array.is_null(row) => Cell::Bool(array.value(row)),
            Column::Byte(array) if !array.is_null(row) => Cell::Int(array.value(row).into()),
            Column::Short(array) if !array.is_null(row) => Cell::Int(array.value(row).into()),
            Column::Int(array) if !array.is_null(row) => Cell::Int(array.value(row).into()),
            Column::Long(array) if !array.is_null(row) => Cell::Int(array.value(row)),
            Column::Float(array) if !array.is_null(row) => Cell::Single(array.value(row)),
            Column::Double(array) if !array.is_null(row) => Cell::Double(array.value(row)),
            Column::Decimal(array, scale) if !array.is_null(row) => {
                Cell::Decimal(array.value(row), *scale)
            }
            Column::Text(array) => bytes(array, row).map_or(Cell::Null, Cell::Text),
            Column::Bytes(array) => bytes(array, row).map_or(Cell::Null, Cell::Bytes),
            Column::Date(array) if !array.is_null(row) => Cell::Date(array.value(row)),
            Column::Clock(array) if !array.is_null(row) => Cell::Clock(array.value(row)),
            Column::Instant(array) if !array.is_null(row) => Cell::Instant(array.value(row)),
            Column::Duration(array) if !array.is_null(row) => Cell::Duration(array.value(row)),
            Column::Variant(array) => match array.get(row) {
                // A JSON `null` is not NULL.
                Some(variant) => match variant.cell()? {
                    Cell::Null => Cell::Other,
                    cell => cell,
                },
                None => Cell::Null,
            },
            Column::Nested(column) if !column.is_null(row) => Cell::Row(NestedRow {
                column: &**column,
                row,
            }),
            Column::Other(array) if !array.is_null(row) => Cell::Other,
            _ => Cell::Null,
        })
    }
}

/// The bytes of a cell; text may be invalid UTF-8.
pub fn bytes<T: ByteArrayType<Offset = i32>>(
    array: &GenericByteArray<T>,
    row: usize,
) -> Option<&[u8]> {
    if array.is_null(row) {
        return None;
    }
    // Text of Arrow may be any bytes: `value` would have to trust that it is UTF-8.
    let offset = |row: usize| usize::try_from(array.value_offsets()[row]).ok();
    array.value_data().get(offset(row)?..offset(row + 1)?)
}

/// A column of lists, of maps with texts as keys, or of structs.
pub struct NestedColumn {
    nulls: Option<NullBuffer>,
    /// Where the parts of a row begin in the only column; those of a struct are columns.
    offsets: Option<OffsetBuffer<i32>>,
    names: PartNames,
    columns: Vec<Column>,
}

enum PartNames {
    Nothing,
    Keys(StringArray),
    Fields(Fields),
}

impl NestedColumn {
    fn new(array: &dyn Array) -> Option<Self> {
        let (offsets, names, columns) = match array.data_type() {
            DataType::List(_) => {
                let lists: &ListArray = array.as_list();
                let items = vec![Column::new(lists.values())];
                (Some(lists.offsets().clone()), PartNames::Nothing, items)
            }
            DataType::Map(..) => {
                let maps = array.as_map();
                let keys = maps.keys().as_string_opt()?.clone();
                let values = vec![Column::new(maps.values())];
                (Some(maps.offsets().clone()), PartNames::Keys(keys), values)
            }
            DataType::Struct(fields) => {
                let columns = array.as_struct().columns().iter();
                let columns = columns.map(|column| Column::new(column)).collect();
                (None, PartNames::Fields(fields.clone()), columns)
            }
            _ => return None,
        };
        Some(Self {
            nulls: array.nulls().cloned(),
            offsets,
            names,
            columns,
        })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}

impl Nested for NestedColumn {
    fn is_object(&self) -> bool {
        !matches!(self.names, PartNames::Nothing)
    }

    fn count(&self, row: usize) -> usize {
        match &self.offsets {
            Some(offsets) => begin(offsets, row + 1) - begin(offsets, row),
            None => self.columns.len(),
        }
    }

    fn name(&self, row: usize, number: usize) -> Result<&[u8]> {
        match (&self.names, &self.offsets) {
            (PartNames::Keys(keys), Some(offsets)) => {
                bytes(keys, begin(offsets, row) + number).ok_or(MISFIT)
            }
            (PartNames::Fields(fields), _) => Ok(fields[number].name().as_bytes()),
            _ => Err(MISFIT),
        }
    }

    fn cell(&self, row: usize, number: usize) -> Result<Cell<'_>> {
        match &self.offsets {
            Some(offsets) => self.columns[0].cell(begin(offsets, row) + number),
            None => self.columns[number].cell(row),
        }
    }
}

fn begin(offsets: &OffsetBuffer<i32>, row: usize) -> usize {
    usize::try_from(offsets[row]).unwrap_or_default()
}

/// A column of variants.
pub struct Variants {
    whole: StructArray,
    value: BinaryArray,
    metadata: BinaryArray,
}

impl Variants {
    pub fn new(array: &dyn Array) -> Option<Self> {
        let whole = array.as_struct_opt()?;
        let child = |name| whole.column_by_name(name)?.as_binary_opt().cloned();
        // A struct with other fields is a struct of the user's, which no format writes.
        if whole.num_columns() != 2 {
            return None;
        }
        Some(Self {
            value: child("value")?,
            metadata: child("metadata")?,
            whole: whole.clone(),
        })
    }

    pub fn get(&self, row: usize) -> Option<Variant<'_>> {
        if self.whole.is_null(row) {
            return None;
        }
        Some(Variant {
            value: bytes(&self.value, row)?,
            metadata: bytes(&self.metadata, row)?,
        })
    }
}

/// Columns of a batch by name, which may be missing.
pub struct Named<'a>(pub &'a RecordBatch);

impl Named<'_> {
    fn column(&self, name: &str) -> Option<&dyn Array> {
        self.0.column_by_name(name).map(AsRef::as_ref)
    }

    /// A column of texts; None if it has another type, `Some(None)` if missing.
    pub fn text(&self, name: &str) -> Option<Option<StringArray>> {
        optional(self.column(name), |array| array.as_string_opt().cloned())
    }

    pub fn long(&self, name: &str) -> Option<Option<PrimitiveArray<Int64Type>>> {
        optional(self.column(name), |array| array.as_primitive_opt().cloned())
    }

    pub fn int(&self, name: &str) -> Option<Option<PrimitiveArray<Int32Type>>> {
        optional(self.column(name), |array| array.as_primitive_opt().cloned())
    }

    pub fn instant(&self, name: &str) -> Option<Option<PrimitiveArray<TimestampMicrosecondType>>> {
        optional(self.column(name), |array| array.as_primitive_opt().cloned())
    }

    pub fn list(&self, name: &str) -> Option<Option<ListArray>> {
        optional(self.column(name), |array| array.as_list_opt().cloned())
    }

    pub fn structs(&self, name: &str) -> Option<Option<StructArray>> {
        optional(self.column(name), |array| array.as_struct_opt().cloned())
    }

    pub fn variants(&self, name: &str) -> Option<Option<Variants>> {
        optional(self.column(name), Variants::new)
    }
}

fn optional<T>(
    array: Option<&dyn Array>,
    of: impl FnOnce(&dyn Array) -> Option<T>,
) -> Option<Option<T>> {
    match array {
        None => Some(None),
        Some(array) => of(array).map(Some),
    }
}

/// A number of an optional column.
pub fn number<T: arrow_array::ArrowPrimitiveType<Native = i64>>(
    array: Option<&PrimitiveArray<T>>,
    row: usize,
) -> Option<i64> {
    let array = array?;
    (!array.is_null(row)).then(|| array.value(row))
}

/// The range of a list's items; None for NULL.
pub fn span(array: &ListArray, row: usize) -> Option<std::ops::Range<usize>> {
    if array.is_null(row) {
        return None;
    }
    let offset = |row: usize| usize::try_from(array.value_offsets()[row]).ok();
    Some(offset(row)?..offset(row + 1)?)
}
