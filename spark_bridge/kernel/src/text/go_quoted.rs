//! Bytes as quoted by Go; the Python reader is in `cdcfmt_toolkit/go_quote.py`.
//!
//! Other text leaves the message to the reference.

use crate::refusal::{Refusal, Result};
use crate::text::bytes::hex;

/// Decodes the output of Go's `strconv.Quote`, without the enclosing quotes.
pub fn unquote_go(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let mut rest = text.as_bytes();
    while let Some(special) = rest
        .iter()
        .position(|byte| matches!(byte, b'\\' | b'"' | ..=0x1f | 0x7f))
    {
        out.extend_from_slice(&rest[..special]);
        let broken = Refusal::new("text is not in Go's quotes", 0);
        rest = escape(&rest[special..], out).ok_or(broken)?;
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Decodes the escape at a backslash; returns the rest.
fn escape<'a>(data: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let [b'\\', letter, rest @ ..] = data else {
        return None;
    };
    let byte = match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' | b'"' => *letter,
        b'x' => {
            out.push(u8::try_from(hex(rest.get(..2)?)?).ok()?);
            return rest.get(2..);
        }
        b'u' | b'U' => {
            let digits = if *letter == b'u' { 4 } else { 8 };
            let rune = char::from_u32(hex(rest.get(..digits)?)?)?;
            out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
            return rest.get(digits..);
        }
        _ => return None,
    };
    out.push(byte);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        unquote_go(text, &mut out).ok().map(|()| out)
    }

    #[test]
    fn go_quoted_bytes() {
        let some = read("a\\x00\\n\\u00e9\\U0001f600\\\\é");
        assert_eq!(some.as_deref(), Some("a\0\né\u{1f600}\\é".as_bytes()));
        for text in [
            "\"",
            "\\",
            "\\x0",
            "\\ud800",
            "\\U00110000",
            "\n",
            "\\'",
            "\\101",
            "\u{7f}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
