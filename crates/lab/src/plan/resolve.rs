//! From layers to cells: the topmost layer that chooses an axis decides it, and every impossible
//! combination is refused here, before anything is created.

mod sampling;

use std::ops::RangeInclusive;

use anyhow::{Context, Error, Result, bail, ensure};
use pagewise_model::expectation::Expectation;
use pagewise_model::format::time;
use pagewise_model::groups::distinct;
use pagewise_model::limits::MAX_ROUNDS;
use pagewise_model::plan::{Budget, CliffSearch};
use pagewise_model::{
    Actor, Bytes, CacheState, Cell, Conditions, Descriptor, HostSettings, Method, Plan, RateSchedule, Replay,
    Role, ScheduledRate, Source, Work, Worker, WorkerChoices, Workload,
};

use super::axes::{choose, ensure_all_used};
use pagewise_analysis::judge::elimination::InterimAnalyses;
use pagewise_analysis::judge::verdict::FEWEST_ROUNDS;

use super::controls::{ceilings, controls};
use super::machine::Machine;
use super::matrix::{MAX_CELLS, vary};
use super::shorten::{self, Unpinned};
use super::validate::{
    alignment, ensure_capped_samples_fit, ensure_possible, ensure_suited, leaves_out, may_leave_out,
    refuse_unreachable_states,
};
use super::works::works;
use super::{Axes, ChosenBudget, Layer, MissingArgument, OrNone, PlanText, Size, Threads};
use crate::worker_door::{self, WorkerDoor, WorkerOption};
use sampling::{Amount, ensure_answerable, sampling};

/// Operations that are due in a sample at least, unless its length is typed: a dozen samples of
/// fewer say nothing of p99.
const ENOUGH_DUE: u64 = 100;
/// A longer sample is typed.
const LONGEST_USUAL_NS: u64 = 10_000_000_000;
/// Minimum for the distribution-free interval of a median.
const MIN_ROUNDS: u32 = 7;
/// A trial cannot have as many rounds as a verdict needs.
const TRIAL_ROUNDS: RangeInclusive<u32> = 1..=FEWEST_ROUNDS as u32 - 1;
/// Time that a quick run spends on writing its dataset.
const DATASET_SECONDS: u64 = 8;
/// Blocks of a full run: a run has so many datasets, since one may be fast by chance.
const FULL_BLOCKS: u32 = 3;
/// The usual budget, in per cent of what the first rounds take.
const BUDGET_PERCENT: u32 = 200;
const FULL_BUDGET_PERCENT: u32 = 800;
/// The least usual one: a few methods go on until they are decided.
const LEAST_BUDGET_NS: u64 = 30_000_000_000;
/// Repetitions of samples disturbed from outside.
pub const RETAKES: u32 = 2;

/// The ratio of data to cache at which windows of prefetch are compared: above the cliff, where
/// they matter.
const WINDOW_RATIO: f64 = 1.5;

/// Workloads of a plan that names none.
pub const DEFAULT_WORKLOADS: [Workload; 2] = [Workload::RandomRead, Workload::SequentialRead];

/// Requested variant of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As written.
    Standard,
    /// With the changes of `[quick]`.
    Quick,
    /// With the changes of `[full]`.
    Full,
}

impl Variant {
    /// The changes that it makes to a plan.
    pub fn changes(self, plan: &PlanText) -> Option<&Layer> {
        match self {
            Variant::Standard => None,
            Variant::Quick => Some(&plan.quick),
            Variant::Full => Some(&plan.full),
        }
    }
}

/// The changes that `plan` has under the memory limit that is chosen.
pub fn limited<'a>(plan: &'a PlanText, variant: Variant, chosen: &Layer) -> Option<&'a Layer> {
    plan.limited.as_ref().filter(|_| variant != Variant::Full && chosen.limits_memory())
}

/// Resolve `plan` with the choices of the command line.
pub fn resolve(
    plan: &PlanText,
    variant: Variant,
    chosen: &Layer,
    source: Source,
    machine: &Machine<'_>,
) -> Result<Plan> {
    let is_full = variant == Variant::Full;
    let limited = limited(plan, variant, chosen);
    let quick = Some(&plan.quick).filter(|_| variant == Variant::Standard);
    let layers: Vec<&Layer> =
        [Some(chosen), limited, variant.changes(plan), Some(&plan.base)].into_iter().flatten().collect();
    let expectations: Vec<Expectation> =
        layers.iter().find_map(|layer| layer.expectations.clone()).unwrap_or_default();
    let sampling = sampling(&layers, machine.fresh_seed)?.for_all(&expectations)?;
    let (allowed, reason) = if chosen.sampling.is_trial {
        (TRIAL_ROUNDS, "since a trial has no verdict")
    } else {
        (MIN_ROUNDS..=MAX_ROUNDS, "since fewer give no 95 % interval of a median")
    };
    if let Amount::Rounds(rounds) = sampling.amount {
        ensure!(
            allowed.contains(&rounds),
            "{rounds} rounds: write {} to {}, {reason}",
            allowed.start(),
            allowed.end()
        );
    }
    let mut cells = Vec::new();
    add_matrix(&layers, &plan.name, &source, machine, &mut cells)?;
    if let Some(also) = &plan.also {
        let besides: Vec<&Layer> =
            std::iter::once(layers[0]).chain([also]).chain(layers[1..].iter().copied()).collect();
        add_matrix(&besides, &plan.name, &source, machine, &mut cells)?;
        share_file(&mut cells, &besides);
        cells = distinct(cells);
    }
    ensure!(!cells.is_empty(), "the plan has no cell: there is nothing to measure");
    ensure_used(&cells, machine.workers, machine.offered)?;
    ensure_answerable(&expectations, &cells)?;
    refuse_unreachable_states(&cells, &source)?;
    let ceilings = match sampling.ceilings {
        true => ceilings(&cells, machine.environment.page_bytes),
        false => Vec::new(),
    };
    ensure!(
        plan.table.is_none() || !Plan::has_actor(&cells),
        "the tables of {} have no actor beside them: leave --beside out, or ask with pagewise read",
        plan.name
    );
    let search = search(&mut cells, sampling.crossing_percent)?;
    let has_controls = sampling.controls.unwrap_or(match sampling.amount {
        // With fewer rounds there is no verdict, and no noise to compare it with.
        Amount::Rounds(rounds) if (rounds as usize) < FEWEST_ROUNDS => false,
        // A control is a check of the machine, and takes the time of a method: a fifth of a quick
        // search.
        Amount::Rounds(_) => is_full || search.is_none(),
        Amount::Budget(_) => is_full,
    });
    if has_controls {
        cells.extend(controls(&cells));
    }
    cells.extend(ceilings);
    let least_ns = Plan::least_sample_ns(&cells);
    if let Some(typed_ns) = chosen.sampling.sample_ns {
        ensure!(
            typed_ns >= least_ns,
            "a sample of {} is too short to see an actor at work in each tenth of it: write --sample {}ms or more",
            time(typed_ns),
            least_ns / 1_000_000
        );
    }
    let plan = Plan {
        question: plan.name.clone(),
        source,
        seed: sampling.seed,
        rounds: match sampling.amount {
            Amount::Rounds(rounds) => rounds,
            Amount::Budget(_) if is_full => InterimAnalyses::full().last(),
            Amount::Budget(_) => InterimAnalyses::quick().last(),
        },
        sample_ns: match chosen.sampling.sample_ns {
            Some(typed_ns) => typed_ns,
            None => sampling.sample_ns.max(enough_due_ns(&cells)).max(least_ns),
        },
        memory_sample_ns: sampling.memory_sample_ns.map(|memory_ns| memory_ns.max(least_ns)),
        expectations,
        retakes: RETAKES,
        drop_caches: machine.drop_caches,
        workers: machine.workers.clone(),
        search,
        table: plan.table.clone(),
        ..Plan::of(cells)
    };
    let plan = Plan { blocks: blocks(&plan, is_full), ..plan };
    ensure_capped_samples_fit(&plan, machine.environment.page_bytes)?;
    let plan = match sampling.amount {
        Amount::Rounds(_) => plan,
        Amount::Budget(chosen) => {
            let usual = if is_full { FULL_BUDGET_PERCENT } else { BUDGET_PERCENT };
            let first_rounds_percent = match chosen {
                Some((ChosenBudget::OfFirstRounds(percent), _)) => percent,
                _ => usual,
            };
            let budget = Budget { least_ns: LEAST_BUDGET_NS, first_rounds_percent };
            let plan = Plan { budget: Some(budget), ..plan };
            match chosen {
                Some((ChosenBudget::Time(time_ns), by)) => {
                    shorten::within(plan, time_ns, Unpinned::beside(&layers[..by], quick))?
                }
                _ => plan,
            }
        }
    };
    // What cannot be read again is not begun.
    plan.check_limits().map_err(Error::msg)?;
    Ok(plan)
}

/// Shortest sample in which enough operations are due at each rate.
fn enough_due_ns(cells: &[Cell]) -> u64 {
    let schedules = cells.iter().filter_map(|cell| cell.conditions.schedule());
    let enough_ns =
        |schedule: RateSchedule| schedule.due_ns(0, ENOUGH_DUE.div_ceil(u64::from(schedule.threads)));
    schedules.map(enough_ns).max().unwrap_or(0).min(LONGEST_USUAL_NS)
}

/// Blocks of a plan. Points that a search adds are compared with those of the grid, so all of them
/// read one dataset.
fn blocks(plan: &Plan, is_full: bool) -> u32 {
    let reads_datasets = matches!(plan.source, Source::Dataset { .. }) && plan.dataset_bytes().0 > 0;
    if is_full && reads_datasets && plan.search.is_none() { FULL_BLOCKS } else { 1 }
}

/// Add the cells that layers choose, the topmost of which was typed.
fn add_matrix(
    layers: &[&Layer],
    name: &str,
    source: &Source,
    machine: &Machine<'_>,
    cells: &mut Vec<Cell>,
) -> Result<()> {
    let workloads =
        layers.iter().find_map(|layer| layer.workload.clone()).unwrap_or_else(|| DEFAULT_WORKLOADS.to_vec());
    let workloads = distinct(workloads);
    ensure_all_used(layers[0], &workloads)?;
    for layer in &layers[1..] {
        ensure_all_used(layer, &workloads).with_context(|| format!("in the plan '{name}'"))?;
    }
    for workload in workloads {
        let axes = Resolved::new(layers, workload, source, machine)?;
        axes.ensure_not_absurd(cells.len())?;
        ensure_named(&axes.methods, machine)?;
        let are_typed = layers[0].chooses_methods(workload);
        axes.add_cells(machine, are_typed, cells)?;
        ensure_suited(&axes.methods, are_typed, workload, cells, machine)?;
    }
    Ok(())
}

/// Use one file for both matrices, unless its size was chosen.
fn share_file(cells: &mut [Cell], layers: &[&Layer]) {
    let chosen = |layer: &&Layer| {
        let mut axes = layer.by_workload.values().chain([&layer.axes]);
        axes.any(|axes| axes.file_size.is_some())
    };
    let Some(largest) = cells.iter().map(|cell| cell.conditions.file_bytes).max() else { return };
    if !layers.iter().any(chosen) {
        cells.iter_mut().for_each(|cell| cell.conditions.file_bytes = largest);
    }
}

/// Check that every worker is pagewise itself, offered by an extra, or has a command.
fn ensure_named(methods: &[Method], machine: &Machine<'_>) -> Result<()> {
    for method in methods {
        let name = method.worker().name();
        let is_known = *method.worker() == Worker::Native
            || worker_door::of(name, machine.offered).is_some()
            || machine.workers.commands.contains_key(name);
        ensure!(is_known, "{}", worker_door::unknown(name, machine.offered));
    }
    Ok(())
}

/// Check that every choice about a worker has an effect.
fn ensure_used(cells: &[Cell], workers: &WorkerChoices, offered: &[WorkerDoor]) -> Result<()> {
    let uses = |name: &str| cells.iter().any(|cell| cell.method.worker().name() == name);
    for name in workers.commands.keys() {
        ensure!(
            uses(name),
            "the plan has no method of the worker {name}: add one, as in --methods pread,{name}/METHOD"
        );
    }
    for WorkerOption { name, worker, called, .. } in offered.iter().flat_map(|door| door.options) {
        ensure!(
            workers.option(name).is_none() || uses(worker),
            "{called} are for the {worker} worker, which has no method in the plan: add one, as in --methods pread,{worker}/pread"
        );
    }
    Ok(())
}

/// Plan the search beyond the matrix. If a method has several windows of prefetch, they are
/// compared at one size of data first, and only the best is measured further.
fn search(cells: &mut Vec<Cell>, crossing_percent: Option<u32>) -> Result<Option<CliffSearch>> {
    let Some(percent) = crossing_percent else { return Ok(None) };
    ensure!((1..=100).contains(&percent), "crossing_percent = {percent}: write 1 to 100");
    ensure!(
        cells.iter().all(|cell| cell.conditions.cache_capacity().is_some()),
        MissingArgument::MemoryLimit(
            "a crossing of methods as data outgrow the cache needs a memory limit: write --memory 256MiB"
                .to_string()
        )
    );
    ensure!(
        !Plan::has_actor(cells),
        "a crossing is looked for without an actor: leave --beside out, or compare single ratios with --span"
    );
    let mut prefetch_windows: Vec<u32> =
        cells.iter().filter_map(|cell| cell.method.prefetch_window()).collect();
    prefetch_windows.sort_unstable();
    prefetch_windows.dedup();
    if prefetch_windows.len() < 2 {
        prefetch_windows.clear();
    }
    let ratio = |cell: &Cell| {
        let capacity = cell.conditions.cache_capacity().map_or(1, |capacity| capacity.0.max(1));
        cell.conditions.span_bytes.0 as f64 / capacity as f64
    };
    let behind = cells.iter().map(ratio).filter(|ratio| *ratio >= WINDOW_RATIO * 0.99).min_by(f64::total_cmp);
    if let (false, Some(behind)) = (prefetch_windows.is_empty(), behind) {
        // Threads and read sizes make small differences in the capacity, and therefore in the
        // ratio.
        cells.retain(|cell| {
            cell.method.prefetch_window().is_none() || (ratio(cell) / behind - 1.0).abs() < 0.1
        });
    }
    Ok(Some(CliffSearch { tolerance_thousandths: percent * 10, prefetch_windows }))
}

/// Every axis of one workload, decided.
struct Resolved {
    methods: Vec<Method>,
    /// Numbers, each with true if it is that of the CPUs.
    threads: Vec<(u32, bool)>,
    /// `None`: the largest span.
    file_size: Option<Vec<Size>>,
    /// `None`: the whole file.
    span: Option<Vec<Size>>,
    work: Vec<Work>,
    cache: Vec<CacheState>,
    descriptor: Vec<Descriptor>,
    rate: Vec<OrNone<ScheduledRate>>,
    beside: Vec<OrNone<Actor>>,
    host_settings: Vec<HostSettings>,
}

impl Resolved {
    fn new(layers: &[&Layer], workload: Workload, source: &Source, machine: &Machine<'_>) -> Result<Self> {
        let usual =
            machine.replay.filter(|_| workload == Workload::Replay).map_or(1, |replay| replay.trace_threads);
        let cpus = machine.environment.cpus;
        let mut threads =
            choose(layers, workload, |axes| &axes.threads).unwrap_or(vec![Threads::Count(usual)]);
        let beside = choose(layers, workload, |axes| &axes.beside).unwrap_or(vec![OrNone(None)]);
        if choose(&layers[..1], workload, |axes| &axes.threads).is_none()
            && beside.iter().any(|one| one.0.is_some())
        {
            // An actor needs a CPU, too: what nobody typed leaves it one.
            let leaves_one = |threads: &Threads| matches!(threads, Threads::Count(count) if *count < cpus);
            let fewer: Vec<Threads> = threads.iter().copied().filter(leaves_one).collect();
            threads = if fewer.is_empty() { threads } else { fewer };
        }
        // What is asked for by its number too is measured once, and known by the number.
        let is_counted = threads.contains(&Threads::Count(cpus));
        let threads = distinct(threads).into_iter().filter_map(|threads| match threads {
            Threads::Count(count) => Some((count, false)),
            Threads::Cpus => (!is_counted).then_some((cpus, true)),
        });
        let threads = threads.collect();
        let file_size = choose(layers, workload, |axes| &axes.file_size);
        let file_size = match source {
            Source::File { .. } => {
                ensure!(
                    workload.is_reading(),
                    "{workload} writes, and your own file is only read: name a directory instead of a file"
                );
                ensure!(
                    file_size.is_none(),
                    "your own file has its size: leave the file size out, or choose a part of it with --span"
                );
                let sizes = source.own_files().map(|(_, identity)| identity.file_bytes.0);
                Some(vec![Size::Exact(Bytes(sizes.fold(0, u64::saturating_add)))])
            }
            Source::Dataset { .. } => file_size,
        };
        let methods =
            choose(layers, workload, |axes| &axes.methods).unwrap_or_else(|| default_methods(workload));
        // Gaps are kept by all methods of a comparison, or by none; so are requests to read ahead.
        let keep = methods.iter().all(|method| *method.worker() == Worker::Native);
        let replay = machine.replay.map(|replay| Replay {
            gaps_ns: replay.gaps_ns.filter(|_| keep),
            read_ahead: if keep { replay.read_ahead } else { 0 },
            ..replay
        });
        // Under one limit all methods have the same data: as much as the largest of their workers
        // leaves space for.
        let worker_bytes = methods.iter().map(|method| method.worker().own_bytes()).max();
        let actor_bytes = beside.iter().filter_map(|actor| Some(actor.0.as_ref()?.worker_bytes())).max();
        let worker_bytes = worker_bytes.map(|worker| Bytes(worker.0 + actor_bytes.unwrap_or_default().0));
        let worker_bytes = worker_bytes.filter(|bytes| *bytes > Worker::Native.own_bytes());
        let memory = choose(layers, workload, |axes| &axes.memory).unwrap_or(vec![OrNone(None)]);
        let limited = memory.iter().any(|limit| limit.0.is_some());
        // The user's own file is left unchanged unless its cache state is named, or only pages that
        // the worker brings in count.
        let default_cache = match source {
            _ if workload == Workload::Replay => CacheState::Cold,
            Source::File { .. } if !limited => CacheState::AsIs,
            Source::File { .. } if !workload.is_one_shot() => CacheState::Warm,
            Source::File { .. } => CacheState::Cold,
            Source::Dataset { .. } if workload.facts().starts_cold => CacheState::Cold,
            Source::Dataset { .. } => CacheState::Warm,
        };
        let mut host_settings = vec![HostSettings::default()];
        host_settings = vary(host_settings, &memory, |all, value| {
            all.memory_limit_bytes = value.0;
            all.worker_bytes = value.0.and(worker_bytes);
        })?;
        host_settings = Axes::vary_settings(layers, workload, host_settings)?;
        Ok(Self {
            methods,
            threads,
            file_size,
            span: choose(layers, workload, |axes| &axes.span),
            work: works(layers, workload, replay)?,
            cache: choose(layers, workload, |axes| &axes.cache).unwrap_or(vec![default_cache]),
            descriptor: choose(layers, workload, |axes| &axes.descriptor).unwrap_or(vec![Descriptor::Shared]),
            rate: choose(layers, workload, |axes| &axes.rate)
                .filter(|_| workload.facts().axes.contains(&"rate"))
                .unwrap_or(vec![OrNone(None)]),
            beside,
            host_settings,
        })
    }

    /// Count before multiplying, so that an absurd matrix costs nothing.
    fn ensure_not_absurd(&self, already: usize) -> Result<()> {
        let lengths = [
            self.methods.len(),
            self.threads.len(),
            self.file_size.as_ref().map_or(1, Vec::len),
            self.span.as_ref().map_or(1, Vec::len),
            self.work.len(),
            self.cache.len(),
            self.descriptor.len(),
            self.rate.len(),
            self.beside.len(),
            self.host_settings.len(),
        ];
        let cells = lengths.iter().try_fold(1usize, |product, len| product.checked_mul(*len));
        match cells.and_then(|cells| cells.checked_add(already)) {
            Some(cells) if cells <= MAX_CELLS => Ok(()),
            Some(cells) => {
                bail!("the matrix has {cells} cells: a run has at most {MAX_CELLS}")
            }
            None => bail!("the matrix has more cells than can be counted"),
        }
    }

    /// Add the cells of all conditions. Methods that nobody named are left out where they cannot
    /// sync as asked or hold the longest reads of a trace, and others can.
    fn add_cells(&self, machine: &Machine<'_>, are_typed: bool, cells: &mut Vec<Cell>) -> Result<()> {
        let alignment = alignment(machine);
        for conditions in self.conditions(machine)? {
            ensure_possible(&conditions, machine)?;
            let chooses = may_leave_out(&conditions);
            let suits = |method: &&Method| leaves_out(method, &conditions, alignment).is_none();
            let takes_all = are_typed || !chooses || !self.methods.iter().any(|method| suits(&method));
            for method in self.methods.iter().filter(|method| takes_all || suits(method)) {
                cells.push(Cell {
                    role: Role::Measured,
                    method: method.clone(),
                    conditions: conditions.clone(),
                });
            }
        }
        Ok(())
    }

    fn conditions(&self, machine: &Machine<'_>) -> Result<Vec<Conditions>> {
        let Some(work) = self.work.first() else { return Ok(Vec::new()) };
        let mut all = vec![Conditions {
            threads: 0,
            content: work.workload().facts().usual_content,
            cache: CacheState::Warm,
            ..Conditions::of(*work, Bytes(0))
        }];
        all = vary(all, &self.host_settings, |conditions, value| conditions.host_settings = value)?;
        all = vary(all, &self.threads, |conditions, value| {
            (conditions.threads, conditions.thread_per_cpu) = value;
        })?;
        all = vary(all, &self.cache, |conditions, value| conditions.cache = value)?;
        all = vary(all, &self.descriptor, |conditions, value| conditions.descriptor = value)?;
        all = vary(all, &self.rate, |conditions, value| conditions.rate = value.0)?;
        all = vary(all, &self.beside, |conditions, value| {
            let limit = conditions.host_settings.memory_limit_bytes;
            conditions.beside = value.0.map(|actor| actor.sized(limit));
        })?;
        all = vary(all, &self.work, |conditions, value| conditions.work = value)?;
        self.sized(all, machine)
    }

    /// Add every size of file and span to each of `all`, since a multiple of the cache depends on
    /// the others.
    fn sized(&self, all: Vec<Conditions>, machine: &Machine<'_>) -> Result<Vec<Conditions>> {
        // One file serves all spans, whatever the memory limit and the threads.
        let mut largest = None;
        for conditions in &all {
            for span in self.span.iter().flatten() {
                largest = largest.max(Some(size_of(*span, conditions)?));
            }
        }
        let multiples = self.span.iter().flatten().any(|span| matches!(span, Size::Times(_)));
        let default_file = match largest {
            Some(largest) if multiples => largest,
            _ => default_file_size(machine),
        };
        let file_sizes = self.file_size.clone().unwrap_or(vec![Size::Exact(default_file)]);
        let mut sized = Vec::new();
        for file_size in &file_sizes {
            for span in self.span.as_ref().unwrap_or(&vec![*file_size]) {
                for conditions in &all {
                    sized.push(Conditions {
                        file_bytes: size_of(*file_size, conditions)?,
                        span_bytes: size_of(*span, conditions)?,
                        ..conditions.clone()
                    });
                }
            }
        }
        Ok(sized)
    }
}

/// A size under some conditions; multiples of the cache are whole MiB if they are large enough.
fn size_of(size: Size, conditions: &Conditions) -> Result<Bytes> {
    let times = match size {
        Size::Exact(bytes) => return Ok(bytes),
        Size::Times(thousandths) => thousandths,
    };
    let Some(capacity) = conditions.cache_capacity() else {
        bail!(MissingArgument::MultipleOfCache);
    };
    let bytes = (u128::from(capacity.0) * u128::from(times) / 1000).min(u128::from(u64::MAX >> 1)) as u64;
    let grain = if bytes >= Bytes::mib(16).0 { Bytes::mib(1).0 } else { Bytes::kib(64).0 };
    let bytes = (bytes + grain / 2) / grain * grain;
    let HostSettings { memory_limit_bytes, worker_bytes, .. } = &conditions.host_settings;
    ensure!(
        bytes > 0,
        "a memory limit of {} leaves {capacity} of page cache next to a worker that takes about {}, too little for a \
         multiple of it: write a larger limit",
        memory_limit_bytes.unwrap_or_default(),
        worker_bytes.unwrap_or(Worker::Native.own_bytes())
    );
    Ok(Bytes(bytes))
}

fn default_methods(workload: Workload) -> Vec<Method> {
    let texts = workload.facts().usual_methods.iter();
    texts.map(|text| text.parse().expect("a constant method")).collect()
}

/// Default size: large compared with the last-level cache, small compared with memory and disk, in
/// whole MiB; if the run must be short, no larger than can be written in the time for it.
fn default_file_size(machine: &Machine<'_>) -> Bytes {
    let last_level = machine.environment.last_level_cache_bytes.map_or(0, Bytes::get);
    let wanted = last_level.saturating_mul(4).clamp(Bytes::gib(1).0, Bytes::gib(4).0);
    let memory = machine.environment.memory_available_bytes.map_or(u64::MAX, |bytes| bytes.0 / 4);
    let affordable = machine.write_pace.map_or(u64::MAX, |pace| pace.saturating_mul(DATASET_SECONDS));
    let bytes = wanted.min(memory).min(machine.free_bytes / 4).min(affordable).max(Bytes::mib(16).0);
    Bytes(bytes >> 20 << 20)
}

#[cfg(test)]
pub(crate) mod tests;
