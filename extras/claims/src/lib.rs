//! An extra: published studies measured again, and their claims judged one by one.
//!
//! A study is a file of `studies`: plans, and claims with the quantity that decides each.
//! [`REPRODUCE`] is the only door.

mod arguments;
mod document;
mod judgement;
mod reproduce;
mod studies;

use clap::{Args, FromArgMatches};
use pagewise_lab::door::{Door, printed};

use arguments::ReproduceArguments;
use judgement::Reproduction;

/// `pagewise reproduce`.
pub const REPRODUCE: Door = Door {
    arguments: ReproduceArguments::augment_args,
    dashes: None,
    run: |typed| reproduce::reproduce(&ReproduceArguments::from_arg_matches(typed)?),
    schemas: &[printed::<Reproduction>("reproduce", "`reproduce`")],
    examples: "  pagewise reproduce scan --quick            which claims of a published study hold here\n",
};
