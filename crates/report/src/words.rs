//! Sentences made of what the analysis found.

pub mod advice;
pub(crate) mod cliff;
pub(crate) mod method_tables;
pub(crate) mod replay;
pub mod warnings;

/// Each value once, in the order of its first.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}
