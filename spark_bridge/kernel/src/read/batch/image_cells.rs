//! Sources of the cells of an event's image.

use crate::json::{Kind, Token};
use crate::plan::Form;
use crate::read::plans::EventPlan;
use crate::read::plans::{PlanColumn, RowPlan, Sink};
use crate::refusal::{Refusal, Result};

/// The source of an image.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub plan: &'a RowPlan,
    pub event: &'a EventPlan,
    pub document: &'a str,
}

/// A column's value in an image.
pub struct Cell {
    pub token: Token,
    /// Whether the earlier image has the same value.
    pub is_earlier: bool,
}

/// The value of a column; one that the image lacks is that of the earlier image.
#[inline]
pub fn cell_of(image: &[Token], earlier: Option<&[Token]>, place: usize, source: Source) -> Cell {
    let token = image[place];
    let Some(other) = earlier else {
        return Cell {
            token,
            is_earlier: false,
        };
    };
    let other = other[place];
    let is_missing = token.kind == Kind::Missing;
    Cell {
        token: if is_missing { other } else { token },
        is_earlier: is_missing
            || (token.equals(other, source.document)
                // A counted value must be counted in both images.
                && !source.plan.columns[place].reader.counts()),
    }
}

/// A column, and the form of its integers.
#[inline]
pub fn column_of(source: Source<'_>, place: usize) -> Result<(&PlanColumn, Form)> {
    let column = &source.plan.columns[place];
    match column.sink {
        Sink::Image(form) => Ok((column, form)),
        _ => Err(Refusal::new("column is missing in images", 0)),
    }
}
