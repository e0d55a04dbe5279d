//! An extra: the worker of another program examined step by step, and its faults explained.
//!
//! [`CONFORMANCE`] is the only door.

mod conformance;

use clap::{Args, FromArgMatches};
use pagewise_lab::door::Door;

use conformance::ConformanceArguments;

/// `pagewise conformance`.
pub const CONFORMANCE: Door = Door {
    arguments: ConformanceArguments::augment_args,
    dashes: None,
    run: |typed| conformance::conformance(&ConformanceArguments::from_arg_matches(typed)?),
    schemas: &[],
    examples: "",
};
