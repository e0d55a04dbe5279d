//! A writer that escapes everything that a terminal would obey.
//!
//! All text for people goes through it, so that text from outside cannot be left unescaped by
//! mistake: printable characters and line ends pass (`\n`, and `\r\n` as in CSV), everything else
//! is made visible. Line ends are not attributed to a text here, so a text that could begin a line
//! of its own is escaped by [`Untrusted`] first.

use std::io::{self, Write};

use pagewise_model::Untrusted;
use pagewise_model::untrusted::is_printed;

use crate::line::{Emphasis, Line, Span};

/// Escape sequence for an unprintable character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `\u{1b}`.
    Shown,
    /// `\u001b`, as in JSON: the data do not change.
    Json,
}

impl Escape {
    fn write(self, character: char, out: &mut Vec<u8>) {
        let text = match self {
            Escape::Shown => character.escape_unicode().to_string(),
            Escape::Json => {
                character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            }
        };
        out.extend_from_slice(text.as_bytes());
    }
}

/// Writes printable characters to `out`, and the others escaped.
pub struct Printed<W: Write> {
    out: W,
    escape: Escape,
    /// Bytes that depend on the next ones: the beginning of a character, or a carriage return.
    open: Vec<u8>,
}

impl<W: Write> Printed<W> {
    /// A writer without any output yet.
    pub fn new(out: W, escape: Escape) -> Self {
        Self { out, escape, open: Vec::new() }
    }

    /// Write a line; its emphasis is shown if `coloured`.
    pub fn line(&mut self, line: &Line, coloured: bool) -> io::Result<()> {
        if !coloured {
            return writeln!(self, "{}", Untrusted(line.text()));
        }
        for Span { text, emphasis } in &line.0 {
            let code = match emphasis {
                Emphasis::Plain => "",
                Emphasis::Strong => "\u{1b}[1m",
                Emphasis::Bad => "\u{1b}[31m",
                Emphasis::Weak => "\u{1b}[2m",
            };
            self.out.write_all(code.as_bytes())?;
            write!(self, "{}", Untrusted(text))?;
            if !code.is_empty() {
                self.out.write_all(b"\x1b[0m")?;
            }
        }
        writeln!(self)
    }

    /// Write lines.
    pub fn lines(&mut self, lines: &[Line], coloured: bool) -> io::Result<()> {
        lines.iter().try_for_each(|line| self.line(line, coloured))
    }

    fn pass(&mut self, text: &str) -> io::Result<()> {
        let mut passed = Vec::with_capacity(text.len());
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let ends_line = character == '\n' || character == '\r' && characters.peek() == Some(&'\n');
            if ends_line || is_printed(character) {
                passed.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                self.escape.write(character, &mut passed);
            }
        }
        self.out.write_all(&passed)
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n')
}

impl<W: Write> Write for Printed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.open.is_empty() && bytes.iter().copied().all(is_plain) {
            self.out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let mut all = std::mem::take(&mut self.open);
        all.extend_from_slice(bytes);
        let mut whole = String::with_capacity(all.len());
        for chunk in all.utf8_chunks() {
            whole.push_str(chunk.valid());
            let is_last = chunk.invalid().as_ptr_range().end == all.as_ptr_range().end;
            let is_begun = is_last
                && std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            match chunk.invalid() {
                [] => {}
                begun if is_begun => self.open = begun.to_vec(),
                _ => whole.push(char::REPLACEMENT_CHARACTER),
            }
        }
        if self.open.is_empty() && whole.ends_with('\r') {
            whole.pop();
            self.open.push(b'\r');
        }
        self.pass(&whole)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // An incomplete character will not be completed.
        let open = std::mem::take(&mut self.open);
        self.pass(&String::from_utf8_lossy(&open))?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(escape: Escape, parts: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut printed = Printed::new(&mut out, escape);
        parts.iter().for_each(|part| printed.write_all(part).expect("memory"));
        printed.flush().expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn only_printed_characters_and_line_ends_pass() {
        let shown = |text: &str| written(Escape::Shown, &[text.as_bytes()]);
        assert_eq!(shown("two\nlines – 8 µs\r\n"), "two\nlines – 8 µs\r\n");
        assert_eq!(
            shown("over\rwritten\t\u{1b}[2J\u{9b}1m\u{202e}"),
            r"over\u{d}written\u{9}\u{1b}[2J\u{9b}1m\u{202e}"
        );
        assert_eq!(written(Escape::Shown, &[b"a\xff\xfeb"]), "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn json_keeps_its_data() {
        let data = "\u{7f}\u{9b}2J\u{202e}\u{e0041}\u{1b}\nend";
        let text = serde_json::to_string(data).expect("text");
        let out = written(Escape::Json, &[text.as_bytes()]);
        assert!(out.chars().all(is_printed), "{out}");
        assert_eq!(serde_json::from_str::<String>(&out).expect("JSON"), data);
    }

    #[test]
    fn a_character_may_come_in_parts() {
        assert_eq!(
            written(Escape::Shown, &[b"a\xc2", b"\x9b", b"b\xe2\x80", b"\x93c\r", b"\n"]),
            "a\\u{9b}b–c\r\n"
        );
        assert_eq!(written(Escape::Shown, &[b"a\xe2\x80"]), "a\u{fffd}");
        assert_eq!(written(Escape::Shown, &[b"a\r", b"b\r"]), "a\\u{d}b\\u{d}");
    }

    proptest! {
        #[test]
        fn parts_make_no_difference(bytes in proptest::collection::vec(any::<u8>(), 0..40), at in 0usize..40) {
            let at = at.min(bytes.len());
            let whole = written(Escape::Shown, &[&bytes]);
            prop_assert_eq!(&written(Escape::Shown, &[&bytes[..at], &bytes[at..]]), &whole);
            prop_assert!(whole.replace("\r\n", "\n").chars().all(|character| character == '\n' || is_printed(character)));
        }
    }
}
