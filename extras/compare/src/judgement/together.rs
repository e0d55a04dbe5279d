//! Machines that measured at the same time, as with `--start-at` on shared storage.
//!
//! Each run goes through its methods by itself, so at one moment machines may measure different
//! ones. The rates of a method are added up only where all machines measured it at once; what the
//! others measured otherwise is said. All times are those of wall clocks.

mod overlap;
mod timeline;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pagewise_analysis::judge::label::label;
use pagewise_analysis::statistics::median;
use pagewise_model::Conditions;
use pagewise_model::format::{counted, listed, time};
use pagewise_model::groups;
use pagewise_model::run::SCHEMA_VERSION;
use pagewise_model::run_identity::refuse_twice;
use serde::Serialize;

use overlap::{BesideTimes, beside, sums};

pub use timeline::{SampleSpan, TimedAccess, Timeline};

/// Runs of several machines at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Together {
    /// Version of this JSON.
    pub schema: u32,
    /// The machines, in the order of their names.
    pub machines: Vec<MachineTogether>,
    /// Begin of the interval that all runs share, in nanoseconds since 1970: the last one began.
    pub from_unix_ns: u64,
    /// End of that time: the first one measured its last sample.
    pub until_unix_ns: u64,
    /// From the first begin to the last one.
    pub began_apart_ns: u64,
    /// True if all machines have one kernel, as containers do, and so one clock.
    pub has_one_clock: bool,
    /// True if all runs drew their order from one seed.
    pub has_one_seed: bool,
    /// Cautions before the numbers, one sentence each.
    pub warnings: Vec<String>,
    /// Conditions that all runs have.
    pub situations: Vec<SituationTogether>,
}

/// One of the machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MachineTogether {
    /// Name of the machine, with the file if others have it too.
    pub machine: String,
    /// File of its run.
    pub file: String,
    /// When it began, in nanoseconds since 1970.
    pub began_unix_ns: u64,
    /// When its last sample ended.
    pub ended_unix_ns: u64,
    /// Time by which its preparation took too long.
    pub late_ns: u64,
    /// True if a program kept its clock in step with a reference; `None`: unknown.
    pub is_synchronised: Option<bool>,
    /// The most that its clock was off, by the kernel's estimate when it began.
    pub clock_error_ns: Option<u64>,
}

/// Methods under one set of conditions on all machines.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SituationTogether {
    /// The conditions.
    pub label: String,
    /// Each method that all runs have.
    pub methods: Vec<MethodTogether>,
}

/// A method on all machines, within the shared interval.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MethodTogether {
    /// The method.
    pub method: String,
    /// Sum of the rates of all machines while they measured it at once, in bytes that were asked
    /// for or written; `None`: they did not, or not for at least half of a sample.
    pub sum_bytes_per_second: Option<f64>,
    /// Time of which it is the sum.
    pub summed_ns: u64,
    /// Time at which all machines measured it at once, as their clocks say.
    pub at_once_ns: u64,
    /// Each machine, in the same order as above.
    pub machines: Vec<RateOfMachine>,
    /// Shares of its time on one machine by what another one measured, the longest first.
    pub beside: Vec<MeasuredBeside>,
}

/// A method on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RateOfMachine {
    /// Valid samples within the shared interval.
    pub samples: usize,
    /// Other samples: not valid, or not within it for certain.
    pub left_out: usize,
    /// Median of the rates of those within it, in bytes that were asked for or written.
    pub bytes_per_second: Option<f64>,
}

/// A part of the time of a method on one machine, by what another one did.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MeasuredBeside {
    /// The method; `None`: it measured nothing, as it prepared a sample.
    pub method: Option<String>,
    /// Conditions of that method, if they are others.
    pub label: Option<String>,
    /// Share of that time, over all pairs of machines.
    pub share: f64,
}

/// A method and its conditions in all runs, by the index that each has for them.
struct SharedAccess<'a> {
    access: &'a TimedAccess,
    /// By the machine; `None`: its run has none.
    indices: Vec<Option<usize>>,
}

impl Together {
    /// Runs of machines at the same time. An error says in one sentence why they were not.
    pub fn of(mut runs: Vec<Timeline>) -> Result<Self, String> {
        refuse(&runs)?;
        runs.sort_by(|one, other| {
            (&one.identity.host_name, &one.name).cmp(&(&other.identity.host_name, &other.name))
        });
        let names = names(&runs);
        let has_one_clock = runs.iter().all(|run| run.boot_id.is_some() && run.boot_id == runs[0].boot_id);
        let errors_ns: Vec<u64> = runs
            .iter()
            .map(|run| if has_one_clock { 0 } else { run.clock_error_ns().unwrap_or(0) })
            .collect();
        // When the sampling of each began, and when its last sample ended.
        let measured: Vec<(u64, u64)> =
            runs.iter().map(|run| (run.start.unwrap_or_default().began_unix_ns, run.until_ns())).collect();
        let (from_unix_ns, until_unix_ns) = shared_interval(&measured, &errors_ns, &names)?;
        let bounds: Vec<(u64, u64)> =
            (0..runs.len()).map(|machine| certain_bounds(&measured, &errors_ns, machine)).collect();
        let accesses = shared_accesses(&runs);
        let spans = common_spans(&runs, &accesses);
        let within: Vec<Vec<SampleSpan>> = spans
            .iter()
            .zip(&bounds)
            .map(|(spans, bounds)| {
                let is_within = |span: &&SampleSpan| span.from_ns >= bounds.0 && span.until_ns <= bounds.1;
                spans.iter().filter(is_within).copied().collect()
            })
            .collect();
        let cut = |span: &SampleSpan| SampleSpan {
            from_ns: span.from_ns.clamp(from_unix_ns, until_unix_ns),
            until_ns: span.until_ns.clamp(from_unix_ns, until_unix_ns),
            ..*span
        };
        let cut: Vec<Vec<SampleSpan>> = spans.iter().map(|spans| spans.iter().map(cut).collect()).collect();
        let beside = beside(&cut, accesses.len());
        let sums = sums(&within, &errors_ns, accesses.len());
        let mut situations: Vec<(&Conditions, Vec<MethodTogether>)> = Vec::new();
        for (index, shared) in accesses.iter().enumerate() {
            let Some(attempts) = shared.attempts(&runs) else { continue };
            let machines = attempts.zip(&within);
            let machines = machines.map(|(attempts, within)| RateOfMachine::of(attempts, within, index));
            let method = MethodTogether {
                method: shared.access.method.clone(),
                sum_bytes_per_second: sums[index].bytes_per_second(),
                summed_ns: sums[index].ns,
                at_once_ns: beside[index].at_once_ns,
                machines: machines.collect(),
                beside: measured_beside(&accesses, shared.access, &beside[index]),
            };
            groups::add(&mut situations, &shared.access.conditions, method);
        }
        if situations.is_empty() {
            return Err(
                "the runs have no method under the same conditions: give all of them one --file-size"
                    .to_string(),
            );
        }
        let began = runs.iter().filter_map(|run| Some(run.start?.began_unix_ns));
        Ok(Self {
            schema: SCHEMA_VERSION,
            from_unix_ns,
            until_unix_ns,
            began_apart_ns: began.clone().max().unwrap_or(0) - began.min().unwrap_or(0),
            has_one_clock,
            has_one_seed: runs.iter().all(|run| run.identity.seed == runs[0].identity.seed),
            warnings: warnings(&runs, &names, &accesses, has_one_clock),
            situations: situations
                .into_iter()
                .map(|(conditions, methods)| SituationTogether { label: label(conditions), methods })
                .collect(),
            machines: runs.iter().zip(names).map(|(run, name)| MachineTogether::of(run, name)).collect(),
        })
    }
}

impl RateOfMachine {
    /// Of so many attempts at an access, and the samples within the shared interval.
    fn of(attempts: usize, within: &[SampleSpan], access: usize) -> Self {
        let rates = within.iter().filter(|span| span.access == access);
        let rates: Vec<f64> = rates.filter_map(|span| span.bytes_per_second).collect();
        let left_out = attempts.saturating_sub(rates.len());
        Self { samples: rates.len(), left_out, bytes_per_second: median(&rates) }
    }
}

impl MachineTogether {
    fn of(run: &Timeline, machine: String) -> Self {
        let start = run.start.unwrap_or_default();
        Self {
            machine,
            file: run.name.clone(),
            began_unix_ns: start.began_unix_ns,
            ended_unix_ns: run.until_ns(),
            late_ns: start.late_ns(),
            is_synchronised: start.is_synchronised,
            clock_error_ns: start.clock_error_ns,
        }
    }
}

impl SharedAccess<'_> {
    /// Attempts of each machine; `None` if a run lacks it, or if it is a ceiling.
    fn attempts<'a>(&'a self, runs: &'a [Timeline]) -> Option<impl Iterator<Item = usize> + 'a> {
        let is_everywhere = self.indices.iter().all(Option::is_some) && !self.access.is_ceiling;
        let indices = runs.iter().zip(&self.indices);
        is_everywhere
            .then(|| indices.map(|(run, index)| index.map_or(0, |index| run.accesses[index].attempts)))
    }
}

/// A sentence about the first reason that runs cannot be of one time, before it is looked at.
fn refuse(runs: &[Timeline]) -> Result<(), String> {
    let [first, _, ..] = runs else {
        return Err("--together needs the runs of two machines or more".to_string());
    };
    refuse_twice(runs.iter().map(|run| (run.name.as_str(), run.identity.clone())))?;
    if let (Some(host), true) =
        (&first.identity.host_name, runs.iter().all(|run| run.identity.host_name == first.identity.host_name))
    {
        return Err(format!("all runs are of the machine {host}: name runs of two machines or more"));
    }
    for run in runs {
        let name = &run.name;
        if run.start.is_none() {
            return Err(format!(
                "{name} did not begin at a time that was asked for: begin the run of each machine with --start-at"
            ));
        }
        if run.spans.is_empty() {
            return Err(match run.accesses.iter().any(|access| access.attempts > 0) {
                true => format!("{name} has no time of any sample: an older pagewise made it"),
                false => format!("{name} has no samples"),
            });
        }
        match (&run.plan, &first.plan) {
            (None, _) => return Err(format!("{name} does not name its plan: an older pagewise made it")),
            (Some(plan), Some(of_first)) if plan != of_first => {
                return Err(format!(
                    "{} and {name} have different plans, {of_first} and {plan}: ask each machine for the same",
                    first.name
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The name of each machine: with its file if another one is called so too, and that alone if it
/// has none.
fn names(runs: &[Timeline]) -> Vec<String> {
    let hosts = || runs.iter().map(|run| run.identity.host_name.as_deref());
    let mut known: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    hosts().for_each(|host| *known.entry(host).or_default() += 1);
    let of = |(run, host): (&Timeline, Option<&str>)| match host {
        None => run.name.clone(),
        Some(name) if known[&host] > 1 => format!("{name} ({})", run.name),
        Some(name) => name.to_string(),
    };
    runs.iter().zip(hosts()).map(of).collect()
}

/// The interval in which all of them measured, for certain.
fn shared_interval(
    measured: &[(u64, u64)],
    errors_ns: &[u64],
    names: &[String],
) -> Result<(u64, u64), String> {
    let each = || measured.iter().zip(errors_ns).zip(names);
    let began = each().map(|(((began_ns, _), error_ns), name)| (began_ns.saturating_add(*error_ns), name));
    let ended = each().map(|(((_, ended_ns), error_ns), name)| (ended_ns.saturating_sub(*error_ns), name));
    let (Some((from_ns, last)), Some((until_ns, first))) = (began.max(), ended.min()) else {
        return Err("there are no runs".to_string());
    };
    if from_ns >= until_ns {
        return Err(format!(
            "the runs share no time: that of {first} ended {} before that of {last} began",
            time(from_ns - until_ns)
        ));
    }
    Ok((from_ns, until_ns))
}

/// The times by the clock of one machine between which all of them measured for certain.
fn certain_bounds(measured: &[(u64, u64)], errors_ns: &[u64], machine: usize) -> (u64, u64) {
    let (mut from_ns, mut until_ns) = measured[machine];
    for (other, (began_ns, ended_ns)) in measured.iter().enumerate().filter(|(other, _)| *other != machine) {
        let off_ns = errors_ns[machine].saturating_add(errors_ns[other]);
        from_ns = from_ns.max(began_ns.saturating_add(off_ns));
        until_ns = until_ns.min(ended_ns.saturating_sub(off_ns));
    }
    (from_ns, until_ns)
}

/// Each method under each set of conditions of any run.
fn shared_accesses(runs: &[Timeline]) -> Vec<SharedAccess<'_>> {
    let mut shared: Vec<SharedAccess<'_>> = Vec::new();
    let mut index_of = HashMap::new();
    for (machine, run) in runs.iter().enumerate() {
        for (index, access) in run.accesses.iter().enumerate() {
            let key = (&access.conditions, &access.method, access.is_ceiling);
            let at = *index_of.entry(key).or_insert(shared.len());
            if at == shared.len() {
                shared.push(SharedAccess { access, indices: vec![None; runs.len()] });
            }
            shared[at].indices[machine] = Some(index);
        }
    }
    shared
}

/// The samples of each run, with the indices of the accesses of all.
fn common_spans(runs: &[Timeline], accesses: &[SharedAccess<'_>]) -> Vec<Vec<SampleSpan>> {
    let of_run = |(machine, run): (usize, &Timeline)| {
        let all = accesses.iter().enumerate();
        let index_of: HashMap<usize, usize> =
            all.filter_map(|(index, shared)| Some((shared.indices[machine]?, index))).collect();
        run.spans.iter().map(|span| SampleSpan { access: index_of[&span.access], ..*span }).collect()
    };
    runs.iter().enumerate().map(of_run).collect()
}

/// Shares of the time of an access by what other machines did.
fn measured_beside(
    accesses: &[SharedAccess<'_>],
    own: &TimedAccess,
    times: &BesideTimes,
) -> Vec<MeasuredBeside> {
    let all_ns = times.measured_ns.iter().fold(times.nothing_ns, |sum, ns| sum.saturating_add(*ns));
    let share = |ns: u64| ns as f64 / all_ns as f64;
    let measured = accesses.iter().zip(&times.measured_ns).filter(|(_, ns)| **ns > 0);
    let mut beside: Vec<MeasuredBeside> = measured
        .map(|(SharedAccess { access, .. }, ns)| MeasuredBeside {
            method: Some(access.method.clone()),
            label: (access.conditions != own.conditions).then(|| label(&access.conditions)),
            share: share(*ns),
        })
        .collect();
    if times.nothing_ns > 0 {
        beside.push(MeasuredBeside { method: None, label: None, share: share(times.nothing_ns) });
    }
    beside.sort_by(|one, other| other.share.total_cmp(&one.share));
    beside
}

fn warnings(
    runs: &[Timeline],
    names: &[String],
    accesses: &[SharedAccess<'_>],
    has_one_clock: bool,
) -> Vec<String> {
    let those = |is: &dyn Fn(&Timeline) -> bool| {
        let those: Vec<&str> =
            runs.iter().zip(names).filter(|(run, _)| is(run)).map(|(_, name)| name.as_str()).collect();
        (!those.is_empty()).then(|| listed(&those))
    };
    let is_off = |run: &Timeline| !has_one_clock && run.clock_error_ns().is_none();
    let off = those(&is_off).map(|machines| {
        format!("clock not known to be in step: {machines}; what was at one time is as the clocks say")
    });
    let set = those(&|run| run.clock_was_set).map(|machines| {
        format!("clock set during the run: {machines}; what was at one time is as the clocks say")
    });
    let late = those(&|run| run.start.is_some_and(|start| start.late_ns() > 0))
        .map(|machines| format!("began late, since its preparation took too long: {machines}"));
    let torn = those(&|run| !run.is_complete).map(|machines| format!("not complete: {machines}"));
    let asked: BTreeSet<u64> = runs.iter().filter_map(|run| Some(run.start?.asked_unix_ns)).collect();
    let asked = (asked.len() > 1).then(|| "the runs were to begin at different times".to_string());
    let lacking = accesses.iter().filter(|one| one.indices.iter().any(Option::is_none)).count();
    let lacking = (lacking > 0).then(|| {
        let methods = counted(lacking as u64, "method");
        format!("not shown, as not all runs have them under the same conditions: {methods}")
    });
    [off, set, late, asked, torn, lacking].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
