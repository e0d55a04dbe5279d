//! Latencies of a run in which a worker takes part that is not pagewise's: by a request of their own after the sample.
//!
//! In one request with the throughput phase it could call time of that phase time of the latency phase, whose beginning nobody
//! sees. Its rate would be too high by half.

use std::time::Instant;

use pagewise_analysis::statistics::total;
use pagewise_model::sample::Measurement;
use pagewise_model::{CacheState, Evidence, Failure, FailureKind};
use pagewise_protocol::claims::{Asked, false_time};
use pagewise_protocol::{Conversation, ConversationError, Go, SampleReply};

use super::{Inherited, WorkerSession};

/// Throughput phase of that request, which is in no figure: batches grow meanwhile.
const LEAD_NS: u64 = 1_000_000;

impl WorkerSession<'_> {
    /// Duration of the throughput phase of the sample, and of the latency phase in the same request.
    pub(super) fn phases_ns(&self) -> (u64, u64) {
        let (sample_ns, latency_ns) = self.plan.phases_ns(self.cell, self.round);
        (sample_ns, if self.context.forgives_answers { latency_ns } else { 0 })
    }

    /// Take the latencies of operations from `first_operation` on, unless the sample has them already. A cold sample has none: what the
    /// device delivers for it is bounded.
    pub(super) fn take_latencies(
        &self,
        worker: &mut Conversation,
        inherited: &mut Inherited,
        first_operation: u64,
        measurement: &mut Measurement,
        evidence: &mut Evidence,
    ) -> Result<(), ConversationError> {
        let (_, latency_ns) = self.plan.phases_ns(self.cell, self.round);
        let is_warm = self.cell.conditions.cache != CacheState::Cold
            && self.cell.conditions.cache != CacheState::ColdStart;
        let has_all = total(&measurement.latency_counts) == measurement.operations;
        if latency_ns == 0 || self.context.forgives_answers || has_all || !is_warm {
            return Ok(());
        }
        let order = self.task.order(true, first_operation);
        if let Some(memory) = &mut inherited.table {
            self.task.put_table(memory, self.cell, order.as_ref(), first_operation);
        }
        let started = Instant::now();
        let touch_at = self.task.touch_at();
        let go = Go { first_operation, sample_ns: LEAD_NS, latency_ns, touch_at };
        let reply = worker.go(go, self.sample_wait(LEAD_NS + latency_ns))?;
        let wall_ns = started.elapsed().as_nanos() as u64;
        let expected = self.task.expected_checksum(order.as_ref(), &reply, first_operation);
        evidence.witnessed.extend(self.false_reply(&reply, expected, wall_ns));
        // Operations that took long were timed one by one in its throughput phase.
        let is_timed = total(&reply.latency_counts) == reply.operations;
        let timed = match reply.latency_operations {
            0 => is_timed.then_some((reply.operations, reply.elapsed_ns)),
            operations => Some((operations, reply.latency_elapsed_ns)),
        };
        if let Some(timed) = timed {
            (measurement.latency_phase_operations, measurement.latency_phase_ns) = timed;
            (measurement.latency_ns, measurement.latency_counts) = (reply.latency_ns, reply.latency_counts);
            measurement.latency_phase_apart = true;
        }
        Ok(())
    }

    /// The first thing that is wrong about the numbers of the reply, or about its bytes.
    fn false_reply(&self, reply: &SampleReply, expected: Option<u64>, wall_ns: u64) -> Option<Failure> {
        let claims = reply.claims();
        let what = "elapsed_ns + latency_elapsed_ns";
        let failed = |kind| move |detail| Failure { kind, detail: format!("latencies: {detail}") };
        let numbers = claims.wrong_operations(&Asked::of_method(&self.cell.conditions, &self.cell.method));
        let time = || false_time(what, claims.all_ns(), wall_ns, u64::MAX);
        let bytes = || {
            let differs = u64::from_str_radix(&reply.checksum, 16).ok() != expected;
            differs.then(|| format!("the bytes read have checksum {}", reply.checksum))
        };
        numbers
            .map(failed(FailureKind::InconsistentCounts))
            .or_else(|| time().map(failed(FailureKind::FalseTime)))
            .or_else(|| bytes().map(failed(FailureKind::WrongChecksum)))
    }
}
