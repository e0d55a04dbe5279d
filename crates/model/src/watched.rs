//! Events in a watched program, one after the other, as the kernel reported them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An observation in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The observation.
    pub what: What,
}

/// A kind of observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The thread made a call.
    Called(Call),
    /// The call returned this, or a negative errno.
    Returned(i64),
    /// From here on a descriptor of the process is this.
    Bound {
        /// The descriptor.
        descriptor: i32,
        /// Binding.
        to: DescriptorBinding,
        /// True if it was bound at this time; otherwise it was before, and has been looked at now.
        anew: bool,
    },
    /// An access to this address found no page in place.
    Faulted {
        /// The address.
        address: u64,
        /// The page had to be read.
        major: bool,
        /// The window in which this is the first access to the page; `None`: the mapping has no
        /// windows.
        window: Option<u32>,
        /// The address of the instruction that made the access; `None`: a call made it, or it was
        /// not seen.
        instruction: Option<u64>,
    },
    /// The thread left its CPU.
    Left {
        /// True if the thread could have gone on.
        preempted: bool,
        /// The address of its instruction, in a call the one behind it; `None`: it was not seen.
        instruction: Option<u64>,
    },
    /// The thread got a CPU.
    Resumed,
    /// The process mapped a range of addresses, over what was there.
    Mapped {
        /// First address.
        start: u64,
        /// Bytes.
        len: u64,
        /// The file, and where in it the range begins, in bytes; `None`: memory without a file.
        file: Option<(WatchedFile, u64)>,
        /// True if the mapping holds code.
        executable: bool,
    },
    /// The process, or a thread of it, began.
    Began {
        /// The process that started it, or the same one.
        parent: u32,
    },
    /// The thread got a name.
    Named {
        /// The name.
        name: String,
        /// The process executed a program: nothing is mapped any more.
        executed: bool,
    },
    /// The thread ended.
    Ended,
    /// Pages of a file came into the page cache for the thread.
    BroughtIn(Pages),
    /// Pages of a file that were in the page cache were put in place around a fault.
    MappedAround(Pages),
    /// The thread asked a disk for bytes.
    AskedDevice {
        /// Major and minor number.
        device: (u32, u32),
        /// So many.
        bytes: u64,
    },
}

/// From the number of a block device, major and minor, to that of its disk, which requests name.
pub type DiskOf = fn((u32, u32)) -> Option<(u32, u32)>;

/// A call that concerns files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A read.
    Read(Transfer),
    /// A write.
    Write(Transfer),
    /// The kernel moves bytes from one descriptor to another.
    Copy {
        /// The read.
        from: Transfer,
        /// The write.
        to: Transfer,
    },
    /// The position of a descriptor is set.
    Seek {
        /// The descriptor.
        descriptor: i32,
    },
    /// A file is opened; the call returns its descriptor.
    Open,
    /// A descriptor ends.
    Close {
        /// The descriptor.
        descriptor: i32,
    },
    /// A descriptor gets a second number, which the call returns.
    Duplicate,
    /// Data are made durable.
    Sync {
        /// The descriptor.
        descriptor: i32,
    },
    /// Data of a mapping are made durable (msync(2)).
    SyncMapped {
        /// An address of it.
        address: u64,
    },
    /// Nothing that concerns files.
    Other,
    /// The kernel is asked to read a part of a file ahead (posix_fadvise(2), readahead(2)).
    ReadAhead {
        /// The descriptor.
        descriptor: i32,
        /// Offset of the first byte.
        offset: u64,
        /// Bytes; 0: to the end of the file.
        len: u64,
    },
    /// The kernel is asked to read a part of a mapped file ahead (madvise(2)).
    ReadAheadMapped {
        /// First address.
        address: u64,
        /// Bytes.
        len: u64,
    },
    /// Other advice on a file, which changes what is cached of it.
    AdviseOtherwise {
        /// The descriptor, or an address of the mapping.
        on: AdviceSubject,
        /// The name of the advice.
        advice: &'static str,
    },
    /// The kernel is informed how a descriptor will be read, from now on.
    Expect {
        /// The descriptor.
        descriptor: i32,
        /// The order.
        order: ReadOrder,
    },
    /// The kernel is informed how a mapping will be read, from now on (madvise(2)).
    ExpectMapped {
        /// An address of it.
        address: u64,
        /// The expected order of its reads.
        order: ReadOrder,
    },
    /// A mapping is moved, or made longer or shorter; the call returns its new address (mremap(2)).
    Remap {
        /// First address.
        from: u64,
        /// Bytes; 0: it stays where it is, and a second one is made.
        from_len: u64,
        /// Bytes afterwards.
        to_len: u64,
    },
    /// The thread has a table of descriptors of its own from now on (unshare(2)), which nobody
    /// looks at.
    OwnDescriptors,
    /// Pages are put in place before they are used, which raises no fault (mlock(2), MAP_POPULATE,
    /// MADV_POPULATE_READ).
    Populate {
        /// An address of their mapping; `None`: the call returns it.
        address: Option<u64>,
    },
    /// Requests are handed to a ring (io_uring_enter(2)), whose files and offsets are not seen.
    Ring {
        /// Number of requests.
        submitted: u32,
    },
}

/// Subject of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdviceSubject {
    /// A descriptor.
    Descriptor(i32),
    /// An address of a mapping.
    Mapping(u64),
}

/// The order in which a descriptor is said to be read (posix_fadvise(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadOrder {
    /// Nothing is said, or POSIX_FADV_NORMAL.
    #[default]
    Normal,
    /// POSIX_FADV_RANDOM.
    Random,
    /// POSIX_FADV_SEQUENTIAL.
    Sequential,
}

/// A read or a write by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The descriptor.
    pub descriptor: i32,
    /// The position in the file.
    pub at: Position,
}

/// The position at which a call reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// At this offset.
    Offset(u64),
    /// At the end of the access before.
    Current,
    /// The offset is in memory of the program.
    Hidden,
}

/// The binding of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorBinding {
    /// A regular file.
    File {
        /// The file.
        file: WatchedFile,
        /// Size when it was looked at, in bytes.
        len: u64,
        /// Past the page cache (O_DIRECT).
        direct: bool,
    },
    /// A pipe, a socket, a directory, a device.
    NoFile,
    /// The descriptor was closed before anybody could look.
    Unknown,
}

/// A file, as a descriptor or a mapping shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFile {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// The inode.
    pub inode: u64,
    /// The path.
    pub path: String,
}

/// Pages of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// The inode.
    pub inode: u64,
    /// The first page.
    pub first: u64,
    /// Number of pages.
    pub count: u64,
}

/// Counts of an event, and of its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// The event.
    pub event: String,
    /// Number of occurrences.
    pub counted: u64,
    /// Records.
    pub recorded: u64,
    /// Records that found no room; `None`: this kernel does not count them by event.
    pub lost: Option<u64>,
}

/// A kind of observation that a watch may or may not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObservationKind {
    /// Page faults, waits of threads, mappings.
    Faults,
    /// Calls that read, write, open and close.
    Calls,
    /// Pages that come into the page cache, reads of devices, and faults that the kernel takes for
    /// the program.
    PageCache,
    /// Pages that are put in place around a fault.
    MappedAround,
    /// Waits in faults for pages that are on their way already, which the kernel counts as minor.
    MinorFaultWaits,
}

impl Missing {
    /// The missing observations of this kind, if they are.
    pub fn of(all: &[Self], kind: ObservationKind) -> Option<&Self> {
        all.iter().find(|missing| missing.kind == kind)
    }
}

/// A kind of observation that the watch does not have, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// The kind.
    pub kind: ObservationKind,
    /// The reason, and what would change it.
    pub reason: String,
}
