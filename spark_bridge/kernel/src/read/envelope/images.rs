//! The images of a message's rows: positions of their values.

use crate::json::Token;

/// The values of all rows' images of one kind; buffers are reused.
#[derive(Default)]
pub struct Images {
    /// Row by row.
    pub tokens: Vec<Token>,
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

    /// Begins the images of rows, none of which was read yet.
    pub fn begin_rows(&mut self, width: usize) {
        self.clear();
        self.width = width;
    }

    /// Adds a row; its values are the last tokens.
    pub fn add_row(&mut self, has_image: bool) {
        if !has_image {
            let size = self.tokens.len() + self.width;
            // So that rows are found by their number, also behind a row without an image.
            self.tokens.resize(size, Token::MISSING);
        }
        self.found.push(has_image);
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
