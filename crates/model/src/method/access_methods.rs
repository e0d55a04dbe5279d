//! The words of each worker for an access, with the options and workloads they accept: one entry
//! for each access method.

use std::sync::LazyLock;

use super::{Access, Method, MethodOption, Worker};
use crate::groups::distinct;
use crate::work::{Offer, OtherWorkers, Workload, WorkloadKind};

/// A word for an access.
#[derive(Debug)]
pub(crate) struct AccessMethod {
    /// The word in a method's text.
    pub(crate) word: &'static str,
    /// The kind of access that the kernel sees.
    pub(crate) access: Access,
    /// Effect in a worker's own terms; empty for the native one.
    pub(crate) meaning: String,
    /// Options added unless one of the same name is written.
    pub(crate) defaults: Vec<MethodOption>,
    /// One of these must be written, unless empty.
    pub(crate) one_of: Vec<MethodOption>,
    /// Accepted options in each workload, in the order of [`COLUMNS`]; `None`: not for this
    /// workload.
    taken: [Option<Vec<MethodOption>>; COLUMNS.len()],
    /// Accepted options of the native worker in workloads that have no column for it.
    native: Vec<(Workload, Vec<MethodOption>)>,
}

/// Workloads in the order of the workers' tables.
const COLUMNS: [&str; 5] = ["reads", "scan", "append", "fill", "update"];

/// The word of the only method with its own definition of a line: see [`super::LineRule`].
pub(super) const BUFFERED_READER: &str = "buffered-reader";

impl AccessMethod {
    /// Accepted options in a workload; `None`: not for this workload.
    pub(crate) fn taken(&self, workload: Workload) -> Option<&[MethodOption]> {
        match workload.facts().offer {
            Offer::Column(column) => self.taken[column].as_deref(),
            Offer::Native { others, .. } => {
                let native = self.native.iter().find(|(of, _)| *of == workload);
                match (native, others) {
                    (Some((_, options)), _) => Some(options),
                    (None, OtherWorkers::Shipped(column)) => self.taken[column].as_deref(),
                    (None, OtherWorkers::OfUsers) => None,
                }
            }
        }
    }

    /// Accepted options in any workload.
    pub(crate) fn options(&self) -> Vec<MethodOption> {
        distinct(self.taken.iter().flatten().flatten().copied())
    }

    /// A native method for these kinds of workloads, with the options whose entries list its
    /// access.
    fn native(access: Access, kinds: &[WorkloadKind], defaults: &[MethodOption]) -> Self {
        let options = |kind: WorkloadKind| -> Vec<MethodOption> {
            let entries = MethodOption::TABLE.iter().filter(|entry| entry.accesses(kind).contains(&access));
            entries.map(|entry| entry.option).collect()
        };
        let column = |kind: WorkloadKind| kinds.contains(&kind).then(|| options(kind));
        let writes = column(WorkloadKind::Writes);
        let (reads, scans) = (column(WorkloadKind::Reads), column(WorkloadKind::Scans));
        let taken = [reads, scans, writes.clone(), writes, None];
        let of_native = |workload: &Workload| match workload.facts().offer {
            Offer::Native { accesses, without, .. } if accesses.contains(&access.name()) => {
                let mut options = options(workload.facts().kind);
                options.retain(|option| !without.contains(&option.name()));
                Some((*workload, options))
            }
            _ => None,
        };
        Self {
            native: Workload::ALL.iter().filter_map(of_native).collect(),
            word: access.name(),
            access,
            meaning: String::new(),
            defaults: defaults.to_vec(),
            one_of: Vec::new(),
            taken,
        }
    }

    /// Parse a line of a worker's table.
    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let (word, access) = (fields.next()?, fields.next()?);
        let known = [Access::Mmap, Access::Pread, Access::Read, Access::Pwrite, Access::Write];
        let access = *known.iter().find(|known| known.name() == access)?;
        let mut way = Self {
            word,
            access,
            meaning: String::new(),
            defaults: Vec::new(),
            one_of: Vec::new(),
            taken: Default::default(),
            native: Vec::new(),
        };
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
            if let Some(choices) = field.split(',').find(|some| some.contains('|')) {
                way.one_of = choices.split('|').map(option_of).collect::<Option<_>>()?;
            }
            *column = Some(options);
        }
        way.meaning = fields.collect::<Vec<_>>().join(" ");
        (!way.meaning.is_empty()).then_some(way)
    }
}

/// Parse an option with its value.
fn option_of(written: &str) -> Option<MethodOption> {
    let (name, value) = match written.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (written, None),
    };
    let mut named = MethodOption::TABLE.iter().filter(|entry| entry.word == name);
    named.find_map(|entry| entry.option.with_value(value).ok())
}

/// The table in a worker's source: the lines from its heading to the end of the enclosing text.
///
/// # Panics
/// If there is none or a line is wrong. That is a defect of the shipped source, which a test finds.
fn table(source: &'static str) -> Vec<AccessMethod> {
    let is_heading =
        |line: &&str| line.split_whitespace().eq(["word", "access"].into_iter().chain(COLUMNS).chain(["by"]));
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

/// The words of a worker; none for a user's worker, whose words are unknown. Those of the other
/// shipped workers are read from the table in the worker itself.
pub(super) fn of(worker: &Worker) -> &'static [AccessMethod] {
    static NATIVE: LazyLock<Vec<AccessMethod>> = LazyLock::new(native);
    static JVM: LazyLock<Vec<AccessMethod>> =
        LazyLock::new(|| table(include_str!("../../workers/jvm/pagewise/Offers.java")));
    static GO: LazyLock<Vec<AccessMethod>> =
        LazyLock::new(|| table(include_str!("../../workers/go/offers.go")));
    static PYTHON: LazyLock<Vec<AccessMethod>> =
        LazyLock::new(|| table(include_str!("../../workers/python/offers.py")));
    match worker {
        Worker::Native => &NATIVE,
        Worker::Jvm => &JVM,
        Worker::Go => &GO,
        Worker::Python => &PYTHON,
        Worker::Other(_) => &[],
    }
}

impl Method {
    /// The worker whose words it uses.
    pub(super) fn known_as(&self) -> &Worker {
        match &self.worker {
            Worker::Other(_) => &Worker::Native,
            worker => worker,
        }
    }

    /// The entry of its word; `None` if it is unknown. A word of a user's worker has the same
    /// meaning as in pagewise's own.
    pub(super) fn way(&self) -> Option<&'static AccessMethod> {
        // Users cannot name the memory ceiling.
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
