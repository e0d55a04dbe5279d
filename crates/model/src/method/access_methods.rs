//! The words that each worker has for an access, what they take, and for which work: one entry a way.

use std::sync::LazyLock;

use super::options::WorkloadKind;
use super::{Access, Method, MethodOption, Worker};
use crate::work::Workload;

/// A word for an access.
#[derive(Debug)]
pub(crate) struct AccessMethod {
    /// The word in a method's text.
    pub(crate) word: &'static str,
    /// How its bytes move.
    pub(crate) access: Access,
    /// Options that are added where none of the same name is written.
    pub(crate) defaults: Vec<MethodOption>,
    /// One of these must be written, where there are any.
    pub(crate) one_of: Vec<MethodOption>,
    /// What it takes in each workload, by the order of [`COLUMNS`]; `None`: it is not for it.
    taken: [Option<Vec<MethodOption>>; COLUMNS.len()],
}

/// Workloads as the tables of workers have them.
const COLUMNS: [&str; 4] = ["reads", "scan", "append", "fill"];

/// The word of the one way that has a line of its own: see [`super::LineRule`].
pub(super) const BUFFERED_READER: &str = "buffered-reader";

impl AccessMethod {
    /// What it takes in a workload; `None`: it is not for it.
    pub(crate) fn taken(&self, workload: Workload) -> Option<&[MethodOption]> {
        let column = match workload {
            Workload::RandomRead | Workload::SequentialRead => 0,
            Workload::Scan => 1,
            Workload::Append => 2,
            Workload::Fill => 3,
        };
        self.taken[column].as_deref()
    }

    /// What it takes in any.
    pub(crate) fn options(&self) -> Vec<MethodOption> {
        let mut options = Vec::new();
        for option in self.taken.iter().flatten().flatten() {
            if !options.contains(option) {
                options.push(*option);
            }
        }
        options
    }

    /// A native way for these kinds of workloads, with the options whose entries name its access.
    fn native(access: Access, kinds: &[WorkloadKind], defaults: &[MethodOption]) -> Self {
        let taken = [WorkloadKind::Reads, WorkloadKind::Scans, WorkloadKind::Writes, WorkloadKind::Writes]
            .map(|kind| {
                kinds.contains(&kind).then(|| {
                    let entries = MethodOption::TABLE.iter();
                    entries
                        .filter(|entry| entry.accesses(kind).contains(&access))
                        .map(|entry| entry.option)
                        .collect()
                })
            });
        Self { word: access.name(), access, defaults: defaults.to_vec(), one_of: Vec::new(), taken }
    }

    /// A line of a worker's table.
    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let (word, access) = (fields.next()?, fields.next()?);
        let access =
            *[Access::Mmap, Access::Pread, Access::Read].iter().find(|known| known.name() == access)?;
        let mut way =
            Self { word, access, defaults: Vec::new(), one_of: Vec::new(), taken: Default::default() };
        for column in &mut way.taken {
            let field = fields.next()?;
            if field == "-" {
                continue;
            }
            let mut options = Vec::new();
            for written in field.split([',', '|']).filter(|written| *written != "none") {
                let option = option_of(written.trim_end_matches('*'))?;
                options.push(option);
                if written.ends_with('*') && !way.defaults.contains(&option) {
                    way.defaults.push(option);
                }
            }
            if field.contains('|') {
                way.one_of = options.clone();
            }
            *column = Some(options);
        }
        fields.next().is_none().then_some(way)
    }
}

/// The option that is written so, with its value.
fn option_of(written: &str) -> Option<MethodOption> {
    let (name, value) = match written.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (written, None),
    };
    let mut named = MethodOption::TABLE.iter().filter(|entry| entry.word == name);
    named.find_map(|entry| entry.option.with_value(value).ok())
}

/// The table that a worker's source holds: what stands behind its heading, up to the end of the text in which it is.
///
/// # Panics
/// If there is none or a line is wrong, which is a defect of the shipped source and found by a test.
fn table(source: &'static str) -> Vec<AccessMethod> {
    let is_heading = |line: &&str| line.split_whitespace().eq(["word", "access"].into_iter().chain(COLUMNS));
    let is_end = |line: &str| line.is_empty() || line.starts_with(['`', '"']);
    let lines = source.lines().map(str::trim).skip_while(|line| !is_heading(line)).skip(1);
    let lines = lines.take_while(|line| !is_end(line));
    let ways: Vec<AccessMethod> = lines
        .map(|line| {
            AccessMethod::parse(line).unwrap_or_else(|| panic!("no line of a table of methods: {line}"))
        })
        .collect();
    assert!(!ways.is_empty(), "a worker's source has no table of methods");
    ways
}

fn native() -> Vec<AccessMethod> {
    use WorkloadKind::{Reads, Scans, Writes};
    let depth = [MethodOption::Depth(Method::DEFAULT_DEPTH)];
    let buffer = [MethodOption::Buffer(Method::DEFAULT_BUFFER)];
    vec![
        AccessMethod::native(Access::Mmap, &[Reads, Scans, Writes], &[]),
        AccessMethod::native(Access::Pread, &[Reads, Scans], &[]),
        AccessMethod::native(Access::Read, &[Scans], &buffer),
        AccessMethod::native(Access::Pwrite, &[Writes], &[]),
        AccessMethod::native(Access::Write, &[Writes], &[]),
        AccessMethod::native(Access::Uring, &[Reads, Scans, Writes], &depth),
    ]
}

/// The words of a worker; none of one that is the user's own, which are not known. Of the other shipped workers they are
/// those of the table in the worker itself.
pub(super) fn of(worker: &Worker) -> &'static [AccessMethod] {
    static NATIVE: LazyLock<Vec<AccessMethod>> = LazyLock::new(native);
    static JVM: LazyLock<Vec<AccessMethod>> =
        LazyLock::new(|| table(include_str!("../../../../workers/jvm/pagewise/Offers.java")));
    static GO: LazyLock<Vec<AccessMethod>> =
        LazyLock::new(|| table(include_str!("../../../../workers/go/offers.go")));
    static PYTHON: LazyLock<Vec<AccessMethod>> =
        LazyLock::new(|| table(include_str!("../../../../workers/python/worker.py")));
    match worker {
        Worker::Native => &NATIVE,
        Worker::Jvm => &JVM,
        Worker::Go => &GO,
        Worker::Python => &PYTHON,
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
    pub(super) fn way(&self) -> Option<&'static AccessMethod> {
        // Users cannot name the ceiling of memory.
        static ANONYMOUS: LazyLock<AccessMethod> = LazyLock::new(|| {
            AccessMethod::native(
                Access::Anonymous,
                &[WorkloadKind::Reads, WorkloadKind::Scans, WorkloadKind::Writes],
                &[],
            )
        });
        let ways = match (&self.worker, self.access) {
            (_, Access::Anonymous) => return Some(&ANONYMOUS),
            (_, Access::Unknown) => return None,
            _ => of(self.known_as()),
        };
        ways.iter().find(|way| way.word == self.word)
    }
}
