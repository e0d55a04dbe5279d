//! The arguments of `pagewise record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use pagewise_model::Bytes;
use pagewise_model::units::parse_duration_ns;

/// `pagewise record`.
#[derive(Debug, Args)]
#[command(after_help = RECORD_HELP)]
pub struct RecordArguments {
    /// The command, recorded from its first instruction on
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
    /// Write the trace into this new file [default: the name of the command, and .trace]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Let the command and its children have this much memory, page cache included
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Drop this file from the page cache first; a replay is of it. May be given several times
    #[arg(long, value_name = "FILE")]
    pub cold: Vec<PathBuf>,
    /// Leave this file in the page cache as it is, and keep which of its pages are there: a replay
    /// of it begins with the same. May be given several times
    #[arg(long, value_name = "FILE")]
    pub as_is: Vec<PathBuf>,
    /// See accesses to mapped pages that raise no fault, too: the command is stopped again and
    /// again, and at each of its calls: it takes a few times as long, or a hundred times if it does
    /// nothing but calls
    #[arg(long)]
    pub windows: bool,
    /// With --memory: wait so long for another run on this machine to end, as in 10min, before
    /// status 4
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns, requires = "memory")]
    pub wait: Option<u64>,
}

const RECORD_HELP: &str = "\
Examples:
  pagewise record -- sqlite3 my.db 'select count(*) from t'
  pagewise record --memory 64MiB --cold my.db -o my.trace -- ./look-ups my.db
  pagewise record --windows --memory 64MiB --cold my.lmdb -- ./look-ups my.lmdb
  pagewise record --as-is my.db -- ./look-ups my.db

A trace holds which bytes were read when, never the bytes themselves. Reads by calls are \
recorded. Accesses to mapped pages are recorded with --windows (x86-64, Linux 6.7): of each \
window, the first touch of each page. If the trace cannot be written any more, the command goes \
on without it.

Exit status: that of the command, 127 if there is none of this name, 126 if it cannot be \
executed, 128 and its number if a signal ended it; 1 if the trace was lost, 2 for wrong use, 3 \
without the right to watch calls, 4 if --memory is given and another run measures.";
