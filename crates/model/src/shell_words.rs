//! Splitting of a line into words as in a shell, without its expansions.

/// A quote was opened and not closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' has an unclosed {quote}")]
pub struct UnclosedQuote {
    /// The text.
    pub text: String,
    /// The quote.
    pub quote: char,
}

/// Split at white space outside of quotes. Both kinds of quotes keep their content together and are
/// removed, even in the middle of a word; an empty pair is an empty word. A backslash is an
/// ordinary character.
pub fn split_words(text: &str) -> Result<Vec<String>, UnclosedQuote> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if let Some(quote) = quote {
        return Err(UnclosedQuote { text: text.to_string(), quote });
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_spaces_and_held_by_quotes() {
        let table: [(&str, &[&str]); 7] = [
            ("", &[]),
            ("  \t ", &[]),
            ("-Xms1g  -Xmx1g\n", &["-Xms1g", "-Xmx1g"]),
            ("'a b' \"c 'd'\"", &["a b", "c 'd'"]),
            ("-Dname='x y'z", &["-Dname=x yz"]),
            ("a '' b", &["a", "", "b"]),
            (r"a\ b", &[r"a\", "b"]),
        ];
        for (text, wanted) in table {
            assert_eq!(split_words(text).expect(text), wanted, "{text}");
        }
    }

    #[test]
    fn an_open_quote_is_refused() {
        assert_eq!(
            split_words("-Dname='x y").expect_err("open").to_string(),
            "'-Dname='x y' has an unclosed '"
        );
        assert!(split_words("\"").is_err());
    }
}
