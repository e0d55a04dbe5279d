//! End or pause of this process at a step, as the environment says.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Signal, getpid, kill_process};

use super::RunStep;

/// The signal for this process, its step, and the number of times that the step is reached first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Act {
    signal: Signal,
    step: RunStep,
    /// 0: each time.
    time: u32,
}

impl Act {
    /// Read the value of a variable.
    fn parse(signal: Signal, text: &str) -> Option<Self> {
        let (name, time) = match text.split_once(':') {
            Some((name, time)) => (name, time.parse().ok().filter(|time| *time > 0)?),
            None => (text, u32::from(signal == Signal::KILL)),
        };
        let step = RunStep::ALL.iter().copied().find(|step| step.name() == name)?;
        Some(Self { signal, step, time })
    }

    fn of_environment() -> Option<Self> {
        [("PAGEWISE_DIE_AT", Signal::KILL), ("PAGEWISE_PAUSE_AT", Signal::STOP)].into_iter().find_map(
            |(name, signal)| {
                let text = std::env::var(name).ok()?;
                let act = Self::parse(signal, &text);
                assert!(act.is_some(), "{name}={text} names no step");
                act
            },
        )
    }
}

/// Do what the environment says of this step.
pub fn at(step: RunStep) {
    static ACT: OnceLock<Option<Act>> = OnceLock::new();
    static REACHED: AtomicU32 = AtomicU32::new(0);
    let Some(act) = ACT.get_or_init(Act::of_environment).filter(|act| act.step == step) else { return };
    let time = REACHED.fetch_add(1, Ordering::Relaxed) + 1;
    if act.time == 0 || act.time == time {
        let _ = kill_process(getpid(), act.signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_variable_names_a_step_and_a_time() {
        let act = |signal, step, time| Some(Act { signal, step, time });
        assert_eq!(Act::parse(Signal::KILL, "answered"), act(Signal::KILL, RunStep::Answered, 1));
        assert_eq!(Act::parse(Signal::KILL, "answered:3"), act(Signal::KILL, RunStep::Answered, 3));
        assert_eq!(Act::parse(Signal::STOP, "answered"), act(Signal::STOP, RunStep::Answered, 0));
        assert_eq!(Act::parse(Signal::STOP, "answered:2"), act(Signal::STOP, RunStep::Answered, 2));
        for wrong in ["", "answer", "answered:", "answered:0", "answered:x", "answered:1:2"] {
            assert_eq!(Act::parse(Signal::KILL, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_two_steps_have_one_name() {
        let names: BTreeSet<&str> = RunStep::ALL.iter().map(|step| step.name()).collect();
        assert_eq!(names.len(), RunStep::ALL.len());
    }
}
