//! Values in Avro images: how a plan reads a column's values.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::avro::{Datum, encode_long};
use crate::avro::{Field, Type};
use crate::json::{Kind, Token};
use crate::plan::AvroLayout;
use crate::refusal::{Reason, Refusal, Result};

/// The branches of a union that a column's encoding reads; for each, the fields besides the value
/// with their accepted values.
pub type Branches = HashMap<String, HashMap<String, Vec<Value>>>;

/// How to read the values of one branch.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Form {
    /// The plan does not know this branch.
    Unknown,
    Null,
    /// An enumeration, with the index of the symbol that means NULL.
    Empty(usize, Option<usize>),
    Scalar(Type),
    /// A record, read as a list of its values.
    Parts(Type),
    Steps(Vec<Part>),
}

/// A field of a record that contains a value.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Part {
    Value(Type),
    /// Must be one of these encoded values.
    Expected(Vec<Vec<u8>>),
    Passed(Type),
}

/// How to read the values of a column, by branch.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Forms(Arc<[Form]>);

impl Forms {
    /// `are_bytes`: text holds one byte per character.
    pub fn new(layout: &AvroLayout, branches: &Branches, are_bytes: bool) -> Result<Self> {
        let refusal = Refusal::new("plan has a wrong branch", 0);
        let (type_, _) = layout.cells().ok_or(refusal)?;
        let Type::Union(fields) = type_ else {
            return Err(refusal);
        };
        // A misspelt branch would leave its values to the reference for ever, without a notice.
        if !branches
            .keys()
            .all(|name| fields.iter().any(|field| field.name == *name))
        {
            return Err(refusal);
        }
        let form = |field: &Field| match &field.type_ {
            Type::Null => Ok(Form::Null),
            Type::Enum(symbols) => {
                let null = symbols
                    .iter()
                    .position(|symbol| layout.null.as_ref() == Some(symbol));
                Ok(Form::Empty(symbols.len(), null))
            }
            type_ => match branches.get(&field.name) {
                None => Ok(Form::Unknown),
                Some(beside) => {
                    let value = layout.values.get(&field.name);
                    form_of(type_, value, beside, are_bytes).ok_or(refusal)
                }
            },
        };
        Ok(Self(fields.iter().map(form).collect::<Result<_>>()?))
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        self.0.len() * size_of::<Form>()
    }

    /// The token of a value; None if the plan does not know its branch.
    pub fn read(&self, datum: &mut Datum, document: &mut Vec<u8>) -> Result<Option<Token>> {
        let start = document.len();
        match &self.0[datum.choice(self.0.len())?] {
            Form::Unknown => Ok(None),
            Form::Null => Ok(Some(Token::new(Kind::Null, start, start))),
            Form::Empty(symbols, null) => {
                if Some(datum.choice(*symbols)?) == *null {
                    return Ok(Some(Token::new(Kind::Null, start, start)));
                }
                // The enumeration's other symbols mean a value that the producer left out.
                datum.refuse("column has no value")
            }
            Form::Scalar(type_) => type_.scalar(datum, true, document),
            Form::Parts(type_) => {
                type_.print(datum, true, document)?;
                Ok(Some(Token::new(Kind::Array, start, document.len())))
            }
            Form::Steps(parts) => {
                let mut token = None;
                for part in parts {
                    match part {
                        Part::Value(type_) => token = type_.scalar(datum, true, document)?,
                        Part::Expected(some) => {
                            if !some.iter().any(|bytes| datum.take_all(bytes)) {
                                return Ok(None);
                            }
                        }
                        Part::Passed(type_) => type_.skip(datum)?,
                    }
                }
                Ok(token)
            }
        }
    }
}

fn form_of(
    type_: &Type,
    value: Option<&String>,
    beside: &HashMap<String, Vec<Value>>,
    are_bytes: bool,
) -> Option<Form> {
    let scalar = |type_: &Type| match type_ {
        // Text in UTF-8, checked with the document; other bytes become Latin-1 characters.
        Type::Bytes if !are_bytes => Type::Text,
        other => other.clone(),
    };
    let Type::Record(fields) = type_ else {
        return Some(Form::Scalar(scalar(type_)));
    };
    // A record of one field stands for its value.
    if let [field] = &fields[..] {
        return Some(Form::Scalar(scalar(&field.type_)));
    }
    let Some(value) = value else {
        return Some(Form::Parts(type_.clone()));
    };
    let part = |field: &Field| {
        if field.name == *value {
            return Some(Part::Value(scalar(&field.type_)));
        }
        let Some(some) = beside.get(&field.name) else {
            return Some(Part::Passed(field.type_.clone()));
        };
        let encoded = some.iter().map(|value| encoded(value, &field.type_));
        Some(Part::Expected(encoded.collect::<Option<_>>()?))
    };
    Some(Form::Steps(fields.iter().map(part).collect::<Option<_>>()?))
}

/// A value in Avro's encoding.
fn encoded(value: &Value, type_: &Type) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match (value, type_) {
        (Value::String(text), Type::Text) => {
            encode_long(i64::try_from(text.len()).ok()?, &mut out);
            out.extend_from_slice(text.as_bytes());
        }
        (Value::Number(number), Type::Long) => encode_long(number.as_i64()?, &mut out),
        _ => return None,
    }
    Some(out)
}

/// How to read a field of a row that is a record.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RecordCell {
    /// Index of the column.
    column: usize,
    is_needed: bool,
    /// The branch of null, in a union of two.
    null: Option<bool>,
    form: CellForm,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum CellForm {
    Scalar(Type),
    /// Bytes of an integer, which becomes a number if it has at most 64 bits.
    Unscaled(Type),
    /// Lists and objects, as JSON.
    Nested(Type),
    /// A union of several types, of which the reference chooses.
    Other(Type),
}

impl RecordCell {
    /// `is_needed`: otherwise the value is skipped; `is_unscaled`: bytes are an integer.
    pub fn new(type_: &Type, column: usize, is_needed: bool, is_unscaled: bool) -> Self {
        let (null, type_) = match type_ {
            Type::Union(branches) => match &branches[..] {
                [one, other] if one.type_ == Type::Null => (Some(false), &other.type_),
                [one, other] if other.type_ == Type::Null => (Some(true), &one.type_),
                _ => (None, type_),
            },
            other => (None, other),
        };
        let type_ = type_.clone();
        Self {
            column,
            is_needed,
            null,
            form: match &type_ {
                Type::Array(_) | Type::Record(_) | Type::Map(_) => CellForm::Nested(type_),
                Type::Union(_) | Type::Null => CellForm::Other(type_),
                Type::Base64 | Type::Fixed(_) if is_unscaled => CellForm::Unscaled(type_),
                _ => CellForm::Scalar(type_),
            },
        }
    }

    /// Reads a value into its column's token.
    #[inline]
    pub fn read(
        &self,
        datum: &mut Datum,
        document: &mut Vec<u8>,
        tokens: &mut [Token],
    ) -> Result<()> {
        let is_null = match self.null {
            Some(branch) => (datum.choice(2)? == 1) == branch,
            None => false,
        };
        let token = match &self.form {
            _ if is_null => Token::new(Kind::Null, 0, 0),
            CellForm::Scalar(type_)
            | CellForm::Unscaled(type_)
            | CellForm::Nested(type_)
            | CellForm::Other(type_)
                if !self.is_needed =>
            {
                type_.skip(datum)?;
                Token::ELSEWHERE
            }
            CellForm::Scalar(type_) => type_.scalar(datum, true, document)?.unwrap_or_default(),
            CellForm::Unscaled(type_) => match type_.small_integer(datum)? {
                Some(value) => Token::of_long(value),
                None => type_.scalar(datum, true, document)?.unwrap_or_default(),
            },
            CellForm::Nested(type_) => {
                let start = document.len();
                type_.print(datum, false, document)?;
                let is_list = document.get(start) == Some(&b'[');
                let kind = if is_list { Kind::Array } else { Kind::Object };
                Token::new(kind, start, document.len())
            }
            CellForm::Other(_) => {
                let refusal = Refusal::of(Reason::Doubt, "value of a union of types", 0);
                return Err(refusal.in_column(self.column, None));
            }
        };
        if let Some(place) = tokens.get_mut(self.column) {
            *place = token;
        }
        Ok(())
    }
}
