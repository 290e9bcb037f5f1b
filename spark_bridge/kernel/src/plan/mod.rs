//! Formats, tables and values as the bridge describes them: data without readers.

mod encodings;
mod layout;

pub use encodings::{
    BytesForm, BytesText, Clock, Encoding, MAX_DIGITS, MysqlText, Number, Unscaled,
};
pub use layout::{AvroLayout, Image, Layout, Member, Op, Role, RoleOrMembers, Slot};
