//! Access methods: a way to move bytes between file and program, with its options.
//!
//! Text is `[worker/]access[:option[+option…]]`, for instance `mmap:random+prefetch`. It is parsed once;
//! combinations that make no sense cannot be built. Options act in the order written.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::Bytes;

/// The way in which bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// A shared, read-only mapping of the file.
    Mmap,
    /// pread(2), or preadv2(2) where a flag asks for it.
    Pread,
    /// io_uring with reads in flight.
    Uring,
    /// Copying from anonymous memory that holds the file's bytes: a ceiling, not a way to read a file.
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
}

use MethodOption::{
    Depth, Direct, DontCache, Fixed, HugePage, InPlace, Populate, PopulateRead, Prefetch, PrefetchWindow,
    Random, Sequential, WillNeed,
};

const MMAP_OPTIONS: &[MethodOption] =
    &[Random, Sequential, WillNeed, Populate, PopulateRead, HugePage, Prefetch, InPlace];
const PREAD_OPTIONS: &[MethodOption] = &[Random, Sequential, WillNeed, DontCache, Direct];
const URING_OPTIONS: &[MethodOption] = &[Depth(Method::DEFAULT_DEPTH), Direct, Fixed];

/// Pairs that contradict each other or say the same thing twice, with why.
const CONFLICTS: &[(MethodOption, MethodOption, &str)] = &[
    (Random, Sequential, "the second advice replaces the first"),
    (Populate, PopulateRead, "both fill the page tables"),
    (Direct, DontCache, "O_DIRECT does not use the page cache"),
    (Direct, Random, "O_DIRECT does not use readahead"),
    (Direct, Sequential, "O_DIRECT does not use readahead"),
    (Direct, WillNeed, "O_DIRECT does not use the page cache"),
];

impl Access {
    const FILE_ACCESSES: [Access; 3] = [Access::Mmap, Access::Pread, Access::Uring];

    /// The word in a method's text.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Mmap => "mmap",
            Access::Pread => "pread",
            Access::Uring => "uring",
            Access::Anonymous => "anonymous",
        }
    }

    /// The options that this access takes.
    pub const fn options(self) -> &'static [MethodOption] {
        match self {
            Access::Mmap => MMAP_OPTIONS,
            Access::Pread => PREAD_OPTIONS,
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
        }
    }

    fn usage(self) -> String {
        match self {
            Depth(_) => "depth=N".to_string(),
            Prefetch => "prefetch, prefetch=N".to_string(),
            other => other.name().to_string(),
        }
    }
}

impl fmt::Display for MethodOption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Depth(value) | PrefetchWindow(value) => write!(formatter, "{}={value}", self.name()),
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

    /// Whether reads bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.has(Direct)
    }

    /// Whether set-up brings the whole span into the page cache.
    pub fn reads_all_in_setup(&self) -> bool {
        [Populate, PopulateRead].iter().any(|option| self.has(*option))
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
        (_, Some(_)) => Err(unknown()),
        (option, None) => Ok(*option),
    }
}

/// A number from 1 to `max`.
fn number(text: &str, max: u32) -> Option<u32> {
    text.parse().ok().filter(|number| (1..=max).contains(number))
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
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Method>().expect_err(text).to_string()
    }

    #[test]
    fn canonical_text_parses_back() {
        for text in [
            "mmap",
            "mmap:random+prefetch",
            "mmap:prefetch=1",
            "mmap:random+prefetch=4096",
            "pread:direct",
            "uring:direct+depth=8",
            "uring:depth=1+fixed",
        ] {
            let method: Method = text.parse().expect(text);
            assert_eq!(method.to_string(), text);
            assert_eq!(serde_json::from_str::<Method>(&format!("\"{text}\"")).expect(text), method);
        }
        assert_eq!("native/pread".parse::<Method>().expect("native").to_string(), "pread");
        assert_eq!("uring".parse::<Method>().expect("uring").to_string(), "uring:depth=32");
    }

    #[test]
    fn nonsense_is_refused_with_what_is_accepted() {
        assert_eq!(
            refused("mmap:direct"),
            "'mmap' takes no option 'direct'; it takes random, sequential, willneed, populate, populate-read, \
             hugepage, prefetch, prefetch=N, in-place"
        );
        assert_eq!(refused("sendfile"), "unknown method 'sendfile'; the methods are mmap, pread, uring");
        assert_eq!(refused("anonymous"), "unknown method 'anonymous'; the methods are mmap, pread, uring");
        assert_eq!(refused("jvm/mmap"), "unknown worker 'jvm' in 'jvm/mmap'; the workers are native");
        assert_eq!(refused("uring:depth=0"), "'depth=0' is no queue depth; write depth=1 to depth=1024");
        assert_eq!(refused("uring:depth"), "'depth' is no queue depth; write depth=1 to depth=1024");
        assert_eq!(refused("pread:random=3"), refused("pread:random=3"));
        for text in ["prefetch=0", "prefetch=4097", "prefetch=", "prefetch=-1", "prefetch=many"] {
            assert_eq!(
                refused(&format!("mmap:{text}")),
                format!(
                    "'{text}' is no prefetch window; write prefetch=1 to prefetch=4096 for reads advised ahead, or \
                     prefetch for those of an operation"
                )
            );
        }
        assert!(refused("mmap:prefetch+prefetch=4").contains("'prefetch' stands twice"));
        assert!(refused("pread:prefetch=4").contains("takes no option 'prefetch=4'"));
        assert!(refused("pread:direct+random").contains("do not go together"));
        assert!(refused("mmap:random+random").contains("stands twice"));
        assert!(refused("mmap:").contains("takes no option ''"));
        assert!(refused("").contains("missing"));
    }

    #[test]
    fn what_needs_the_next_offset_early_cannot_depend_on_data() {
        let refusal = |text: &str, read_bytes| {
            text.parse::<Method>().expect(text).refuses_dependent(Bytes(read_bytes)).unwrap_or("")
        };
        for text in ["mmap", "mmap:random+willneed", "mmap:in-place", "pread:direct", "uring:fixed+depth=1"] {
            assert_eq!((refusal(text, 8), refusal(text, 16384)), ("", ""), "{text}");
            assert!(refusal(text, 7).contains("shorter"), "{text}");
        }
        assert_eq!(Method::anonymous().refuses_dependent(Bytes(4096)), None);
        assert!(refusal("uring", 4096).contains("depth=1"));
        assert!(refusal("uring:depth=2", 4096).contains("depth=1"));
        for text in ["mmap:prefetch", "mmap:random+prefetch=1"] {
            assert!(refusal(text, 4096).contains("nothing to prefetch"), "{text}");
        }
    }
}
