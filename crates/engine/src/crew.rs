//! The threads of a job: one for each reader, alive from `open` to `close`, so that the supervisor finds the
//! same threads before and after the measured region.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;

use pagewise_model::protocol::{CallFailure, Go, Job, SampleReply};
use pagewise_sys::{FileMapping, SharedMemory};

use crate::reader::Reader;
use crate::sampling::{Limits, Part, ThreadSample, empty_latencies, sample};

enum Order {
    WarmPageTables,
    Sample(Go),
    Fetch { offsets: Vec<u64>, handover: Box<SharedMemory> },
}

enum Answer {
    Warmed,
    Sampled(Box<ThreadSample>),
    Fetched(Box<SharedMemory>),
}

/// What all threads of a job share.
struct Common {
    table: FileMapping,
    threads: usize,
    reads_per_op: usize,
    read_bytes: usize,
    max_operations: u64,
    max_device_bytes: u64,
    barrier: Barrier,
    timed_phase: AtomicBool,
}

impl Common {
    fn limits(&self, go: &Go) -> Limits {
        Limits {
            sample_ns: go.sample_ns,
            latency_ns: go.latency_ns,
            max_operations: self.max_operations,
            max_device_bytes: self.max_device_bytes,
        }
    }

    fn part(&self, thread: usize) -> Part<'_> {
        let table = self.table.words();
        let operations = table.len() / self.reads_per_op / self.threads;
        let reads = operations * self.reads_per_op;
        Part { offsets: &table[thread * reads..(thread + 1) * reads], reads_per_op: self.reads_per_op }
    }
}

struct Member {
    orders: Sender<Order>,
    answers: Receiver<Result<Answer, CallFailure>>,
    thread: JoinHandle<()>,
}

/// Threads that wait for orders.
pub struct Crew {
    members: Vec<Member>,
    common: Arc<Common>,
}

impl Crew {
    /// Starts a thread for each reader.
    pub fn start(readers: Vec<Box<dyn Reader>>, table: FileMapping, job: &Job) -> Self {
        let common = Arc::new(Common {
            table,
            threads: readers.len(),
            reads_per_op: job.reads_per_op as usize,
            read_bytes: job.read_bytes as usize,
            max_operations: job.max_thread_operations,
            max_device_bytes: job.max_device_bytes,
            barrier: Barrier::new(readers.len()),
            timed_phase: AtomicBool::new(false),
        });
        let members = readers
            .into_iter()
            .enumerate()
            .map(|(index, reader)| {
                let (orders, received) = channel();
                let (answered, answers) = channel();
                let common = common.clone();
                let thread = std::thread::Builder::new()
                    .name(format!("reader-{index}"))
                    .spawn(move || serve(index, reader, &common, &received, &answered))
                    .expect("a machine that runs pagewise can start a thread");
                Member { orders, answers, thread }
            })
            .collect();
        Self { members, common }
    }

    /// Fills the page tables of every mapping.
    pub fn warm_page_tables(&self) -> Result<(), CallFailure> {
        self.order_all(|| Order::WarmPageTables).map(drop)
    }

    /// Has every thread do its part, and adds up what they did.
    pub fn sample(&self, go: &Go) -> Result<SampleReply, CallFailure> {
        self.common.timed_phase.store(false, Ordering::Relaxed);
        let answers = self.order_all(|| Order::Sample(go.clone()))?;
        let samples: Vec<ThreadSample> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                Answer::Sampled(sample) => Some(*sample),
                _ => None,
            })
            .collect();
        Ok(self.reply(samples))
    }

    fn reply(&self, mut samples: Vec<ThreadSample>) -> SampleReply {
        let operations = samples.iter().map(|sample| sample.operations).sum();
        let latency_operations: u64 = samples.iter().map(|sample| sample.latency_operations).sum();
        let timed = samples.iter().filter(|sample| sample.latency_operations > 0);
        let latency_elapsed_ns = extent(timed.map(|sample| sample.latency_span_ns));
        let (first, others) = samples.split_first_mut().expect("a job has a thread");
        for sample in others {
            first.latencies.add(&sample.latencies).expect("histograms of one shape");
        }
        let buckets = first.latencies.iter_recorded();
        let (latency_ns, latency_counts) =
            buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).unzip();
        let per_read = (self.common.reads_per_op * self.common.read_bytes) as u64;
        let checksum = samples.iter().fold(0u64, |total, sample| total.wrapping_add(sample.checksum));
        SampleReply {
            operations,
            elapsed_ns: extent(samples.iter().map(|sample| (sample.started_ns, sample.ended_ns))),
            latency_operations,
            latency_elapsed_ns,
            thread_operations: samples
                .iter()
                .map(|sample| sample.operations + sample.latency_operations)
                .collect(),
            bytes: (operations + latency_operations) * per_read,
            checksum: format!("{checksum:016x}"),
            latency_ns,
            latency_counts,
            stalls: samples.iter().map(|sample| sample.stalls).sum(),
            stall_longest_ns: samples.iter().map(|sample| sample.stall_longest_ns).max().unwrap_or(0),
        }
    }

    /// Has the first thread do single reads and put their bytes into the hand-over memory.
    pub fn fetch(&self, offsets: Vec<u64>, handover: SharedMemory) -> Result<SharedMemory, CallFailure> {
        let order = Order::Fetch { offsets, handover: Box::new(handover) };
        let member = &self.members[0];
        member.orders.send(order).expect("threads live until the crew ends");
        match member.answers.recv().expect("threads live until the crew ends")? {
            Answer::Fetched(handover) => Ok(*handover),
            _ => unreachable!("a thread answers what it was asked"),
        }
    }

    fn order_all(&self, order: impl Fn() -> Order) -> Result<Vec<Answer>, CallFailure> {
        for member in &self.members {
            member.orders.send(order()).expect("threads live until the crew ends");
        }
        let answers: Vec<_> = self
            .members
            .iter()
            .map(|member| member.answers.recv().expect("threads live until the crew ends"))
            .collect();
        answers.into_iter().collect()
    }

    /// Ends the threads, which unmap and close what they own.
    pub fn end(self) {
        for member in self.members {
            drop(member.orders);
            if let Err(panic) = member.thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// From the earliest start to the latest end.
fn extent(spans: impl Iterator<Item = (u64, u64)>) -> u64 {
    let (start, end) = spans.fold((u64::MAX, 0), |(start, end), (from, to)| (start.min(from), end.max(to)));
    end.saturating_sub(start)
}

fn serve(
    index: usize,
    mut reader: Box<dyn Reader>,
    common: &Common,
    orders: &Receiver<Order>,
    answers: &Sender<Result<Answer, CallFailure>>,
) {
    let rendezvous = || {
        common.barrier.wait();
    };
    let mut latencies = empty_latencies();
    while let Ok(order) = orders.recv() {
        let answer = match order {
            Order::WarmPageTables => {
                reader.warm_page_tables();
                Ok(Answer::Warmed)
            }
            Order::Sample(go) => sample(
                reader.as_mut(),
                common.part(index),
                go.first_operation,
                common.limits(&go),
                &rendezvous,
                &common.timed_phase,
                std::mem::replace(&mut latencies, empty_latencies()),
            )
            .map(|sample| Answer::Sampled(Box::new(sample))),
            Order::Fetch { offsets, handover } => {
                fetch(reader.as_mut(), &offsets, handover, common.read_bytes)
            }
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

fn fetch(
    reader: &mut dyn Reader,
    offsets: &[u64],
    mut handover: Box<SharedMemory>,
    read_bytes: usize,
) -> Result<Answer, CallFailure> {
    for (into, offset) in handover.bytes_mut().chunks_exact_mut(read_bytes).zip(offsets) {
        reader.fetch(*offset, into)?;
    }
    Ok(Answer::Fetched(handover))
}

#[cfg(test)]
mod tests;
