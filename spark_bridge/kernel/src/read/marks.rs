//! Whether lines of a file may contain marks that a reader searches for, without splitting them.
//!
//! The Python equivalent is in `cdcfmt_files/sources/lines.py`.

use memchr::{memchr_iter, memmem};
use pyo3::prelude::*;

use crate::read::whole_messages::{Origins, WholeMessage};

/// Whether any mark occurs in the lines, or in the value of a line that is a whole message:
/// an object whose first member has one of the names. True if the value cannot be read.
#[pyfunction]
pub fn holds_any(py: Python<'_>, lines: &[u8], marks: Vec<Vec<u8>>, names: Vec<Vec<u8>>) -> bool {
    let has_mark = |text: &[u8]| marks.iter().any(|mark| memmem::find(text, mark).is_some());
    py.detach(|| {
        has_mark(lines)
            || (!names.is_empty()
                && has_member(lines, &names)
                && any_value(lines, &names, |value| holds_mark(value, &marks)))
    })
}

/// Texts have no control characters, so a mark with one is for a binary format.
fn holds_mark(value: &[u8], marks: &[Vec<u8>]) -> bool {
    marks.iter().any(|mark| match mark.first() {
        Some(0..0x20) => value.starts_with(mark),
        _ => memmem::find(value, mark).is_some(),
    })
}

/// Whether the value of any whole message is wanted, or unreadable.
fn any_value(lines: &[u8], names: &[Vec<u8>], wanted: impl Fn(&[u8]) -> bool) -> bool {
    let (mut message, mut origins) = (WholeMessage::default(), Origins::default());
    lines.split(|byte| *byte == b'\n').any(|line| {
        origins.clear();
        begins(line, names) && (message.read(line, &mut origins).is_err() || wanted(&message.value))
    })
}

fn has_member(lines: &[u8], names: &[Vec<u8>]) -> bool {
    let mut starts = memchr_iter(b'\n', lines).map(|end| end + 1);
    begins(lines, names) || starts.any(|start| begins(&lines[start..], names))
}

/// Whether a line begins an object with such a member; skips no blank lines.
fn begins(line: &[u8], names: &[Vec<u8>]) -> bool {
    let name = without_blanks(line, |byte| byte != b'\n')
        .strip_prefix(b"{")
        .and_then(|rest| without_blanks(rest, |_| true).strip_prefix(b"\""));
    name.is_some_and(|text| {
        names.iter().any(|name| {
            let rest = text.strip_prefix(&name[..]);
            let rest = rest.and_then(|rest| rest.strip_prefix(b"\""));
            rest.is_some_and(|rest| without_blanks(rest, |_| true).starts_with(b":"))
        })
    })
}

fn without_blanks(text: &[u8], passed: impl Fn(u8) -> bool) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r') && passed(*byte);
    let blanks = text.iter().take_while(|byte| is_blank(byte)).count();
    &text[blanks..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_lines_begin_with() {
        let names = [b"key".to_vec(), b"value".to_vec()];
        let has = |lines: &str| has_member(lines.as_bytes(), &names);
        for lines in [
            r#"{"key":1}"#,
            "{\"a\":1}\n { \"value\" : null}\n",
            "\n\n{\n\"key\"\n:",
        ] {
            assert!(has(lines), "{lines}");
        }
        for lines in [
            "",
            "\n",
            r#"{"a":1,"key":2}"#,
            "[{\"key\":1}]\n{\"keys\":1}\n{\"key\"}\n{key:1}",
        ] {
            assert!(!has(lines), "{lines}");
        }
        // As long as a block of a file: a scan from each line on would take hours.
        assert!(!has(&"\n".repeat(1 << 20)));
    }
}
