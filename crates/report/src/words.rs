//! Sentences made of what the analysis found.

pub mod advice;
pub(crate) mod cliff;
pub(crate) mod tables;

/// The sentence with a capital letter.
pub(crate) fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    // Names of methods are lower case and do not begin a sentence.
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}
