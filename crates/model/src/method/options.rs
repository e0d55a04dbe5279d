//! The registry of options: one entry each, from which everything else is derived.
//!
//! An entry has the word, the effect in the native worker, the first kernel version that supports
//! it, and the native accesses that accept it. The enum, parsing, refusals, `doctor`, help,
//! completions and the table of docs/reference.md are made from these entries.

use std::fmt;

use super::{Access, Method};
use crate::units::Bytes;
use crate::work::WorkloadKind;

/// Effect of an option in the native worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A step of set-up.
    SetUp(SetUpStep),
    /// MAP_POPULATE, a flag of mmap(2).
    Populate,
    /// O_DIRECT, a flag of open(2).
    Direct,
    /// RWF_DONTCACHE, a flag of preadv2(2).
    DontCache,
    /// MADV_WILLNEED of an operation's ranges before its first read.
    Prefetch,
    /// MADV_WILLNEED of this many reads ahead.
    PrefetchWindow(u32),
    /// Bytes are consumed where they are mapped.
    InPlace,
    /// Reads or writes in flight.
    Depth(u32),
    /// Registered file and buffers.
    Fixed,
    /// Bytes of a piece or of staged records.
    Buffer(Bytes),
    /// Bytes that a thread makes writable ahead of the writer.
    Pretouch(Bytes),
    /// None: an option of workers in other languages only.
    Elsewhere,
}

/// Steps of set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetUpStep {
    /// posix_fadvise(2) for a descriptor, madvise(2) for a mapping. `None`: the call has no such
    /// advice.
    Advise(Option<FileAdvice>, Option<MapAdvice>),
    /// fallocate(2) of the whole file.
    Allocate,
    /// A store to each page of the mapping.
    Touch,
    /// mlock(2) of the whole mapping.
    Lock,
}

/// Advice of posix_fadvise(2), about the whole file except for `WillNeed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdvice {
    /// POSIX_FADV_RANDOM.
    Random,
    /// POSIX_FADV_SEQUENTIAL.
    Sequential,
    /// POSIX_FADV_WILLNEED, of the span.
    WillNeed,
    /// POSIX_FADV_NOREUSE.
    NoReuse,
}

/// Advice of madvise(2) on the whole mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapAdvice {
    /// MADV_RANDOM.
    Random,
    /// MADV_SEQUENTIAL.
    Sequential,
    /// MADV_WILLNEED.
    WillNeed,
    /// MADV_POPULATE_READ.
    PopulateRead,
    /// MADV_POPULATE_WRITE.
    PopulateWrite,
    /// MADV_HUGEPAGE.
    HugePage,
}

/// The first kernel version that supports an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Every kernel that pagewise supports.
    Always,
    /// From this version of Linux. Older ones refuse the call, which makes the cell unavailable.
    Refused(&'static str),
    /// From this version of Linux. Older ones accept the call without effect, so the worker refuses
    /// it there.
    Ignored(&'static str),
}

impl Since {
    /// The version, if there is one.
    pub const fn version(self) -> Option<&'static str> {
        match self {
            Since::Always => None,
            Since::Refused(version) | Since::Ignored(version) => Some(version),
        }
    }

    /// True if an option of this kind takes effect on a kernel of this release, such as
    /// `6.1.0-31-amd64`, or if the kernel refuses it itself. A release that cannot be parsed is
    /// taken for old.
    pub fn acts_on(self, release: &str) -> bool {
        let numbers = |text: &str| {
            let mut parts = text.split(|byte: char| !byte.is_ascii_digit());
            let mut next = || parts.next().and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
            (next(), next())
        };
        match self {
            Since::Always | Since::Refused(_) => true,
            Since::Ignored(version) => numbers(release) >= numbers(version),
        }
    }
}

/// A value after the word.
pub(super) trait Argument: Copy + fmt::Display {
    /// Placeholder in usage.
    const USAGE: &str;
    /// Description of accepted values, with an example.
    fn expected(word: &str, most: Self) -> String;
    /// The value, from 1 to `most`.
    fn parse(text: &str, most: Self) -> Result<Self, Option<String>>;
}

impl Argument for u32 {
    const USAGE: &str = "N";

    fn expected(word: &str, most: u32) -> String {
        format!("{word}=1 to {word}={most}")
    }

    fn parse(text: &str, most: u32) -> Result<u32, Option<String>> {
        text.parse().ok().filter(|number| (1..=most).contains(number)).ok_or(None)
    }
}

impl Argument for Bytes {
    const USAGE: &str = "SIZE";

    fn expected(word: &str, most: Bytes) -> String {
        format!("{word}=1B to {word}={most}, as in {word}=64KiB")
    }

    fn parse(text: &str, most: Bytes) -> Result<Bytes, Option<String>> {
        match text.parse::<Bytes>() {
            Ok(bytes) if (1..=most.0).contains(&bytes.0) => Ok(bytes),
            Err(error) if !text.is_empty() => Err(Some(error.to_string())),
            _ => Err(None),
        }
    }
}

/// An option and its properties.
#[derive(Clone, Copy, Debug)]
pub struct OptionEntry {
    /// The option; with its largest value, if it takes one.
    pub option: MethodOption,
    /// The word in a method's text.
    pub word: &'static str,
    /// Effect, for people.
    pub meaning: &'static str,
    /// The kernel it requires.
    pub since: Since,
    /// Native accesses that accept it in `random-read` and `sequential-read`.
    pub reads: &'static [Access],
    /// Native accesses that accept it in `scan`.
    pub scans: &'static [Access],
    /// Native accesses that accept it in `append` and `fill`.
    pub writes: &'static [Access],
}

macro_rules! options {
    ($(
        $variant:ident $(($value:ident: $type:ty = $most:expr))?, $word:literal, $since:expr, $effect:expr,
        reads $reads:expr, scans $scans:expr, writes $writes:expr, $meaning:literal;
    )+) => {
        /// A modifier of an access.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum MethodOption {
            $(#[doc = $meaning] $variant $(($type))?,)+
        }

        impl MethodOption {
            /// Every option, in the order of the documentation.
            pub const TABLE: &[OptionEntry] = &[$(OptionEntry {
                option: MethodOption::$variant $(($most))?,
                word: $word,
                meaning: $meaning,
                since: $since,
                reads: $reads,
                scans: $scans,
                writes: $writes,
            }),+];

            /// The word in a method's text, without a value.
            pub const fn name(self) -> &'static str {
                match self { $(MethodOption::$variant { .. } => $word,)+ }
            }

            /// Effect in the native worker.
            pub const fn effect(self) -> Effect {
                match self { $(MethodOption::$variant $(($value))? => $effect,)+ }
            }

            /// The kernel it requires.
            pub const fn since(self) -> Since {
                match self { $(MethodOption::$variant { .. } => $since,)+ }
            }

            /// Usage: `depth=N`.
            pub fn usage(self) -> String {
                match self {
                    $(MethodOption::$variant { .. } => {
                        [$word $(, "=", <$type as Argument>::USAGE)?].concat()
                    })+
                }
            }

            /// Parse the value `text` of an option of this kind.
            pub(super) fn with_value(self, text: Option<&str>) -> Result<Self, BadValue> {
                match self {
                    $(MethodOption::$variant { .. } => {
                        options!(@value self, text, $variant, $word $(, $type, $most)?)
                    })+
                }
            }
        }

        impl fmt::Display for MethodOption {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(MethodOption::$variant $(($value))? => {
                        formatter.write_str($word)?;
                        $(write!(formatter, "={}", $value)?;)?
                        Ok(())
                    })+
                }
            }
        }
    };
    (@value $self:ident, $text:ident, $variant:ident, $word:literal) => {
        match $text {
            None => Ok($self),
            Some(_) => Err(BadValue::TakesNone),
        }
    };
    (@value $self:ident, $text:ident, $variant:ident, $word:literal, $type:ty, $most:expr) => {
        <$type as Argument>::parse($text.unwrap_or_default(), $most)
            .map(MethodOption::$variant)
            .map_err(|reason| BadValue::Expected(reason, <$type as Argument>::expected($word, $most)))
    };
}

use Access::{Mmap, Pread, Pwrite, Read, Uring, Write};
use Effect::{Elsewhere, SetUp};
use SetUpStep::Advise;
use Since::{Always, Refused};

options! {
    Random, "random", Always, SetUp(Advise(Some(FileAdvice::Random), Some(MapAdvice::Random))),
        reads &[Mmap, Pread], scans &[Mmap, Pread, Read], writes &[Mmap],
        "No readahead: MADV_RANDOM, POSIX_FADV_RANDOM";
    Sequential, "sequential", Always, SetUp(Advise(Some(FileAdvice::Sequential), Some(MapAdvice::Sequential))),
        reads &[Mmap, Pread], scans &[Mmap, Pread, Read], writes &[Mmap],
        "More readahead: MADV_SEQUENTIAL, POSIX_FADV_SEQUENTIAL";
    WillNeed, "willneed", Always, SetUp(Advise(Some(FileAdvice::WillNeed), Some(MapAdvice::WillNeed))),
        reads &[Mmap, Pread], scans &[Mmap, Pread, Read], writes &[Mmap],
        "Readahead of the whole span during set-up: MADV_WILLNEED, POSIX_FADV_WILLNEED";
    NoReuse, "noreuse", Since::Ignored("6.3"), SetUp(Advise(Some(FileAdvice::NoReuse), None)),
        reads &[Pread], scans &[Pread, Read], writes &[],
        "Reading does not mark pages as recently used: POSIX_FADV_NOREUSE";
    Prealloc, "prealloc", Always, SetUp(SetUpStep::Allocate),
        reads &[], scans &[], writes &[Mmap, Pwrite, Write, Uring],
        "fallocate(2) of the whole file during set-up";
    Populate, "populate", Always, Effect::Populate,
        reads &[Mmap], scans &[Mmap], writes &[Mmap],
        "MAP_POPULATE, which hides its errors";
    PopulateRead, "populate-read", Refused("5.14"), SetUp(Advise(None, Some(MapAdvice::PopulateRead))),
        reads &[Mmap], scans &[Mmap], writes &[],
        "MADV_POPULATE_READ of the span during set-up, which reports errors";
    PopulateWrite, "populate-write", Refused("5.14"), SetUp(Advise(None, Some(MapAdvice::PopulateWrite))),
        reads &[], scans &[], writes &[Mmap],
        "MADV_POPULATE_WRITE of the whole file during set-up: pages are present and writable";
    HugePage, "hugepage", Always, SetUp(Advise(None, Some(MapAdvice::HugePage))),
        reads &[Mmap], scans &[Mmap], writes &[Mmap],
        "MADV_HUGEPAGE; verified by smaps";
    Touch, "touch", Always, SetUp(SetUpStep::Touch),
        reads &[], scans &[], writes &[Mmap],
        "One byte of each page is written during set-up, without changing its value";
    Pretouch(bytes: Bytes = Method::MAX_BUFFER), "pretouch", Always, Effect::Pretouch(bytes),
        reads &[], scans &[], writes &[Mmap],
        "A separate thread makes pages writable by MADV_POPULATE_WRITE, this far ahead of the writer";
    Lock, "lock", Always, SetUp(SetUpStep::Lock),
        reads &[], scans &[], writes &[Mmap],
        "mlock(2) of the whole mapping during set-up";
    Prefetch, "prefetch", Always, Effect::Prefetch,
        reads &[Mmap], scans &[], writes &[],
        "MADV_WILLNEED of all ranges of an operation before its first read";
    PrefetchWindow(reads: u32 = Method::MAX_PREFETCH_WINDOW), "prefetch", Always, Effect::PrefetchWindow(reads),
        reads &[Mmap], scans &[], writes &[],
        "MADV_WILLNEED of this many reads ahead of the current one";
    InPlace, "in-place", Always, Effect::InPlace,
        reads &[Mmap], scans &[Mmap], writes &[],
        "Bytes are consumed in the mapping instead of being copied from it; not ranked under `consume = touch`";
    DontCache, "dontcache", Refused("6.14"), Effect::DontCache,
        reads &[Pread], scans &[Pread], writes &[Pwrite],
        "RWF_DONTCACHE: pages that were read or written do not stay in the page cache";
    Depth(reads: u32 = Method::MAX_DEPTH), "depth", Always, Effect::Depth(reads),
        reads &[Uring], scans &[Uring], writes &[Uring],
        "Reads or writes in flight per thread";
    Direct, "direct", Always, Effect::Direct,
        reads &[Pread, Uring], scans &[Pread, Read, Uring], writes &[Pwrite, Write, Uring],
        "O_DIRECT: bypasses the page cache";
    Fixed, "fixed", Always, Effect::Fixed,
        reads &[Uring], scans &[Uring], writes &[],
        "Registered file and buffers";
    Buffer(bytes: Bytes = Method::MAX_BUFFER), "buffer", Always, Effect::Buffer(bytes),
        reads &[], scans &[Mmap, Pread, Read, Uring], writes &[Mmap, Pwrite, Write, Uring],
        "Size of one call or copy of a scan; size of the buffer in which records are collected before they are written";
    DirectBuffer, "direct-buffer", Always, Elsewhere,
        reads &[], scans &[], writes &[],
        "Java: the bytes are read into, or written from, an off-heap `ByteBuffer`";
    HeapBuffer, "heap-buffer", Always, Elsewhere,
        reads &[], scans &[], writes &[],
        "Java: the bytes are read into, or written from, an on-heap `ByteBuffer`, through an off-heap one";
}

/// Reason that a value is not accepted.
pub(super) enum BadValue {
    /// The option takes no value.
    TakesNone,
    /// The fault, if known, and the expected values.
    Expected(Option<String>, String),
}

impl OptionEntry {
    /// The accesses that accept the option in a workload of this kind.
    pub fn accesses(&self, kind: WorkloadKind) -> &'static [Access] {
        match kind {
            WorkloadKind::Reads => self.reads,
            WorkloadKind::Scans => self.scans,
            WorkloadKind::Writes => self.writes,
        }
    }
}

/// The accesses of the native worker with their options, one line each: for help.
pub fn usage_lines() -> Vec<(&'static str, String)> {
    let accesses = [Mmap, Pread, Read, Pwrite, Write, Uring];
    let taking = |access: Access| {
        let takes = |entry: &&OptionEntry| {
            [entry.reads, entry.scans, entry.writes].iter().any(|of| of.contains(&access))
        };
        MethodOption::TABLE
            .iter()
            .filter(takes)
            .map(|entry| entry.option.usage())
            .collect::<Vec<_>>()
            .join(" ")
    };
    accesses.map(|access| (access.name(), taking(access))).to_vec()
}

/// The native options as docs/reference.md shows them: a table in Markdown.
pub fn markdown_table() -> String {
    let names = |accesses: &[Access]| {
        accesses.iter().map(|access| format!("`{}`", access.name())).collect::<Vec<_>>().join(" ")
    };
    let rows = MethodOption::TABLE.iter().filter(|entry| entry.option.effect() != Elsewhere).map(|entry| {
        format!(
            "| `{}` | {} | {} | {} | {}{} |\n",
            entry.option.usage(),
            names(entry.reads),
            names(entry.scans),
            names(entry.writes),
            entry.meaning,
            entry.since.version().map(|version| format!(" (Linux {version})")).unwrap_or_default(),
        )
    });
    let head = "| option | random and sequential reads | scan | append, fill | effect |\n| --- | --- | --- | --- | --- |\n";
    head.to_string() + &rows.collect::<String>()
}
