//! The time limit of a replay, which follows from the time of its program.

use std::time::Duration;

use pagewise_model::format::time;
use pagewise_model::{Cell, Failure, FailureKind, Plan};
use pagewise_protocol::{ConversationError, Wait};

/// Times as long as its program a replay may take.
const TIMES: u32 = 10;
/// The limit is never shorter, and is longer only for programs that take half of it or more.
const LEAST: Duration = Duration::from_secs(10);
const USUAL_MOST: Duration = Duration::from_secs(60);

/// The time limit of a sample that replays a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayLimit {
    /// The time that the program took, without its gaps if they are not kept.
    program: Duration,
    /// By another method than the program's, in rounds whose number is not fixed: a slow one would
    /// leave no time for the others.
    stopped_after: Option<Duration>,
}

impl ReplayLimit {
    /// The limit of a cell; `None` if it replays no trace, or one of a program whose time is not
    /// known.
    pub fn of(plan: &Plan, cell: &Cell) -> Option<Self> {
        let trace = plan.trace.as_ref()?;
        let left_out_ns = trace.gaps_ns.unwrap_or(0).saturating_sub(cell.conditions.gaps_ns());
        let program = Duration::from_nanos(trace.wall_ns?.saturating_sub(left_out_ns));
        let many_times = program.saturating_mul(TIMES).clamp(LEAST, USUAL_MOST);
        let may_stop = plan.budget.is_some() && trace.method != cell.method;
        let stopped_after = may_stop.then(|| many_times.max(program.saturating_mul(2)));
        Some(Self { program, stopped_after })
    }

    /// The time that a sample may take. One that is not to be stopped may take as long as its reads
    /// do on a slow device, and many times as long as they took.
    pub fn wait(self, wait: Wait<'_>) -> Wait<'_> {
        match self.stopped_after {
            Some(patience) => Wait { patience, ..wait },
            None => wait.and(self.program.saturating_mul(TIMES)),
        }
    }

    /// The error of a sample that was given up, which says why.
    pub fn exceeded(self, error: ConversationError) -> ConversationError {
        match (self.stopped_after, error) {
            (
                Some(stopped_after),
                ConversationError::Broken(Failure { kind: FailureKind::WorkerHung, .. }),
            ) => {
                let times = (stopped_after.as_secs_f64() / self.program.as_secs_f64().max(1e-9)) as u64;
                let [after, program] =
                    [stopped_after, self.program].map(|time_of| time(time_of.as_nanos() as u64));
                let detail =
                    format!("stopped after {after}, {times} times as long as the whole program ({program})");
                ConversationError::Broken(Failure { kind: FailureKind::TooSlow, detail })
            }
            (_, other) => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use pagewise_model::plan::{Budget, PlannedTrace};

    use super::*;
    use crate::plan::Layer;
    use crate::plan::resolve::Variant;
    use crate::plan::resolve::tests::resolved;

    /// The plan of a program that took so many seconds, of which its gaps took one, and its first
    /// cell, whose method it did not use, without gaps.
    fn replayed(seconds: u64, budget: Option<Budget>) -> Plan {
        let mut plan = resolved("read", Variant::Quick, &Layer::default());
        plan.budget = budget;
        plan.trace = Some(PlannedTrace {
            files: Vec::new(),
            path: "/t.trace".into(),
            command: vec!["server".into()],
            method: "pread:direct".parse().expect("a method"),
            memory_limit: None,
            cold: true,
            cached_bytes: None,
            device_bytes: None,
            windows: false,
            wall_ns: Some(seconds * 1_000_000_000),
            gaps_ns: Some(1_000_000_000),
            map: None,
            inspection: None,
        });
        plan
    }

    #[test]
    fn a_slow_replay_leaves_time_for_the_others() {
        let budget = || Some(Budget { least_ns: 1, first_rounds_percent: 0 });
        let of_first = |plan: &Plan| ReplayLimit::of(plan, &plan.cells[0]).expect("a replay");
        let limit = |seconds| {
            of_first(&replayed(seconds, budget())).stopped_after.map(|stopped_after| stopped_after.as_secs())
        };
        assert_eq!([1, 4, 31, 121].map(limit), [Some(10), Some(30), Some(60), Some(240)]);
        assert_eq!(of_first(&replayed(4, None)).stopped_after, None, "all rounds are to be taken");
        let mut own = replayed(4, budget());
        own.trace.as_mut().expect("a trace").method = own.cells[0].method.clone();
        assert_eq!(of_first(&own).stopped_after, None);
        // The program's own replay may take long, but not for ever.
        let stop = AtomicBool::new(false);
        let wait = of_first(&own).wait(Wait { patience: Duration::from_secs(5), stop: &stop });
        assert_eq!(wait.patience, Duration::from_secs(35));
    }

    #[test]
    fn only_silence_is_slowness() {
        let limit =
            ReplayLimit { program: Duration::from_secs(3), stopped_after: Some(Duration::from_secs(30)) };
        let failed = |kind| {
            let failure = Failure { kind, detail: "the worker did not send sample within 30 s".into() };
            match limit.exceeded(ConversationError::Broken(failure)) {
                ConversationError::Broken(Failure { kind, detail }) => (kind, detail),
                other => panic!("broken: {other:?}"),
            }
        };
        let (kind, detail) = failed(FailureKind::WorkerHung);
        assert_eq!(kind, FailureKind::TooSlow);
        assert_eq!(detail, "stopped after 30 s, 10 times as long as the whole program (3 s)");
        assert_eq!(failed(FailureKind::WorkerDied).0, FailureKind::WorkerDied);
    }
}
