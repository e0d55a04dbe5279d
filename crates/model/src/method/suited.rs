//! Which methods and options make sense for which workload.

use super::{
    Access, Depth, Direct, DontCache, Fixed, HugePage, InPlace, Lock, Method, MethodOption, Populate,
    PopulateRead, PopulateWrite, Prealloc, Prefetch, Random, Sequential, Touch, WillNeed,
};
use crate::units::Bytes;
use crate::work::{Work, Workload};

const DEPTH: MethodOption = Depth(Method::DEFAULT_DEPTH);
const BUFFER: MethodOption = super::BUFFER;
const PRETOUCH: MethodOption = super::PRETOUCH;

type Accepted = &'static [(Access, &'static [MethodOption])];

/// `anonymous` is the ceiling of memory; users cannot name it.
const READING: Accepted = &[
    (Access::Mmap, &[Random, Sequential, WillNeed, Populate, PopulateRead, HugePage, Prefetch, InPlace]),
    (Access::Pread, &[Random, Sequential, WillNeed, DontCache, Direct]),
    (Access::Uring, &[DEPTH, Direct, Fixed]),
    (Access::Anonymous, &[]),
];

const SCANNING: Accepted = &[
    (Access::Mmap, &[Random, Sequential, WillNeed, Populate, PopulateRead, HugePage, InPlace, BUFFER]),
    (Access::Read, &[Random, Sequential, WillNeed, Direct, BUFFER]),
    (Access::Pread, &[Random, Sequential, WillNeed, DontCache, Direct, BUFFER]),
    (Access::Uring, &[DEPTH, Direct, Fixed, BUFFER]),
    (Access::Anonymous, &[]),
];

const WRITING: Accepted = &[
    (
        Access::Mmap,
        &[
            Random,
            Sequential,
            WillNeed,
            Prealloc,
            Populate,
            PopulateWrite,
            HugePage,
            Touch,
            PRETOUCH,
            Lock,
            BUFFER,
        ],
    ),
    (Access::Pwrite, &[BUFFER, Direct, Prealloc]),
    (Access::Write, &[BUFFER, Direct, Prealloc]),
    (Access::Uring, &[DEPTH, BUFFER, Direct, Prealloc]),
    (Access::Anonymous, &[]),
];

const fn accepted(workload: Workload) -> Accepted {
    match workload {
        Workload::RandomRead | Workload::SequentialRead => READING,
        Workload::Scan => SCANNING,
        Workload::Append | Workload::Fill => WRITING,
    }
}

impl Method {
    /// Why the method makes no sense for a workload; `None` if it does.
    pub fn unsuited(&self, workload: Workload) -> Option<String> {
        let accesses = accepted(workload);
        let Some((_, options)) = accesses.iter().find(|(access, _)| *access == self.access()) else {
            let does = if workload.is_reading() { "reads" } else { "writes" };
            let names: Vec<&str> = accesses
                .iter()
                .filter(|(access, _)| *access != Access::Anonymous)
                .map(|(access, _)| access.name())
                .collect();
            return Some(format!(
                "'{self}' is no method for {workload}, which {does}; its methods are {}",
                names.join(", ")
            ));
        };
        let unknown = self
            .options()
            .iter()
            .find(|option| !options.iter().any(|known| known.name() == option.name()))?;
        let known: Vec<String> = options.iter().map(|option| option.usage()).collect();
        Some(format!(
            "'{}' in '{self}' is not for {workload}; there {} takes {}",
            unknown.name(),
            self.access().name(),
            known.join(", ")
        ))
    }

    /// Why the method cannot do this work, though it suits the workload; `None` if it can. O_DIRECT demands multiples of
    /// `direct_alignment`.
    pub fn refuses(&self, work: &Work, direct_alignment: u64) -> Option<String> {
        if let Some(reads) = work.reads() {
            let reason = self.refuses_dependent(reads.read_bytes).filter(|_| reads.dependent)?;
            return Some(format!("{self} cannot do dependent reads: {reason}"));
        }
        let in_flight = self.buffer().map_or(0, |buffer| buffer.0.saturating_mul(u64::from(self.depth())));
        if in_flight > Self::MAX_BUFFER.0 {
            return Some(format!(
                "the buffers of {self} would take {}; write a smaller buffer or depth, {} in all",
                Bytes(in_flight),
                Self::MAX_BUFFER
            ));
        }
        let aligned = |size: Bytes| size.0.is_multiple_of(direct_alignment.max(1));
        match (self.buffer(), work.writes()) {
            (Some(buffer), Some(writes)) if buffer < writes.record_bytes => {
                Some(format!("a record of {} does not fit into the buffer of {self}", writes.record_bytes))
            }
            (Some(buffer), _) if self.is_direct() && !aligned(buffer) => Some(format!(
                "the buffer of {self} is no multiple of the {} that O_DIRECT needs here",
                Bytes(direct_alignment)
            )),
            (None, Some(_)) if self.is_direct() => Some(format!(
                "{self} needs a buffer, because O_DIRECT moves whole blocks; write {self}+buffer=64KiB"
            )),
            (Some(_), Some(_)) if self.pretouch().is_some() => {
                Some(format!("in {self} both a buffer and a thread run ahead of the writer; leave one out"))
            }
            _ => None,
        }
    }
}
