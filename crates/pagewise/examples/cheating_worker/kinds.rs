//! The ways to cheat, with the words by which they are chosen.

/// Defines the kinds with the words by which they are chosen.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)+) => {
        /// In which way it cheats.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $($(#[$doc])* $variant,)+ }

        impl Kind {
            pub const ALL: &'static [(&'static str, Kind)] = &[$(($word, Kind::$variant),)+];
        }
    };
}

kinds! {
    /// Does what it says.
    Honest = "honest",

    // What is read.
    /// Waits, and claims a thousand operations.
    ReadsNothing = "reads-nothing",
    /// Knows what a dataset holds for the run's seed 7, and computes what it should read.
    ComputesChecksum = "computes-checksum",
    /// Reads what lies behind each offset.
    WrongOffset = "wrong-offset",
    /// Reads the first half of each read.
    ReadsHalf = "reads-half",
    /// Takes entries of dependent reads for their offsets, so that it need not wait for data.
    IgnoresData = "ignores-data",
    /// Does every second operation and counts all.
    SkipsOperations = "skips-operations",
    /// Reads the table before `go`, and keeps what it found there.
    ReadsTableEarly = "reads-table-early",
    /// Counts every read alike, wherever in the table it stands.
    CountsAlike = "counts-alike",
    /// Reads the whole file into memory of its own before `ready`, makes its calls at the start of
    /// the file and takes the bytes from its copy.
    CopiesFirst = "copies-first",
    /// The same past the page cache; while it measures, it takes as many bytes from the device as
    /// were asked for, in order and in large pieces, and fills its calls up with reads of nothing.
    CopiesFirstDirect = "copies-first-direct",
    /// Takes a copy by way of a mapping that is gone before `ready`, reads the start of the file
    /// again and again, and takes the words that count from its copy.
    ReadsOnePlace = "reads-one-place",
    /// Reads at each offset once, and remembers what it came to.
    RemembersSums = "remembers-sums",
    /// Does the reads of a piece of the table in the order of their offsets. Nothing catches it: it
    /// shows what that gains.
    SortsReads = "sorts-reads",
    /// Makes every read twice and counts it once.
    ReadsTwice = "reads-twice",
    /// Has the kernel bring in what comes next, in operations ahead.
    AsksAhead = "asks-ahead",
    /// Hands over one byte that differs.
    DiffersAtVerify = "differs-at-verify",
    /// Hands over nothing.
    SkipsVerify = "skips-verify",

    // The condition.
    /// Reads the file into the page cache before `opened`.
    WarmsFirst = "warms-first",
    /// Drops the file from the page cache before `opened`.
    EvictsFirst = "evicts-first",
    /// Reads the whole file, through another descriptor, while it measures.
    FillsCache = "fills-cache",
    /// Leaves a process behind that maps the file.
    KeepsMapped = "keeps-mapped",

    // The method.
    /// Opens without O_DIRECT.
    NotDirect = "not-direct",
    /// Opens with O_DIRECT, and reads through a descriptor without it that lives during the sample
    /// only.
    DirectInName = "direct-in-name",
    /// Leaves madvise out.
    NoAdvice = "no-advice",
    /// Maps the file anew for each operation and populates no mapping.
    MapsAnew = "maps-anew",

    // Time and counts.
    /// Says that it took half of the time.
    HalfTheTime = "half-the-time",
    /// Says that a quarter of the time was a latency phase of one operation.
    ShiftsTime = "shifts-time",
    /// Says that it took half of the time, while threads of its own keep it and everybody else
    /// waiting for a CPU.
    SpinsAndHalves = "spins-and-halves",
    /// Says that it took a thousand times as long.
    TooMuchTime = "too-much-time",
    /// Burns CPU time in threads that nobody asked for.
    ExtraThreads = "extra-threads",
    /// Latencies that add up to more than the time in which they were taken.
    LatenciesTooLong = "latencies-too-long",
    /// Latencies of which one is like the other.
    LatenciesAlike = "latencies-alike",
    /// Counts one operation more than its threads did.
    Miscounts = "miscounts",
    /// Claims other bytes than its operations ask for.
    MiscountsBytes = "miscounts-bytes",
    /// More latencies than operations.
    MiscountsLatencies = "miscounts-latencies",
    /// Counts of one thread more than it was given.
    TooManyThreads = "too-many-threads",
    /// Claims the largest numbers that there are.
    HugeCounts = "huge-counts",
    /// Goes on behind the end of a cold table's part, as if it began again.
    BeyondTable = "beyond-table",
    /// A checksum that is no number.
    ChecksumNoNumber = "checksum-no-number",

    // Start-up.
    /// Ends with a message on stderr before it says anything.
    DiesAtStart = "dies-at-start",
    /// Never says anything.
    HangsAtStart = "hangs-at-start",
    /// Megabytes on stderr; honest otherwise.
    FloodsStderr = "floods-stderr",
    /// Megabytes on stderr, and then it ends.
    FloodsStderrAndDies = "floods-stderr-and-dies",

    // In the course of a job; `pread` only.
    /// Aborts after `opened`.
    DiesAfterOpened = "dies-after-opened",
    /// Does not end after `closed`.
    Lingers = "lingers",
}
