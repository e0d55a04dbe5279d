//! The arguments of `pagewise advise`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use pagewise_lab::choices::{LengthArguments, PrintArguments};
use pagewise_lab::plan::resolve::Variant;
use pagewise_lab::plan::{Axes, Layer};
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{Bytes, Method};

/// `pagewise advise`.
#[derive(Debug, Args)]
#[command(after_help = ADVISE_HELP)]
pub struct AdviseArguments {
    /// The command. It runs up to eleven times; what it prints on stdout is dropped
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
    /// A file whose reads are replayed, given once for each [default: the one of which the command
    /// reads most]
    #[arg(long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Allow dropping that file from the page cache. Other programs that read it then wait for the
    /// device
    #[arg(long)]
    pub evict: bool,
    /// Let the command, and then each method, have this much memory, page cache included
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Have accesses to mapped pages recorded, too: the command is stopped again and again, and
    /// takes a few times as long
    #[arg(long)]
    pub windows: bool,
    /// Methods that are compared with the command's own [default: those of the question replay]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub methods: Option<Vec<Method>>,
    /// Leave out the gaps between the reads, in which the program did something else
    #[arg(long)]
    pub as_fast_as_possible: bool,
    /// Wait so long for another run on this machine to end, as in 10min, before status 4
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub wait: Option<u64>,
    /// The length.
    #[command(flatten)]
    pub length: LengthArguments,
    /// The run file; the trace is beside it [default: pagewise-DATE-TIME-HOST-replay.jsonl in the
    /// current directory]
    #[arg(long, short, value_name = "RUN")]
    pub out: Option<PathBuf>,
    /// Output.
    #[command(flatten)]
    pub print: PrintArguments,
}

const ADVISE_HELP: &str = "\
Examples:
  pagewise advise --evict -- sqlite3 my.db 'select count(*) from t'
  pagewise advise --evict --memory 64MiB --file my.db -- ./look-ups my.db
  pagewise advise --evict --windows --memory 64MiB -- ./look-ups my.lmdb

The command is watched as it runs, and recorded with its file dropped from the page cache. Then \
its reads are replayed by its own method and those of the question replay, under the same memory \
limit. Only if its own method reads from the device what the command read are the others shown. \
Reads by calls are replayed; accesses to mapped pages are with --windows. The trace stays beside \
the run file, which may need it to be resumed.";

impl AdviseArguments {
    /// The requested variant.
    pub fn variant(&self) -> Variant {
        self.length.variant().unwrap_or(Variant::Standard)
    }

    /// The choices typed, as the topmost layer of the plan.
    pub fn layer(&self) -> Layer {
        let as_fast_as_possible = self.as_fast_as_possible.then(|| vec![true]);
        let axes = Axes { methods: self.methods.clone(), as_fast_as_possible, ..Axes::default() };
        Layer { axes, ..Layer::default() }
    }
}

/// Lines about it for `pagewise --help`.
pub const EXAMPLES: &str = concat!(
    "  pagewise advise --evict -- sqlite3 my.db 'select count(*) from t'\n",
    "                                             by which method your own program should read\n",
);
