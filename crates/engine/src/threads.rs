//! The threads of a job: one for each part of the work, alive from `open` to `close`, so that the
//! supervisor finds the same threads before and after the measured region.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use pagewise_protocol::{CallFailure, Go, Heartbeats, SampleReply};
use pagewise_sys::SharedMemory;

use crate::operations::Latencies;
use crate::sampling::{Bounds, Phases, ThreadSample, ThreadWork, Turn, empty_latencies};

enum Order {
    WarmPageTables,
    Sample(Go),
    Fetch { offsets: Vec<u64>, read_bytes: usize, handover: Box<SharedMemory> },
    Sync,
}

enum Answer {
    Warmed,
    Sampled(Box<ThreadSample>),
    Fetched(Box<SharedMemory>),
    Synced,
}

/// State shared by all threads of a job.
struct Common {
    bounds: Bounds,
    phases: Phases,
}

struct Member {
    orders: Sender<Order>,
    answers: Receiver<Result<Answer, CallFailure>>,
    thread: JoinHandle<()>,
}

/// Threads that wait for orders.
pub struct JobThreads {
    members: Vec<Member>,
    common: Arc<Common>,
}

impl JobThreads {
    /// Start a thread for each part of the work.
    pub fn start(work: Vec<Box<dyn ThreadWork>>, bounds: Bounds) -> Self {
        let common = Arc::new(Common { bounds, phases: Phases::of(work.len()) });
        let members = work
            .into_iter()
            .enumerate()
            .map(|(index, work)| {
                let (orders, received) = channel();
                let (answered, answers) = channel();
                let common = common.clone();
                let thread = std::thread::Builder::new()
                    .name(format!("worker-{index}"))
                    .spawn(move || serve((index as u32, work), &common, &received, &answered))
                    .expect("a machine that runs pagewise can start a thread");
                Member { orders, answers, thread }
            })
            .collect();
        Self { members, common }
    }

    /// Fill the page tables of every mapping.
    pub fn warm_page_tables(&self) -> Result<(), CallFailure> {
        self.order_all(|| Order::WarmPageTables).map(drop)
    }

    /// Let every thread do its part, and add up the results.
    pub fn sample(&self, go: &Go) -> Result<SampleReply, CallFailure> {
        self.common.phases.begin();
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
            if let (Some(all), Some(more)) = (&mut first.syncs, &sample.syncs) {
                all.add(more).expect("histograms of one shape");
            }
        }
        let (latency_ns, latency_counts) = buckets(&first.latencies);
        let (sync_duration_ns, sync_duration_counts) = first.syncs.as_ref().map(buckets).unwrap_or_default();
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
            bytes: samples.iter().map(|sample| sample.bytes).sum(),
            checksum: format!("{checksum:016x}"),
            latency_ns,
            latency_counts,
            sync_duration_ns,
            sync_duration_counts,
            due_operations: samples.iter().map(|sample| sample.at_rate.due_operations).sum(),
            late_starts: samples.iter().map(|sample| sample.at_rate.late_starts).sum(),
            cut_short: samples.iter().any(|sample| sample.at_rate.is_cut_short).into(),
            gap_wait_ns: samples.iter().map(|sample| sample.gap_wait_ns).sum(),
            stalls: samples.iter().map(|sample| sample.stalls.count).sum(),
            stall_longest_ns: samples.iter().map(|sample| sample.stalls.longest_ns).max().unwrap_or(0),
            beats: Heartbeats::default(),
        }
    }

    /// Let the first thread do single reads and put their bytes into the hand-over memory.
    pub fn fetch(
        &self,
        offsets: Vec<u64>,
        read_bytes: usize,
        handover: SharedMemory,
    ) -> Result<SharedMemory, CallFailure> {
        let order = Order::Fetch { offsets, read_bytes, handover: Box::new(handover) };
        let member = &self.members[0];
        member.orders.send(order).expect("they live until the job ends");
        match member.answers.recv().expect("they live until the job ends")? {
            Answer::Fetched(handover) => Ok(*handover),
            _ => unreachable!("a thread answers what it was asked"),
        }
    }

    /// Sync the written bytes to the device.
    pub fn sync(&self) -> Result<(), CallFailure> {
        self.order_all(|| Order::Sync).map(drop)
    }

    fn order_all(&self, order: impl Fn() -> Order) -> Result<Vec<Answer>, CallFailure> {
        for member in &self.members {
            member.orders.send(order()).expect("they live until the job ends");
        }
        let answers: Vec<_> = self
            .members
            .iter()
            .map(|member| member.answers.recv().expect("they live until the job ends"))
            .collect();
        answers.into_iter().collect()
    }

    /// End the threads, which unmap and close what they own.
    pub fn end(self) {
        for member in self.members {
            drop(member.orders);
            if let Err(panic) = member.thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Upper ends of the buckets of a histogram that are not empty, and the numbers in them.
fn buckets(histogram: &Latencies) -> (Vec<u64>, Vec<u64>) {
    let recorded = histogram.iter_recorded();
    recorded.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).unzip()
}

/// Time from the earliest start to the latest end.
fn extent(spans: impl Iterator<Item = (u64, u64)>) -> u64 {
    let (start, end) = spans.fold((u64::MAX, 0), |(start, end), (from, to)| (start.min(from), end.max(to)));
    end.saturating_sub(start)
}

/// Wait for orders, and carry them out.
#[inline(never)]
fn serve(
    (thread, mut work): (u32, Box<dyn ThreadWork>),
    common: &Common,
    orders: &Receiver<Order>,
    answers: &Sender<Result<Answer, CallFailure>>,
) {
    let mut latencies = empty_latencies();
    while let Ok(order) = orders.recv() {
        let answer = match order {
            Order::WarmPageTables => {
                work.warm_page_tables();
                Ok(Answer::Warmed)
            }
            Order::Sample(go) => {
                let latencies = std::mem::replace(&mut latencies, empty_latencies());
                let turn = Turn { thread, go: &go, phases: &common.phases, latencies };
                work.sample(common.bounds, turn).map(|sample| Answer::Sampled(Box::new(sample)))
            }
            Order::Fetch { offsets, read_bytes, handover } => {
                fetch(work.as_mut(), &offsets, read_bytes, handover)
            }
            Order::Sync => work.sync().map(|()| Answer::Synced),
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

fn fetch(
    work: &mut dyn ThreadWork,
    offsets: &[u64],
    read_bytes: usize,
    mut handover: Box<SharedMemory>,
) -> Result<Answer, CallFailure> {
    for (into, offset) in handover.bytes_mut().chunks_exact_mut(read_bytes).zip(offsets) {
        work.fetch(*offset, into)?;
    }
    Ok(Answer::Fetched(handover))
}

#[cfg(test)]
mod tests;
