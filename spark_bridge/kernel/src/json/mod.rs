//! A strict reader of JSON (RFC 8259): records positions of values, copies nothing.
//!
//! The caller checks that the document is UTF-8. Lone surrogates, control characters in
//! text, numbers with leading zeros and nesting beyond [`MAX_DEPTH`] are refused.

mod check;
mod cursor;
mod escapes;
mod fast_members;
mod labels;
mod python_json;
mod simd;
mod strings;
mod token;
mod values;

pub use cursor::Cursor;
pub use escapes::{append_unescaped, plain, unescape, unescape_latin1};
pub use labels::Label;
pub use python_json::append_python_json;
pub use simd::find_special;
pub use token::{Kind, Token};
