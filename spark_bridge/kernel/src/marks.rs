//! Whether lines of a file may hold what a reader looks for, without cutting them.
//!
//! The Python reading is `cdcfmt_core/io/sources/lines.py`.

use memchr::{memchr_iter, memmem};
use pyo3::prelude::*;

/// Whether any of the marks stands in the lines, or the first member of a line that is an object
/// has one of the names.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub fn holds_any(py: Python<'_>, lines: &[u8], marks: Vec<Vec<u8>>, names: Vec<Vec<u8>>) -> bool {
    py.detach(|| {
        marks.iter().any(|mark| memmem::find(lines, mark).is_some())
            || (!names.is_empty() && has_member(lines, &names))
    })
}

fn has_member(lines: &[u8], names: &[Vec<u8>]) -> bool {
    let mut starts = memchr_iter(b'\n', lines).map(|end| end + 1);
    begins(lines, names) || starts.any(|start| begins(&lines[start..], names))
}

/// Whether a line begins an object with such a member; blank lines are not looked through.
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
        // As long as a block of a file: a walk from each line on would take hours.
        assert!(!has(&"\n".repeat(1 << 20)));
    }
}
