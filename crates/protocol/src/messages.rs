//! The conversation between supervisor and worker: one JSON object a line over stdin and stdout.
//!
//! ```text
//! worker                         supervisor
//! hello ───────────────────────>
//!       <─────────────────────── open (the job)
//! opened (set-up took …) ──────>
//! ready (warmed, threads wait) ─>
//!       <─────────────────────── idle        (only if heartbeats are requested)
//! idled ───────────────────────>
//!       <─────────────────────── go          (evidence is read just before, and the table is put into its memory)
//! sample ──────────────────────>             (and just after; `go` may come again, as when the
//!                                             workload warms the cache itself)
//!       <─────────────────────── verify      (single reads, outside the clock; never of scans and writes)
//! verified ────────────────────>
//!       <─────────────────────── close
//! closed (tear-down took …) ───>             (another `open` may follow; the end of stdin ends the worker)
//! ```
//!
//! `workers/PROTOCOL.md` describes it in full, for authors of workers.
//!
//! `failed` may replace any answer. Values are strings, integers and arrays of integers, so
//! that a worker in any language gets by with a small parser. A checksum is 16 hexadecimal digits,
//! since not every JSON library keeps 64 bits of an integer.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use pagewise_model::ring::SOURCE_PERIOD;
use pagewise_model::trace::TraceKey;
use pagewise_model::work::Update;
use pagewise_model::{
    Alignment, Append, Bytes, Conditions, Consume, Delays, Descriptor, Fill, Method, RateSchedule, Reads,
    Replay, Scan, ScheduledRate, Skew, Sync, SyncCall, Work, Workload,
};

use crate::{PhaseBounds, SamplingPolicy};

/// Version of the protocol. A worker that speaks another one is refused.
pub const PROTOCOL_VERSION: u32 = 1;

/// A message of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Request {
    /// Open, map, advise, start threads, warm up.
    Open(Box<Job>),
    /// Do nothing but send heartbeats.
    Idle {
        /// For this long.
        idle_ns: u64,
    },
    /// Perform the accesses.
    Go(Go),
    /// Do single reads and hand over their bytes.
    Verify(Verify),
    /// Unmap, end threads, close; then wait for another job.
    Close,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_not_set(flag: &u32) -> bool {
    *flag == 0
}

/// A message of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Reply {
    /// The first line.
    Hello(Hello),
    /// The file is open and set up.
    Opened {
        /// Duration of set-up: open, map, advise, populate.
        setup_ns: u64,
        /// Time of what is no cost of the method, besides: the ballast of `replay`.
        #[serde(default, skip_serializing_if = "is_zero")]
        ballast_ns: u64,
    },
    /// Everything that is to be warm is warm, and the threads wait for `go`.
    Ready {
        /// Time spent warming page tables; 0 if the job asked for none.
        warmup_ns: u64,
    },
    /// The idle phase is over; heartbeats were recorded.
    Idled(Heartbeats),
    /// The accesses are done.
    Sample(Box<SampleReply>),
    /// The bytes are in the hand-over file.
    Verified {
        /// Reads done.
        reads: u64,
    },
    /// Everything is released.
    Closed {
        /// Duration of tear-down: sync, unmap, close.
        teardown_ns: u64,
        /// The sync alone; 0 if there was none.
        #[serde(default)]
        sync_ns: u64,
    },
    /// A call failed; the worker ends.
    Failed(CallFailure),
}

/// The fields that are named after a workload.
fn by_workload<'de, D: Deserializer<'de>>(fields: D) -> Result<BTreeMap<Workload, String>, D::Error> {
    let all = BTreeMap::<String, serde_json::Value>::deserialize(fields)?;
    let known = all.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value)));
    known
        .map(|(workload, value)| Ok((workload, serde_json::from_value(value)?)))
        .collect::<Result<_, _>>()
        .map_err(|error: serde_json::Error| D::Error::custom(error))
}

/// The worker's introduction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`] of the worker.
    pub protocol: u32,
    /// `native`, `jvm`, …
    pub worker: String,
    /// Version of the worker.
    pub version: String,
    /// 1: its code gets faster as it runs, so it must warm up before a job that counts.
    #[serde(default)]
    pub worker_warmup: u32,
    /// Methods it offers for each workload, by the workload's name, separated by commas.
    #[serde(flatten, deserialize_with = "by_workload")]
    pub offers: BTreeMap<Workload, String>,
    /// Calls by which it can make bytes of `append` and `fill` durable, separated by commas,
    /// besides the usual one of a method ([`Method::usual_sync`]).
    #[serde(default)]
    pub sync_calls: String,
    /// Maximum threads of an append with `commit`; 0: `commit` is not offered.
    #[serde(default)]
    pub commit_threads: u32,
    /// Maximum threads of a replay, each with reads of its own; 0: 1.
    #[serde(default)]
    pub replay_threads: u32,
    /// Maximum files of a replay; 0: 1.
    #[serde(default, skip_serializing_if = "is_not_set")]
    pub replay_files: u32,
    /// 1: it does operations at a rate.
    #[serde(default)]
    pub rates: u32,
}

impl Hello {
    /// The methods it offers for `workload`.
    pub fn methods(&self, workload: Workload) -> Vec<&str> {
        let list = self.offers.get(&workload).map_or("", String::as_str);
        list.split(',').map(str::trim).filter(|method| !method.is_empty()).collect()
    }

    /// Reason that it does not offer a job of `method`, which must then not be sent to it.
    pub fn refuses(&self, job: &Job, method: &Method) -> Option<String> {
        self.refuses_sync(job, method)
            .or_else(|| self.refuses_threads(job))
            .or_else(|| self.refuses_files(job))
            .or_else(|| self.refuses_rate(job))
    }

    /// Reason that it does not offer the rate of a job.
    fn refuses_rate(&self, job: &Job) -> Option<String> {
        (job.rate > 0 && self.rates == 0)
            .then(|| format!("the worker '{}' does not do operations at a rate", self.worker))
    }

    /// Reason that it does not offer the threads of a replay.
    fn refuses_threads(&self, job: &Job) -> Option<String> {
        let most = self.replay_threads.max(1);
        (job.workload == Workload::Replay.name() && job.threads > most).then(|| {
            let threads = if most == 1 { "thread" } else { "threads" };
            format!(
                "the worker '{}' replays a trace by at most {most} {threads}, and not by {}",
                self.worker, job.threads
            )
        })
    }

    /// Reason that it does not offer the files of a replay.
    fn refuses_files(&self, job: &Job) -> Option<String> {
        let (files, most) = (job.file_bytes_each.len(), self.replay_files.max(1));
        (files > most as usize).then(|| {
            let files_of = if most == 1 { "file" } else { "files" };
            format!(
                "the worker '{}' replays the reads of at most {most} {files_of}, and not of {files}",
                self.worker
            )
        })
    }

    /// Reason that it does not offer the syncs of a job, which must then not be sent to it.
    fn refuses_sync(&self, job: &Job, method: &Method) -> Option<String> {
        let Self { worker, commit_threads, .. } = self;
        if job.sync == Sync::Commit.to_string() && job.threads > *commit_threads {
            return Some(match commit_threads {
                0 => format!("the worker '{worker}' does not offer sync=commit"),
                most => format!(
                    "{} threads: the worker '{worker}' commits records of at most {most} threads together",
                    job.threads
                ),
            });
        }
        let usual = method.usual_sync().name();
        let offered = || self.sync_calls.split(',').map(str::trim).chain([usual, ""]);
        (!offered().any(|call| call == job.sync_call)).then(|| {
            format!("the worker '{worker}' does not sync by {}: it offers {}", job.sync_call, {
                let calls: Vec<&str> = offered().filter(|call| !call.is_empty()).collect();
                calls.join(", ")
            })
        })
    }
}

/// The accesses to perform. A field that does not apply to a workload is 0 or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Text of the method, without the name of the worker.
    pub method: String,
    /// `random-read`, `sequential-read`, `scan`, `append`, `fill` or `replay`.
    pub workload: String,
    /// The file. Each byte of a file that is written is 0 or known to the supervisor; the file has
    /// its final size already.
    pub path: String,
    /// Size of the file.
    pub file_bytes: u64,
    /// Length of the part that is mapped, warmed and advised, from the start.
    pub span_bytes: u64,
    /// Threads that read.
    pub threads: u32,
    /// `shared` or `per-thread`.
    pub descriptor: String,
    /// The offset table: a file of little-endian 64-bit offsets. It holds zeros until `go`, and a
    /// different order with each `go`. To be mapped before `ready` and read from the mapping.
    pub table_path: String,
    /// Reads in the table. Thread t of n does part t of n equal parts, in order, and starts over at
    /// its end.
    pub table_reads: u64,
    /// Reads of a piece of the table ([`pagewise_model::pieces`]); 0: the part of a thread is one
    /// piece, or there is no table.
    #[serde(default)]
    pub piece_reads: u64,
    /// Size of one read.
    pub read_bytes: u64,
    /// Reads in one operation; of `update`, before its write.
    pub reads_per_op: u32,
    /// `touch`, `sum` or `lines`.
    pub consume: String,
    /// Distance between touched words.
    pub page_bytes: u64,
    /// 1: each read of an operation except the first is at its entry of the table XOR the first 8
    /// bytes, little-endian, of the data of the read before.
    pub dependent: u32,
    /// 1: `touch` also takes the last word of a read.
    pub touch_last: u32,
    /// O_DIRECT on this architecture.
    pub direct_flag: u32,
    /// Alignment of offset, length and memory that O_DIRECT requires. Reads that are not aligned
    /// are widened, and only the requested bytes are consumed.
    pub direct_alignment: u64,
    /// 1: page tables of the span are filled before `ready`.
    pub warm_page_tables: u32,
    /// Ends of the phases besides their times. Without one the table may be repeated.
    #[serde(flatten)]
    pub bounds: PhaseBounds,
    /// Size of a record of `append` or a block of `fill`: record i goes to
    /// `i mod (file_bytes / record_bytes) * record_bytes`, none straddles the end of the file.
    pub record_bytes: u64,
    /// Records to write, by one thread and in order.
    pub records: u64,
    /// `none`; `end`: during tear-down; `every:SIZE`: whenever this many more bytes have reached
    /// the file, and at the end, within the measured region; `commit`: each record before its
    /// thread writes the next one.
    pub sync: String,
    /// The call that syncs ([`SyncCall`]); empty if `sync` is `none`.
    #[serde(default)]
    pub sync_call: String,
    /// Source of the records: record i holds the `record_bytes` bytes from
    /// `i * record_bytes mod source_period` on. To be mapped or read before `ready`.
    pub source_path: String,
    /// Offsets in the source at which records begin; the file is a record longer.
    pub source_period: u64,
    /// Of `append`, `fill` and `scan`: seed of the gaps between operations with a measured latency.
    pub gap_seed: u64,
    /// Hand-over file of verified bytes: read i of a `verify` is at `i * read_bytes`.
    pub handover_path: String,
    /// Of `replay`: reads of each thread, which are consecutive entries of the table, those of the
    /// first thread first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_reads: Vec<u64>,
    /// Of a `replay` of several files, for pagewise's own worker alone: their descriptors, names in
    /// the directory `path`. The files lie in one span, into which offsets of the table point; no
    /// read crosses the end of its file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_descriptors: Vec<u64>,
    /// Of such a replay: offset of each file in the span, ascending, multiples of the page size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_starts: Vec<u64>,
    /// Of such a replay: size of each file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_bytes_each: Vec<u64>,
    /// Of `replay`: memory without a file to be held besides, all of it in place.
    #[serde(default)]
    pub ballast_bytes: u64,
    /// Of `replay`, for pagewise's own worker alone: 1 if behind the entries of the table are as
    /// many words, each the time in ns to be waited before the read of its entry.
    #[serde(default, skip_serializing_if = "is_not_set")]
    pub gaps: u32,
    /// Of `replay`, for pagewise's own worker alone: requests to read ahead of each thread, those
    /// of the first thread first, behind the entries and gaps of the table. Each is four words
    /// ([`READ_AHEAD_WORDS`](crate::READ_AHEAD_WORDS)): the entry before which it is made, the time
    /// in ns to be waited before it, offset and length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_read_ahead: Vec<u64>,
    /// Reads, records or updates per second at which operations are due, of all threads together;
    /// 0: each as soon as the one before it is done.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rate: u64,
    /// Interval of heartbeats; 0: none.
    pub heartbeat_ns: u64,
    /// The numbers by which the sample is taken.
    #[serde(flatten)]
    pub policy: SamplingPolicy,
}

impl Job {
    /// The job that follows from a method and the conditions alone. Paths, the table, bounds and
    /// alignments are for the caller to add.
    pub fn of(method: &Method, conditions: &Conditions, page_bytes: u64) -> Self {
        let mut job = Self {
            method: method.spec(),
            workload: conditions.workload().name().to_string(),
            file_bytes: conditions.file_bytes.0,
            span_bytes: conditions.span_bytes.0,
            threads: conditions.threads,
            descriptor: conditions.descriptor.name().to_string(),
            consume: conditions.consume().map_or("", Consume::name).to_string(),
            page_bytes,
            rate: conditions.rate.map_or(0, ScheduledRate::per_second),
            ..Self::default()
        };
        if let Some(reads) = conditions.reads() {
            job.read_bytes = reads.read_bytes.0;
            job.reads_per_op = reads.reads_per_op;
            job.dependent = u32::from(reads.dependent);
            job.touch_last = u32::from(reads.consumption(page_bytes).touch_last);
        }
        if let Work::Replay(replay) = &conditions.work {
            job.read_bytes = replay.longest.0;
            job.ballast_bytes = replay.ballast.0;
            job.gaps = u32::from(replay.gaps_ns.is_some());
            job.touch_last = u32::from(replay.consumption(page_bytes).touch_last);
        }
        if let (Some(writes), Some(ring)) = (conditions.writes(), conditions.ring()) {
            job.record_bytes = writes.record_bytes.0;
            job.reads_per_op = writes.reads_each;
            job.touch_last = u32::from(writes.reads_each > 0 && ring.consumption(page_bytes).touch_last);
            job.records = ring.records();
            job.sync = method.sync_of(&writes).to_string();
            if writes.sync != Sync::None {
                job.sync_call = writes.sync_call.unwrap_or_else(|| method.usual_sync()).to_string();
            }
            job.source_period = SOURCE_PERIOD;
        }
        job
    }
}

/// A job with its words understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Understood {
    /// Which accesses, and what is done with the bytes. A job says no more of where offsets are
    /// than the table does.
    pub work: Work,
    /// True if each thread has a descriptor and a mapping of its own.
    pub per_thread: bool,
}

impl Job {
    /// The moments at which operations are due; `None` without a rate.
    pub fn schedule(&self) -> Option<RateSchedule> {
        let rate = ScheduledRate::new(self.rate)?;
        // Reads between updates are a part of the update that is due.
        let reads_per_op = if self.record_bytes > 0 { 1 } else { self.reads_per_op.max(1) };
        Some(RateSchedule { rate, reads_per_op, threads: self.threads.max(1) })
    }

    /// Reads the words of a job: once, where it enters a process.
    pub fn understand(&self) -> Result<Understood, String> {
        let workload: Workload = self.workload.parse()?;
        let consume = || self.consume.parse::<Consume>();
        let reads = || {
            Ok::<_, String>(Reads {
                read_bytes: Bytes(self.read_bytes),
                reads_per_op: self.reads_per_op,
                align_bytes: Bytes(if self.touch_last == 1 { 1 } else { self.page_bytes }),
                skew: Skew::Uniform,
                dependent: self.dependent == 1,
                consume: consume()?,
            })
        };
        let (record_bytes, sync) = (Bytes(self.record_bytes), || self.sync.parse::<Sync>());
        let sync_call = || match (sync()?, &*self.sync_call) {
            (Sync::None, "") => Ok(None),
            (_, call) => call.parse::<SyncCall>().map(Some),
        };
        let slots = self.file_bytes.checked_div(self.record_bytes).unwrap_or(0);
        let passes = self.records.checked_div(slots).unwrap_or(0).try_into().unwrap_or(u32::MAX);
        let work = match workload {
            Workload::RandomRead => Work::RandomRead(reads()?),
            Workload::SequentialRead => Work::SequentialRead(reads()?),
            Workload::Scan => Work::Scan(Scan { consume: consume()? }),
            Workload::Replay => Work::Replay(Replay {
                trace: TraceKey::default(),
                file: 0,
                files: self.file_descriptors.len().max(1).try_into().unwrap_or(u32::MAX),
                reads: self.table_reads,
                read_bytes: Bytes(0),
                longest: Bytes(self.read_bytes),
                trace_threads: self.threads,
                ballast: Bytes(self.ballast_bytes),
                consume: consume()?,
                read_ahead: self.read_ahead(),
                // The table has each of them.
                gaps_ns: (self.gaps == 1).then_some(0),
            }),
            Workload::Append => {
                Work::Append(Append { record_bytes, passes, sync: sync()?, sync_call: sync_call()? })
            }
            Workload::Update => Work::Update(Update {
                block_bytes: record_bytes,
                updates: u32::try_from(self.records).unwrap_or(u32::MAX),
                reads_per_update: self.reads_per_op,
                sync: sync()?,
                sync_call: sync_call()?,
            }),
            Workload::Fill => {
                Work::Fill(Fill { block_bytes: record_bytes, sync: sync()?, sync_call: sync_call()? })
            }
        };
        let per_thread = self.descriptor.parse::<Descriptor>()? == Descriptor::PerThread;
        Ok(Understood { work, per_thread })
    }

    /// The divisors of buffers that it names.
    pub fn alignment(&self) -> Alignment {
        Alignment { direct_bytes: self.direct_alignment, page_bytes: self.page_bytes }
    }
}

/// Start of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Go {
    /// Each thread begins at this operation of its part of the table.
    pub first_operation: u64,
    /// Duration of the throughput phase; its maximum duration if the work is fixed.
    pub sample_ns: u64,
    /// Maximum duration of a latency phase; 0: none.
    pub latency_ns: u64,
    /// Position in a page of the word that `touch` takes; 0 for a scan.
    #[serde(default)]
    pub touch_at: u64,
}

/// Reads to hand over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// Offsets of the reads.
    pub offsets: Vec<u64>,
}

/// The measurement of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleReply {
    /// Operations of the throughput phase, all threads.
    pub operations: u64,
    /// Time from the first thread's start to the last thread's end.
    pub elapsed_ns: u64,
    /// Operations of the latency phase; 0 if latency was taken in the throughput phase.
    pub latency_operations: u64,
    /// Duration of that phase.
    pub latency_elapsed_ns: u64,
    /// Operations of both phases, by thread.
    pub thread_operations: Vec<u64>,
    /// Bytes requested and received in both phases, or written to the file.
    pub bytes: u64,
    /// Sum of the checksums of all reads of both phases, each times the weight of its index in the
    /// table ([`pagewise_model::checksum::weight`]), 16 hexadecimal digits; 0 for writes.
    pub checksum: String,
    /// Latencies of operations: upper ends of histogram buckets, ascending; see
    /// [`crate::claims::BUCKET_SLACK`].
    pub latency_ns: Vec<u64>,
    /// Operations in each bucket.
    pub latency_counts: Vec<u64>,
    /// Durations of the syncs within the measured region, as in `latency_ns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sync_duration_ns: Vec<u64>,
    /// Syncs in each bucket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sync_duration_counts: Vec<u64>,
    /// At a rate: operations of all threads that were due. The latencies are those of all of them,
    /// from the moment at which each was due.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub due_operations: u64,
    /// At a rate: operations that began over 100 us late although their thread only waited for
    /// their moment.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_starts: u64,
    /// At a rate: 1 if the bytes that storage may read ended the sample.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_short: u64,
    /// Of a replay with gaps: time that was waited in them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gap_wait_ns: u64,
    /// Batches of the throughput phase that took over 1 ms longer than expected.
    pub stalls: u64,
    /// The longest of them.
    pub stall_longest_ns: u64,
    /// Heartbeats within the sample.
    #[serde(flatten)]
    pub beats: Heartbeats,
}

/// Delays of heartbeats: a histogram for each kind, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeats {
    /// Kinds of the heartbeats, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub heartbeat_kinds: String,
    /// Buckets of each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeat_buckets: Vec<u64>,
    /// Upper ends of buckets, ascending within a kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeat_ns: Vec<u64>,
    /// Beats in each bucket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeat_counts: Vec<u64>,
}

impl Heartbeats {
    /// The histogram of each kind, or a description of the fault in them.
    pub fn by_kind(&self) -> Result<Vec<(String, Delays)>, String> {
        let kinds: Vec<&str> = self.heartbeat_kinds.split(',').filter(|kind| !kind.is_empty()).collect();
        let buckets =
            self.heartbeat_buckets.iter().fold(0u64, |total, buckets| total.saturating_add(*buckets));
        let (ns, counts) = (&self.heartbeat_ns, &self.heartbeat_counts);
        if kinds.len() != self.heartbeat_buckets.len()
            || ns.len() as u64 != buckets
            || counts.len() as u64 != buckets
        {
            return Err(format!(
                "heartbeats of {} kinds have {} numbers of buckets, {buckets} buckets in all, {} ends and {} counts",
                kinds.len(),
                self.heartbeat_buckets.len(),
                ns.len(),
                counts.len()
            ));
        }
        let mut from = 0;
        let of_kind = |(kind, buckets): (&str, &u64)| {
            let range = from..from + *buckets as usize;
            from = range.end;
            (kind.to_string(), Delays { ns: ns[range.clone()].to_vec(), counts: counts[range].to_vec() })
        };
        Ok(kinds.into_iter().zip(&self.heartbeat_buckets).map(of_kind).collect())
    }
}

/// A failed call of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFailure {
    /// The system call, as in the manual.
    pub call: String,
    /// Errno of the call; 0 where there is none, as for a short read.
    pub errno: i32,
    /// The file or object it acted on.
    pub path: String,
    /// The offset in it.
    pub offset: u64,
    /// One sentence.
    pub detail: String,
    /// 1: this machine, kernel or filesystem does not support it; 0: it should have worked.
    pub unavailable: u32,
}

#[cfg(test)]
mod tests;
