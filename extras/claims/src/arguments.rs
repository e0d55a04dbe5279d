//! The command line of `reproduce`.

use std::path::PathBuf;

use clap::Args;
use pagewise_model::Bytes;

/// `pagewise reproduce`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReproduceArguments {
    /// The study: append, scan, lucene, fill [default: all of them]
    #[arg(value_name = "STUDY")]
    pub study: Option<String>,
    /// Smaller files and fewer conditions: about a quarter of an hour for all studies
    #[arg(long)]
    pub quick: bool,
    /// Make the files in this directory [default: the current one; for fill one in memory]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Judge the claims by these runs of it; measure nothing
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with_all = ["quick", "dir", "dry_run", "max_writes"])]
    pub from: Vec<PathBuf>,
    /// Print Markdown: a section for each study, with its claims
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print all cases of each claim, or with --dry-run all cells of each run
    #[arg(long, short, conflicts_with = "json")]
    pub verbose: bool,
    /// Write at most this much to a device, in all runs together: more than the usual 8GiB is asked
    /// about on a terminal, and refused elsewhere
    #[arg(long, value_name = "SIZE")]
    pub max_writes: Option<Bytes>,
    /// Print what the runs will write, and the time they will take; measure nothing
    #[arg(long)]
    pub dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  pagewise reproduce --quick --dry-run       what all studies would write, and how long they would take
  pagewise reproduce append --quick          the claims about appending through a mapping
  pagewise reproduce --from pagewise-*.jsonl the claims once more, from the runs of before";
