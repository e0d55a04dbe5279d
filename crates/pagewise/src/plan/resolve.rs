//! From layers to cells: the topmost layer that chooses an axis decides it, and every impossible combination
//! is refused here, before anything is created.

use anyhow::{Result, bail, ensure};
use pagewise_model::plan::Search;
use pagewise_model::{
    Bytes, CacheState, Cell, Conditions, Consume, CpuList, Descriptor, Environment, Method, Plan, Role, Skew,
    Source, Surroundings, Workload,
};

use super::beside::{ceilings, controls};
use super::possible::{ensure_possible, refuse_unreachable_states};
use super::{Axes, Layer, OrNone, PlanText, Sampling, Size, Threads};

/// More cells than this are a slip of the pen: at a second each, a round would take more than an hour.
const MAX_CELLS: usize = 5_000;
/// The distribution-free interval of a median needs as many.
const MIN_ROUNDS: u32 = 7;
const MAX_ROUNDS: u32 = 10_000;
/// What a quick run spends on writing its dataset.
const DATASET_SECONDS: u64 = 8;
/// Samples disturbed from outside are taken again so often.
const RETAKES: u32 = 2;

/// The ratio of data to cache at which windows of prefetch are compared: behind the cliff, where they matter.
const WINDOW_RATIO: f64 = 1.5;

/// Which variant of a plan is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As written.
    Standard,
    /// With what `[quick]` changes.
    Quick,
    /// With what `[full]` changes.
    Full,
}

/// What resolving needs to know of the machine.
pub struct Machine<'a> {
    /// Of the directory or file.
    pub environment: &'a Environment,
    /// Free space of the dataset's filesystem.
    pub free_bytes: u64,
    /// Bytes per second that it takes, where the run must be short.
    pub write_pace: Option<u64>,
    /// A seed for a plan that names none.
    pub fresh_seed: u64,
    /// CPUs that are online.
    pub online_cpus: CpuList,
    /// NUMA nodes with memory.
    pub numa_nodes: Vec<u32>,
    /// The least memory limit under which a worker runs.
    pub least_memory_bytes: u64,
    /// Why no cap can be put on what lies under the files; `None` where one can, as far as the device goes.
    pub no_device: Option<String>,
    /// Whether the whole page cache may be dropped.
    pub drop_caches: bool,
}

/// Resolves `plan` under what the command line chose.
pub fn resolve(
    plan: &PlanText,
    variant: Variant,
    chosen: &Layer,
    source: Source,
    machine: &Machine<'_>,
) -> Result<Plan> {
    let variant = match variant {
        Variant::Standard => None,
        Variant::Quick => Some(&plan.quick),
        Variant::Full => Some(&plan.full),
    };
    let layers: Vec<&Layer> = [Some(chosen), variant, Some(&plan.base)].into_iter().flatten().collect();
    let sampling = sampling(&layers, machine.fresh_seed)?;
    let workloads =
        layers.iter().find_map(|layer| layer.workload.clone()).unwrap_or_else(|| Workload::ALL.to_vec());
    let mut cells = Vec::new();
    for workload in distinct(workloads) {
        let axes = Resolved::new(&layers, workload, &source, machine)?;
        axes.ensure_not_absurd(cells.len())?;
        axes.add_cells(workload, machine, &mut cells)?;
    }
    ensure!(!cells.is_empty(), "the plan has no cell: there is nothing to measure");
    refuse_unreachable_states(&cells, &source)?;
    let ceilings = match sampling.ceilings {
        true => ceilings(&cells, machine.environment.page_bytes),
        false => Vec::new(),
    };
    let search = search(&mut cells, sampling.crossing_percent)?;
    let controls = controls(&cells);
    cells.extend(controls);
    cells.extend(ceilings);
    Ok(Plan {
        question: plan.name.clone(),
        source,
        seed: sampling.seed,
        rounds: sampling.rounds,
        sample_ns: sampling.sample_ns,
        latency_ns: sampling.latency_ns,
        retakes: RETAKES,
        drop_caches: machine.drop_caches,
        search,
        cells,
    })
}

struct Sampled {
    seed: u64,
    rounds: u32,
    sample_ns: u64,
    latency_ns: u64,
    ceilings: bool,
    crossing_percent: Option<u32>,
}

fn sampling(layers: &[&Layer], fresh_seed: u64) -> Result<Sampled> {
    fn first<T>(layers: &[&Layer], pick: impl Fn(&Sampling) -> Option<T>, default: T) -> T {
        layers.iter().find_map(|layer| pick(&layer.sampling)).unwrap_or(default)
    }
    let rounds = first(layers, |sampling| sampling.rounds, MIN_ROUNDS);
    ensure!(
        (MIN_ROUNDS..=MAX_ROUNDS).contains(&rounds),
        "{rounds} rounds: write {MIN_ROUNDS} to {MAX_ROUNDS}, since fewer give no 95 % interval of a median"
    );
    let sample_ns = first(layers, |sampling| sampling.sample_ns, 150_000_000);
    ensure!(
        (1_000_000..=3_600_000_000_000).contains(&sample_ns),
        "a sample lasts 1ms to 3600s: shorter ones measure the clock"
    );
    let latency_ns = first(layers, |sampling| sampling.latency_ns, (sample_ns / 3).max(1_000_000));
    ensure!(latency_ns <= 3_600_000_000_000, "a latency phase lasts 3600s at most");
    let seed = first(layers, |sampling| sampling.seed, fresh_seed);
    let ceilings = first(layers, |sampling| sampling.ceilings, true);
    let crossing_percent = layers.iter().find_map(|layer| layer.sampling.crossing_percent);
    Ok(Sampled { seed, rounds, sample_ns, latency_ns, ceilings, crossing_percent })
}

/// What is looked for beyond the matrix. Where a method comes with several windows of prefetch, they are compared
/// at one size of data first, and only the best goes on.
fn search(cells: &mut Vec<Cell>, crossing_percent: Option<u32>) -> Result<Option<Search>> {
    let Some(percent) = crossing_percent else { return Ok(None) };
    ensure!((1..=100).contains(&percent), "crossing_percent = {percent}: write 1 to 100");
    ensure!(
        cells.iter().all(|cell| cell.conditions.cache_capacity().is_some()),
        "the ratio of data to cache at which methods change places needs a memory limit; write --memory 256MiB"
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
        // Threads and read sizes make small differences in the capacity, hence in the ratio.
        cells.retain(|cell| {
            cell.method.prefetch_window().is_none() || (ratio(cell) / behind - 1.0).abs() < 0.1
        });
    }
    Ok(Some(Search { tolerance_thousandths: percent * 10, prefetch_windows }))
}

fn distinct<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

/// Every axis of one workload, decided.
struct Resolved {
    methods: Vec<Method>,
    threads: Vec<u32>,
    /// `None`: the largest span.
    file_size: Option<Vec<Size>>,
    /// `None`: the whole file.
    span: Option<Vec<Size>>,
    read_size: Vec<Bytes>,
    reads_per_op: Vec<u32>,
    align: Vec<Bytes>,
    skew: Vec<Skew>,
    dependent: Vec<bool>,
    consume: Vec<Consume>,
    cache: Vec<CacheState>,
    descriptor: Vec<Descriptor>,
    surroundings: Vec<Surroundings>,
}

impl Resolved {
    fn new(layers: &[&Layer], workload: Workload, source: &Source, machine: &Machine<'_>) -> Result<Self> {
        fn choose<T: Clone + PartialEq>(
            layers: &[&Layer],
            workload: Workload,
            pick: impl Fn(&Axes) -> &Option<Vec<T>>,
        ) -> Option<Vec<T>> {
            layers
                .iter()
                .flat_map(|layer| [layer.by_workload.get(&workload), Some(&layer.axes)])
                .flatten()
                .find_map(|axes| pick(axes).clone())
                .map(distinct)
        }
        /// What a setting may be; left alone where nobody chooses.
        fn setting<T: Clone>(chosen: Option<Vec<OrNone<T>>>) -> Vec<Option<T>> {
            chosen.map_or(vec![None], |values| values.into_iter().map(|value| value.0).collect())
        }
        let threads = choose(layers, workload, |axes| &axes.threads).unwrap_or(vec![Threads::Count(1)]);
        let cpus = machine.environment.cpus;
        let threads = distinct(
            threads
                .into_iter()
                .map(|threads| match threads {
                    Threads::Count(count) => count,
                    Threads::Cpus => cpus,
                })
                .collect(),
        );
        let file_size = choose(layers, workload, |axes| &axes.file_size);
        let file_size = match source {
            Source::File { identity, .. } => {
                ensure!(
                    file_size.is_none(),
                    "--file and a file size do not go together: the file has its size"
                );
                Some(vec![Size::Exact(identity.file_bytes)])
            }
            Source::Dataset { .. } => file_size,
        };
        let memory = setting(choose(layers, workload, |axes| &axes.memory));
        // The user's own file is left as it is unless its cache is named.
        let default_cache = match source {
            Source::File { .. } => CacheState::AsIs,
            Source::Dataset { .. } => CacheState::Warm,
        };
        let mut surroundings = vec![Surroundings::default()];
        surroundings = vary(surroundings, &memory, |all, value| all.memory_limit_bytes = value);
        let caps = setting(choose(layers, workload, |axes| &axes.device_cap));
        surroundings = vary(surroundings, &caps, |all, value| all.device_cap = value);
        let readahead = setting(choose(layers, workload, |axes| &axes.readahead));
        surroundings = vary(surroundings, &readahead, |all, value| all.readahead_bytes = value);
        let cpus = setting(choose(layers, workload, |axes| &axes.cpus));
        surroundings = vary(surroundings, &cpus, |all, value| all.cpus = value);
        let numa = setting(choose(layers, workload, |axes| &axes.numa));
        surroundings = vary(surroundings, &numa, |all, value| all.numa = value);
        Ok(Self {
            methods: choose(layers, workload, |axes| &axes.methods).unwrap_or_else(default_methods),
            threads,
            file_size,
            span: choose(layers, workload, |axes| &axes.span),
            read_size: choose(layers, workload, |axes| &axes.read_size).unwrap_or(vec![Bytes::kib(16)]),
            reads_per_op: choose(layers, workload, |axes| &axes.reads_per_op).unwrap_or(vec![16]),
            align: choose(layers, workload, |axes| &axes.align).unwrap_or(vec![Bytes::kib(4)]),
            skew: choose(layers, workload, |axes| &axes.skew).unwrap_or(vec![Skew::Uniform]),
            dependent: choose(layers, workload, |axes| &axes.dependent).unwrap_or(vec![false]),
            consume: choose(layers, workload, |axes| &axes.consume).unwrap_or(vec![Consume::Touch]),
            cache: choose(layers, workload, |axes| &axes.cache).unwrap_or(vec![default_cache]),
            descriptor: choose(layers, workload, |axes| &axes.descriptor).unwrap_or(vec![Descriptor::Shared]),
            surroundings,
        })
    }

    /// Counts before it multiplies out, so that an absurd matrix costs nothing.
    fn ensure_not_absurd(&self, already: usize) -> Result<()> {
        let lengths = [
            self.methods.len(),
            self.threads.len(),
            self.file_size.as_ref().map_or(1, Vec::len),
            self.span.as_ref().map_or(1, Vec::len),
            self.read_size.len(),
            self.reads_per_op.len(),
            self.align.len(),
            self.skew.len(),
            self.dependent.len(),
            self.consume.len(),
            self.cache.len(),
            self.descriptor.len(),
            self.surroundings.len(),
        ];
        let cells = lengths.iter().try_fold(1usize, |product, len| product.checked_mul(*len));
        match cells.and_then(|cells| cells.checked_add(already)) {
            Some(cells) if cells <= MAX_CELLS => Ok(()),
            Some(cells) => {
                bail!("the matrix has {cells} cells, more than the {MAX_CELLS} that make sense in one run")
            }
            None => bail!("the matrix has more cells than can be counted"),
        }
    }

    fn add_cells(&self, workload: Workload, machine: &Machine<'_>, cells: &mut Vec<Cell>) -> Result<()> {
        for conditions in self.conditions(workload, machine)? {
            ensure_possible(&conditions, machine)?;
            for method in &self.methods {
                cells.push(Cell {
                    role: Role::Measured,
                    method: method.clone(),
                    conditions: conditions.clone(),
                });
            }
        }
        Ok(())
    }

    fn conditions(&self, workload: Workload, machine: &Machine<'_>) -> Result<Vec<Conditions>> {
        let mut all = vec![Conditions {
            workload,
            threads: 0,
            file_bytes: Bytes(0),
            span_bytes: Bytes(0),
            cache: CacheState::Warm,
            descriptor: Descriptor::Shared,
            read_bytes: Bytes(0),
            reads_per_op: 0,
            align_bytes: Bytes(0),
            skew: Skew::Uniform,
            dependent: false,
            consume: Consume::Touch,
            surroundings: Surroundings::default(),
        }];
        all = vary(all, &self.surroundings, |conditions, value| conditions.surroundings = value);
        all = vary(all, &self.skew, |conditions, value| conditions.skew = value);
        all = vary(all, &self.dependent, |conditions, value| conditions.dependent = value);
        all = vary(all, &self.threads, |conditions, value| conditions.threads = value);
        all = vary(all, &self.cache, |conditions, value| conditions.cache = value);
        all = vary(all, &self.descriptor, |conditions, value| conditions.descriptor = value);
        all = vary(all, &self.read_size, |conditions, value| conditions.read_bytes = value);
        all = vary(all, &self.reads_per_op, |conditions, value| conditions.reads_per_op = value);
        all = vary(all, &self.align, |conditions, value| conditions.align_bytes = value);
        all = vary(all, &self.consume, |conditions, value| conditions.consume = value);
        self.sized(all, machine)
    }

    /// Every size of file and span for each of `all`, since a multiple of the cache depends on the others.
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

/// A size under some conditions; multiples of the cache are whole MiB where they are large enough.
fn size_of(size: Size, conditions: &Conditions) -> Result<Bytes> {
    let times = match size {
        Size::Exact(bytes) => return Ok(bytes),
        Size::Times(thousandths) => thousandths,
    };
    let Some(capacity) = conditions.cache_capacity() else {
        bail!(
            "a size in multiples of the cache needs a memory limit; write --memory 256MiB, or the size in bytes"
        );
    };
    let bytes = (u128::from(capacity.0) * u128::from(times) / 1000).min(u128::from(u64::MAX >> 1)) as u64;
    let grain = if bytes >= Bytes::mib(16).0 { Bytes::mib(1).0 } else { Bytes::kib(64).0 };
    Ok(Bytes((bytes + grain / 2) / grain * grain))
}

/// Each of `all` with each of `values`.
fn vary<A: Clone, T: Clone>(all: Vec<A>, values: &[T], set: impl Fn(&mut A, T)) -> Vec<A> {
    all.into_iter()
        .flat_map(|one| values.iter().map(move |value| (one.clone(), value.clone())).collect::<Vec<_>>())
        .map(|(mut one, value)| {
            set(&mut one, value);
            one
        })
        .collect()
}

fn default_methods() -> Vec<Method> {
    ["mmap", "mmap:random", "pread", "pread:direct", "uring:direct+depth=32"]
        .iter()
        .map(|text| text.parse().expect("a constant method"))
        .collect()
}

/// Large against the last-level cache, small against memory and disk, in whole MiB; where the run must be
/// short, no larger than what can be written in the time for it.
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
