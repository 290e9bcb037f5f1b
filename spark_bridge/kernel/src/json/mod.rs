//! A strict reader of JSON (RFC 8259): records positions of values, copies nothing.
//!
//! The caller checks that the document is UTF-8. Lone surrogates, control characters in
//! text, numbers with leading zeros and nesting beyond [`MAX_DEPTH`] are refused.

mod check;
mod cursor;
mod escapes;
mod spaced;
mod strings;
mod token;
mod usual;
mod values;
mod words;

pub use cursor::Cursor;
pub use escapes::{append_unescaped, plain, unescape, unescape_latin1};
pub use spaced::append_spaced;
pub use token::{Kind, Token};
pub use values::MAX_DEPTH;
pub use words::find_special;
