//! Access methods: a way to move bytes between file and program, with its options.
//!
//! Text is `[worker/]access[:option[+option…]]`, for instance `mmap:random+prefetch` or
//! `jvm/filechannel:heap-buffer`. It is parsed once; senseless combinations cannot be built.
//! Options take effect in the order written. The words of each worker, and the workloads they apply
//! to, are listed in `ways`.

mod access_methods;
mod listed;
pub mod names;
pub mod options;
mod parse;
mod suitable;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::Bytes;
use crate::work::Workload;

pub use listed::{ListedMethod, listed};
pub use options::MethodOption;
pub use parse::MethodError;
pub use suitable::Alignment;

/// The program that performs the accesses.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Worker {
    /// pagewise itself.
    Native,
    /// The shipped worker in Java.
    Jvm,
    /// The shipped worker in Go.
    Go,
    /// The shipped worker in Python.
    Python,
    /// A program that the user names with `--worker name=COMMAND`.
    Other(String),
}

impl Worker {
    /// Workers that are part of pagewise.
    pub const SHIPPED: [Worker; 4] = [Worker::Native, Worker::Jvm, Worker::Go, Worker::Python];

    /// The word before the slash.
    pub fn name(&self) -> &str {
        match self {
            Worker::Native => "native",
            Worker::Jvm => "jvm",
            Worker::Go => "go",
            Worker::Python => "python",
            Worker::Other(name) => name,
        }
    }

    /// The worker of that name; `None` if it is not a name: a letter of `a-z`, then letters, digits
    /// and hyphens.
    pub fn of_name(name: &str) -> Option<Self> {
        if let Some(shipped) = Self::SHIPPED.into_iter().find(|worker| worker.name() == name) {
            return Some(shipped);
        }
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_word))
            .then(|| Worker::Other(name.to_string()))
    }

    /// True if threads of its own (collector, compiler, scheduler) may run besides the measured
    /// ones.
    pub fn has_runtime(&self) -> bool {
        *self != Worker::Native
    }

    /// Memory of the worker without its buffers; a memory limit leaves the rest to the page cache.
    /// The actual value is recorded in each sample.
    pub fn own_bytes(&self) -> Bytes {
        Bytes::mib(match self {
            Worker::Native => 2,
            Worker::Jvm => 64,
            Worker::Go => 8,
            Worker::Python => 32,
            Worker::Other(_) => 16,
        })
    }
}

impl fmt::Display for Worker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The kind of access that the kernel sees, in any language: `jvm/filechannel` is `pread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// A shared mapping of the file; read-only if the workload reads.
    Mmap,
    /// pread(2), or preadv2(2) if a flag requires it.
    Pread,
    /// read(2), front to back.
    Read,
    /// pwrite(2).
    Pwrite,
    /// write(2), front to back.
    Write,
    /// io_uring with reads or writes in flight.
    Uring,
    /// Copying from or to anonymous memory: a ceiling, not a file access method.
    Anonymous,
    /// An access method of a third-party worker; only the properties common to all methods are
    /// known.
    Unknown,
}

impl Access {
    /// Name in JSON and tables if no method's own word is meant.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Mmap => "mmap",
            Access::Pread => "pread",
            Access::Read => "read",
            Access::Pwrite => "pwrite",
            Access::Write => "write",
            Access::Uring => "uring",
            Access::Anonymous => "anonymous",
            Access::Unknown => "unknown",
        }
    }

    /// The access in a workload: what a worker calls reading is writing in a workload that writes.
    pub const fn in_workload(self, workload: Workload) -> Self {
        match (self, workload.is_reading()) {
            (Access::Pread, false) => Access::Pwrite,
            (Access::Read, false) => Access::Write,
            (access, _) => access,
        }
    }
}

use MethodOption::{
    Buffer, Depth, Direct, Populate, PopulateRead, PopulateWrite, Prefetch, PrefetchWindow, Pretouch,
};

/// An access with its options: a "method" in tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Method {
    worker: Worker,
    /// The word in the text; the whole text if the method is unknown.
    word: Cow<'static, str>,
    access: Access,
    options: Vec<MethodOption>,
}

/// Definition of a line in a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineRule {
    /// Each newline byte ends a line; bytes after the last newline are not a line.
    Newline,
    /// Java's `BufferedReader.readLine`: newline, carriage return, or both in this order end a
    /// line. Bytes after the last one are a line too, unless there are none.
    ReadLine,
}

/// The value of the first option of this kind, if there is one.
macro_rules! value {
    ($method:expr, $kind:ident) => {
        $method.options.iter().find_map(|option| if let $kind(value) = option { Some(*value) } else { None })
    };
}

impl Method {
    /// Default depth of `uring`.
    pub const DEFAULT_DEPTH: u32 = 32;
    /// The deepest queue accepted: a ring of 1,024 entries fits the default memlock limits.
    pub const MAX_DEPTH: u32 = 1024;

    /// Default buffer of `read`, and the piece in which other methods scan.
    pub const DEFAULT_BUFFER: Bytes = Bytes::kib(64);
    /// The largest buffer accepted.
    pub const MAX_BUFFER: Bytes = Bytes::gib(1);

    /// The widest window of reads that advice is given for: 64 MiB of reads of 16 KiB.
    pub const MAX_PREFETCH_WINDOW: u32 = 4096;
    /// Bytes of a read that determine the offset of the next, if reads are dependent.
    pub const LINK_BYTES: u64 = 8;

    /// The memory ceiling: copying from anonymous memory.
    pub const fn anonymous() -> Self {
        let (worker, word) = (Worker::Native, Cow::Borrowed(Access::Anonymous.name()));
        Self { worker, word, access: Access::Anonymous, options: Vec::new() }
    }

    /// The device ceiling: direct reads through io_uring with `depth` in flight.
    pub fn uring_direct(depth: u32) -> Self {
        let (worker, word) = (Worker::Native, Cow::Borrowed(Access::Uring.name()));
        Self { worker, word, access: Access::Uring, options: vec![Direct, Depth(depth)] }
    }

    /// The ceiling of syncs: direct writes of this size.
    pub fn direct_pwrite(size: Bytes) -> Self {
        let (worker, word) = (Worker::Native, Cow::Borrowed(Access::Pwrite.name()));
        Self { worker, word, access: Access::Pwrite, options: vec![Direct, Buffer(size)] }
    }

    /// The kind of access that the kernel sees.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The word of its text for the access: `filechannel`.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// Text without the worker, as sent to that worker.
    pub fn spec(&self) -> String {
        let mut text = self.word.to_string();
        for (index, option) in self.options.iter().enumerate() {
            text.push(if index == 0 { ':' } else { '+' });
            text.push_str(&option.to_string());
        }
        text
    }

    /// Definition of a line.
    pub fn line_rule(&self) -> LineRule {
        if self.worker == Worker::Jvm && self.word == access_methods::BUFFERED_READER {
            LineRule::ReadLine
        } else {
            LineRule::Newline
        }
    }

    /// The options in the order written.
    pub fn options(&self) -> &[MethodOption] {
        &self.options
    }

    /// True if `option` is among the options.
    pub fn has(&self, option: MethodOption) -> bool {
        self.options.contains(&option)
    }

    /// Reads in flight per thread; 1 except for io_uring.
    pub fn depth(&self) -> u32 {
        value!(self, Depth).unwrap_or(1)
    }

    /// Number of reads ahead of the current one that advice is given for, if a window is written.
    pub fn prefetch_window(&self) -> Option<u32> {
        value!(self, PrefetchWindow)
    }

    /// Size of the buffer, if written.
    pub fn buffer(&self) -> Option<Bytes> {
        value!(self, Buffer)
    }

    /// The same method without a buffer option.
    pub fn without_buffer(&self) -> Self {
        let options = self.options.iter().filter(|option| !matches!(option, Buffer(_))).copied().collect();
        Self { options, ..self.clone() }
    }

    /// Bytes that a thread touches ahead of the writer, if one does.
    pub fn pretouch(&self) -> Option<Bytes> {
        value!(self, Pretouch)
    }

    /// Reason that reads of `read_bytes` cannot depend on each other with this method; `None` if
    /// they can.
    fn refuses_dependent(&self, read_bytes: Bytes) -> Option<&'static str> {
        if read_bytes.0 < Self::LINK_BYTES {
            Some("the offset of the next read is in 8 bytes, and a read is shorter")
        } else if self.has(Prefetch) || self.prefetch_window().is_some() {
            Some("there is nothing to prefetch before the data show the next offset")
        } else if self.depth() > 1 {
            Some("there is one read in flight, since the next one follows from its data: write depth=1")
        } else {
            None
        }
    }

    /// True if reads or writes bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.has(Direct)
    }

    /// True if a program that reads so asks the kernel to read ahead as the recorded one did: by a
    /// mapping only if it has one, by a descriptor unless it reads past the page cache, or memory
    /// that was filled before.
    pub fn asks_to_read_ahead(&self, by_mapping: bool) -> bool {
        match self.access {
            Access::Anonymous => false,
            Access::Mmap => true,
            _ => !by_mapping && !self.is_direct(),
        }
    }

    /// True if set-up brings the whole span into the page cache.
    pub fn reads_all_in_setup(&self) -> bool {
        [Populate, PopulateRead, PopulateWrite].iter().any(|option| self.has(*option))
    }

    /// The worker that performs it.
    pub fn worker(&self) -> &Worker {
        &self.worker
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.worker {
            Worker::Native => formatter.pad(&self.spec()),
            worker => formatter.pad(&format!("{worker}/{}", self.spec())),
        }
    }
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
