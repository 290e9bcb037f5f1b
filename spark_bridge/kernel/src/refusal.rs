//! Why a message is left to the reference.

/// What is unusual, and at which byte of the document.
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
