//! An extra: programs watched, recorded, and advised by replays of their reads.
//!
//! [`INSPECT`], [`RECORD`] and [`ADVISE`] are the only doors.

mod advise;
mod inspect;
mod observed;
mod record;
mod recording;
mod trace_text;
mod watched;

use clap::{Args, FromArgMatches};
use pagewise_lab::door::{Door, printed};
use pagewise_model::inspection::Inspection;

use advise::arguments::AdviseArguments;
use inspect::InspectArguments;
use record::arguments::RecordArguments;

/// `pagewise inspect`.
pub const INSPECT: Door = Door {
    arguments: InspectArguments::augment_args,
    dashes: None,
    run: |typed| inspect::inspect(&InspectArguments::from_arg_matches(typed)?),
    schemas: &[printed::<Inspection>("inspect", "`inspect`")],
    examples: "  pagewise inspect -- sqlite3 my.db .dump    what a program does to its files, and what it waits for\n",
};

/// `pagewise record`.
pub const RECORD: Door = Door {
    arguments: RecordArguments::augment_args,
    dashes: None,
    run: |typed| record::record(&RecordArguments::from_arg_matches(typed)?),
    schemas: &[],
    examples: "",
};

/// `pagewise advise`.
pub const ADVISE: Door = Door {
    arguments: AdviseArguments::augment_args,
    dashes: None,
    run: |typed| advise::advise(&AdviseArguments::from_arg_matches(typed)?),
    schemas: &[],
    examples: advise::arguments::EXAMPLES,
};
