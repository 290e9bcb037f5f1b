//! Known texts, compared with what follows in a document.

/// Texts of up to this length are compared without a loop.
const WIDE: usize = 32;
const WORDS: usize = WIDE / 8;

/// By length, the bits of the compared bytes.
static MASKS: [[u64; WORDS]; WIDE + 1] = {
    let mut masks = [[0; WORDS]; WIDE + 1];
    let mut length = 0;
    while length <= WIDE {
        let mut place = 0;
        while place < length {
            masks[length][place / 8] |= 0xff << (place % 8 * 8);
            place += 1;
        }
        length += 1;
    }
    masks
};

/// A text that often follows, such as a member's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Label {
    /// The first bytes.
    words: [u64; WORDS],
    text: Box<[u8]>,
}

impl Label {
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; WIDE];
        let length = text.len().min(WIDE);
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self {
            words: words(&bytes),
            text: text.as_bytes().into(),
        }
    }

    /// A member's name as in documents, up to the colon.
    pub fn of_name(name: &str) -> Self {
        Self::new(&format!("\"{name}\":"))
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len()
    }

    /// Whether the data begin with the text.
    #[inline]
    pub fn begins(&self, data: &[u8]) -> bool {
        // Near the end of the document there are fewer bytes than the masks cover.
        let Some(first) = data.first_chunk() else {
            return data.starts_with(&self.text);
        };
        let length = self.text.len();
        let masks = &MASKS[length.min(WIDE)];
        let words = words(first);
        let differs = |place: usize| (words[place] ^ self.words[place]) & masks[place];
        // Names are usually shorter than 16 bytes, so the other half is not even loaded.
        differs(0) | differs(1) == 0
            && (length <= 16
                || differs(2) | differs(3) == 0
                    && (length <= WIDE || data[WIDE..].starts_with(&self.text[WIDE..])))
    }
}

#[inline]
fn words(bytes: &[u8; WIDE]) -> [u64; WORDS] {
    std::array::from_fn(|place| {
        let word = bytes[8 * place..].first_chunk().copied();
        u64::from_le_bytes(word.unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length() {
        let text: String = ('0'..='z').collect();
        for length in 0..=text.len() {
            let label = Label::new(&text[..length]);
            for end in 0..=text.len() {
                let data = &text.as_bytes()[..end];
                assert_eq!(label.begins(data), end >= length, "{length} {end}");
            }
            for place in 0..length {
                let mut data = text.clone().into_bytes();
                data[place] ^= 1;
                assert!(!label.begins(&data), "{length} {place}");
            }
        }
    }
}
