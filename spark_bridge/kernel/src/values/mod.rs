//! Value encodings: the forms of a column's values in messages, and what readers make of them.

mod calendar;
mod cells;
mod default_nulls;
mod enum_numbers;
mod epochs;
mod mysql_text;
mod nested;
mod packed;
mod reader;
pub mod scalars;
pub mod temporal;
mod tools;
mod zones;

pub use cells::{Cells, NameOrder};
pub use default_nulls::DefaultNull;
pub use enum_numbers::{NumberedCells, Numbers};
pub use nested::members_of;
pub use reader::{Reader, is_uuid};
pub use temporal::MAX_TIME;
pub use tools::Tools;
pub use zones::{Offsets, Zone, zoned_instant};
