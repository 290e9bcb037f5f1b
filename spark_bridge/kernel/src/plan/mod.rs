//! Formats, tables and values as the bridge describes them: data without readers.

mod encodings;
mod layout;
mod target;

pub use encodings::{
    BytesForm, BytesText, Clock, Encoding, Form, MAX_DIGITS, MysqlText, Number, Part, Unscaled,
    UsualText,
};
pub use layout::{AvroLayout, Image, Layout, Member, Op, Role, RoleOrMembers, Slot};
pub use target::{Target, TargetField};
