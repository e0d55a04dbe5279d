//! Choices that several commands have.

use clap::Args;
use pagewise_model::Bytes;
use pagewise_model::units::parse_duration_ns;

use crate::labels::Label;
use crate::plan::resolve::Variant;

/// The choice of a length.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct LengthArguments {
    /// Measure the most informative methods in few rounds (the default without a command)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Measure more methods, with a budget four times as long, which distinguishes smaller
    /// differences
    #[arg(long)]
    full: bool,
}

impl LengthArguments {
    /// The chosen variant.
    pub fn variant(self) -> Option<Variant> {
        match (self.quick, self.full) {
            (true, _) => Some(Variant::Quick),
            (_, true) => Some(Variant::Full),
            _ => None,
        }
    }
}

/// Choices of the overview and of each question.
#[derive(Args, Clone, Debug, Default)]
pub struct AllArguments {
    /// Write at most this much to a device, in all questions together: more than the usual 8GiB is
    /// asked about on a terminal, and refused elsewhere
    #[arg(long, value_name = "SIZE")]
    pub max_writes: Option<Bytes>,
    /// Name a fact of this run, such as rack=a4 or node=n7, for compare --by and report --rows; the
    /// variable PAGEWISE_LABELS does the same, with commas between
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<Label>,
    /// Wait so long for another run on this machine to end, as in 10min, before status 4
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub wait: Option<u64>,
    /// Print a summary of the plan (with --json all of it), the bytes it will write and the time it
    /// will take; measure nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Output.
    #[command(flatten)]
    pub print: PrintArguments,
}

/// The output of a command that measures and answers.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PrintArguments {
    /// Print the judged JSON
    #[arg(long)]
    pub json: bool,
    /// Write no page beside the run file; --json writes none either
    #[arg(long)]
    pub no_html: bool,
    /// Print all tables above the answer, as report does
    #[arg(long, short, conflicts_with = "json")]
    pub verbose: bool,
}
