//! Refusal of impossible plans before anything is created.

use anyhow::{Error, Result, bail, ensure};
use pagewise_model::format::{bytes, counted, time};
use pagewise_model::{
    Access, Actor, Alignment, Bytes, CacheState, Cell, Conditions, Consume, DeviceCap, Method, Numa, Plan,
    Reads, Replay, Skew, Source, Sync, Untrusted, Work, Workload, Writes,
};

use super::MissingArgument;
use super::machine::Machine;

/// Maximum readahead that the kernel keeps: 4 GiB in KiB would overflow.
const MAX_READAHEAD: Bytes = Bytes::gib(1);

/// An operation that takes longer than this under a cap cannot be measured in a sample.
const SLOWEST_OP_SECONDS: f64 = 10.0;

/// A larger read may be several requests.
const LARGE_REQUEST: u64 = 512 << 10;

/// Refuse conditions under which no method could be measured.
pub fn ensure_possible(conditions: &Conditions, machine: &Machine<'_>) -> Result<()> {
    conditions.check_limits().map_err(Error::msg)?;
    let Conditions { file_bytes, span_bytes, .. } = conditions;
    ensure!(
        conditions.cache != CacheState::WarmSmall || conditions.writes().is_some(),
        "small folios are for files to update, {} reads: use --cache warm",
        conditions.workload()
    );
    ensure!(span_bytes <= file_bytes, "the span of {span_bytes} is larger than the file of {file_bytes}");
    if let Some(reads) = conditions.reads() {
        ensure_reads(conditions, reads, machine)?;
    }
    match conditions.work {
        Work::Scan(_) => ensure_scan(conditions)?,
        Work::Replay(replay) => ensure_replay(conditions, &replay, machine)?,
        _ => {}
    }
    if let Some(writes) = conditions.writes() {
        ensure_writes(conditions, &writes)?;
    }
    if let Some(actor) = &conditions.beside {
        ensure_beside(conditions, actor, machine)?;
    }
    ensure_settable(conditions, machine)
}

fn ensure_reads(conditions: &Conditions, reads: &Reads, machine: &Machine<'_>) -> Result<()> {
    let Conditions { threads, span_bytes, cache, .. } = conditions;
    let Reads { read_bytes, reads_per_op, skew, dependent, consume, .. } = reads;
    ensure!(read_bytes <= span_bytes, "a read of {read_bytes} is larger than the span of {span_bytes}");
    ensure!(
        *consume != Consume::Lines,
        "lines are counted in scans only: use pagewise scan, or --consume sum"
    );
    let op_bytes = conditions.op_bytes();
    if conditions.workload() == Workload::SequentialRead {
        ensure!(
            op_bytes <= span_bytes.0,
            "an operation of {reads_per_op} contiguous reads of {read_bytes} is larger than the span of {span_bytes}"
        );
    }
    let bytes = op_bytes.saturating_mul(u64::from(*threads)).max(op_bytes);
    if *cache == CacheState::Cold {
        ensure!(
            bytes <= conditions.cold_budget_bytes(),
            "a cold sample may bring in a quarter of the span of {span_bytes}, and one operation of every thread requests {}: use a file (and span) of {} or more, smaller reads (--read-size, --reads-per-op) or fewer --threads",
            Bytes(bytes),
            Bytes(bytes.saturating_mul(4))
        );
    }
    ensure_buffers(conditions, *read_bytes, machine)?;
    if *skew != Skew::Uniform {
        ensure!(
            *cache != CacheState::Cold,
            "{skew} repeats reads, a cold sample has none twice: use --cache cold-start or warm"
        );
    }
    if *dependent {
        ensure!(
            conditions.workload() == Workload::RandomRead,
            "sequential reads do not depend on each other: use --workload random-read"
        );
        ensure!(
            *reads_per_op > 1,
            "a single read depends on nothing: dependent reads need 2 or more in an operation (--reads-per-op)"
        );
    }
    Ok(())
}

/// Each thread has a buffer for a read.
fn ensure_buffers(conditions: &Conditions, read_bytes: Bytes, machine: &Machine<'_>) -> Result<()> {
    let threads = conditions.threads;
    let buffers = read_bytes.0.saturating_mul(u64::from(threads));
    if let Some(memory) = machine.environment.memory_available_bytes {
        ensure!(
            buffers <= memory.0 / 4,
            "{threads} threads with buffers of {read_bytes} need more than a quarter of the available memory of {memory}"
        );
    }
    Ok(())
}

/// One-shot work is done by one thread, except for records of several threads that share syncs.
fn ensure_one_thread(conditions: &Conditions) -> Result<()> {
    if conditions.is_committing() {
        return Ok(());
    }
    let commits = match conditions.workload() {
        Workload::Append => "; with --sync commit records of several threads share a sync",
        _ => "",
    };
    ensure!(
        conditions.threads == 1,
        "{} is done by one thread: {} threads are not possible{commits}",
        conditions.workload(),
        conditions.threads
    );
    Ok(())
}

fn ensure_scan(conditions: &Conditions) -> Result<()> {
    ensure_one_thread(conditions)?;
    ensure!(
        conditions.cache != CacheState::ColdStart,
        "a scan reads every page once, so it warms no cache: use --cache cold or warm"
    );
    ensure!(
        conditions.cache != CacheState::Warm || conditions.fits_memory(),
        "a cache that cannot hold the {} is never warm for a scan, since the next pages were always evicted: use --cache cold",
        conditions.span_bytes
    );
    let rate = conditions.host_settings.device_cap.and_then(|cap| cap.read_bytes_per_second);
    let too_fast = |rate: &Bytes| *rate > conditions.span_bytes && conditions.cache != CacheState::Warm;
    if let Some(rate) = rate.filter(too_fast) {
        bail!(
            "under a cap of {rate} a second, {} are scanned in less than a second, too short to measure the rate: use a file of {rate} or more",
            conditions.span_bytes
        );
    }
    Ok(())
}

fn ensure_replay(conditions: &Conditions, replay: &Replay, machine: &Machine<'_>) -> Result<()> {
    ensure_buffers(conditions, replay.longest, machine)?;
    let (cache, limit) = (conditions.cache, conditions.host_settings.memory_limit_bytes);
    ensure!(
        matches!(cache, CacheState::Cold | CacheState::Warm | CacheState::Recorded),
        "a trace is replayed from a cache that is the same in each round: use --cache cold, warm or recorded, not {cache}"
    );
    ensure!(
        cache != CacheState::Warm || conditions.fits_memory(),
        "a cache that cannot hold the {} is never warm for a replay: use --cache cold",
        conditions.span_bytes
    );
    ensure!(
        cache != CacheState::Recorded || limit.is_none(),
        "pages that were in the page cache when a program was recorded are not charged to its memory limit: leave --memory or --cache \
         recorded out"
    );
    ensure!(replay.consume != Consume::Lines, "lines are counted in scans only: use --consume sum or touch");
    ensure_ballast(conditions, replay.ballast, machine)
}

/// The memory that stands for the recorded program is a number of a trace, which may be of anybody.
fn ensure_ballast(conditions: &Conditions, ballast: Bytes, machine: &Machine<'_>) -> Result<()> {
    if let Some(limit) = conditions.host_settings.memory_limit_bytes {
        ensure!(
            ballast < limit,
            "the trace says that its program held {ballast} besides the file, which do not fit into a memory limit of {limit}: use a larger --memory"
        );
    }
    if let Some(available) = machine.environment.memory_available_bytes {
        let most = Bytes(available.0 / 10 * 9);
        ensure!(
            ballast <= most,
            "the trace says that its program held {ballast} besides the file, and a replay may take at most {most} here, nine tenths of the available memory"
        );
    }
    Ok(())
}

fn ensure_writes(conditions: &Conditions, writes: &Writes) -> Result<()> {
    let workload = conditions.workload();
    let unit = workload.facts().access;
    let size = writes.record_bytes;
    ensure!(
        workload == Workload::Append || !conditions.is_committing(),
        "{workload} has no records that are committed one by one: use --sync every:SIZE or append"
    );
    ensure_one_thread(conditions)?;
    if let (Some(updates), Sync::Every(interval)) = (writes.updates, writes.sync) {
        let all = Bytes(size.0.saturating_mul(u64::from(updates)));
        ensure!(
            interval <= all,
            "a sync every {interval} of {all} that are written is one at the end: use --sync end, a shorter interval or more --updates"
        );
    }
    ensure!(
        size <= conditions.file_bytes,
        "a {unit} of {size} is larger than the file of {}",
        conditions.file_bytes
    );
    let (is_update, cache) = (writes.is_update(), conditions.cache);
    ensure!(
        matches!(cache, CacheState::Cold | CacheState::Warm) || is_update && cache == CacheState::WarmSmall,
        "a file to be written cannot be {cache}: use --cache {}",
        match is_update {
            true => "cold (not in the page cache), warm or warm-small (in folios of one page)",
            false => "cold (new) or --cache warm (written before)",
        }
    );
    let host_settings = &conditions.host_settings;
    ensure!(
        host_settings.device_cap.is_none(),
        "a device cap limits reads, and {workload} writes: leave the cap out"
    );
    ensure!(
        host_settings.memory_limit_bytes.is_none() || conditions.cache == CacheState::Cold,
        "pages written before are not charged to the worker: with a memory limit use --cache cold"
    );
    Ok(())
}

/// Time in which an actor brings the cache to what it and the measured program make of it.
const MAX_FILLING_SECONDS: u64 = 20;

/// Refuse an actor that cannot be at work as asked, or whose effect has no state that remains.
fn ensure_beside(conditions: &Conditions, actor: &Actor, machine: &Machine<'_>) -> Result<()> {
    let Conditions { cache, threads, host_settings, .. } = conditions;
    actor.check(conditions, alignment(machine)).map_err(Error::msg)?;
    let workload = conditions.workload();
    ensure!(
        !matches!(conditions.work, Work::Replay(_)) && *cache != CacheState::ColdStart,
        "{} has no actor beside it: leave --beside or --victim out",
        if *cache == CacheState::ColdStart { "a cold start" } else { "a replay" }
    );
    ensure!(
        host_settings.device_cap.is_none() && host_settings.numa.is_none(),
        "an actor would be under the device cap and the placement of the worker too: leave these out, or --beside or --victim"
    );
    let (needed, cpus) = (threads + 1, conditions.cpus(machine.environment.cpus));
    ensure!(
        needed <= cpus,
        "{} and an actor need {needed} CPUs, and there {}: each would wait for the others. Use fewer --threads",
        counted(u64::from(*threads), "thread"),
        if cpus == 1 { "is 1".to_string() } else { format!("are {cpus}") }
    );
    let filling = conditions.actor_bytes_before();
    if filling.0 == 0 {
        return Ok(());
    }
    ensure!(
        workload != Workload::Scan,
        "what an actor leaves of a warm file depends on how long it has been at work before a scan: use --cache cold"
    );
    let least = filling.0.div_ceil(MAX_FILLING_SECONDS);
    ensure!(
        actor.bytes_per_second().is_none_or(|rate| rate >= least),
        "the actor '{actor}' {} {} in {MAX_FILLING_SECONDS} s, too little to show what it does to a cache under a limit of {}: write a rate of {}/s or more, or a smaller --memory",
        actor.order.verb(),
        bytes(Bytes(actor.bytes_per_second().unwrap_or(0).saturating_mul(MAX_FILLING_SECONDS))),
        host_settings.memory_limit_bytes.unwrap_or_default(),
        Bytes(least.next_multiple_of(actor.op_bytes.0.max(1 << 20)))
    );
    Ok(())
}

/// Refuse a method that suits none of the conditions of its workload; if it suits some, the others
/// become unavailable cells. A method that nobody typed and that cannot sync as asked is
/// unavailable, if another one can.
pub fn ensure_suited(
    methods: &[Method],
    are_typed: bool,
    workload: Workload,
    cells: &[Cell],
    machine: &Machine<'_>,
) -> Result<()> {
    let alignment = alignment(machine);
    let of_workload =
        || cells.iter().map(|cell| &cell.conditions).filter(|conditions| conditions.workload() == workload);
    for method in methods {
        if let Some(reason) = method.unsuited(workload) {
            bail!("{reason}");
        }
        if are_typed
            && let Some(reason) =
                first_of_all(of_workload().map(|conditions| method.refuses_rate(conditions)))
        {
            bail!("{reason}");
        }
        // Reads by the offset table may be refused in single cells only, which report it.
        let one_shot = of_workload().filter(|_| workload.is_one_shot());
        if let Some(reason) =
            first_of_all(one_shot.map(|conditions| method.refuses(&conditions.work, alignment)))
            && (are_typed || !others_can(cells, workload, alignment))
        {
            bail!("{reason}");
        }
    }
    Ok(())
}

/// The first reason where everything is refused; `None` if something is not, or there is nothing.
fn first_of_all(refusals: impl Iterator<Item = Option<String>>) -> Option<String> {
    refusals.collect::<Option<Vec<String>>>()?.into_iter().next()
}

/// Divisors of the sizes of buffers on this machine.
pub fn alignment(machine: &Machine<'_>) -> Alignment {
    let page_bytes = machine.environment.page_bytes;
    let direct_bytes = machine.environment.direct_alignment_bytes.unwrap_or(page_bytes);
    Alignment { direct_bytes, page_bytes }
}

/// True if methods that nobody named are left out where they cannot do the work: where syncs are
/// measured, which some do at other times, and of the reads of a trace, of which some cannot hold
/// the longest.
pub fn may_leave_out(conditions: &Conditions) -> bool {
    conditions.measures_syncs() || conditions.workload() == Workload::Replay || conditions.rate.is_some()
}

/// Reason that a method that nobody named is left out under these conditions: it cannot do the
/// work, or its buffers would take over a quarter of the memory limit.
pub fn leaves_out(method: &Method, conditions: &Conditions, alignment: Alignment) -> Option<String> {
    method.excluded_from(conditions, alignment).or_else(|| {
        let limit = conditions.host_settings.memory_limit_bytes?;
        let buffers = method.replay_buffers(&conditions.work);
        (buffers.0 > limit.0 / 4).then(|| format!("its buffers of {buffers} are over a quarter of {limit}"))
    })
}

/// True if methods may be left out, and some cell of the workload can do it.
fn others_can(cells: &[Cell], workload: Workload, alignment: Alignment) -> bool {
    cells.iter().filter(|cell| cell.conditions.workload() == workload).any(|cell| {
        may_leave_out(&cell.conditions) && leaves_out(&cell.method, &cell.conditions, alignment).is_none()
    })
}

/// Refuse a limit that limits nothing.
pub fn ensure_within_machine(limit: Bytes, memory: Bytes) -> Result<()> {
    let whole = Bytes(memory.0 >> 20 << 20);
    ensure!(limit <= memory, "a memory limit of {limit} is above this machine's memory of {whole}");
    Ok(())
}

/// Refuse settings that this machine does not support.
fn ensure_settable(conditions: &Conditions, machine: &Machine<'_>) -> Result<()> {
    let host_settings = &conditions.host_settings;
    if let Some(limit) = host_settings.memory_limit_bytes {
        if let Some(worker) = host_settings.worker_bytes {
            ensure!(
                limit > worker,
                "a memory limit of {limit} leaves no cache next to the largest worker of the plan, which takes about {worker}"
            );
        }
        if let Some(memory) = machine.environment.memory_bytes {
            ensure_within_machine(limit, memory)?;
        }
        let least = least_memory(conditions, machine);
        ensure!(
            limit >= least,
            "a memory limit of {limit} is too small for a worker here: the smallest that works is {least}"
        );
    }
    if let (Some(cap), Some(reason)) = (host_settings.device_cap, &machine.no_device) {
        bail!("the cap {cap} needs a block device that can be capped: {reason}");
    }
    if let (Some(cap), Some(of)) = (host_settings.device_cap, conditions.reads()) {
        let reads = cap.read_iops.map_or(0.0, |iops| f64::from(of.reads_per_op) / iops as f64);
        let bytes =
            cap.read_bytes_per_second.map_or(0.0, |rate| conditions.op_bytes() as f64 / rate.0 as f64);
        ensure!(
            reads.max(bytes) <= SLOWEST_OP_SECONDS,
            "under the cap {cap} one operation of {} reads of {} would take {:.0} s",
            of.reads_per_op,
            of.read_bytes,
            reads.max(bytes)
        );
    }
    if let Some(readahead) = host_settings.kernel.readahead_bytes {
        ensure!(
            readahead <= MAX_READAHEAD,
            "a readahead of {readahead} is too large: write at most {MAX_READAHEAD}"
        );
        let page_bytes = machine.environment.page_bytes;
        ensure!(
            readahead.0.is_multiple_of(page_bytes.max(1024)),
            "a readahead of {readahead} is not a whole number of pages of {page_bytes} bytes"
        );
    }
    if let Some(cpus) = &host_settings.cpus {
        let online = machine.online_cpus.numbers();
        if let Some(missing) = cpus.numbers().iter().find(|cpu| !online.contains(cpu)) {
            bail!("CPU {missing} is not online here: write CPUs of {}", machine.online_cpus);
        }
    }
    if let Some(Numa::Node(node)) = host_settings.numa {
        let nodes = &machine.numa_nodes;
        ensure!(
            nodes.contains(&node),
            "NUMA node {node} has no memory here: there {} {}",
            if nodes.len() == 1 { "is only" } else { "are" },
            nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        );
    }
    ensure!(
        host_settings.numa.is_none() || conditions.workload() != Workload::Replay,
        "pages can be placed on a NUMA node if all of them are in memory, and a replay begins with those that its program found there: \
         leave --numa out"
    );
    if host_settings.numa.is_some() && conditions.workload().is_reading() {
        ensure!(
            conditions.cache == CacheState::Warm && conditions.fits_memory(),
            "pages are placed on a NUMA node before a sample, so all of them must be in memory: use --cache warm, and data that fit in memory"
        );
    }
    Ok(())
}

/// Refuse cold reads that would use up their data before the rate under a device cap is known.
/// Where the kernel joins reads to larger requests, a cap of requests may need still more.
pub fn ensure_capped_samples_fit(plan: &Plan, page_bytes: u64) -> Result<()> {
    let cold = plan.cells.iter().filter(|cell| cell.conditions.cache == CacheState::Cold);
    let needs = cold.filter_map(|cell| CappedNeed::of(plan, cell, page_bytes));
    let Some(need) = needs.filter(|need| need.bytes > need.share).max_by_key(|need| need.least) else {
        return Ok(());
    };
    bail!(
        "under the cap {} a cold sample of {} reads {}, and of {} it may read {}: use {} or more",
        need.cap,
        time(need.sample_ns),
        bytes(Bytes(need.bytes)),
        need.span,
        bytes(Bytes(need.share)),
        need.least
    );
}

/// The bytes that a cold sample under a device cap reads, and those that it may read.
struct CappedNeed {
    cap: DeviceCap,
    sample_ns: u64,
    bytes: u64,
    span: Bytes,
    share: u64,
    /// The smallest span that has enough.
    least: Bytes,
}

impl CappedNeed {
    /// `None` for a cell without a cap, or that does not read by the table.
    fn of(plan: &Plan, cell: &Cell, page_bytes: u64) -> Option<Self> {
        let conditions = &cell.conditions;
        let (cap, reads) = (conditions.host_settings.device_cap?, conditions.reads()?);
        // A mapping may read page by page.
        let request = match cell.access() {
            Access::Mmap => reads.read_bytes.0.min(page_bytes),
            _ => reads.read_bytes.0.min(LARGE_REQUEST),
        };
        let of_requests = cap.read_iops.map(|iops| iops.saturating_mul(request));
        let of_bytes = cap.read_bytes_per_second.map(|bytes| bytes.0);
        let rate = of_requests.into_iter().chain(of_bytes).min()?;
        let (sample_ns, _) = plan.phases_ns(cell, 0);
        let bytes = (u128::from(rate) * u128::from(sample_ns) / 1_000_000_000) as u64;
        let span = conditions.span_bytes;
        let share = conditions.measured_share(conditions.cold_budget_bytes());
        let parts = span.0 / share.max(1);
        let least = Bytes(bytes.saturating_mul(parts).next_multiple_of(Bytes::mib(1).0));
        Some(Self { cap, sample_ns, bytes, span, share, least })
    }
}

/// Memory needed by a worker with such buffers, rounded up to a size that a user would write.
fn least_memory(conditions: &Conditions, machine: &Machine<'_>) -> Bytes {
    let ballast = conditions.work.parameters().ballast_bytes();
    let buffers = conditions
        .work
        .parameters()
        .buffer_bytes()
        .saturating_mul(u64::from(conditions.threads))
        .saturating_mul(2);
    let buffers =
        buffers.saturating_add(conditions.beside.as_ref().map_or(0, |actor| actor.worker_bytes().0));
    let all = machine.least_memory_bytes.saturating_add(buffers).saturating_add(ballast);
    Bytes(all.next_multiple_of(Bytes::mib(1).0))
}

/// Refuse replays that do not show whether the trace stands for its program, since none begins as
/// the recording did, and those from a state that the recording did not keep.
pub fn refuse_unlike_recording(plan: &Plan) -> Result<()> {
    let (Some(trace), Source::File { path, .. }) = (&plan.trace, &plan.source) else { return Ok(()) };
    let replayed = |cache: CacheState| plan.cells.iter().any(|cell| cell.conditions.cache == cache);
    ensure!(
        trace.began_with(CacheState::Recorded) || !replayed(CacheState::Recorded),
        "{} does not have what was in the page cache when it was recorded: record the program again with --as-is {}",
        trace.path,
        Untrusted(path)
    );
    let own = plan.own_replay().filter(|_| trace.began_with(CacheState::Recorded));
    ensure!(
        own.is_none_or(|own| trace.is_shown_by(&plan.cells[own])),
        "the program was recorded with {} of its file in the page cache, and only a replay from there shows whether its trace stands for \
         it: add {} to --cache",
        trace.cached_bytes.filter(|cached| cached.0 > 0).map_or("nothing".to_string(), bytes),
        if trace.cold { CacheState::Cold } else { CacheState::Recorded }
    );
    Ok(())
}

/// Refuse states that this source cannot have; states that a filesystem refuses later become
/// unavailable cells.
pub fn refuse_unreachable_states(cells: &[Cell], source: &Source) -> Result<()> {
    let needs_evict = matches!(source, Source::File { evict: false, .. });
    refuse_cache_of_others(cells, if needs_evict { " and --evict" } else { "" })?;
    if !needs_evict {
        return Ok(());
    }
    let dropped = |cell: &Cell| !matches!(cell.conditions.cache, CacheState::Warm | CacheState::AsIs);
    ensure!(
        !cells.iter().any(dropped),
        MissingArgument::Evict(
            "a run that begins with an empty page cache, or with a part of the file in it,"
        )
    );
    ensure!(
        !cells.iter().any(|cell| cell.conditions.host_settings.memory_limit_bytes.is_some()),
        MissingArgument::Evict("a run under a memory limit")
    );
    Ok(())
}

/// Existing page cache is charged to the group that brought it in.
fn refuse_cache_of_others(cells: &[Cell], besides: &str) -> Result<()> {
    let charged_to_others = cells.iter().any(|cell| {
        cell.conditions.cache == CacheState::AsIs
            && cell.conditions.host_settings.memory_limit_bytes.is_some()
            && cell.depends_on_cache()
    });
    ensure!(
        !charged_to_others,
        "existing page cache is not charged to the worker: with a memory limit use --cache warm, cold or cold-start{besides}"
    );
    Ok(())
}
