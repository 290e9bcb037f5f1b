//! Finds any of several texts.

use aho_corasick::packed::Searcher;
use memchr::memmem::Finder;

/// A search for some texts.
#[derive(Clone, Debug, Default)]
pub struct AnyText {
    /// Finds all texts in one pass; None if the processor cannot, or for more than 128 texts.
    searcher: Option<Searcher>,
    finders: Vec<Finder<'static>>,
}

impl AnyText {
    /// Ignores empty texts.
    pub fn new(texts: &[String]) -> Self {
        let texts = || texts.iter().filter(|text| !text.is_empty());
        Self {
            // One pass over the message, as most messages have none of the texts.
            searcher: Searcher::new(texts().map(String::as_bytes)),
            finders: texts().map(|text| Finder::new(text).into_owned()).collect(),
        }
    }

    pub fn is_in(&self, text: &str) -> bool {
        let text = text.as_bytes();
        match &self.searcher {
            Some(searcher) => searcher.find(text).is_some(),
            None => self
                .finders
                .iter()
                .any(|finder| finder.find(text).is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_texts() {
        for count in [0, 1, 5, 200] {
            let texts: Vec<String> = (0..count).map(|n| format!("\"text {n:03}\"")).collect();
            let any = AnyText::new(&[&texts[..], &[String::new()]].concat());
            assert!(!any.is_in("") && !any.is_in("\"text\" 001 \"text 1\""));
            for text in &texts {
                for length in [0, 1, 15, 100] {
                    let around = "x".repeat(length);
                    assert!(any.is_in(&format!("{around}{text}{around}")), "{text}");
                    assert!(
                        !any.is_in(&format!("{around}{}{around}", &text[1..])),
                        "{text}"
                    );
                }
            }
        }
    }
}
