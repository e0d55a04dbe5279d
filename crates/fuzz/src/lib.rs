//! Fuzzed inputs for the parsers of external data.
//!
//! A *target* is one parser: of run files, of plans, of words, of a worker's lines, of the kernel's
//! texts. A *case* is an input that follows from the seed, the target and the number of the case
//! only: a valid input of the corpus, changed by a few typed operations ([`document`], [`lines`],
//! [`run_file`]). The test defines the properties of every case; in addition nothing may panic,
//! overflow, hang, or exceed a bound of memory ([`campaign`]).
//!
//! Values with a known meaning are drawn by proptest, in the unit tests of their types. proptest
//! builds values up from nothing; here texts that are valid are broken, and a case has a process
//! whose memory is limited.
//!
//! `PAGEWISE_FUZZ_CASES` is the number of cases over all targets, `PAGEWISE_FUZZ_SEED` the seed,
//! and `PAGEWISE_FUZZ_ONLY` repeats the case of that number in each target that runs.

pub mod campaign;
pub mod corpus;
pub mod document;
pub mod lines;
pub mod numbers;
pub mod run_file;

pub use campaign::{Campaign, FuzzCase};
