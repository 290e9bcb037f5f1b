//! Types of the columns that a read fills.

use serde::Deserialize;

/// A Spark type, by its name in Spark's DDL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Target {
    Boolean,
    Byte,
    Short,
    Integer,
    Long,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    String,
    Binary,
    Date,
    Timestamp,
    TimestampNtz,
    Interval,
    Variant,
    Array {
        element: Box<TargetField>,
    },
    /// Keys are strings.
    Map {
        value: Box<TargetField>,
    },
    Struct {
        fields: Vec<TargetField>,
    },
}

/// The items of an array, the values of a map, or a field of a struct.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct TargetField {
    pub name: String,
    pub nullable: bool,
    #[serde(flatten)]
    pub target: Target,
}
