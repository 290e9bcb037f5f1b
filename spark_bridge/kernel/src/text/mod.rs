//! Texts and bytes: names, quotes, fast appends and searches.

mod any_text;
mod appending;
pub mod bytes;
mod go_quote;
mod names;
pub mod numbers;
mod utf8;

pub use any_text::AnyText;
pub use appending::{SHORT, append};
pub use go_quote::{Printable, unquote_go};
pub use names::{ByText, Names, Texts, equal};
pub use utf8::utf8;
