//! Published claims judged by runs: each holds here, does not, or cannot be tested here.
//!
//! A study is data: claims with the quantity that decides each, and the bounds within which it
//! holds ([`study`]). Cells are selected from the runs by their conditions (`selection`), compared
//! round by round ([`case`](mod@case)), and the cases of a claim give its word ([`judged`]). What
//! the rounds do not decide is never called one or the other.

pub mod case;
pub mod judged;
pub mod quantity;
mod selection;
pub mod study;
#[cfg(test)]
mod tests;

pub use judged::{Reproduced, Reproduction, Word, judge_claims};
pub use study::{Cases, Study};
