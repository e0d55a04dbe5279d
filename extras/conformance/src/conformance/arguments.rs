//! Arguments of `pagewise conformance`.

use std::path::PathBuf;

use clap::Args;

/// `pagewise conformance`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ConformanceArguments {
    /// Make the files of the trial in this directory [default: the one for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print the steps as JSON
    #[arg(long)]
    pub json: bool,
    /// Seconds that the worker may take for an answer beyond the work asked for
    #[arg(long, hide = true, value_name = "SECONDS", default_value_t = 30)]
    pub patience: u64,
    /// The worker and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

const HELP: &str = "\
Each step is one line: 'ok', 'WRONG' with what was seen and what should be, or '-' with why it was not tried.
The agreement stands in workers/PROTOCOL.md.

Examples:
  pagewise conformance -- ./my-reader --its-flags
  pagewise conformance --dir /data -- python3 worker.py     with O_DIRECT and sync on the filesystem of /data";
