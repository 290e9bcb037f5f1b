//! The columns of events, except images.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, ListArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use serde::Deserialize;

use crate::plan::Op;
use crate::read::batch::columns::variant_fields;
use crate::read::batch::origins::Origin;
use crate::read::plans::{EventPlan, ShownColumn};

/// A column of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventContent {
    Kind,
    Op,
    Database,
    Schema,
    Table,
    CommitTime,
    SourceTime,
    EmitTime,
    KeyColumns,
    Columns,
    Extra,
    TableNumber,
}

/// `extra` of all messages: values and metadata.
#[derive(Default)]
pub struct Extras {
    pub values: Vec<u8>,
    pub metadata: Vec<u8>,
}

impl Extras {
    pub fn sizes(&self) -> (usize, usize) {
        (self.values.len(), self.metadata.len())
    }

    pub fn truncate(&mut self, sizes: (usize, usize)) {
        self.values.truncate(sizes.0);
        self.metadata.truncate(sizes.1);
    }
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Read => "read",
            Self::Update => "update",
            Self::Upsert => "upsert",
            Self::Delete => "delete",
        }
    }
}

/// The array of a column; `origins`: one per row.
pub fn array<'a>(
    content: EventContent,
    origins: impl Iterator<Item = &'a Origin>,
    extras: &Extras,
) -> Result<ArrayRef, ArrowError> {
    // All rows of a batch of events have one.
    let events = origins.filter_map(|origin| Some((origin, origin.event.as_ref()?)));
    let plans = events.map(|(origin, event)| (origin, event, event.plan.shown.as_ref()));
    Ok(match content {
        EventContent::Kind => Arc::new(StringArray::from_iter_values(plans.map(|_| "row"))),
        EventContent::Op => Arc::new(StringArray::from_iter_values(
            plans.map(|(_, event, _)| event.op.name()),
        )),
        EventContent::Database => Arc::new(
            plans
                .map(|(_, _, plan)| Some(&*plan?.database))
                .collect::<StringArray>(),
        ),
        EventContent::Schema => Arc::new(
            plans
                .map(|(_, _, plan)| plan?.schema.as_deref())
                .collect::<StringArray>(),
        ),
        EventContent::Table => Arc::new(
            plans
                .map(|(_, _, plan)| Some(&*plan?.table))
                .collect::<StringArray>(),
        ),
        EventContent::TableNumber => Arc::new(
            plans
                .map(|(_, _, plan)| plan?.number)
                .collect::<Int32Array>(),
        ),
        EventContent::CommitTime => {
            times(plans.map(|(origin, _, _)| origin.commit_ts.map(|time| (time >> 18) * 1000)))
        }
        EventContent::SourceTime => {
            times(plans.map(|(origin, _, _)| origin.source_time.map(|time| time * origin.unit)))
        }
        EventContent::EmitTime => {
            times(plans.map(|(origin, event, _)| event.emit_time.map(|time| time * origin.unit)))
        }
        EventContent::KeyColumns => {
            let mut names: Vec<&str> = Vec::new();
            let mut lengths = Vec::new();
            for (_, event, _) in plans {
                let plan = event.plan.rows.event.as_ref();
                let keys = plan.map_or(&[][..], |plan| &plan.key_columns);
                names.extend(keys.iter().map(String::as_str));
                lengths.push(keys.len());
            }
            let field = Arc::new(Field::new("element", DataType::Utf8, true));
            Arc::new(ListArray::try_new(
                field,
                OffsetBuffer::from_lengths(lengths),
                Arc::new(StringArray::from(names)),
                None,
            )?)
        }
        EventContent::Columns => {
            columns(plans.map(|(_, event, _)| event.plan.rows.event.as_ref()))?
        }
        EventContent::Extra => extra(plans.map(|(_, event, _)| event.extra.as_ref()), extras)?,
    })
}

fn columns<'a>(plans: impl Iterator<Item = Option<&'a EventPlan>>) -> Result<ArrayRef, ArrowError> {
    let mut all: Vec<&ShownColumn> = Vec::new();
    let mut lengths = Vec::new();
    for plan in plans {
        let of_plan = plan.map_or(&[][..], |plan| &plan.columns);
        all.extend(of_plan);
        lengths.push(of_plan.len());
    }
    let texts = |text: fn(&ShownColumn) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            all.iter().map(|each| text(each)),
        ))
    };
    let flags = |flag: fn(&ShownColumn) -> Option<bool>| -> ArrayRef {
        Arc::new(all.iter().map(|each| flag(each)).collect::<BooleanArray>())
    };
    let arrays: Vec<ArrayRef> = vec![
        texts(|column| &column.name),
        texts(|column| &column.source_type),
        flags(|column| column.nullable),
        flags(|column| column.key),
    ];
    let names = ["name", "source_type", "nullable", "key"];
    let fields: Fields = names
        .iter()
        .zip(&arrays)
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    let rows = StructArray::try_new(fields, arrays, None)?;
    let field = Arc::new(Field::new("element", rows.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        Arc::new(rows),
        None,
    )?))
}

fn times(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    let array: TimestampMicrosecondArray = values.collect();
    Arc::new(array.with_timezone("UTC"))
}

fn extra<'a>(
    places: impl Iterator<Item = Option<&'a (Range<usize>, Range<usize>)>>,
    extras: &Extras,
) -> Result<ArrayRef, ArrowError> {
    let places: Vec<_> = places.collect();
    let valid: BooleanBuffer = places.iter().map(Option::is_some).collect();
    let bytes = |place: Option<&(Range<usize>, Range<usize>)>| match place {
        None => (&[][..], &[][..]),
        Some((value, metadata)) => (
            &extras.values[value.clone()],
            &extras.metadata[metadata.clone()],
        ),
    };
    let values = BinaryArray::from_iter_values(places.iter().map(|place| bytes(*place).0));
    let metadata = BinaryArray::from_iter_values(places.iter().map(|place| bytes(*place).1));
    let arrays: Vec<ArrayRef> = vec![Arc::new(values), Arc::new(metadata)];
    let nulls = NullBuffer::new(valid);
    Ok(Arc::new(StructArray::try_new(
        variant_fields(),
        arrays,
        Some(nulls),
    )?))
}
