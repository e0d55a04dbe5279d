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
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Plain }
    }

    pub(crate) fn strong(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Strong }
    }

    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Bad }
    }

    pub(crate) fn weak(text: impl Into<String>) -> Self {
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

    pub(crate) fn plain(text: String) -> Self {
        Self(vec![Span::plain(text)])
    }

    pub(crate) fn strong(text: String) -> Self {
        Self(vec![Span::strong(text)])
    }

    pub(crate) fn bad(text: String) -> Self {
        Self(vec![Span::bad(text)])
    }

    pub(crate) fn weak(text: String) -> Self {
        Self(vec![Span::weak(text)])
    }

    /// Text without emphasis.
    pub fn text(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect::<String>().trim_end().to_string()
    }
}
