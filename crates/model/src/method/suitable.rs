//! Suitability of methods and options for workloads.

use super::{Access, LineRule, Method, Worker, access_methods};
use crate::cell::Conditions;
use crate::checksum::Consume;
use crate::sync::{Sync, SyncCall};
use crate::units::Bytes;
use crate::work::{Offer, OtherWorkers, Replay, Work, Workload, WorkloadKind, Writes};

/// Intervals of syncs are the same if they differ by at most this part: 2 %, as much as methods
/// that tie.
const SAME_INTERVAL: u64 = 50;

/// Of a block that O_DIRECT moves, about.
const BLOCK_BYTES: u64 = 4096;

/// Buffers of the reads in flight of a replay: they are memory that the program did not have.
const MOST_BUFFERS: Bytes = Bytes::mib(64);

impl Method {
    /// The words of a worker for a workload; none for a user's worker, whose words are unknown.
    pub fn words(worker: &Worker, workload: Workload) -> Vec<&'static str> {
        let suited = access_methods::of(worker).iter().filter(|way| way.taken(workload).is_some());
        suited.map(|way| way.word).collect()
    }

    /// Reason that the method does not suit a workload; `None` if it does, or if the method is
    /// unknown: its worker decides then.
    pub fn unsuited(&self, workload: Workload) -> Option<String> {
        let is_shipped =
            matches!(workload.facts().offer, Offer::Native { others: OtherWorkers::Shipped(_), .. });
        if is_shipped && matches!(self.worker(), Worker::Other(_)) {
            return Some(format!(
                "'{self}' is not a method for {workload}, which pagewise's own workers alone do"
            ));
        }
        if self.access() == Access::Unknown {
            return None;
        }
        let Some(taken) = self.way().and_then(|way| way.taken(workload)) else {
            let does = if workload.is_reading() { "reads" } else { "writes" };
            let words = Self::words(self.known_as(), workload);
            // Options that nobody typed say nothing here.
            let whole = self.to_string();
            let name = whole.split(':').next().unwrap_or(&whole);
            return Some(format!(
                "'{name}' is not a method for {workload}, which {does}: its methods are {}",
                words.join(", ")
            ));
        };
        let unknown =
            self.options().iter().find(|option| !taken.iter().any(|known| known.name() == option.name()))?;
        let known: Vec<String> = taken.iter().map(|option| option.usage()).collect();
        Some(format!(
            "'{}' in '{self}' does not apply to {workload}: there {} takes {}",
            unknown.name(),
            self.word(),
            if known.is_empty() { "no option".to_string() } else { known.join(", ") }
        ))
    }

    /// Reason that the method cannot do this work; `None` if it can, or if nothing is known of it.
    /// Plans, cells and the worker itself all ask here.
    pub fn refuses(&self, work: &Work, alignment: Alignment) -> Option<String> {
        self.unsuited(work.workload()).or_else(|| match work.workload().facts().kind {
            WorkloadKind::Reads => {
                if let Work::Replay(replay) = work {
                    return self.refuses_longest(replay);
                }
                let reads = work.reads().filter(|reads| reads.dependent)?;
                let reason = self.refuses_dependent(reads.read_bytes)?;
                Some(format!("{self} cannot do dependent reads: {reason}"))
            }
            WorkloadKind::Scans => {
                self.refuses_lines(work.consume()?).or_else(|| self.refuses_buffer(work, alignment))
            }
            WorkloadKind::Writes => {
                let writes = work.writes()?;
                // No buffer would help it.
                let never = self.access() == Access::Uring && writes.sync == Sync::Commit;
                let first = if never { self.refuses_sync(&writes) } else { None };
                first.or_else(|| self.refuses_buffer(work, alignment)).or_else(|| self.refuses_sync(&writes))
            }
        })
    }

    /// Reason that a cell of the method is not measured: it cannot do the work, syncs less or more
    /// often than others would, or has a depth that a rate leaves without use.
    pub fn excluded_from(&self, conditions: &Conditions, alignment: Alignment) -> Option<String> {
        let work = &conditions.work;
        let of_writes = || self.misses_interval(&work.writes()?);
        self.refuses(work, alignment).or_else(of_writes).or_else(|| self.refuses_rate(conditions))
    }

    /// Operations at a rate are done one at a time, so only reads of one operation are in flight.
    pub fn refuses_rate(&self, conditions: &Conditions) -> Option<String> {
        let is_single = conditions.schedule()?.reads_per_op == 1;
        if conditions.writes().is_some() && self.access() == Access::Uring {
            return Some(format!(
                "{self} at a rate: operations are due one at a time, so a ring has no use for them; write pwrite"
            ));
        }
        (is_single && self.depth() > 1).then(|| {
            format!(
                "{self} at a rate: operations are due one at a time, so a depth of {} has no use for single reads; write depth=1, or --reads-per-op 2 or more",
                self.depth()
            )
        })
    }

    /// The call that syncs what this method writes, where none is named.
    pub fn usual_sync(&self) -> SyncCall {
        // A method of a user's own worker says by its name alone that it writes to a mapping.
        let is_named_mmap = || self.word().split(':').next() == Some(Access::Mmap.name());
        SyncCall::usual(self.access() == Access::Mmap || is_named_mmap())
    }

    /// Times of the syncs of what this method writes: after whole writes, as many as are nearest to
    /// the interval.
    pub fn sync_of(&self, writes: &Writes) -> Sync {
        match writes.sync_of_records() {
            Sync::Every(interval) => {
                let written = self.write_bytes(writes.record_bytes).0.max(1);
                let whole = interval.0.saturating_add(written / 2) / written;
                Sync::Every(Bytes(whole.max(1).saturating_mul(written)))
            }
            sync => sync,
        }
    }

    /// Reason that syncs would be more or less often than those of methods that write single
    /// records: no whole number of writes is near the interval, or more than an interval is under
    /// way at once.
    fn misses_interval(&self, writes: &Writes) -> Option<String> {
        let (Sync::Every(interval), Sync::Every(own)) = (writes.sync_of_records(), self.sync_of(writes))
        else {
            return None;
        };
        let written = self.write_bytes(writes.record_bytes);
        let under_way = Bytes(written.0.saturating_mul(u64::from(self.depth())));
        let most = interval.0.saturating_add(interval.0 / SAME_INTERVAL);
        if under_way.0 > most {
            return Some(format!(
                "{self} has {under_way} under way at once, and a sync is due every {interval}: write a smaller buffer or depth, \
                 or a longer interval"
            ));
        }
        (own.0.abs_diff(interval.0) > interval.0 / SAME_INTERVAL).then(|| {
            format!(
                "{self} writes {written} at a time and could sync every {own}, and a sync is due every {interval}: write a buffer \
                 that fits several times into the interval"
            )
        })
    }

    /// True if the method begins reads before the ones before them are done, which the work may not
    /// allow: what it reaches is a bound for methods that do not.
    pub fn is_bound(&self, work: &Work) -> bool {
        matches!(work, Work::Replay(_)) && self.depth() > 1
    }

    /// Buffers of the reads in flight of a replay; 0 of other work.
    pub fn replay_buffers(&self, work: &Work) -> Bytes {
        match work {
            Work::Replay(replay) => self.buffers_of(replay),
            _ => Bytes(0),
        }
    }

    /// Each read in flight of a ring, of which each thread has one, has a buffer for the longest
    /// one.
    fn buffers_of(&self, replay: &Replay) -> Bytes {
        let reads = if self.access() == Access::Uring { u64::from(self.depth()) } else { 0 };
        // Direct reads are widened to whole blocks at both ends.
        let longest = match self.is_direct() {
            true => replay.longest.0.next_multiple_of(BLOCK_BYTES).saturating_add(BLOCK_BYTES),
            false => replay.longest.0,
        };
        Bytes(longest.saturating_mul(reads).saturating_mul(u64::from(replay.trace_threads)))
    }

    fn refuses_longest(&self, replay: &Replay) -> Option<String> {
        let (buffers, longest) = (self.buffers_of(replay), replay.longest);
        let of_threads = match replay.trace_threads {
            1 => String::new(),
            threads => format!(" in {threads} threads"),
        };
        (buffers > MOST_BUFFERS).then(|| {
            format!("{self} needs {buffers} of buffers for reads of up to {longest}{of_threads}, and may have {MOST_BUFFERS}: write a smaller depth")
        })
    }

    fn refuses_lines(&self, consume: Consume) -> Option<String> {
        (self.line_rule() == LineRule::ReadLine && consume != Consume::Lines)
            .then(|| format!("{self} returns lines rather than bytes: use consume = lines"))
    }

    /// Reason against one-shot work, whose pieces are as large as the buffer.
    fn refuses_buffer(&self, work: &Work, alignment: Alignment) -> Option<String> {
        let Some(buffer) = self.buffer() else {
            let writes = work.writes().filter(|_| self.is_direct())?;
            return self.refuses_direct(&writes, alignment);
        };
        let in_flight = buffer.0.saturating_mul(u64::from(self.depth()));
        if in_flight > Self::MAX_BUFFER.0 {
            return Some(format!(
                "the buffers of {self} would take {}: write a smaller buffer or depth, at most {} in all",
                Bytes(in_flight),
                Self::MAX_BUFFER
            ));
        }
        if let Some(writes) = work.writes().filter(|writes| buffer < writes.record_bytes) {
            return Some(format!(
                "a record of {} does not fit into the buffer of {self}",
                writes.record_bytes
            ));
        }
        let uneven = |multiple: u64| !buffer.0.is_multiple_of(multiple.max(1));
        if self.is_direct() && uneven(alignment.direct_bytes) {
            return Some(format!(
                "the buffer of {self} is not a multiple of the {} that O_DIRECT requires here",
                Bytes(alignment.direct_bytes)
            ));
        }
        // The checksum of a pass must not depend on where pieces end.
        let (multiple, why) = match work.consume() {
            Some(Consume::Touch) => (alignment.page_bytes, "one word of each page is touched"),
            Some(Consume::Sum) => (8, "words of 8 bytes are added"),
            Some(Consume::Lines) | None => (1, "lines are counted"),
        };
        if uneven(multiple) {
            return Some(format!("the buffer of {self} is not a multiple of {}, and {why}", Bytes(multiple)));
        }
        (work.writes().is_some() && self.pretouch().is_some())
            .then(|| format!("in {self} both a buffer and a thread run ahead of the writer: leave one out"))
    }

    /// Reason against O_DIRECT without a buffer: it moves whole blocks.
    fn refuses_direct(&self, writes: &Writes, alignment: Alignment) -> Option<String> {
        let (size, multiple) = (writes.record_bytes, Bytes(alignment.direct_bytes.max(1)));
        if !writes.is_update() {
            let commits = writes.sync == Sync::Commit;
            if commits && !size.0.is_multiple_of(multiple.0) {
                return Some(format!(
                    "{self} commits whole blocks, and a record of {size} is not a multiple of the {multiple} that it requires here"
                ));
            }
            let usual = if commits { size } else { Bytes::kib(64) };
            return Some(format!(
                "{self} needs a buffer, because O_DIRECT moves whole blocks: write {self}+buffer={usual}"
            ));
        }
        (!size.0.is_multiple_of(multiple.0)).then(|| {
            format!("a block of {size} is not a multiple of the {multiple} that {self} requires here")
        })
    }

    /// Reason against the syncs of writes.
    fn refuses_sync(&self, writes: &Writes) -> Option<String> {
        if self.access() == Access::Unknown || writes.sync == Sync::None {
            return None;
        }
        if writes.sync == Sync::Commit
            && let Some(reason) = self.refuses_commit(writes.record_bytes)
        {
            return Some(format!("{self} does not commit records one by one: {reason}"));
        }
        let written = self.write_bytes(writes.record_bytes);
        let call = writes.sync_call?;
        let is_mapping = self.access() == Access::Mmap;
        if call == SyncCall::Msync && !is_mapping {
            return Some(format!("msync syncs a mapping, and {self} has none"));
        }
        if !call.is_write() {
            return None;
        }
        if is_mapping {
            return Some(format!("{call} is a property of write calls, and {self} makes none"));
        }
        match writes.sync_of_records() {
            Sync::End => {
                Some(format!("{call} syncs each write: write --sync every:SIZE or commit in place of end"))
            }
            Sync::Every(size) if size != written => Some(format!(
                "{call} syncs each write, and {self} writes {written} at a time: write --sync every:{written}"
            )),
            _ => None,
        }
    }

    /// Reason against records that each are on the device before the next one is written.
    fn refuses_commit(&self, record_bytes: Bytes) -> Option<String> {
        if self.access() == Access::Uring {
            return Some("nothing but one record would be in flight: pwrite does the same".to_string());
        }
        if self.pretouch().is_some() {
            return Some(
                "a thread that runs ahead has nothing to do while the writer waits for the device"
                    .to_string(),
            );
        }
        match self.buffer()? {
            _ if !self.is_direct() => Some("a commit leaves nothing in a buffer: leave it out".to_string()),
            buffer if buffer == record_bytes => None,
            _ => Some(format!(
                "O_DIRECT writes whole blocks, so a record is as long as the buffer: write buffer={record_bytes}"
            )),
        }
    }

    /// Bytes of a write: the records that fit into the buffer, or one.
    fn write_bytes(&self, record_bytes: Bytes) -> Bytes {
        match self.buffer() {
            None => record_bytes,
            Some(buffer) if self.is_direct() => buffer,
            Some(buffer) => Bytes(buffer.0 / record_bytes.0.max(1) * record_bytes.0),
        }
    }
}

/// Divisors of the sizes of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// With O_DIRECT, in bytes.
    pub direct_bytes: u64,
    /// If a word of each page is touched: a page, in bytes.
    pub page_bytes: u64,
}

impl Alignment {
    /// Of a machine that is not known: any size will do.
    pub const ANY: Self = Self { direct_bytes: 1, page_bytes: 1 };
}
