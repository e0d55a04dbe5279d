//! The words that each worker has for an access, what they take, and for which work: one entry a way.

use super::options::Kind;
use super::{Access, Method, MethodOption, Worker};
use crate::work::Workload;
use MethodOption::{
    Buffer, Depth, Direct, DirectBuffer, HeapBuffer, InPlace, Prefetch, Random, Sequential, WillNeed,
};

/// A word for an access.
#[derive(Debug)]
pub(crate) struct Way {
    /// The word in a method's text.
    pub(crate) word: &'static str,
    /// How its bytes move.
    pub(crate) access: Access,
    /// Options that are added where none of the same name is written.
    pub(crate) defaults: &'static [MethodOption],
    /// One of these must be written, where there are any.
    pub(crate) one_of: &'static [MethodOption],
    /// What it takes in `random-read` and `sequential-read`; `None`: it is not for them.
    reading: Taken,
    /// The same in `scan`.
    scanning: Taken,
    /// The same in `append` and `fill`.
    writing: Taken,
    /// Whether it appends only.
    appends_only: bool,
}

/// The options of a way, in a kind of workload that it is for.
type Taken = Option<Options>;

#[derive(Clone, Copy, Debug)]
enum Options {
    /// Those whose entries name the access.
    Registered,
    /// These.
    These(&'static [MethodOption]),
}

impl Options {
    fn of(self, access: Access, kind: Kind) -> Vec<MethodOption> {
        match self {
            Options::These(options) => options.to_vec(),
            Options::Registered => {
                let entries =
                    MethodOption::TABLE.iter().filter(|entry| entry.accesses(kind).contains(&access));
                entries.map(|entry| entry.option).collect()
            }
        }
    }
}

const DEPTH: MethodOption = Depth(Method::DEFAULT_DEPTH);
const BUFFER: MethodOption = Buffer(Method::DEFAULT_BUFFER);

/// The word of the one way that has a line of its own: see [`super::LineRule`].
pub(super) const BUFFERED_READER: &str = "buffered-reader";

impl Way {
    const fn new(word: &'static str, access: Access) -> Self {
        Self {
            word,
            access,
            defaults: &[],
            one_of: &[],
            reading: None,
            scanning: None,
            writing: None,
            appends_only: false,
        }
    }

    const fn reads(self) -> Self {
        Self { reading: Some(Options::Registered), ..self }
    }

    const fn scans(self) -> Self {
        Self { scanning: Some(Options::Registered), ..self }
    }

    const fn writes(self) -> Self {
        Self { writing: Some(Options::Registered), ..self }
    }

    const fn reading(self, options: &'static [MethodOption]) -> Self {
        Self { reading: Some(Options::These(options)), ..self }
    }

    const fn scanning(self, options: &'static [MethodOption]) -> Self {
        Self { scanning: Some(Options::These(options)), ..self }
    }

    const fn writing(self, options: &'static [MethodOption]) -> Self {
        Self { writing: Some(Options::These(options)), ..self }
    }

    const fn appending(self, options: &'static [MethodOption]) -> Self {
        Self { appends_only: true, ..self.writing(options) }
    }

    const fn by_default(self, defaults: &'static [MethodOption]) -> Self {
        Self { defaults, ..self }
    }

    const fn one_of(self, one_of: &'static [MethodOption]) -> Self {
        Self { one_of, ..self }
    }

    /// What it takes in a workload; `None`: it is not for it.
    pub(crate) fn taken(&self, workload: Workload) -> Option<Vec<MethodOption>> {
        let (taken, kind) = match workload {
            Workload::RandomRead | Workload::SequentialRead => (self.reading, Kind::Reads),
            Workload::Scan => (self.scanning, Kind::Scans),
            Workload::Append => (self.writing, Kind::Writes),
            Workload::Fill => (self.writing.filter(|_| !self.appends_only), Kind::Writes),
        };
        taken.map(|options| options.of(self.access, kind))
    }

    /// What it takes in any.
    pub(crate) fn options(&self) -> Vec<MethodOption> {
        let mut options = Vec::new();
        for taken in Workload::ALL.iter().filter_map(|workload| self.taken(*workload)) {
            let new = taken.into_iter().filter(|option| !options.contains(option)).collect::<Vec<_>>();
            options.extend(new);
        }
        options
    }
}

const NATIVE: &[Way] = &[
    Way::new("mmap", Access::Mmap).reads().scans().writes(),
    Way::new("pread", Access::Pread).reads().scans(),
    Way::new("read", Access::Read).scans().by_default(&[BUFFER]),
    Way::new("pwrite", Access::Pwrite).writes(),
    Way::new("write", Access::Write).writes(),
    Way::new("uring", Access::Uring).reads().scans().writes().by_default(&[DEPTH]),
];

/// Users cannot name the ceiling of memory.
const ANONYMOUS_WAY: Way = Way::new("anonymous", Access::Anonymous).reads().scans().writes();

const JVM: &[Way] = &[
    Way::new("mmap", Access::Mmap)
        .reading(&[Random, Sequential, WillNeed, Prefetch, InPlace])
        .scanning(&[Random, Sequential, WillNeed, InPlace])
        .writing(&[BUFFER]),
    Way::new("mapped-byte-buffer", Access::Mmap).scanning(&[]),
    Way::new("pread", Access::Pread).reading(&[Direct]),
    Way::new("filechannel", Access::Pread)
        .reading(&[DirectBuffer, HeapBuffer])
        .one_of(&[DirectBuffer, HeapBuffer]),
    Way::new(BUFFERED_READER, Access::Read).scanning(&[]),
];

const GO: &[Way] = &[
    Way::new("mmap", Access::Mmap).reading(&[Random]).scanning(&[]).writing(&[BUFFER]),
    Way::new("pread", Access::Pread).reading(&[]).scanning(&[]),
    // Written, it is a stream of writes: see `Cell::access`.
    Way::new("bufio", Access::Read).scanning(&[BUFFER]).appending(&[BUFFER]).by_default(&[BUFFER]),
];

const PYTHON: &[Way] = &[
    Way::new("mmap", Access::Mmap).reading(&[Random]).scanning(&[]),
    Way::new("pread", Access::Pread).reading(&[]).scanning(&[]),
    Way::new("readinto", Access::Read).reading(&[]).scanning(&[]),
    Way::new("numpy-memmap", Access::Mmap).reading(&[]).scanning(&[]),
];

/// The words of a worker; none of one that is the user's own, which are not known.
pub(super) const fn of(worker: &Worker) -> &'static [Way] {
    match worker {
        Worker::Native => NATIVE,
        Worker::Jvm => JVM,
        Worker::Go => GO,
        Worker::Python => PYTHON,
        Worker::Other(_) => &[],
    }
}

impl Method {
    /// The worker whose words it has.
    pub(super) fn known_as(&self) -> &Worker {
        match &self.worker {
            Worker::Other(_) => &Worker::Native,
            worker => worker,
        }
    }

    /// The entry of its word; `None` where nothing is known of it. A word of the user's own worker means what it means to
    /// pagewise's.
    pub(super) fn way(&self) -> Option<&'static Way> {
        static ANONYMOUS: Way = ANONYMOUS_WAY;
        let ways = match (&self.worker, self.access) {
            (_, Access::Anonymous) => return Some(&ANONYMOUS),
            (_, Access::Unknown) => return None,
            _ => of(self.known_as()),
        };
        ways.iter().find(|way| way.word == self.word)
    }
}
