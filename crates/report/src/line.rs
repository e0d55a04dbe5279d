//! Lines of text with emphasis, which a terminal shows and a file leaves out.

/// Emphasis of a part of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emphasis {
    /// None.
    #[default]
    Plain,
    /// A recommendation.
    Strong,
    /// A warning.
    Bad,
    /// An uncertain or secondary remark.
    Weak,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Text.
    pub text: String,
    /// Emphasis.
    pub emphasis: Emphasis,
}

impl Span {
    /// Text without emphasis.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Plain }
    }

    /// Text that stands out.
    pub fn strong(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Strong }
    }

    /// Text about a fault.
    pub fn bad(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Bad }
    }

    /// Text that is secondary.
    pub fn weak(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Weak }
    }
}

/// A line of a screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(pub Vec<Span>);

impl Line {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A line without emphasis.
    pub fn plain(text: String) -> Self {
        Self(vec![Span::plain(text)])
    }

    /// A line that stands out.
    pub fn strong(text: String) -> Self {
        Self(vec![Span::strong(text)])
    }

    /// A line about a fault.
    pub fn bad(text: String) -> Self {
        Self(vec![Span::bad(text)])
    }

    /// A line that is secondary.
    pub fn weak(text: String) -> Self {
        Self(vec![Span::weak(text)])
    }

    /// Add a part, to the last one where it has the same emphasis.
    pub(crate) fn push(&mut self, span: Span) {
        match self.0.last_mut().filter(|last| last.emphasis == span.emphasis) {
            Some(last) => last.text.push_str(&span.text),
            None => self.0.push(span),
        }
    }

    /// Text without emphasis.
    pub fn text(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect::<String>().trim_end().to_string()
    }
}
