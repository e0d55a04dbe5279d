//! Observations of a watch: the events that each needs, and the reason where this user may not have
//! them.

use pagewise_model::watched::{Missing, ObservationKind};
use pagewise_sys::perf::{Event, EventOptions, EventSource, KNOWS_INSTRUCTIONS};

use super::kinds::{self, CachePoints, Kind};
use super::rights;
use super::tracefs::Tracefs;
use crate::placement::Topology;

/// Events of every watch.
pub(super) const FAULTS: [(Kind, EventSource); 3] = [
    (Kind::SideBand, EventSource::SideBand),
    (Kind::MinorFault, EventSource::MinorFaults),
    (Kind::MajorFault, EventSource::MajorFaults),
];

const NEEDS_KERNEL: &str = "this needs root, or the capability PERFMON";

/// Wishes of the user.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) calls: bool,
    pub(super) windows: bool,
}

/// The events that this user may have, and the observations that are missing without the others.
pub(super) struct Chosen {
    pub(super) events: Vec<(Kind, EventSource)>,
    pub(super) cache: Option<CachePoints>,
    pub(super) missing: Vec<Missing>,
}

impl Chosen {
    /// Of what the user asks for, each if `may` says so of its events.
    pub(super) fn of(
        Asked { calls, windows }: Asked,
        with_kernel: bool,
        may: impl Fn(&[(Kind, EventSource)]) -> Result<(), String>,
    ) -> Self {
        let mut chosen = Self { events: FAULTS.to_vec(), cache: None, missing: Vec::new() };
        let tracefs = Tracefs::find();
        let tracefs = tracefs.as_ref().map_err(String::clone);
        let permitted = |events: Vec<(Kind, EventSource)>| may(&events).map(|()| events);
        let of_calls = match calls {
            true => {
                tracefs.clone().and_then(|tracefs| kinds::of_calls(tracefs, with_kernel)).and_then(permitted)
            }
            false => Err("not asked for (--no-calls)".to_string()),
        };
        let points = match (with_kernel, &of_calls) {
            (true, Ok(_)) => tracefs.and_then(CachePoints::find),
            (true, Err(_)) => {
                Err("reads are distinguished from writes by the trace of system calls, which is not seen"
                    .to_string())
            }
            (false, _) => Err(NEEDS_KERNEL.to_string()),
        };
        let of_switches = match (with_kernel, windows) {
            _ if !KNOWS_INSTRUCTIONS => Err("not known on this processor architecture".to_string()),
            (false, _) => Err(NEEDS_KERNEL.to_string()),
            // A thread may be stopped before the very instruction whose fault comes next.
            (true, true) => Err("the program is stopped at the end of each window".to_string()),
            (true, false) => permitted(vec![(Kind::Switch, EventSource::Switches)]),
        };
        let of_cache = points.and_then(|points| {
            let events = permitted(points.events())?;
            if points.mapped_around.is_none() {
                let reason = "this kernel does not report them (Linux 6.11 does)".to_string();
                chosen.missing.push(Missing { kind: ObservationKind::MappedAround, reason });
            }
            chosen.cache = Some(points);
            Ok(events)
        });
        let all = [
            (ObservationKind::Calls, of_calls),
            (ObservationKind::PageCache, of_cache),
            (ObservationKind::MinorFaultWaits, of_switches),
        ];
        for (kind, events) in all {
            match events {
                Ok(events) => chosen.events.extend(events),
                Err(reason) => chosen.missing.push(Missing { kind, reason }),
            }
        }
        if let Some(reason) =
            Missing::of(&chosen.missing, ObservationKind::PageCache).map(|cache| cache.reason.clone())
        {
            chosen.missing.push(Missing { kind: ObservationKind::MappedAround, reason });
        }
        chosen
    }
}

/// True if what the kernel does for a program can be watched too. The error says why nothing can
/// be.
pub(super) fn sees_kernel(opens: impl Fn(EventSource, bool) -> Result<(), String>) -> Result<bool, String> {
    match opens(EventSource::MinorFaults, true) {
        Ok(()) => Ok(true),
        Err(_) => opens(EventSource::MinorFaults, false).map(|()| false),
    }
}

/// The observations that this user lacks of programs of their own. The error says why nothing can
/// be watched.
pub fn missing_observations() -> Result<Vec<Missing>, String> {
    let (process, cpus) = (rustix::process::getpid(), Topology::read()?.cpus);
    let opens = |source, with_kernel| {
        let options = EventOptions { source, with_kernel, starts_with_exec: false, wakeup_bytes: 1 };
        Event::open(&options, process, cpus[0]).map(drop).map_err(|error| rights::refusal(&error))
    };
    let with_kernel = sees_kernel(opens)?;
    let asked = Asked { calls: true, windows: false };
    Ok(Chosen::of(asked, with_kernel, |events| opens(events[0].1, with_kernel)).missing)
}
