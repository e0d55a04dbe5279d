//! Sentences made of what the analysis found.

pub(crate) mod actors;
pub mod advice;
pub(crate) mod expected;
pub mod figures;
pub mod limit;
pub mod reasons;
pub mod replay;
pub mod warnings;

use pagewise_model::format::counted;

/// `3 more plots are left out of this page: …`.
pub fn left_out(count: usize, what: &str) -> String {
    let are = if count == 1 { "is" } else { "are" };
    let more = counted(count as u64, &format!("more {what}"));
    format!("{more} {are} left out of this page: pagewise report prints all.")
}

/// `, 2 more unavailable`: attempts of methods that could be had in others.
pub(crate) fn refused(count: usize) -> Option<String> {
    (count > 0).then(|| format!(", {count} more unavailable"))
}

/// `and 3 more: the tables have them`, if a screen has no room for some.
pub(crate) fn in_tables(count: usize) -> Option<String> {
    (count > 0).then(|| format!("and {count} more: the tables have them"))
}
