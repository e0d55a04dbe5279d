//! Changes to plain texts of lines and words, such as the kernel's, plans and lists of methods.

use pagewise_model::random::Random;

use crate::numbers;

/// Marks between words, and bytes that are difficult for parsers.
const MARKS: [&str; 22] = [
    "", " ", "  ", "\t", "\n", "\n\n", "\r\n", "\0", ",", ":", "-", "+", "/", "=", "\"", "'", "[", "]", "#",
    ".", "\u{fffd}", "é",
];

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineChange {
    /// A number to an extreme value.
    Number,
    /// A word left out, or twice.
    Word,
    /// Two words exchange their places.
    Swap,
    /// A line left out, or twice.
    Line,
    /// Two lines exchange their places.
    Reorder,
    /// The text breaks off.
    Tear,
    /// A mark inserted anywhere.
    Mark,
    /// A line of another text.
    Transplant,
}

const OPERATIONS: [LineChange; 8] = [
    LineChange::Number,
    LineChange::Word,
    LineChange::Swap,
    LineChange::Line,
    LineChange::Reorder,
    LineChange::Tear,
    LineChange::Mark,
    LineChange::Transplant,
];

impl LineChange {
    /// Draw one; half of them change numbers.
    pub fn draw(random: &mut Random) -> Self {
        if random.below(3) == 0 {
            return LineChange::Number;
        }
        OPERATIONS[random.below(OPERATIONS.len() as u64) as usize]
    }
}

/// `text` after one operation.
pub fn change(random: &mut Random, text: &str, donor: &str, operation: LineChange) -> String {
    match operation {
        LineChange::Number => with_piece(random, text, |byte| byte.is_ascii_digit(), numbers::text),
        LineChange::Word => with_piece(random, text, is_word, |random, was| {
            if random.below(2) == 0 { String::new() } else { format!("{was} {was}") }
        }),
        LineChange::Swap => swap(random, text, is_word),
        LineChange::Line => with_piece(random, text, is_line, |random, was| {
            if random.below(2) == 0 { String::new() } else { format!("{was}\n{was}") }
        }),
        LineChange::Reorder => swap(random, text, is_line),
        LineChange::Tear => text[..boundary(text, random.below(text.len() as u64 + 1) as usize)].to_string(),
        LineChange::Mark => {
            let at = boundary(text, random.below(text.len() as u64 + 1) as usize);
            let mark = MARKS[random.below(MARKS.len() as u64) as usize];
            format!("{}{mark}{}", &text[..at], &text[at..])
        }
        LineChange::Transplant => {
            let lines = pieces(donor, is_line);
            let Some((from, to)) = draw(random, &lines) else { return text.to_string() };
            let line = &donor[from..to];
            with_piece(random, text, is_line, |_, was| format!("{was}\n{line}"))
        }
    }
}

/// `text` after a few operations.
pub fn change_often(random: &mut Random, text: &str, donor: &str) -> String {
    let mut changed = text.to_string();
    for _ in 0..1 + random.below(4) {
        let operation = LineChange::draw(random);
        changed = change(random, &changed, donor, operation);
    }
    changed
}

/// A word similar to `was`: one change, within its line.
pub fn word(random: &mut Random, was: &str) -> String {
    let operation = LineChange::draw(random);
    change(random, was, was, operation)
}

fn is_word(byte: u8) -> bool {
    !byte.is_ascii_whitespace()
}

fn is_line(byte: u8) -> bool {
    byte != b'\n'
}

/// The nearest character boundary at or below `at`.
fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Positions of the longest runs of bytes of a kind. All kinds hold either all bytes of a character
/// or none.
fn pieces(text: &str, is: impl Fn(u8) -> bool) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (index, _) in text.bytes().enumerate().filter(|(_, byte)| is(*byte)) {
        match found.last_mut() {
            Some((_, end)) if *end == index => *end += 1,
            _ => found.push((index, index + 1)),
        }
    }
    found
}

fn draw(random: &mut Random, pieces: &[(usize, usize)]) -> Option<(usize, usize)> {
    if pieces.is_empty() { None } else { Some(pieces[random.below(pieces.len() as u64) as usize]) }
}

fn with_piece(
    random: &mut Random,
    text: &str,
    is: impl Fn(u8) -> bool,
    change: impl Fn(&mut Random, &str) -> String,
) -> String {
    let Some((from, to)) = draw(random, &pieces(text, is)) else { return text.to_string() };
    let changed = change(random, &text[from..to]);
    format!("{}{changed}{}", &text[..from], &text[to..])
}

fn swap(random: &mut Random, text: &str, is: impl Fn(u8) -> bool) -> String {
    let found = pieces(text, is);
    let (Some(one), Some(other)) = (draw(random, &found), draw(random, &found)) else {
        return text.to_string();
    };
    let (first, second) = (one.min(other), one.max(other));
    if first == second {
        return text.to_string();
    }
    let (left, right) = (&text[first.0..first.1], &text[second.0..second.1]);
    format!("{}{right}{}{left}{}", &text[..first.0], &text[first.1..second.0], &text[second.1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_changes_a_text_that_it_suits() {
        let text = "cpu  1 22 333\nintr 4444 5\nname é 漢字 6\n";
        for operation in OPERATIONS {
            let changed = (0..100)
                .filter(|seed| change(&mut Random::new(*seed), text, "other line\n", operation) != text);
            assert!(changed.count() > 50, "{operation:?}");
        }
        for operation in OPERATIONS {
            change(&mut Random::new(1), "", "", operation);
        }
    }
}
