//! Changed inputs by the million, for tests of whatever reads what others wrote.
//!
//! A *target* is one reader: of run files, of plans, of words, of a worker's lines, of the kernel's texts. A *case* is an
//! input that follows from the seed, the target and the number of the case alone: a valid input of the corpus, changed by
//! a few typed operations ([`document`], [`lines`], [`run_file`]), or made up from typed values whose meaning is known.
//! The test says what must hold of every case; beyond that nothing may panic, overflow, hang, or take more
//! memory than a bound ([`campaign`]).
//!
//! `PAGEWISE_FUZZ_CASES` is the number of cases over all targets, `PAGEWISE_FUZZ_SEED` the seed, and
//! `PAGEWISE_FUZZ_ONLY` repeats the case of that number in each target that runs.

pub mod campaign;
pub mod corpus;
pub mod document;
pub mod lines;
pub mod numbers;
pub mod run_file;

pub use campaign::{Campaign, Case};
