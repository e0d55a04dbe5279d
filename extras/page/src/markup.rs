//! Text as content of HTML and XML: the only place where it is escaped.

use std::fmt::Display;

use pagewise_model::Untrusted;

/// Text on one line that is neither markup nor ends an attribute in double quotes.
pub fn escaped(text: impl Display) -> String {
    let mut safe = String::new();
    for letter in Untrusted(text).to_string().chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        assert_eq!(
            escaped("<b a=\"x\" c='y'>&amp;\n\u{1b}"),
            "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;amp;\\u{a}\\u{1b}"
        );
        assert_eq!(escaped("27.6 µs · 12 – 13"), "27.6 µs · 12 – 13");
    }
}
