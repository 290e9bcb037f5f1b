//! The images of a message's rows: positions of their values.

use crate::json::{Cursor, Kind, Token};
use crate::read::plans::row_plan::RowPlan;
use crate::refusal::{Refusal, Result};

/// The values of all rows' images of one kind; buffers are reused.
#[derive(Default)]
pub struct Images {
    tokens: Vec<Token>,
    /// For each row, whether it has an image.
    found: Vec<bool>,
    width: usize,
    /// Whether the member was read by this plan.
    pub is_read: bool,
}

impl Images {
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.found.clear();
        self.is_read = false;
    }

    /// Begins the only row's image, with all values missing.
    pub fn begin(&mut self, width: usize) -> &mut [Token] {
        self.clear();
        self.width = width;
        self.found.push(true);
        self.is_read = true;
        self.tokens.resize(width, Token::MISSING);
        &mut self.tokens
    }

    /// Reads an image, or a list of images; false if the columns differ from the plan's.
    ///
    /// `whole`: no column may be missing.
    pub fn read(
        &mut self,
        plan: &RowPlan,
        in_list: bool,
        whole: bool,
        cursor: &mut Cursor,
    ) -> Result<bool> {
        self.clear();
        self.width = plan.columns.len();
        if !in_list {
            self.found.push(true);
            self.is_read = plan.image(cursor, whole, &mut self.tokens)?.is_some();
            return Ok(self.is_read);
        }
        cursor.expect(b'[', "images are not a list")?;
        if cursor.take(b']') {
            self.is_read = true;
            return Ok(true);
        }
        loop {
            cursor.blanks();
            let has_image = cursor.begins_with(b'{');
            if has_image {
                if plan.image(cursor, whole, &mut self.tokens)?.is_none() {
                    return Ok(false);
                }
            } else {
                let value = cursor.value()?;
                if value.kind != Kind::Null {
                    let at = value.start as usize;
                    return Err(Refusal::new("image is not an object", at));
                }
                self.tokens
                    .resize(self.tokens.len() + self.width, Token::MISSING);
            }
            self.found.push(has_image);
            if !cursor.more(b']')? {
                self.is_read = true;
                return Ok(true);
            }
        }
    }

    /// Reads the member at a token again, by another plan.
    pub fn read_at(
        &mut self,
        plan: &RowPlan,
        in_list: bool,
        whole: bool,
        token: Token,
        document: &str,
    ) -> Result<bool> {
        if matches!(token.kind, Kind::Missing | Kind::Null) {
            self.clear();
            return Ok(true);
        }
        self.read(
            plan,
            in_list,
            whole,
            &mut Cursor::at(document, token.start)?,
        )
    }

    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// Whether there is at least one row, and all rows have an image.
    pub fn are_whole(&self) -> bool {
        !self.found.is_empty() && !self.found.contains(&false)
    }

    /// The values of a row, in the order of the plan's columns.
    pub fn row(&self, row: usize) -> Option<&[Token]> {
        if self.found.get(row) != Some(&true) {
            return None;
        }
        self.tokens.get(row * self.width..(row + 1) * self.width)
    }
}
