//! The known word that a misspelt one is probably meant to be.

/// The least likeness of words, by Jaro and Winkler.
const ALIKE: f64 = 0.8;

/// Suggestion for an unknown word, as the end of a message: the nearest known one, or all of them.
pub fn meant(typed: &str, known: &[&str]) -> String {
    match nearest(typed, known.iter().copied()) {
        Some(nearest) => format!("the nearest known one is '{nearest}'"),
        None => format!("write one of {}", known.join(", ")),
    }
}

/// The known word that is most like the typed one; `None` if none is like it.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let alike = known.into_iter().map(|word| (strsim::jaro_winkler(typed, word), word));
    let alike = alike.filter(|(likeness, _)| *likeness >= ALIKE);
    alike.max_by(|(left, _), (right, _)| left.total_cmp(right)).map(|(_, word)| word)
}
