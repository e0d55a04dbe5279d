//! Actors: another program at work beside the measured one, on a file of its own or on the same.
//!
//! Text is `scan:METHOD`, `read:METHOD` or `append:METHOD`, then `,rate=`, `,size=` and `,file=` in
//! any order, as in `scan:pread:noreuse,rate=1600MiB/s`; `file=same` is the measured file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::method::{Method, Worker};
use crate::rate::ScheduledRate;
use crate::units::Bytes;
use crate::words::{as_text, words};

/// Size of an actor's file, if no memory limit says how large it must be.
const USUAL_FILE: Bytes = Bytes::gib(1);
/// Largest read or record of an actor, and its largest file.
const MAX_OPERATION: Bytes = Bytes::gib(1);
const MAX_FILE: Bytes = Bytes(1 << 50);
/// A file of so many times the memory limit evicts what is not used beside it: one of twice the
/// limit left 99 % of a hot set, one of four times 38 %.
const TIMES_LIMIT: u64 = 4;

words! {
    /// Order in which an actor reads or writes its file.
    ActorOrder, "actor" {
        /// Front to back, again and again: a backup, a compaction.
        Scan = "scan",
        /// Offsets drawn uniformly: another service.
        Read = "read",
        /// Records written front to back, again and again, each on the device before the next one:
        /// a log, the output of a compaction.
        Append = "append",
    }
}

impl ActorOrder {
    /// Size of a read or a record unless it is typed.
    pub const fn usual_operation(self) -> Bytes {
        match self {
            ActorOrder::Scan | ActorOrder::Append => Bytes::mib(1),
            ActorOrder::Read => Bytes::kib(16),
        }
    }

    /// Name of its operations.
    pub const fn operation(self) -> &'static str {
        match self {
            ActorOrder::Scan | ActorOrder::Read => "read",
            ActorOrder::Append => "record",
        }
    }

    /// The verb of its operations.
    pub const fn verb(self) -> &'static str {
        match self {
            ActorOrder::Scan | ActorOrder::Read => "reads",
            ActorOrder::Append => "writes",
        }
    }
}

/// The file of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActorFile {
    /// One of its own, of this size; `None`: as large as a memory limit requires, or 1 GiB.
    Own(Option<Bytes>),
    /// The measured one, all of it: a backup of what a server reads.
    Same,
}

/// Text of [`ActorFile::Same`].
pub const SAME_FILE: &str = "same";

/// Another program at work beside the measured one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor {
    /// Order in which it reads or writes.
    pub order: ActorOrder,
    /// Method of the program.
    pub method: Method,
    /// Size of a read or a record.
    pub op_bytes: Bytes,
    /// Reads or records per second; `None`: as fast as it can.
    pub rate: Option<ScheduledRate>,
    /// The file.
    pub file: ActorFile,
}

impl Actor {
    /// The same actor with the size of its file stated, as it is under this memory limit.
    pub fn sized(self, limit: Option<Bytes>) -> Self {
        let file = match self.file {
            ActorFile::Own(None) => ActorFile::Own(Some(limit.map_or(USUAL_FILE, Self::bytes_to_fill))),
            stated => stated,
        };
        Self { file, ..self }
    }

    /// Bytes after which the cache under a memory limit is what actor and victim make of it.
    pub const fn bytes_to_fill(limit: Bytes) -> Bytes {
        Bytes(limit.0.saturating_mul(TIMES_LIMIT))
    }

    /// Size of its file, if that is its own.
    pub fn own_file_bytes(&self) -> Option<Bytes> {
        match self.file {
            ActorFile::Own(file_bytes) => Some(file_bytes.unwrap_or(USUAL_FILE)),
            ActorFile::Same => None,
        }
    }

    /// True if it reads the measured file.
    pub fn reads_same_file(&self) -> bool {
        self.file == ActorFile::Same
    }

    /// True if it writes its file.
    pub fn is_writing(&self) -> bool {
        self.order == ActorOrder::Append
    }

    /// Bytes per second; `None`: as fast as it can.
    pub fn bytes_per_second(&self) -> Option<u64> {
        Some(self.rate?.per_second().saturating_mul(self.op_bytes.0))
    }

    /// Memory of its process, about.
    pub fn worker_bytes(&self) -> Bytes {
        let buffers = self.op_bytes.0.saturating_mul(u64::from(self.method.depth()));
        Bytes(Worker::Native.own_bytes().0.saturating_add(buffers))
    }
}

/// A rate in operations per second, or in bytes per second.
fn rate_of(text: &str, order: ActorOrder, op_bytes: Bytes) -> Result<Option<ScheduledRate>, String> {
    if text == "max" {
        return Ok(None);
    }
    let of_bytes = text.strip_suffix("/s").unwrap_or(text);
    if !of_bytes.ends_with('B') {
        // As everywhere: 20k are reads.
        return text.parse().map(Some);
    }
    let bytes = of_bytes.parse::<Bytes>().map_err(|error| format!("invalid rate '{text}': {error}"))?;
    let operations = bytes.0 / op_bytes.0.max(1);
    if operations == 0 || !bytes.0.is_multiple_of(op_bytes.0.max(1)) {
        return Err(format!("invalid rate '{text}': write a multiple of {op_bytes} a second"));
    }
    let rate = ScheduledRate::new(operations);
    rate.map(Some).ok_or_else(|| {
        format!("invalid rate '{text}': {operations} {}s a second are too many", order.operation())
    })
}

impl Actor {
    /// An actor of the parts of its text; an error is the reason alone.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let usage = "write scan:METHOD, read:METHOD or append:METHOD, with rate= behind it, as in scan:pread,rate=200MiB/s";
        let mut parts = parts.into_iter();
        let (order, method) = parts.next().and_then(|what| what.split_once(':')).ok_or(usage)?;
        let order: ActorOrder = order.parse().map_err(|_| usage)?;
        let method: Method = method.parse().map_err(|error| format!("{error}"))?;
        let (mut rate, mut size, mut file) = (None, None, None);
        for part in parts {
            let place = match part.split_once('=') {
                Some(("rate", value)) => (&mut rate, value),
                Some(("size", value)) => (&mut size, value),
                Some(("file", value)) => (&mut file, value),
                _ => return Err(format!("'{part}' is none of rate=, size= and file=")),
            };
            if place.0.replace(place.1).is_some() {
                return Err(format!("'{part}' comes a second time"));
            }
        }
        let bytes_of = |value: Option<&str>| {
            let size = value.map(str::parse::<Bytes>).transpose().map_err(|error| error.to_string())?;
            match size {
                Some(Bytes(0)) => Err(format!("0B holds nothing: it {} no bytes", order.verb())),
                Some(size) if size > MAX_FILE => Err(format!("{size} is too large: at most {MAX_FILE}")),
                size => Ok(size),
            }
        };
        let op_bytes = bytes_of(size)?.unwrap_or(order.usual_operation());
        if op_bytes > MAX_OPERATION {
            let operation = order.operation();
            return Err(format!("a {operation} of {op_bytes} is too large: at most {MAX_OPERATION}"));
        }
        let rate =
            rate.ok_or("it has no rate: write rate=200MiB/s, rate=5k, or rate=max for as fast as it can")?;
        let rate = rate_of(rate, order, op_bytes)?;
        let file = match file {
            Some(SAME_FILE) if order == ActorOrder::Append => {
                return Err(
                    "the measured file is only read, and this actor writes: leave file=same out".into()
                );
            }
            Some(SAME_FILE) => ActorFile::Same,
            size => ActorFile::Own(bytes_of(size)?),
        };
        Ok(Self { order, method, op_bytes, rate, file })
    }
}

impl FromStr for Actor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim);
        Self::of_parts(parts).map_err(|reason| format!("invalid actor '{text}': {reason}"))
    }
}

/// Exact: the printed text parses back to the same value.
impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { order, method, op_bytes, rate, file } = self;
        write!(formatter, "{order}:{method}")?;
        match (rate, order, self.bytes_per_second()) {
            (Some(_), ActorOrder::Scan | ActorOrder::Append, Some(bytes)) => {
                write!(formatter, ",rate={}/s", Bytes(bytes))?
            }
            (Some(rate), ..) => write!(formatter, ",rate={rate}")?,
            (None, ..) => formatter.write_str(",rate=max")?,
        }
        if *op_bytes != order.usual_operation() {
            write!(formatter, ",size={op_bytes}")?;
        }
        match file {
            ActorFile::Own(None) => Ok(()),
            ActorFile::Own(Some(file_bytes)) => write!(formatter, ",file={file_bytes}"),
            ActorFile::Same => write!(formatter, ",file={SAME_FILE}"),
        }
    }
}

as_text!(Actor);

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(text: &str) -> Actor {
        text.parse().expect("an actor")
    }

    #[test]
    fn actors_parse_and_print() {
        for (typed, printed) in [
            ("scan:pread,rate=200MiB/s", "scan:pread,rate=200MiB/s"),
            ("scan:pread:noreuse,rate=200", "scan:pread:noreuse,rate=200MiB/s"),
            ("scan:mmap,size=64k,rate=max,file=2GiB", "scan:mmap,rate=max,size=64KiB,file=2GiB"),
            ("read:pread:direct, rate=20k/s", "read:pread:direct,rate=20k/s"),
            ("read:pread,rate=16MiB/s", "read:pread,rate=1024/s"),
            ("append:pwrite:direct,rate=20,size=4KiB", "append:pwrite:direct,rate=80KiB/s,size=4KiB"),
            ("append:mmap,rate=20MiB/s,file=64MiB", "append:mmap,rate=20MiB/s,file=64MiB"),
            ("scan:pread,file=same,rate=400", "scan:pread,rate=400MiB/s,file=same"),
        ] {
            let parsed = actor(typed);
            assert_eq!(parsed.to_string(), printed);
            assert_eq!(actor(printed), parsed);
        }
    }

    #[test]
    fn what_is_no_actor_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "write scan:METHOD"),
            ("pread,rate=max", "write scan:METHOD"),
            ("write:pwrite,rate=max", "write scan:METHOD"),
            ("scan:nothing,rate=max", "nothing"),
            ("scan:pread", "no rate"),
            ("scan:pread,rate=0", "rate '0'"),
            ("scan:pread,rate=1500KiB/s", "multiple of 1MiB"),
            ("scan:pread,rate=20MB/s", "ambiguous"),
            ("scan:pread,rate=999999GiB/s,size=4KiB", "too many"),
            ("scan:pread,rate=max,size=100TiB", "a read of 100TiB is too large"),
            ("scan:pread,rate=max,file=4096TiB", "too large"),
            ("scan:pread,rate=max,rate=max", "second time"),
            ("scan:pread,rate=max,size=0B", "reads no bytes"),
            ("append:pwrite,rate=max,size=0B", "writes no bytes"),
            ("append:pwrite,rate=max,size=2GiB", "a record of 2GiB is too large"),
            ("append:pwrite,rate=999999GiB/s,size=4KiB", "records a second are too many"),
            ("scan:pread,rate=max,depth=2", "none of rate="),
            ("scan:pread,rate=max,file=12", "unit"),
            ("append:pwrite,rate=max,file=same", "the measured file is only read"),
        ] {
            let error = text.parse::<Actor>().expect_err("no actor");
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn its_file_is_four_times_the_limit() {
        let of = |text: &str, limit| actor(text).sized(limit).own_file_bytes().expect("a file of its own");
        assert_eq!(of("scan:pread,rate=max", Some(Bytes::mib(512))), Bytes::gib(2));
        assert_eq!(of("scan:pread,rate=max", None), Bytes::gib(1));
        assert_eq!(of("scan:pread,rate=max,file=8MiB", Some(Bytes::mib(512))), Bytes::mib(8));
        let same = actor("scan:pread,rate=max,file=same").sized(Some(Bytes::mib(512)));
        assert_eq!(same.own_file_bytes(), None);
    }
}
