//! Text wrapped to a width.

use pagewise_model::Untrusted;

/// The narrowest layout; smaller widths are treated as this.
pub const NARROWEST: usize = 80;
/// The widest, since longer lines are hard to read.
pub const WIDEST: usize = 200;

/// A text in lines of at most `width` columns; lines after the first are indented further.
pub fn wrapped(indent: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = indent.to_string();
    let mut empty = true;
    // A line end in the text is escaped before words are split: it must not become a line of this
    // paragraph.
    for word in words(&Untrusted(text).to_string()) {
        let longer = line.chars().count() + 1 + word.chars().count();
        if !empty && longer > width {
            lines.push(std::mem::replace(&mut line, format!("{indent}  ")));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(&word);
        empty = false;
    }
    lines.push(line);
    lines
}

/// Words; a per cent sign belongs to its number.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut().filter(|_| word.starts_with('%')) {
            Some(number) => *number = format!("{number} {word}"),
            None => words.push(word.to_string()),
        }
    }
    words
}

/// A text cut to `len` characters, with a dot for the omitted part.
pub(crate) fn shortened(text: &str, len: usize) -> String {
    if text.chars().count() <= len {
        return text.to_string();
    }
    let kept: String = text.chars().take(len.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_keeps_to_its_width() {
        let lines = wrapped("  ", "one two three four 5 %, six", 12);
        assert_eq!(lines, ["  one two", "    three", "    four", "    5 %, six"]);
        let lines = wrapped("", "a name\nVerdict: \u{1b}[1mmine", 40);
        assert_eq!(lines, [r"a name\u{a}Verdict: \u{1b}[1mmine"]);
    }
}
