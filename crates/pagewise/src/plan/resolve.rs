//! From layers to cells: the topmost layer that chooses an axis decides it, and every impossible combination
//! is refused here, before anything is created.

use anyhow::{Result, bail, ensure};
use pagewise_model::{
    Access, Bytes, CacheState, Cell, Conditions, Consume, Descriptor, Environment, Method, MethodOption,
    Plan, Role, Source, Workload,
};

use super::{Axes, Layer, PlanText, Sampling, Threads};

/// More cells than this are a slip of the pen: at a second each, a round would take more than an hour.
const MAX_CELLS: usize = 5_000;
/// Threads beyond this measure the scheduler.
const MAX_THREADS: u32 = 1024;
/// The distribution-free interval of a median needs as many.
const MIN_ROUNDS: u32 = 7;
const MAX_ROUNDS: u32 = 10_000;
/// A read must fit into memory many times over.
const MAX_READ: Bytes = Bytes::gib(1);
/// Reads of the ceiling of bandwidth.
const BANDWIDTH_READ: Bytes = Bytes::mib(1);
const BANDWIDTH_DEPTH: u32 = 8;
/// What a quick run spends on writing its dataset.
const DATASET_SECONDS: u64 = 8;
/// Samples disturbed from outside are taken again so often.
const RETAKES: u32 = 2;

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
        axes.add_cells(workload, machine.environment, &mut cells)?;
    }
    ensure!(!cells.is_empty(), "the plan has no cell: there is nothing to measure");
    refuse_unreachable_states(&cells, &source)?;
    let ceilings = match sampling.ceilings {
        true => ceilings(&cells, machine.environment.page_bytes),
        false => Vec::new(),
    };
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
        drop_caches: false,
        search: None,
        cells,
    })
}

struct Sampled {
    seed: u64,
    rounds: u32,
    sample_ns: u64,
    latency_ns: u64,
    ceilings: bool,
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
    Ok(Sampled { seed, rounds, sample_ns, latency_ns, ceilings })
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
    file_size: Vec<Bytes>,
    /// `None`: the whole file.
    span: Option<Vec<Bytes>>,
    read_size: Vec<Bytes>,
    reads_per_op: Vec<u32>,
    align: Vec<Bytes>,
    consume: Vec<Consume>,
    cache: Vec<CacheState>,
    descriptor: Vec<Descriptor>,
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
                vec![identity.file_bytes]
            }
            Source::Dataset { .. } => file_size.unwrap_or_else(|| vec![default_file_size(machine)]),
        };
        // The user's own file is left as it is unless its cache is named.
        let default_cache = match source {
            Source::File { .. } => CacheState::AsIs,
            Source::Dataset { .. } => CacheState::Warm,
        };
        Ok(Self {
            methods: choose(layers, workload, |axes| &axes.methods).unwrap_or_else(default_methods),
            threads,
            file_size,
            span: choose(layers, workload, |axes| &axes.span),
            read_size: choose(layers, workload, |axes| &axes.read_size).unwrap_or(vec![Bytes::kib(16)]),
            reads_per_op: choose(layers, workload, |axes| &axes.reads_per_op).unwrap_or(vec![16]),
            align: choose(layers, workload, |axes| &axes.align).unwrap_or(vec![Bytes::kib(4)]),
            consume: choose(layers, workload, |axes| &axes.consume).unwrap_or(vec![Consume::Touch]),
            cache: choose(layers, workload, |axes| &axes.cache).unwrap_or(vec![default_cache]),
            descriptor: choose(layers, workload, |axes| &axes.descriptor).unwrap_or(vec![Descriptor::Shared]),
        })
    }

    /// Counts before it multiplies out, so that an absurd matrix costs nothing.
    fn ensure_not_absurd(&self, already: usize) -> Result<()> {
        let lengths = [
            self.methods.len(),
            self.threads.len(),
            self.file_size.len(),
            self.span.as_ref().map_or(1, Vec::len),
            self.read_size.len(),
            self.reads_per_op.len(),
            self.align.len(),
            self.consume.len(),
            self.cache.len(),
            self.descriptor.len(),
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

    fn add_cells(&self, workload: Workload, environment: &Environment, cells: &mut Vec<Cell>) -> Result<()> {
        for conditions in self.conditions(workload) {
            ensure_possible(&conditions, environment)?;
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

    fn conditions(&self, workload: Workload) -> Vec<Conditions> {
        let mut all = Vec::new();
        for &file_bytes in &self.file_size {
            for &span_bytes in self.span.as_ref().unwrap_or(&vec![file_bytes]) {
                for &threads in &self.threads {
                    for &cache in &self.cache {
                        for &descriptor in &self.descriptor {
                            for &read_bytes in &self.read_size {
                                for &reads_per_op in &self.reads_per_op {
                                    for &align_bytes in &self.align {
                                        for &consume in &self.consume {
                                            all.push(Conditions {
                                                workload,
                                                threads,
                                                file_bytes,
                                                span_bytes,
                                                cache,
                                                descriptor,
                                                read_bytes,
                                                reads_per_op,
                                                align_bytes,
                                                skew: Default::default(),
                                                dependent: false,
                                                consume,
                                                surroundings: Default::default(),
                                            });
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        all
    }
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

fn ensure_possible(conditions: &Conditions, environment: &Environment) -> Result<()> {
    let Conditions { threads, file_bytes, span_bytes, read_bytes, reads_per_op, align_bytes, cache, .. } =
        conditions;
    ensure!(*threads > 0, "0 threads read nothing; write 1 or more");
    ensure!(*threads <= MAX_THREADS, "{threads} threads: write {MAX_THREADS} at most");
    ensure!(read_bytes.0 > 0, "a read of 0B reads nothing");
    ensure!(
        *read_bytes <= MAX_READ,
        "a read of {read_bytes} is larger than the {MAX_READ} that are sensible"
    );
    ensure!((1..=65_536).contains(reads_per_op), "{reads_per_op} reads in an operation: write 1 to 65536");
    ensure!(align_bytes.0 > 0, "an alignment of 0B is none; write 1B for unaligned reads");
    ensure!(file_bytes.0 > 0, "a file of 0B holds nothing to read");
    ensure!(span_bytes.0 > 0, "a span of 0B holds nothing to read");
    ensure!(span_bytes <= file_bytes, "the span of {span_bytes} is larger than the file of {file_bytes}");
    ensure!(read_bytes <= span_bytes, "a read of {read_bytes} is larger than the span of {span_bytes}");
    let op_bytes = conditions.op_bytes();
    if conditions.workload == Workload::SequentialRead {
        ensure!(
            op_bytes <= span_bytes.0,
            "an operation of {reads_per_op} contiguous reads of {read_bytes} is larger than the span of {span_bytes}"
        );
    }
    let bytes = op_bytes.saturating_mul(u64::from(*threads)).max(op_bytes);
    if *cache == CacheState::Cold {
        ensure!(
            bytes <= conditions.cold_budget_bytes(),
            "a cold sample may bring in a quarter of the span of {span_bytes}, and one operation of every thread asks \
             for {}; use a larger file, smaller reads or fewer threads",
            Bytes(bytes)
        );
    }
    let buffers = read_bytes.0.saturating_mul(u64::from(*threads));
    if let Some(memory) = environment.memory_available_bytes {
        ensure!(
            buffers <= memory.0 / 4,
            "{threads} threads with buffers of {read_bytes} need more than a quarter of the {memory} of memory \
             that is available"
        );
    }
    Ok(())
}

/// States that cannot be reached for this source are refused here; those that a filesystem turns out to refuse
/// become unavailable cells.
fn refuse_unreachable_states(cells: &[Cell], source: &Source) -> Result<()> {
    let cold = cells.iter().any(|cell| cell.conditions.cache == CacheState::Cold);
    if let Source::File { evict: false, .. } = source {
        ensure!(!cold, "a cold run drops your file from the page cache; allow it with --evict");
    }
    Ok(())
}

/// One method of each comparison a second time: what it differs by is noise.
fn controls(cells: &[Cell]) -> Vec<Cell> {
    let mut controls: Vec<Cell> = Vec::new();
    for cell in cells {
        if controls.iter().any(|control| control.conditions == cell.conditions) {
            continue;
        }
        let rivals = cells.iter().filter(|other| other.conditions == cell.conditions);
        let plain_pread = rivals.clone().find(|rival| rival.method.to_string() == "pread");
        let baseline = plain_pread.unwrap_or(cell);
        controls.push(Cell { role: Role::Control, ..baseline.clone() });
    }
    controls
}

/// The most that device and memory can do at the sizes that the cells issue.
fn ceilings(cells: &[Cell], page_bytes: u64) -> Vec<Cell> {
    let mut ceilings: Vec<Cell> = Vec::new();
    let mut add = |method: Method, conditions: Conditions| {
        let ceiling = Cell { role: Role::Ceiling, method, conditions };
        if !ceilings.contains(&ceiling) {
            ceilings.push(ceiling);
        }
    };
    for cell in cells {
        let Conditions { cache, read_bytes, align_bytes, span_bytes, .. } = cell.conditions;
        if cell.copies() && cache != CacheState::Cold {
            add(Method::anonymous(), Conditions { cache: CacheState::AsIs, ..cell.conditions.clone() });
        }
        if cache == CacheState::Warm && !cell.method.is_direct() {
            continue;
        }
        let at = |read_bytes: Bytes, reads_per_op: u32| Conditions {
            workload: Workload::RandomRead,
            cache: CacheState::AsIs,
            descriptor: Descriptor::Shared,
            read_bytes,
            reads_per_op,
            align_bytes: Bytes(align_bytes.0.next_multiple_of(page_bytes)),
            ..cell.conditions.clone()
        };
        add(Method::uring_direct(Method::DEFAULT_DEPTH), at(read_bytes, cell.conditions.reads_per_op));
        add(Method::uring_direct(1), at(read_bytes, cell.conditions.reads_per_op));
        let by_page = cell.method.access() == Access::Mmap && cell.method.has(MethodOption::Random);
        if by_page
            && cell.depends_on_cache()
            && cell.conditions.workload == Workload::RandomRead
            && read_bytes.0 > page_bytes
        {
            add(
                Method::uring_direct(Method::DEFAULT_DEPTH),
                at(Bytes(page_bytes), cell.conditions.reads_per_op),
            );
            add(Method::uring_direct(1), at(Bytes(page_bytes), cell.conditions.reads_per_op));
        }
        if span_bytes >= BANDWIDTH_READ {
            add(Method::uring_direct(BANDWIDTH_DEPTH), at(BANDWIDTH_READ, 1));
        }
    }
    ceilings
}

#[cfg(test)]
pub(crate) mod tests;
