//! An extra: runs compared with runs, of two sides, by a fact of machines, or at the same time.
//!
//! [`COMPARE`] is the only door.

mod arguments;
mod compare;
mod document;
mod judgement;

use clap::{Args, FromArgMatches};
use pagewise_lab::door::{Door, PrintedJson, printed};

use arguments::CompareArguments;
use judgement::{Gated, Split, Together};

/// JSON of two sides, of many runs by a fact, and of machines at the same time.
const SCHEMAS: &[PrintedJson] = &[
    printed::<Gated>("compare", "`compare`"),
    printed::<Split>("compare-by", "`compare --by`"),
    printed::<Together>("compare-together", "`compare --together`"),
];

/// `pagewise compare`.
pub const COMPARE: Door = Door {
    arguments: CompareArguments::augment_args,
    dashes: Some("--new"),
    run: |typed| compare::compare(&CompareArguments::from_arg_matches(typed)?),
    schemas: SCHEMAS,
    examples: "  pagewise compare base/ -- new/             what changed between two sets of runs\n",
};
