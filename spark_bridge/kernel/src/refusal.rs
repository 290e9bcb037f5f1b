//! The reason why a message is left to the reference.

/// The unusual fact, and the byte of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: &'static str,
    pub at: usize,
}

impl Refusal {
    pub const fn new(reason: &'static str, at: usize) -> Self {
        Self { reason, at }
    }
}

pub type Step<T> = Result<T, Refusal>;
