//! A cold start: the workload from an empty cache, window after window.

use std::time::{Duration, Instant};

use pagewise_analysis::proof::steady;
use pagewise_protocol::{ConversationError, SampleReply};

use super::{Exchange, GoOutcome, WorkerSession};

/// Maximum time of a cold start, to which reading the span at this rate is added; after it, the
/// sample has no time to warm.
const COLD_START: Duration = Duration::from_secs(20);
const COLD_START_BYTES_PER_SECOND: u64 = 20 << 20;
const COLD_START_WINDOWS: usize = 600;

impl WorkerSession<'_> {
    /// Run the workload from an empty cache until it is steady; return the sum of its windows.
    pub(super) fn cold_start(&mut self, exchange: &mut Exchange<'_>) -> Result<GoOutcome, ConversationError> {
        let (span, began) = (self.cell.conditions.span_bytes.0, Instant::now());
        let deadline = Instant::now() + COLD_START + Duration::from_secs(span / COLD_START_BYTES_PER_SECOND);
        let window_ns = self.round.plan.sample_ns;
        let mut total = SampleReply::default();
        let (mut wall_ns, mut unaccounted_ns, mut supervisor_run_queue_ns) = (0, 0, Some(0u64));
        let (mut checksum, mut expected) = (0u64, Some(0u64));
        let mut go_unix_ns = None;
        while exchange.progress.windows.len() < COLD_START_WINDOWS && Instant::now() < deadline {
            let outcome = self.window(exchange, window_ns)?;
            let reply = outcome.reply;
            go_unix_ns = go_unix_ns.or(Some(outcome.go_unix_ns));
            wall_ns += outcome.wall_ns;
            unaccounted_ns += outcome.unaccounted_ns;
            supervisor_run_queue_ns = supervisor_run_queue_ns
                .zip(outcome.supervisor_run_queue_ns)
                .map(|(total, of_go)| total + of_go);
            expected =
                expected.zip(outcome.expected_checksum).map(|(total, window)| total.wrapping_add(window));
            checksum = checksum.wrapping_add(u64::from_str_radix(&reply.checksum, 16).unwrap_or(0));
            total.operations = total.operations.saturating_add(reply.operations);
            total.elapsed_ns = total.elapsed_ns.saturating_add(reply.elapsed_ns);
            total.bytes = total.bytes.saturating_add(reply.bytes);
            total.stalls = total.stalls.saturating_add(reply.stalls);
            total.stall_longest_ns = total.stall_longest_ns.max(reply.stall_longest_ns);
            total.thread_operations.resize(reply.thread_operations.len(), 0);
            for (sum, window) in total.thread_operations.iter_mut().zip(&reply.thread_operations) {
                *sum = sum.saturating_add(*window);
            }
            if steady::is_steady(self.cell.conditions.op_bytes(), &exchange.progress.windows) {
                break;
            }
        }
        total.checksum = format!("{checksum:016x}");
        let order = self.task.order(false, 0);
        let expected_checksum = expected;
        Ok(GoOutcome {
            reply: total,
            began,
            go_unix_ns: go_unix_ns.unwrap_or(0),
            wall_ns,
            unaccounted_ns,
            cpu_ns: None,
            supervisor_run_queue_ns,
            expected_checksum,
            order,
            polls: None,
        })
    }
}
