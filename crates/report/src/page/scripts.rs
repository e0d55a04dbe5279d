//! The scripts of a page, and the policy that allows them and nothing else.
//!
//! d3 and Observable Plot are vendored (`vendor/vendored.toml`); `tables.js` and `plots.js` are pagewise's. A page is
//! complete without them.

use std::borrow::Cow;

use pagewise_model::untrusted::is_printed;

use crate::markup::escaped;

/// A script and the hash by which the policy allows it.
struct Script {
    text: Cow<'static, str>,
    hash: &'static str,
}

/// One line for each script: `sha256-…`. A test holds them, and `PAGEWISE_BLESS` writes them anew.
const HASHES: &str = include_str!("hashes.txt");

const TABLES: &str = include_str!("tables.js");
const PLOTS: &str = include_str!("plots.js");
const D3: &str = include_str!("../../vendor/d3.min.js");
const OBSERVABLE_PLOT: &str = include_str!("../../vendor/plot.umd.min.js");

/// Licences of the parts of others, which must stand in all copies.
const LICENCES: [(&str, &str); 2] = [
    ("d3", include_str!("../../vendor/d3.LICENSE")),
    ("Observable Plot", include_str!("../../vendor/plot.LICENSE")),
];

/// All texts, in the order of their hashes.
pub(super) const TEXTS: [&str; 4] = [TABLES, D3, OBSERVABLE_PLOT, PLOTS];

/// Bytes of all scripts and their licences in a page.
pub(super) const BYTES: usize = TEXTS[0].len() + TEXTS[1].len() + TEXTS[2].len() + TEXTS[3].len() + 4096;

/// A script without invisible characters: no writer of pagewise lets one pass. In the strings of Observable Plot there are three
/// (soft hyphens, a space without width), and an escape sequence means the same there.
fn visible(script: &'static str) -> Cow<'static, str> {
    let is_plain = |letter: char| letter == '\n' || is_printed(letter);
    if script.chars().all(is_plain) {
        return script.into();
    }
    let mut text = String::with_capacity(script.len() + 64);
    for letter in script.chars() {
        match is_plain(letter) {
            true => text.push(letter),
            false => text.extend(letter.escape_unicode()),
        }
    }
    text.into()
}

/// The scripts that a page needs.
pub(super) struct Scripts(Vec<Script>);

impl Scripts {
    /// Those of tables, and those of plots if there are any.
    pub(super) fn of(has_plots: bool) -> Self {
        // A hash that is missing allows nothing, and its test says so.
        let hashes = HASHES.lines().chain(std::iter::repeat(""));
        let all = TEXTS.into_iter().zip(hashes).map(|(text, hash)| Script { text: visible(text), hash });
        Self(all.take(if has_plots { TEXTS.len() } else { 1 }).collect())
    }

    /// Nothing is loaded, and no other script runs.
    pub(super) fn policy(&self) -> String {
        let hashes: String = self.0.iter().map(|script| format!(" '{}'", script.hash)).collect();
        format!(
            "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src{hashes}"
        )
    }

    /// The elements, for the end of a page.
    pub(super) fn elements(&self) -> String {
        self.0.iter().map(|script| format!("<script>{}</script>\n", script.text)).collect()
    }

    /// The licences of those of others, as the end of a page's text.
    pub(super) fn licences(&self) -> String {
        if self.0.len() < TEXTS.len() {
            return String::new();
        }
        let of = |(name, text): (&str, &str)| {
            let paragraphs =
                text.split("\n\n").map(|text| format!("<p>{}</p>", escaped(text.trim().replace('\n', " "))));
            format!("<h3>{name}</h3>\n{}\n", paragraphs.collect::<String>())
        };
        format!(
            "<details class=\"licences\"><summary>Scripts of others in this page</summary>\n{}</details>\n",
            LICENCES.map(of).concat()
        )
    }
}
