//! Suitability of methods and options for workloads.

use super::{Access, LineRule, Method, Worker, access_methods};
use crate::checksum::Consume;
use crate::units::Bytes;
use crate::work::{Work, Workload};

impl Method {
    /// The words of a worker for a workload; none for a user's worker, whose words are unknown.
    pub fn words(worker: &Worker, workload: Workload) -> Vec<&'static str> {
        let suited = access_methods::of(worker).iter().filter(|way| way.taken(workload).is_some());
        suited.map(|way| way.word).collect()
    }

    /// Reason that the method does not suit a workload; `None` if it does, or if the method is unknown: its worker
    /// decides then.
    pub fn unsuited(&self, workload: Workload) -> Option<String> {
        if self.access() == Access::Unknown {
            return None;
        }
        let Some(taken) = self.way().and_then(|way| way.taken(workload)) else {
            let does = if workload.is_reading() { "reads" } else { "writes" };
            let words = Self::words(self.known_as(), workload);
            return Some(match words.is_empty() {
                true => {
                    format!("'{self}' is no method for {workload}, which {does}; {} has none", self.worker())
                }
                false => format!(
                    "'{self}' is no method for {workload}, which {does}; its methods are {}",
                    words.join(", ")
                ),
            });
        };
        let unknown =
            self.options().iter().find(|option| !taken.iter().any(|known| known.name() == option.name()))?;
        let known: Vec<String> = taken.iter().map(|option| option.usage()).collect();
        Some(format!(
            "'{}' in '{self}' is not for {workload}; there {} takes {}",
            unknown.name(),
            self.word(),
            if known.is_empty() { "no option".to_string() } else { known.join(", ") }
        ))
    }

    /// Reason that the method cannot do this work, though it suits the workload; `None` if it can. O_DIRECT requires
    /// multiples of `direct_alignment`.
    pub fn refuses(&self, work: &Work, direct_alignment: u64) -> Option<String> {
        if let Some(reads) = work.reads() {
            let reason = self.refuses_dependent(reads.read_bytes).filter(|_| reads.dependent)?;
            return Some(format!("{self} cannot do dependent reads: {reason}"));
        }
        if self.line_rule() == LineRule::ReadLine && work.consume() != Some(Consume::Lines) {
            return Some(format!("{self} hands over lines and not bytes; it is for consume = lines"));
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
