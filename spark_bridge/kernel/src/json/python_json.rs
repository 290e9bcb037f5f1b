//! JSON objects and lists as text with blanks, as `json_of` in
//! `pyspark_cdcfmt/rows/json_values.py` prints them.

use crate::refusal::{Refusal, Result};

/// Objects with more members are left to the reference.
const MAX_NAMES: usize = 64;
const OTHER: Refusal = Refusal::new("object or list has an unexpected form", 0);

/// Appends a valid document with `, ` and `: `; refuses escapes, exponents and repeated names.
pub fn append_python_json(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let data = text.as_bytes();
    // The names of each open object; None for a list.
    let mut open: Vec<Option<Vec<&str>>> = Vec::new();
    let mut is_name = false;
    let mut at = 0;
    while let Some(byte) = data.get(at) {
        let start = at;
        at += 1;
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'{' | b'[' => {
                is_name = *byte == b'{';
                open.push(is_name.then(Vec::new));
                out.push(*byte);
            }
            b'}' | b']' => {
                open.pop();
                out.push(*byte);
            }
            b',' => {
                is_name = matches!(open.last(), Some(Some(_)));
                out.extend_from_slice(b", ");
            }
            b':' => out.extend_from_slice(b": "),
            b'"' => {
                // Python writes other escapes than those of the message, so texts with any are its
                // own.
                let length = memchr::memchr2(b'"', b'\\', &data[at..]).ok_or(OTHER)?;
                at += length + 1;
                if data[at - 1] == b'\\' {
                    return Err(OTHER);
                }
                if let (true, Some(Some(names))) = (is_name, open.last_mut()) {
                    let name = &text[start..at];
                    // Python's dict keeps the last of two members at the place of the first one.
                    if names.len() == MAX_NAMES || names.contains(&name) {
                        return Err(OTHER);
                    }
                    names.push(name);
                    is_name = false;
                }
                out.extend_from_slice(&data[start..at]);
            }
            _ => {
                let rest = &data[at..];
                let is_end = |byte: &u8| b",:]} \t\n\r".contains(byte);
                at += rest.iter().position(is_end).unwrap_or(rest.len());
                let word = &text[start..at];
                if byte.is_ascii_digit() || *byte == b'-' {
                    check_number(word)?;
                }
                out.extend_from_slice(word.as_bytes());
            }
        }
    }
    Ok(())
}

/// Refuses numbers that Python prints in another form.
fn check_number(text: &str) -> Result<()> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    // As integers and decimals: -0 is 0, and a decimal below 1E-6 has an exponent.
    let is_other = text == "-0"
        || text.len() >= 1000
        || digits.starts_with("0.000000")
        || text.contains(['e', 'E']);
    if is_other { Err(OTHER) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaced(text: &str) -> Option<String> {
        let mut out = Vec::new();
        append_python_json(text, &mut out).ok()?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn blanks_are_those_of_python() {
        for (text, expected) in [
            ("[]", "[]"),
            (
                r#"{ "a":1,"b" :[true,null,-2.50] }"#,
                r#"{"a": 1, "b": [true, null, -2.50]}"#,
            ),
            (
                r#"[{"a":"x, y:é"},{"a":{}}]"#,
                r#"[{"a": "x, y:é"}, {"a": {}}]"#,
            ),
            (r#"{"a":{"a":"a"}}"#, r#"{"a": {"a": "a"}}"#),
        ] {
            assert_eq!(spaced(text).as_deref(), Some(expected));
        }
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"["\n"]"#,
            "[1e3]",
            "[-0]",
            "[0.0000001]",
        ] {
            assert_eq!(spaced(text), None, "{text}");
        }
    }
}
