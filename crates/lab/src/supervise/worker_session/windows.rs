//! Windows: intervals in which the workload brings the cache to the state of the sample.

use std::time::{Duration, Instant};

use pagewise_analysis::proof::steady;
use pagewise_host::ProcessCounters;
use pagewise_host::process;
use pagewise_host::steps::{RunStep, reached};
use pagewise_model::RateWindow;
use pagewise_protocol::ConversationError;

use super::super::actor::ActorAtWork;
use super::{Exchange, GoOutcome, WorkerSession, furthest};

/// Length of a window in which the workload warms a cache that does not hold the span; a shorter
/// one says too little about a method of a hundred operations per second.
const WINDOW_NS: u64 = 50_000_000;
/// Length of one while an actor fills the cache, which nothing is concluded from.
const FILLING_WINDOW_NS: u64 = 200_000_000;
/// Maximum time and windows of that; after them, the sample is unsettled.
const SETTLING: Duration = Duration::from_secs(20);
const SETTLING_WINDOWS: usize = 200;

impl WorkerSession<'_> {
    /// Request a `go` and record it as a window.
    pub(super) fn window(
        &mut self,
        exchange: &mut Exchange<'_>,
        sample_ns: u64,
    ) -> Result<GoOutcome, ConversationError> {
        let before = process::totals(exchange.worker.pid());
        let outcome = self.go(exchange, false, (sample_ns, 0))?;
        let during = ProcessCounters::difference(&before, &process::totals(exchange.worker.pid()));
        exchange.progress.first_operation =
            exchange.progress.first_operation.saturating_add(furthest(&outcome.reply));
        exchange.progress.windows.push(RateWindow {
            elapsed_ns: outcome.reply.elapsed_ns,
            unaccounted_ns: outcome.unaccounted_ns,
            operations: outcome.reply.operations,
            device_read_bytes: during.device_read_bytes,
            involuntary_switches: during.involuntary_switches,
            resident_bytes: self.input.residency(self.cell.conditions.span_bytes.0).resident_bytes,
        });
        Ok(outcome)
    }

    /// Let the workload bring a cache that does not hold the span, or that an actor fills too, to
    /// the state in which it remains: until its device reads per
    /// operation are steady, and they are those that the residency predicts, or it has replaced as
    /// much of the cache as its popular positions may need.
    pub(super) fn settle(
        &mut self,
        exchange: &mut Exchange<'_>,
        actor: Option<&ActorAtWork>,
    ) -> Result<(), ConversationError> {
        if let Some(actor) = actor {
            let bytes = self.cell.conditions.actor_bytes_before().0;
            while !actor.is_at_pace(bytes) {
                self.window(exchange, FILLING_WINDOW_NS)?;
            }
            // Until then the cache is on its way to what both make of it.
            exchange.progress.windows.clear();
        }
        let deadline = Instant::now() + SETTLING;
        while exchange.progress.windows.len() < SETTLING_WINDOWS && Instant::now() < deadline {
            self.window(exchange, WINDOW_NS)?;
            reached(RunStep::Settling);
            let windows = &exchange.progress.windows;
            if steady::is_lasting(self.cell, windows, self.round.page_bytes)
                && steady::settled(self.cell, windows)
            {
                break;
            }
        }
        Ok(())
    }
}
