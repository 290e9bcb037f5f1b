//! Feeds messages and lines to the kernel until it refuses one.

use crate::python::kernel::{PyKernel, WINDOW};
use crate::python::messages::{ArrowMessage, ArrowMessages};
use crate::read::Place;
use crate::refusal::{Reason, Stop};

impl PyKernel {
    /// Reads some messages; returns the index of the next message, or of the first unread one.
    pub fn messages_of(&mut self, messages: &ArrowMessages, start: usize) -> usize {
        let end = messages.len().min(start + WINDOW);
        for at in start..end {
            let Some(message) = messages.get(at, self.kernel.shown()) else {
                self.stop = Some(Stop::new(Reason::Message, "missing value"));
                return at;
            };
            let ArrowMessage {
                value,
                key,
                place,
                beside,
            } = message;
            if let Some(attributes) = self.kernel.attributes() {
                messages.note(at, attributes);
            }
            if !self.one(value, key, place, beside) {
                return at;
            }
        }
        end
    }

    /// Reads some lines; returns the position of the next line, or of the first unread one.
    pub fn lines(
        &mut self,
        data: &[u8],
        offset: i64,
        start: usize,
        are_whole: bool,
        path: usize,
    ) -> usize {
        let mut at = start;
        for _ in 0..WINDOW {
            if at >= data.len() {
                break;
            }
            let end = memchr::memchr(b'\n', &data[at..]).map_or(data.len(), |end| at + end);
            let line = &data[at..end];
            let place = Place {
                offset: i64::try_from(at).ok().map(|at| offset + at),
                ..Place::default()
            };
            // Blank lines are no messages, as in the reference.
            if !line.trim_ascii().is_empty() {
                let is_read = match are_whole {
                    true => self.whole(line, place, path),
                    false => {
                        if let Some(attributes) = self.kernel.attributes() {
                            attributes.read(None, std::iter::empty());
                        }
                        self.one(line, None, place, path)
                    }
                };
                if !is_read {
                    return at;
                }
            }
            at = end + 1;
        }
        at.min(data.len())
    }

    /// `path`: bytes of the path in each row.
    pub fn whole(&mut self, line: &[u8], place: Place, path: usize) -> bool {
        let mut message = std::mem::take(&mut self.whole);
        let is_read = match message.read(line, &mut self.origins) {
            Ok(()) => {
                let key = message.has_key.then_some(message.key.as_slice());
                let beside = path + self.origins.beside(self.kernel.shown());
                if let Some(attributes) = self.kernel.attributes() {
                    self.origins.note(attributes);
                }
                let place = Place {
                    partition: message.partition.unwrap_or_default(),
                    offset: message.offset.or(place.offset),
                    ..place
                };
                let is_read = self.one(&message.value, key, place, beside);
                if !is_read {
                    // The reference adds the origin of the message that it reads.
                    self.origins.pop();
                }
                is_read
            }
            Err(refusal) => {
                self.stop = Some(Stop::new(refusal.reason, refusal.text));
                false
            }
        };
        self.whole = message;
        is_read
    }

    /// Reads a message; `beside`: bytes of topic, path and headers in each of its rows.
    pub fn one(&mut self, value: &[u8], key: Option<&[u8]>, place: Place, beside: usize) -> bool {
        // Before the message: it stays the first one of the next batch.
        if self.kernel.is_full() {
            self.stop = Some(Stop::new(Reason::Full, "batch is full"));
            return false;
        }
        match self.kernel.read(value, key, place, beside) {
            Ok(()) => {
                self.size += value.len() + beside;
                true
            }
            Err(stop) => {
                self.stop = Some(stop);
                false
            }
        }
    }
}
