//! Accounts of a watched program's files: observations added up.
//!
//! A pure function of the observations. What a watch cannot see is missing here, never 0: calls
//! that were not watched, pages whose way into the page cache was not seen, accesses to mapped
//! pages that raise no fault.

mod accounts;
mod advice;
mod files;
mod mappings;
mod pages;
#[cfg(test)]
mod tests;
mod threads;
mod waits;

pub use accounts::{Accessed, Accounts};
