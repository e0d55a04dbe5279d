//! Words of command lines that several tests type.

/// Continues a run.
pub const RESUME: [&str; 4] = ["run", "--resume", "--out=run.jsonl", "--json"];

/// Random reads from a warm file by one thread; how often, for how long and of how much, each test
/// says.
pub const WARM_READS: [&str; 5] = ["run", "read", "--workload=random-read", "--threads=1", "--cache=warm"];

/// A run that would be quick if it were not refused.
pub const SMALL: [&str; 8] = [
    "run",
    "read",
    "--workload=random-read",
    "--methods=pread",
    "--threads=1",
    "--rounds=7",
    "--sample=1ms",
    "--file-size=4MiB",
];
