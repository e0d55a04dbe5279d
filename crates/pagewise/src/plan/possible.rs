//! What cannot be measured at all is refused before anything is created.

use anyhow::{Result, bail, ensure};
use pagewise_model::{Bytes, CacheState, Cell, Conditions, Numa, Skew, Source, Workload};

use super::resolve::Machine;

/// Threads beyond this measure the scheduler.
const MAX_THREADS: u32 = 1024;
/// A read must fit into memory many times over.
const MAX_READ: Bytes = Bytes::gib(1);
/// The kernel keeps no larger readahead than this, whatever is written: 4 GiB in KiB would overflow.
const MAX_READAHEAD: Bytes = Bytes::gib(1);

/// An operation that takes longer than this under a cap tells nothing in a sample.
const SLOWEST_OP_SECONDS: f64 = 10.0;

/// Refuses conditions that no method could be measured under.
pub fn ensure_possible(conditions: &Conditions, machine: &Machine<'_>) -> Result<()> {
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
    if let Some(memory) = machine.environment.memory_available_bytes {
        ensure!(
            buffers <= memory.0 / 4,
            "{threads} threads with buffers of {read_bytes} need more than a quarter of the {memory} of memory \
             that is available"
        );
    }
    if conditions.skew != Skew::Uniform {
        ensure!(
            *cache != CacheState::Cold,
            "{} reads some places again and again, a cold sample none twice; use --cache cold-start or warm",
            conditions.skew
        );
    }
    if conditions.dependent {
        ensure!(
            conditions.workload == Workload::RandomRead,
            "sequential reads do not depend on each other; use --workload random-read"
        );
        ensure!(
            *reads_per_op > 1,
            "a single read depends on nothing: dependent reads need 2 or more in an operation (--reads-per-op)"
        );
    }
    ensure_settable(conditions, machine)
}

/// Refuses what the machine cannot be set to.
fn ensure_settable(conditions: &Conditions, machine: &Machine<'_>) -> Result<()> {
    let surroundings = &conditions.surroundings;
    if let Some(limit) = surroundings.memory_limit_bytes {
        if let Some(memory) = machine.environment.memory_bytes {
            let whole = Bytes(memory.0 >> 20 << 20);
            ensure!(limit <= memory, "a memory limit of {limit} is above the {whole} that this machine has");
        }
        let least = least_memory(conditions, machine);
        ensure!(
            limit >= least,
            "a memory limit of {limit} is below what a worker itself needs here; the least that works is {least}"
        );
    }
    if let (Some(cap), Some(reason)) = (surroundings.device_cap, &machine.no_device) {
        bail!("the cap {cap} needs a block device, and there is none to be capped: {reason}");
    }
    if let Some(cap) = surroundings.device_cap {
        let reads = cap.read_iops.map_or(0.0, |iops| f64::from(conditions.reads_per_op) / iops as f64);
        let bytes =
            cap.read_bytes_per_second.map_or(0.0, |rate| conditions.op_bytes() as f64 / rate.0 as f64);
        ensure!(
            reads.max(bytes) <= SLOWEST_OP_SECONDS,
            "under the cap {cap} one operation of {} reads of {} would take {:.0} s",
            conditions.reads_per_op,
            conditions.read_bytes,
            reads.max(bytes)
        );
    }
    if let Some(readahead) = surroundings.readahead_bytes {
        ensure!(
            readahead <= MAX_READAHEAD,
            "a readahead of {readahead} is larger than the {MAX_READAHEAD} that are sensible"
        );
        let page_bytes = machine.environment.page_bytes;
        ensure!(
            readahead.0.is_multiple_of(page_bytes.max(1024)),
            "a readahead of {readahead} is no whole number of pages of {page_bytes} bytes"
        );
    }
    if let Some(cpus) = &surroundings.cpus {
        let online = machine.online_cpus.numbers();
        if let Some(missing) = cpus.numbers().iter().find(|cpu| !online.contains(cpu)) {
            bail!("there is no CPU {missing} here; online are {}", machine.online_cpus);
        }
    }
    if let Some(Numa::Node(node)) = surroundings.numa {
        let nodes = &machine.numa_nodes;
        ensure!(
            nodes.contains(&node),
            "there is no NUMA node {node} with memory here; there {} {}",
            if nodes.len() == 1 { "is only" } else { "are" },
            nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        );
    }
    if surroundings.numa.is_some() {
        ensure!(
            conditions.cache == CacheState::Warm && conditions.fits_memory(),
            "pages are placed on a NUMA node before a sample, so all of them must be there: use --cache warm, and \
             memory that holds the data"
        );
    }
    Ok(())
}

/// What a worker with such buffers needs, rounded up to what a user would write.
fn least_memory(conditions: &Conditions, machine: &Machine<'_>) -> Bytes {
    let buffers = conditions.read_bytes.0.saturating_mul(u64::from(conditions.threads)).saturating_mul(2);
    Bytes(machine.least_memory_bytes.saturating_add(buffers).next_multiple_of(Bytes::mib(1).0))
}

/// States that cannot be reached for this source are refused here; those that a filesystem turns out to refuse
/// become unavailable cells.
pub fn refuse_unreachable_states(cells: &[Cell], source: &Source) -> Result<()> {
    let Source::File { evict: false, .. } = source else {
        return refuse_foreign_cache(cells);
    };
    let dropped = |cell: &Cell| matches!(cell.conditions.cache, CacheState::Cold | CacheState::ColdStart);
    ensure!(
        !cells.iter().any(dropped),
        "a cold run drops your file from the page cache; allow it with --evict"
    );
    ensure!(
        !cells.iter().any(|cell| cell.conditions.surroundings.memory_limit_bytes.is_some()),
        "a memory limit holds for pages that the worker brings in, so your file must leave the page cache first; allow \
         it with --evict"
    );
    Ok(())
}

/// What the page cache holds as it is, is charged to whoever brought it in.
fn refuse_foreign_cache(cells: &[Cell]) -> Result<()> {
    let foreign = cells.iter().any(|cell| {
        cell.conditions.cache == CacheState::AsIs
            && cell.conditions.surroundings.memory_limit_bytes.is_some()
            && cell.depends_on_cache()
    });
    ensure!(
        !foreign,
        "what the page cache holds as it is, is charged to others than the worker; with a memory limit use --cache warm, \
         cold or cold-start"
    );
    Ok(())
}
