//! Fast appends of short texts, such as most names and values.

/// Spans up to this length are copied without a call, whose length branches are hard to predict.
pub const SHORT: usize = 32;

/// Appends the bytes of a span; a short one is copied with the bytes after it, then truncated.
#[inline]
pub fn append(bytes: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    let length = end.wrapping_sub(start);
    let chunk = bytes.get(start..).and_then(<[u8]>::first_chunk::<SHORT>);
    match chunk {
        // A copy of constant length is two instructions; the bytes too many are cut off again.
        Some(chunk) if length <= SHORT => {
            let before = out.len();
            out.extend_from_slice(chunk);
            out.truncate(before + length);
        }
        _ => out.extend_from_slice(bytes.get(start..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_any_length() {
        let bytes: Vec<u8> = (0..80).collect();
        for start in 0..=bytes.len() {
            for end in start..=bytes.len() {
                let mut out = b"before".to_vec();
                append(&bytes, start, end, &mut out);
                assert_eq!(out, [b"before", &bytes[start..end]].concat());
            }
        }
        let mut out = Vec::new();
        append(&bytes, 2, 1, &mut out);
        append(&bytes, 81, 90, &mut out);
        assert_eq!(out, b"");
    }
}
