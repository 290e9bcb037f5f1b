//! Frames of Open Protocol: the events of a message.

use crate::refusal::{Refusal, Result};
use crate::text::utf8;

const VERSION: [u8; 8] = 1_u64.to_be_bytes();

/// Frames: an eight-byte length, followed by that many bytes.
#[derive(Clone, Copy)]
pub struct Frames<'a>(pub &'a [u8]);

impl<'a> Frames<'a> {
    /// The frames of a key, which begins with a version.
    pub fn of_key(key: &'a [u8]) -> Result<Self> {
        let frames = key.strip_prefix(&VERSION);
        frames
            .map(Self)
            .ok_or(Refusal::new("unknown version of frames", 0))
    }

    /// The next frame; None at the end.
    pub fn take(&mut self) -> Result<Option<&'a [u8]>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let refusal = Refusal::new("wrong length of a frame", 0);
        let (length, rest) = self.0.split_first_chunk().ok_or(refusal)?;
        // A claimed length is only compared with the bytes that exist.
        let length = usize::try_from(u64::from_be_bytes(*length)).map_err(|_| refusal)?;
        let (frame, rest) = rest.split_at_checked(length).ok_or(refusal)?;
        self.0 = rest;
        Ok(Some(frame))
    }

    pub fn count(mut self) -> Result<usize> {
        let mut count = 0;
        while self.take()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// An event's key and value, concatenated.
#[derive(Default)]
pub struct Joined {
    pub document: String,
    /// Start of the value.
    pub value: usize,
}

impl Joined {
    /// Joins a key and a value, which must be UTF-8.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.document.clear();
        self.document.push_str(utf8(key)?);
        self.document.push_str(utf8(value)?);
        self.value = key.len();
        Ok(())
    }

    /// The key and the value of an event.
    pub fn new(key: Option<&[u8]>, value: &[u8]) -> Result<Self> {
        let mut joined = Self::default();
        joined.set(key.unwrap_or_default(), value)?;
        Ok(joined)
    }
}

/// The key and the value of an event, by its number in the message.
pub fn event<'a>(
    key: Option<&'a [u8]>,
    value: &'a [u8],
    number: usize,
) -> Result<(&'a [u8], &'a [u8])> {
    let mut keys = Frames::of_key(key.unwrap_or_default())?;
    let mut values = Frames(value);
    if keys.count()? != values.count()? {
        return Err(Refusal::new(
            "key and value have different numbers of frames",
            0,
        ));
    }
    for _ in 0..number {
        keys.take()?;
        values.take()?;
    }
    match (keys.take()?, values.take()?) {
        (Some(key), Some(value)) => Ok((key, value)),
        _ => Err(Refusal::new("event does not exist", 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_bytes() {
        let mut frames = Frames(b"\0\0\0\0\0\0\0\x02ab\0\0\0\0\0\0\0\0");
        assert_eq!(frames.count(), Ok(2));
        assert_eq!(frames.take(), Ok(Some(&b"ab"[..])));
        assert_eq!(frames.take(), Ok(Some(&b""[..])));
        assert_eq!(frames.take(), Ok(None));
        for data in [&b"\0\0\0\0\0\0\0\x03ab"[..], b"\0", &[0xff; 9]] {
            assert!(Frames(data).take().is_err(), "{data:?}");
        }
    }
}
