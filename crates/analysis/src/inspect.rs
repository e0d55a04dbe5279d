//! Accounts of a watched program's files: observations added up, and conclusions from them.
//!
//! A pure function of the observations. What a watch cannot see is missing here, never 0: calls
//! that were not watched, pages whose way into the page cache was not seen, accesses to mapped
//! pages that raise no fault.

pub mod accounts;
mod files;
pub mod findings;
mod mappings;
mod pages;
#[cfg(test)]
mod tests;
mod threads;
mod waits;

pub use accounts::{Accessed, Accounts};
pub use findings::{LEAST_SHARE, WaitFinding, findings};
pub use pagewise_model::inspection::{Inspection, Subject};
