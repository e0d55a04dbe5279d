//! Access methods: a way to move bytes between file and program, with its options.
//!
//! Text is `[worker/]access[:option[+option…]]`, for instance `mmap:random+prefetch`. It is parsed once;
//! combinations that make no sense cannot be built. Options act in the order written. Which method suits which workload
//! is told by [`Method::unsuited`].

mod suited;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::Bytes;

/// The way in which bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// A shared mapping of the file; read-only where it is read.
    Mmap,
    /// pread(2), or preadv2(2) where a flag asks for it.
    Pread,
    /// read(2), front to back.
    Read,
    /// pwrite(2).
    Pwrite,
    /// write(2), front to back.
    Write,
    /// io_uring with reads or writes in flight.
    Uring,
    /// Copying from or to anonymous memory: a ceiling, not a way to read or write a file.
    Anonymous,
}

/// What modifies an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MethodOption {
    /// `MADV_RANDOM`, `POSIX_FADV_RANDOM`: no readahead.
    Random,
    /// `MADV_SEQUENTIAL`, `POSIX_FADV_SEQUENTIAL`: more readahead.
    Sequential,
    /// `MADV_WILLNEED`, `POSIX_FADV_WILLNEED` of the whole span during set-up.
    WillNeed,
    /// `MAP_POPULATE`, which hides its errors.
    Populate,
    /// `MADV_POPULATE_READ`, which reports them (Linux 5.14).
    PopulateRead,
    /// `MADV_HUGEPAGE`; proven by smaps.
    HugePage,
    /// `MADV_WILLNEED` of all ranges of an operation before its first read.
    Prefetch,
    /// `MADV_WILLNEED` of later reads, so that this many are advised ahead of the one being read; written as
    /// `prefetch=N`.
    PrefetchWindow(u32),
    /// Bytes are consumed in the mapping instead of being copied out of it.
    InPlace,
    /// `RWF_DONTCACHE` (Linux 6.14).
    DontCache,
    /// `O_DIRECT`.
    Direct,
    /// Reads in flight per thread.
    Depth(u32),
    /// Registered file and buffers.
    Fixed,
    /// Bytes of one call or copy of a scan; bytes in which records are collected before they go to the file.
    Buffer(Bytes),
    /// fallocate(2) of the whole file during set-up.
    Prealloc,
    /// `MADV_POPULATE_WRITE` of the whole file during set-up: pages are there and writable.
    PopulateWrite,
    /// One byte of each page is written during set-up, with the value that it has.
    Touch,
    /// A thread of its own does the same ahead of the writer, so many bytes at most, by `MADV_POPULATE_WRITE`.
    Pretouch(Bytes),
    /// mlock(2) of the whole mapping during set-up.
    Lock,
}

use MethodOption::{
    Buffer, Depth, Direct, DontCache, Fixed, HugePage, InPlace, Lock, Populate, PopulateRead, PopulateWrite,
    Prealloc, Prefetch, PrefetchWindow, Pretouch, Random, Sequential, Touch, WillNeed,
};

const BUFFER: MethodOption = Buffer(Method::DEFAULT_BUFFER);
const PRETOUCH: MethodOption = Pretouch(Method::DEFAULT_BUFFER);

const MMAP_OPTIONS: &[MethodOption] = &[
    Random,
    Sequential,
    WillNeed,
    Populate,
    PopulateRead,
    PopulateWrite,
    HugePage,
    Prefetch,
    InPlace,
    BUFFER,
    Prealloc,
    Touch,
    PRETOUCH,
    Lock,
];
const PREAD_OPTIONS: &[MethodOption] = &[Random, Sequential, WillNeed, DontCache, Direct, BUFFER];
const READ_OPTIONS: &[MethodOption] = &[Random, Sequential, WillNeed, Direct, BUFFER];
const PWRITE_OPTIONS: &[MethodOption] = &[Direct, BUFFER, Prealloc];
const WRITE_OPTIONS: &[MethodOption] = &[Direct, BUFFER, Prealloc];
const URING_OPTIONS: &[MethodOption] = &[Depth(Method::DEFAULT_DEPTH), Direct, Fixed, BUFFER, Prealloc];

/// Pairs that contradict each other or say the same thing twice, with why.
const CONFLICTS: &[(MethodOption, MethodOption, &str)] = &[
    (Random, Sequential, "the second advice replaces the first"),
    (Populate, PopulateRead, "both fill the page tables"),
    (Populate, PopulateWrite, "both fill the page tables"),
    (PopulateRead, PopulateWrite, "both fill the page tables"),
    (Direct, DontCache, "O_DIRECT does not use the page cache"),
    (Direct, Random, "O_DIRECT does not use readahead"),
    (Direct, Sequential, "O_DIRECT does not use readahead"),
    (Direct, WillNeed, "O_DIRECT does not use the page cache"),
];

impl Access {
    const FILE_ACCESSES: [Access; 6] =
        [Access::Mmap, Access::Pread, Access::Read, Access::Pwrite, Access::Write, Access::Uring];

    /// The word in a method's text.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Mmap => "mmap",
            Access::Pread => "pread",
            Access::Read => "read",
            Access::Pwrite => "pwrite",
            Access::Write => "write",
            Access::Uring => "uring",
            Access::Anonymous => "anonymous",
        }
    }

    /// The options that this access takes.
    pub const fn options(self) -> &'static [MethodOption] {
        match self {
            Access::Mmap => MMAP_OPTIONS,
            Access::Pread => PREAD_OPTIONS,
            Access::Read => READ_OPTIONS,
            Access::Pwrite => PWRITE_OPTIONS,
            Access::Write => WRITE_OPTIONS,
            Access::Uring => URING_OPTIONS,
            Access::Anonymous => &[],
        }
    }
}

impl MethodOption {
    /// The word in a method's text, without a value.
    pub const fn name(self) -> &'static str {
        match self {
            Random => "random",
            Sequential => "sequential",
            WillNeed => "willneed",
            Populate => "populate",
            PopulateRead => "populate-read",
            HugePage => "hugepage",
            Prefetch | PrefetchWindow(_) => "prefetch",
            InPlace => "in-place",
            DontCache => "dontcache",
            Direct => "direct",
            Depth(_) => "depth",
            Fixed => "fixed",
            Buffer(_) => "buffer",
            Prealloc => "prealloc",
            PopulateWrite => "populate-write",
            Touch => "touch",
            Pretouch(_) => "pretouch",
            Lock => "lock",
        }
    }

    pub(crate) fn usage(self) -> String {
        match self {
            Depth(_) => "depth=N".to_string(),
            Prefetch => "prefetch, prefetch=N".to_string(),
            Buffer(_) | Pretouch(_) => format!("{}=SIZE", self.name()),
            other => other.name().to_string(),
        }
    }
}

impl fmt::Display for MethodOption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Depth(value) | PrefetchWindow(value) => write!(formatter, "{}={value}", self.name()),
            Buffer(size) | Pretouch(size) => write!(formatter, "{}={size}", self.name()),
            other => formatter.write_str(other.name()),
        }
    }
}

/// An access with its options: what a table calls a method.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Method {
    access: Access,
    options: Vec<MethodOption>,
}

/// Why a text names no method; each message says what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// Nothing written.
    #[error("a method is missing; the methods are {}", accesses())]
    Empty,
    /// A worker that does not exist.
    #[error("unknown worker '{worker}' in '{text}'; the workers are native")]
    UnknownWorker {
        /// What was typed.
        text: String,
        /// The part before the slash.
        worker: String,
    },
    /// An access that does not exist.
    #[error("unknown method '{name}'; the methods are {}", accesses())]
    UnknownAccess {
        /// The word that names no access.
        name: String,
    },
    /// An option that the access does not take.
    #[error("'{access}' takes no option '{option}'; it takes {accepted}")]
    UnknownOption {
        /// The access.
        access: &'static str,
        /// The word that names no option of it.
        option: String,
        /// Those that do.
        accepted: String,
    },
    /// A depth out of bounds.
    #[error("'{0}' is no queue depth; write depth=1 to depth=1024")]
    Depth(String),
    /// A window out of bounds.
    #[error(
        "'{0}' is no prefetch window; write prefetch=1 to prefetch=4096 for reads advised ahead, or prefetch for \
         those of an operation"
    )]
    PrefetchWindow(String),
    /// A size out of bounds.
    #[error("'{option}' is no size of a {name}: {reason}")]
    Size {
        /// What was typed.
        option: String,
        /// The option.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// An option given twice.
    #[error("'{option}' stands twice in '{text}'")]
    Repeated {
        /// What was typed.
        text: String,
        /// The repeated option.
        option: &'static str,
    },
    /// Two options that do not go together.
    #[error("'{first}' and '{second}' do not go together in '{text}': {reason}")]
    Conflict {
        /// What was typed.
        text: String,
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why.
        reason: &'static str,
    },
}

fn accesses() -> String {
    Access::FILE_ACCESSES.map(Access::name).join(", ")
}

impl Method {
    /// The depth of `uring` where none is written.
    pub const DEFAULT_DEPTH: u32 = 32;
    /// The deepest queue accepted: a ring of 1,024 entries fits the default memlock limits.
    pub const MAX_DEPTH: u32 = 1024;

    /// The buffer of `read` where none is written, and the piece in which other methods scan.
    pub const DEFAULT_BUFFER: Bytes = Bytes::kib(64);
    /// The largest buffer accepted.
    pub const MAX_BUFFER: Bytes = Bytes::gib(1);

    /// The widest window of reads advised ahead: 64 MiB of reads of 16 KiB.
    pub const MAX_PREFETCH_WINDOW: u32 = 4096;
    /// Bytes of a read from which the offset of the next one follows, where reads are dependent.
    pub const LINK_BYTES: u64 = 8;

    /// The ceiling of memory: copying from anonymous memory.
    pub const fn anonymous() -> Self {
        Self { access: Access::Anonymous, options: Vec::new() }
    }

    /// The ceiling of a device: direct reads through io_uring with `depth` of them in flight.
    pub fn uring_direct(depth: u32) -> Self {
        Self { access: Access::Uring, options: vec![Direct, Depth(depth)] }
    }

    /// The access.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The options in the order written.
    pub fn options(&self) -> &[MethodOption] {
        &self.options
    }

    /// Whether `option` is among the options.
    pub fn has(&self, option: MethodOption) -> bool {
        self.options.contains(&option)
    }

    /// Reads in flight per thread: 1 but for io_uring.
    pub fn depth(&self) -> u32 {
        self.options
            .iter()
            .find_map(|option| match option {
                Depth(depth) => Some(*depth),
                _ => None,
            })
            .unwrap_or(1)
    }

    /// Reads that are kept advised ahead of the one being read, where a window is written.
    pub fn prefetch_window(&self) -> Option<u32> {
        self.options.iter().find_map(|option| match option {
            PrefetchWindow(window) => Some(*window),
            _ => None,
        })
    }

    /// Bytes of the buffer, where one is written.
    pub fn buffer(&self) -> Option<Bytes> {
        self.options.iter().find_map(|option| match option {
            Buffer(size) => Some(*size),
            _ => None,
        })
    }

    /// Bytes that a thread touches ahead of the writer, where one does.
    pub fn pretouch(&self) -> Option<Bytes> {
        self.options.iter().find_map(|option| match option {
            Pretouch(size) => Some(*size),
            _ => None,
        })
    }

    /// Why reads of `read_bytes` cannot depend on each other with this method; `None` if they can.
    pub fn refuses_dependent(&self, read_bytes: Bytes) -> Option<&'static str> {
        if read_bytes.0 < Self::LINK_BYTES {
            Some("the offset of the next read is in 8 bytes, and a read is shorter")
        } else if self.has(Prefetch) || self.prefetch_window().is_some() {
            Some("there is nothing to prefetch before the data have said what the next read is")
        } else if self.depth() > 1 {
            Some("there is one read in flight, since the next one follows from its data; write depth=1")
        } else {
            None
        }
    }

    /// Whether reads or writes bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.has(Direct)
    }

    /// Whether set-up brings the whole span into the page cache.
    pub fn reads_all_in_setup(&self) -> bool {
        [Populate, PopulateRead, PopulateWrite].iter().any(|option| self.has(*option))
    }

    /// The worker that performs it.
    pub fn worker(&self) -> &'static str {
        "native"
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.access.name().to_string();
        for (index, option) in self.options.iter().enumerate() {
            text.push(if index == 0 { ':' } else { '+' });
            text.push_str(&option.to_string());
        }
        formatter.pad(&text)
    }
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let text = text.trim();
        if let Some((worker, _)) = text.split_once('/').filter(|(worker, _)| *worker != "native") {
            return Err(MethodError::UnknownWorker { text: text.to_string(), worker: worker.to_string() });
        }
        let spec = text.strip_prefix("native/").unwrap_or(text);
        if spec.is_empty() {
            return Err(MethodError::Empty);
        }
        let (name, written) = match spec.split_once(':') {
            Some((name, written)) => (name, Some(written)),
            None => (spec, None),
        };
        let access = Access::FILE_ACCESSES
            .into_iter()
            .find(|access| access.name() == name)
            .ok_or_else(|| MethodError::UnknownAccess { name: name.to_string() })?;
        let mut options: Vec<MethodOption> = Vec::new();
        for word in written.into_iter().flat_map(|written| written.split('+')) {
            let option = parse_option(access, word)?;
            if options.iter().any(|earlier| earlier.name() == option.name()) {
                return Err(MethodError::Repeated { text: text.to_string(), option: option.name() });
            }
            options.push(option);
        }
        for (first, second, reason) in CONFLICTS {
            if options.contains(first) && options.contains(second) {
                let (first, second) = (first.name(), second.name());
                return Err(MethodError::Conflict { text: text.to_string(), first, second, reason });
            }
        }
        if access == Access::Uring && !options.iter().any(|option| matches!(option, Depth(_))) {
            options.push(Depth(Self::DEFAULT_DEPTH));
        }
        if access == Access::Read && !options.iter().any(|option| matches!(option, Buffer(_))) {
            options.push(Buffer(Self::DEFAULT_BUFFER));
        }
        Ok(Method { access, options })
    }
}

fn parse_option(access: Access, word: &str) -> Result<MethodOption, MethodError> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let unknown = || MethodError::UnknownOption {
        access: access.name(),
        option: word.to_string(),
        accepted: access.options().iter().map(|option| option.usage()).collect::<Vec<_>>().join(", "),
    };
    let known = access.options().iter().find(|option| option.name() == name).ok_or_else(unknown)?;
    match (known, value) {
        (Depth(_), Some(value)) => {
            number(value, Method::MAX_DEPTH).map(Depth).ok_or_else(|| MethodError::Depth(word.to_string()))
        }
        (Prefetch, Some(value)) => number(value, Method::MAX_PREFETCH_WINDOW)
            .map(PrefetchWindow)
            .ok_or_else(|| MethodError::PrefetchWindow(word.to_string())),
        (Depth(_), None) => Err(MethodError::Depth(word.to_string())),
        (Buffer(_), Some(value)) => size(known.name(), word, value).map(Buffer),
        (Pretouch(_), Some(value)) => size(known.name(), word, value).map(Pretouch),
        (Buffer(_) | Pretouch(_), None) => size(known.name(), word, "").map(Buffer),
        (_, Some(_)) => Err(unknown()),
        (option, None) => Ok(*option),
    }
}

/// A number from 1 to `max`.
fn number(text: &str, max: u32) -> Option<u32> {
    text.parse().ok().filter(|number| (1..=max).contains(number))
}

/// A size from 1 byte to [`Method::MAX_BUFFER`].
fn size(name: &'static str, option: &str, value: &str) -> Result<Bytes, MethodError> {
    let refused = |reason: String| MethodError::Size { option: option.to_string(), name, reason };
    match value.parse::<Bytes>() {
        Ok(bytes) if (1..=Method::MAX_BUFFER.0).contains(&bytes.0) => Ok(bytes),
        Ok(_) => Err(refused(format!("write 1B to {}", Method::MAX_BUFFER))),
        Err(_) if value.is_empty() => Err(refused(format!("write {name}=SIZE, as in {name}=64KiB"))),
        Err(error) => Err(refused(error.to_string())),
    }
}

/// Reads a comma-separated list of methods, as `--methods` takes it.
pub fn parse_methods(text: &str) -> Result<Vec<Method>, MethodError> {
    text.split(',').map(str::parse).collect()
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == Access::Anonymous.name() {
            return Ok(Method::anonymous());
        }
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
