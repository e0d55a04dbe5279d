//! Latencies of a run in which a worker takes part that is not pagewise's: by a request of their
//! own after the sample.
//!
//! In one request with the throughput phase it could call time of that phase time of the latency
//! phase, whose beginning nobody sees. Its rate would be too high by half.

use pagewise_analysis::statistics::total;
use pagewise_model::sample::Measurement;
use pagewise_model::{CacheState, Evidence, Failure, FailureKind};
use pagewise_protocol::ConversationError;
use pagewise_protocol::claims::{Asked, false_time};

use super::{Exchange, GoOutcome, WorkerSession};

/// Throughput phase of that request, which is in no figure: batches grow meanwhile.
const LEAD_NS: u64 = 1_000_000;

impl WorkerSession<'_> {
    /// Duration of the throughput phase of the sample, and of the latency phase in the same
    /// request.
    pub(super) fn phases_ns(&self) -> (u64, u64) {
        let (sample_ns, latency_ns) = self.round.plan.phases_ns(self.cell, self.round.number);
        (sample_ns, if self.context.forgives_answers { latency_ns } else { 0 })
    }

    /// Take the latencies of the operations that follow, unless the sample has them already. A cold
    /// sample has none: what the device delivers for it is bounded.
    pub(super) fn take_latencies(
        &self,
        exchange: &mut Exchange<'_>,
        measurement: &mut Measurement,
        evidence: &mut Evidence,
    ) -> Result<(), ConversationError> {
        let (_, latency_ns) = self.round.plan.phases_ns(self.cell, self.round.number);
        let is_cold = matches!(self.cell.conditions.cache, CacheState::Cold | CacheState::ColdStart);
        let has_all = total(&measurement.latency_counts) == measurement.operations;
        if latency_ns == 0 || self.context.forgives_answers || has_all || is_cold {
            return Ok(());
        }
        let outcome = self.go(exchange, true, (LEAD_NS, latency_ns))?;
        evidence.observed.extend(self.false_reply(&outcome));
        let reply = outcome.reply;
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
    fn false_reply(
        &self,
        GoOutcome { reply, expected_checksum, wall_ns, .. }: &GoOutcome,
    ) -> Option<Failure> {
        let claims = reply.claims();
        let what = "elapsed_ns + latency_elapsed_ns";
        let failed = |kind| move |detail| Failure { kind, detail: format!("latencies: {detail}") };
        let numbers = claims.wrong_operations(&Asked::of_method(&self.cell.conditions, &self.cell.method));
        let time = || false_time(what, claims.all_ns(), *wall_ns, u64::MAX);
        let bytes = || {
            let differs = u64::from_str_radix(&reply.checksum, 16).ok() != *expected_checksum;
            differs.then(|| format!("the bytes read have checksum {}", reply.checksum))
        };
        numbers
            .map(failed(FailureKind::InconsistentCounts))
            .or_else(|| time().map(failed(FailureKind::FalseTime)))
            .or_else(|| bytes().map(failed(FailureKind::WrongChecksum)))
    }
}
