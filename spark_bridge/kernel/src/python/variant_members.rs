//! Members of variants, as columns.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{DataType, Field};
use pyo3::prelude::*;

use crate::python::errors::{refused, value_error};
use crate::python::rows::Rows;
use crate::refusal::Result;
use crate::variant::Cell;
use crate::variant::{Items, Variant};
use crate::write::Variants;

/// Members of the variants in a column; see `cdcfmt_kernel.pyi`.
#[pyfunction]
pub fn variant_members(
    batch: &Bound<'_, PyAny>,
    column: &str,
    integers: Vec<String>,
    texts: Vec<String>,
) -> PyResult<Rows> {
    let batch = RecordBatch::from_pyarrow_bound(batch)?;
    let variants = batch
        .column_by_name(column)
        .and_then(|array| Variants::new(array.as_ref()));
    let variants = variants.ok_or_else(|| value_error(format!("no variants in {column}")))?;
    let rows = batch.num_rows();
    let columns = members(&variants, rows, &integers, &texts).map_err(refused)?;
    let types = [(&integers, DataType::Int64), (&texts, DataType::Utf8)];
    let fields = types.iter().flat_map(|(names, type_)| {
        names
            .iter()
            .map(|name| Arc::new(Field::new(name, type_.clone(), true)))
    });
    let columns: Vec<_> = fields.zip(columns).collect();
    Ok(StructArray::from(columns).into())
}

fn members(
    variants: &Variants,
    rows: usize,
    integers: &[String],
    texts: &[String],
) -> Result<Vec<ArrayRef>> {
    let mut numbers: Vec<_> = integers.iter().map(|_| Int64Builder::new()).collect();
    let mut strings: Vec<_> = texts.iter().map(|_| StringBuilder::new()).collect();
    for row in 0..rows {
        let object = variants.get(row).filter(|variant| variant.is_object());
        let items = object.map(Variant::items).transpose()?;
        for (name, builder) in integers.iter().zip(&mut numbers) {
            builder.append_option(match member(items.as_ref(), name)? {
                Some(Cell::Int(number)) => Some(number),
                _ => None,
            });
        }
        for (name, builder) in texts.iter().zip(&mut strings) {
            builder.append_option(match member(items.as_ref(), name)? {
                Some(Cell::Text(text)) => std::str::from_utf8(text).ok(),
                _ => None,
            });
        }
    }
    let numbers = numbers
        .iter_mut()
        .map(|each| Arc::new(each.finish()) as ArrayRef);
    let strings = strings
        .iter_mut()
        .map(|each| Arc::new(each.finish()) as ArrayRef);
    Ok(numbers.chain(strings).collect())
}

fn member<'a>(items: Option<&Items<'a>>, name: &str) -> Result<Option<Cell<'a>>> {
    let found = items.map(|items| items.find(name)).transpose()?.flatten();
    found.map(Variant::cell).transpose()
}
