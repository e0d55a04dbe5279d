//! Text from outside, escaped so that it cannot affect a terminal, a table or a reader.
//!
//! Names of files, messages of workers, plans, the environment and run files may hold anything:
//! bytes that a terminal obeys, characters that change the direction of text, line ends that start
//! a line of their own. [`Untrusted`] shows such a text on one line, with everything that is not
//! printable as `\u{..}`. A writer of whole documents applies the same rule to its text
//! ([`is_printed`]), and a command line to type is made of words that a shell reads back
//! ([`shell_word`]).

use std::fmt::{self, Display, Write};

/// A text from outside. Its `Display` is one line of printed characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untrusted<T>(pub T);

impl<T: Display> Display for Untrusted<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(formatter), "{}", self.0)
    }
}

/// Pass printable characters on, and escape the others as `\u{..}`.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((index, hidden)) = rest.char_indices().find(|(_, character)| !is_printed(*character)) {
            self.0.write_str(&rest[..index])?;
            write!(self.0, "{}", hidden.escape_unicode())?;
            rest = &rest[index + hidden.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

/// Characters that are neither control characters nor printable: they join, mark, change the
/// direction of or end the text next to them (the categories Cf, Zl and Zp of Unicode 16).
const HIDDEN: [(char, char); 22] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{fffe}', '\u{ffff}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
    ('\u{10fffe}', '\u{10ffff}'),
];

/// True if a character is visible in its place and has no other effect. False for line ends.
pub fn is_printed(character: char) -> bool {
    match character {
        ' '..='~' => true,
        '\0'..='\u{9f}' => false,
        _ => !HIDDEN.iter().any(|(first, last)| (*first..=*last).contains(&character)),
    }
}

/// One word of a shell, on one line: plain, in quotes, or with escapes for what is not printed.
pub fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:=,@%+-".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_string();
    }
    if text.chars().all(is_printed) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = String::from("$'");
    for letter in text.chars() {
        match letter {
            '\'' | '\\' => word.extend(['\\', letter]),
            letter if is_printed(letter) => word.push(letter),
            letter => word.push_str(&format!("\\U{:08x}", u32::from(letter))),
        }
    }
    word + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_of_printed_characters() {
        let shown = |text: &str| Untrusted(text).to_string();
        assert_eq!(shown("índice, 索引 – 8 µs · ┤ 🦀"), "índice, 索引 – 8 µs · ┤ 🦀");
        assert_eq!(shown("a\nb\tc\r"), r"a\u{a}b\u{9}c\u{d}");
        assert_eq!(shown("\u{1b}]52;c;aGk=\u{7}"), r"\u{1b}]52;c;aGk=\u{7}");
        assert_eq!(shown("\u{7f}\u{9b}31m\u{85}"), r"\u{7f}\u{9b}31m\u{85}");
        assert_eq!(
            shown("a\u{202e}b\u{2066}c\u{2028}d\u{200b}e\u{feff}"),
            r"a\u{202e}b\u{2066}c\u{2028}d\u{200b}e\u{feff}"
        );
        assert_eq!(shown(""), "");
    }

    #[test]
    fn ranges_are_in_order_and_apart() {
        assert!(HIDDEN.iter().all(|(first, last)| first <= last));
        assert!(HIDDEN.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn no_control_character_is_printed() {
        for character in ('\0'..=char::MAX).filter(|character| character.is_control()) {
            assert!(!is_printed(character), "{character:?}");
        }
    }

    #[test]
    fn a_word_of_a_shell_is_one_word_and_harmless() {
        for (text, word) in [
            ("run.jsonl", "run.jsonl"),
            ("", "''"),
            ("mine=./reader --fast", "'mine=./reader --fast'"),
            ("it's", r"'it'\''s'"),
            ("$(id)`id`;*", "'$(id)`id`;*'"),
            ("a\u{1b}]0;x\u{7}b\n", r"$'a\U0000001b]0;x\U00000007b\U0000000a'"),
            ("it's \\ \u{202e}", r"$'it\'s \\ \U0000202e'"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
