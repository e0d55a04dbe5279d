//! The scripts of a page, and the policy that allows them and nothing else. A page is complete
//! without them.

/// One line for each script: `sha256-…`. A test holds them, and `PAGEWISE_BLESS` writes them anew.
const HASHES: &str = include_str!("hashes.txt");

const TABLES: &str = include_str!("tables.js");
const PLOTS: &str = include_str!("plots.js");

/// Bytes of all scripts in a page.
pub(super) const BYTES: usize = TABLES.len() + PLOTS.len() + 256;

/// The scripts that a page needs, each with the hash by which the policy allows it.
pub(super) struct Scripts(Vec<(&'static str, &'static str)>);

impl Scripts {
    /// That of tables, and that of plots if there are any.
    pub(super) fn of(has_plots: bool) -> Self {
        // A hash that is missing allows nothing, and its test says so.
        let hashes = HASHES.lines().chain(std::iter::repeat(""));
        Self([TABLES, PLOTS].into_iter().zip(hashes).take(if has_plots { 2 } else { 1 }).collect())
    }

    /// Nothing is loaded, and no other script runs.
    pub(super) fn policy(&self) -> String {
        let hashes: String = self.0.iter().map(|(_, hash)| format!(" '{hash}'")).collect();
        format!(
            "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src{hashes}"
        )
    }

    /// The elements, for the end of a page.
    pub(super) fn elements(&self) -> String {
        let element = |(script, _): &(&str, _)| {
            // Comments and indentation are for those who read the source.
            let lines = script.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
            format!("<script>{}</script>\n", lines.collect::<Vec<_>>().join("\n"))
        };
        self.0.iter().map(element).collect()
    }
}
