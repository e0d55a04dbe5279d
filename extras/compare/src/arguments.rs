//! Arguments of `pagewise compare`.

use std::path::PathBuf;

use clap::Args;

use crate::judgement::Gate;

/// `pagewise compare`.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "pagewise compare [OPTIONS] BASE... -- NEW...\n       pagewise compare --by FACT [--all-of FILE|N] [--json | --markdown | --html FILE] RUN...\n       pagewise compare --together [--json | --markdown] RUN..."
)]
pub struct CompareArguments {
    /// Runs before the change: run files, directories of them, or patterns in quotes; with --by
    /// and --together, all runs
    #[arg(required = true, value_name = "BASE")]
    pub base: Vec<PathBuf>,
    /// Runs after the change; -- stands for it
    #[arg(long, value_name = "NEW", num_args = 1..)]
    pub new: Vec<PathBuf>,
    /// Fail if the runs show it: slower=5%, advice-changed, crossover-moved
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    pub fail_on: Vec<Gate>,
    /// Divide the times of methods by that of this one, round by round: what slows both cancels out
    #[arg(long, value_name = "METHOD")]
    pub relative_to: Option<String>,
    /// Which method is advised where, and how fast each is, by a fact of the machines or a label:
    /// kernel, machine, device, readahead …; a file that cannot be read is named, and the others go
    /// on
    #[arg(long, value_name = "FACT", conflicts_with_all = ["new", "fail_on", "relative_to"])]
    pub by: Option<String>,
    /// Values of the fact that must have a run: a file with one on each line, or their number.
    /// Those without a complete run of the plan that most have are named, and the status is 1
    #[arg(long, value_name = "FILE|N")]
    pub all_of: Option<PathBuf>,
    /// Rates of machines at the same time, of runs that began by --start-at: for each method the
    /// sum where all measured it at once, and the median of each machine
    #[arg(long, conflicts_with_all = ["new", "fail_on", "relative_to", "by", "all_of", "html"])]
    pub together: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["markdown", "html"])]
    pub json: bool,
    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with = "html")]
    pub markdown: bool,
    /// Write a page with plots into a new file; - is stdout
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  pagewise compare base/ -- new/                          three runs or more in each folder
  pagewise compare base/ -- new/ --fail-on slower=5%      for continuous integration: status 1 if so
  pagewise compare --by kernel 'fleet/*.jsonl'            where machines disagree, and which fact explains it
  pagewise compare --by host-name --all-of hosts.txt runs/   which of these hosts have no run that counts
  pagewise compare --together runs/                       how fast hosts were at the same time, by --start-at";
