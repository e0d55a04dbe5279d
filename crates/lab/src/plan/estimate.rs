//! Estimated duration and written bytes of a plan, shown before it starts.

use pagewise_model::{
    Access, CacheState, Cell, Conditions, Method, MethodOption, Plan, Role, Worker, Workload,
};

/// Time of a sample outside its phases: a process, set-up, evidence, verification, tear-down.
const OVERHEAD_NS: u64 = 45_000_000;
/// Writing or reading a dataset, assuming a disk of 500 MB/s.
const DATASET_NS_PER_BYTE: u64 = 2;
/// Cost of a group: made, emptied, removed.
const GROUP_NS: u64 = 60_000_000;
/// An actor that is started, at its pace, and ended.
const ACTOR_NS: u64 = 250_000_000;
/// Windows in which the workload warms a cache that cannot hold all.
const SETTLING_WINDOWS: u64 = 4;
/// Windows of a cold start and of what shows that it is over.
const COLD_START_WINDOWS: u64 = 5;
/// Reading or writing memory: the pace of one-shot work that never waits for the device.
const MEMORY_NS_PER_BYTE: u64 = 1;
/// Cost of a record with most methods, however small; more with a call for each.
const RECORD_NS: u64 = 100;
/// A request to a device of which nothing is known, alone in flight.
const REQUEST_NS: u64 = 100_000;
/// A crossing is looked for in the interval between two sizes of the grid, half as large again.
const GRID_STEP: f64 = 0.5;
/// Methods of a step of the search.
const STEP_METHODS: u64 = 2;
/// Crossings that a set of curves usually has.
const CROSSINGS: u64 = 2;

/// Time of the samples of the first rounds.
pub fn first_rounds_ns(plan: &Plan) -> u64 {
    let of_cell = |cell: &Cell| sample_ns(plan, cell).saturating_mul(u64::from(plan.first_samples_of(cell)));
    plan.cells.iter().map(of_cell).fold(0, u64::saturating_add)
}

/// Time of all samples of a plan with a budget.
pub fn budget_ns(plan: &Plan) -> Option<u64> {
    plan.budget.map(|budget| budget.ns(first_rounds_ns(plan)))
}

/// Approximate duration, including the search. Saturating, since sizes are refused only when they
/// are compared with the disk.
pub fn duration_ns(plan: &Plan) -> u64 {
    let samples = first_rounds_ns(plan).max(budget_ns(plan).unwrap_or(0));
    samples.saturating_add(beside_samples_ns(plan))
}

/// The part of it that is spent on other things than samples of the matrix.
pub fn beside_samples_ns(plan: &Plan) -> u64 {
    let largest = plan.datasets().first().map_or(0, |(_, size)| size.0);
    let writing = plan.all_dataset_bytes().0.saturating_mul(DATASET_NS_PER_BYTE);
    // Each round that goes from cold to warm reads the file once more.
    let states = |state| {
        plan.cells.iter().any(|cell| {
            cell.conditions.cache == state && cell.conditions.host_settings.memory_limit_bytes.is_none()
        })
    };
    let warmings = if states(CacheState::Warm) {
        if states(CacheState::Cold) { u64::from(plan.first_rounds()) } else { 1 }
    } else {
        0
    };
    let warming = largest.saturating_mul(DATASET_NS_PER_BYTE).saturating_mul(warmings);
    [search_ns(plan), writing, warming].into_iter().fold(0, u64::saturating_add)
}

/// Bytes that a run writes: its datasets and the rounds that every method has.
pub fn first_written_bytes(plan: &Plan) -> u64 {
    plan.all_dataset_bytes().0.saturating_add(plan.written_bytes().0)
}

/// Bytes that a run writes at most, approximately: later rounds write as fast as the first ones, up
/// to the plan's limit.
pub fn most_written_bytes(plan: &Plan) -> u64 {
    let (first_ns, samples) = (first_rounds_ns(plan).max(1), plan.written_bytes().0);
    let times = budget_ns(plan).map_or(1.0, |budget_ns| (budget_ns as f64 / first_ns as f64).max(1.0));
    let all = (samples as f64 * times) as u64;
    let limited = plan.max_written_bytes.map_or(all, |limit| all.min(limit.0.max(samples)));
    plan.all_dataset_bytes().0.saturating_add(limited)
}

/// One sample of `cell`, from set-up to tear-down.
pub fn sample_ns(plan: &Plan, cell: &Cell) -> u64 {
    let conditions = &cell.conditions;
    let overhead_ns = OVERHEAD_NS + start_ns(cell.method.worker());
    if let Some(once_ns) = once_ns(cell) {
        // A replay takes as long as its program, as far as anybody knows before it, or as that
        // without its gaps.
        let gaps_ns = conditions.gaps_ns();
        let trace = plan.trace.as_ref().filter(|_| conditions.workload() == Workload::Replay);
        let program_ns = trace.and_then(|trace| trace.wall_ns).unwrap_or(0);
        let left_out_ns = trace.and_then(|trace| trace.gaps_ns).filter(|_| gaps_ns == 0).unwrap_or(0);
        let replay_ns = program_ns.saturating_sub(left_out_ns);
        let once_ns = once_ns.saturating_add(gaps_ns);
        return once_ns.max(replay_ns).saturating_add(overhead_ns).saturating_add(actor_ns(conditions));
    }
    let (throughput_ns, latency_ns) = plan.phases_ns(cell, 0);
    let mut all = throughput_ns + latency_ns + overhead_ns;
    all += plan.lead_in_ns(cell).unwrap_or(0);
    if conditions.host_settings.needs_group() {
        all += GROUP_NS;
    }
    let through_cache = cell.depends_on_cache();
    all = all.saturating_add(actor_ns(conditions));
    if conditions.cache == CacheState::ColdStart && through_cache {
        all += COLD_START_WINDOWS * plan.sample_ns;
    }
    if let Some(capacity) = conditions.cache_capacity().filter(|_| through_cache) {
        let warmed = conditions.span_bytes.0.min(capacity.0).saturating_mul(DATASET_NS_PER_BYTE);
        // Where others use the cache too, the method itself goes through its data, at its rate.
        let at_rate = conditions.schedule().filter(|_| conditions.shares_cache());
        let passed = at_rate
            .map_or(0, |schedule| schedule.due_ns(0, conditions.span_bytes.0 / conditions.op_bytes().max(1)));
        all = all.saturating_add(warmed.max(passed));
        if !conditions.stays_in_memory() {
            all = all.saturating_add(SETTLING_WINDOWS * plan.sample_ns);
        }
    }
    all
}

/// Time from the start of an actor to the moment at which the cache is what it makes of it.
fn actor_ns(conditions: &Conditions) -> u64 {
    let Some(actor) = &conditions.beside else { return 0 };
    let filling = conditions.actor_bytes_before().0;
    let filling_ns = match actor.bytes_per_second() {
        Some(rate) => (u128::from(filling) * 1_000_000_000 / u128::from(rate.max(1))) as u64,
        None => filling.saturating_mul(DATASET_NS_PER_BYTE),
    };
    ACTOR_NS.saturating_add(filling_ns)
}

/// Time that a worker takes to start and, if its code is compiled as it runs, to warm up.
fn start_ns(worker: &Worker) -> u64 {
    match worker {
        Worker::Native => 0,
        Worker::Jvm => 1_500_000_000,
        Worker::Go | Worker::Python | Worker::Other(_) => 100_000_000,
    }
}

/// Duration of one-shot work, including reading it back.
fn once_ns(cell: &Cell) -> Option<u64> {
    let conditions = &cell.conditions;
    let operations = conditions.fixed_operations()?;
    let bytes = conditions.bytes_of(operations);
    let capped = conditions.host_settings.device_cap.and_then(|cap| cap.read_bytes_per_second);
    let of_device = match capped {
        Some(rate) => 1_000_000_000 / rate.0.max(1),
        None if conditions.cache == CacheState::Cold && conditions.workload().is_reading() => {
            DATASET_NS_PER_BYTE
        }
        None => MEMORY_NS_PER_BYTE,
    };
    let of_records = match conditions.workload().is_reading() {
        true => 0,
        false => {
            operations.saturating_mul(RECORD_NS).saturating_add(bytes.saturating_mul(MEMORY_NS_PER_BYTE))
        }
    };
    let by_requests_ns = requests(cell, bytes).saturating_mul(REQUEST_NS);
    let of_records = of_records.saturating_add(reads_between_ns(cell, operations));
    let scheduled_ns = conditions.schedule().map_or(0, |schedule| schedule.due_ns(0, operations));
    let at_once_ns = bytes.saturating_mul(of_device).max(by_requests_ns).saturating_add(of_records);
    Some(at_once_ns.max(scheduled_ns))
}

/// Duration of the reads between updates: each is a request, unless the page cache has its block.
fn reads_between_ns(cell: &Cell, updates: u64) -> u64 {
    let conditions = &cell.conditions;
    let reads_each = conditions.writes().map_or(0, |writes| u64::from(writes.reads_each));
    let is_request = cell.method.is_direct() || conditions.cache == CacheState::Cold;
    let of_one = if is_request { REQUEST_NS / u64::from(cell.method.depth()) } else { RECORD_NS };
    updates.saturating_mul(reads_each).saturating_mul(of_one)
}

/// Requests for bytes of a cold file that wait for each other: those of a method that reads nothing
/// ahead.
fn requests(cell: &Cell, bytes: u64) -> u64 {
    let (method, conditions) = (&cell.method, &cell.conditions);
    // How long a replay takes is known from its program.
    let is_cold = conditions.cache == CacheState::Cold && conditions.workload() == Workload::Scan;
    let request_bytes = match cell.access() {
        Access::Mmap if method.has(MethodOption::Random) => rustix::param::page_size() as u64,
        _ if method.has(MethodOption::Random) || method.is_direct() => {
            method.buffer().unwrap_or(Method::DEFAULT_BUFFER).0
        }
        _ => return 0,
    };
    if is_cold { bytes / request_bytes.max(1) / u64::from(method.depth()) } else { 0 }
}

/// Duration of halving the intervals of crossings.
pub fn search_ns(plan: &Plan) -> u64 {
    let Some(search) = &plan.search else { return 0 };
    let tolerance = f64::from(search.tolerance_thousandths) / 1000.0;
    let steps = ((1.0 + GRID_STEP).ln() / (1.0 + tolerance).ln()).log2().ceil().max(1.0) as u64;
    let measured: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.role == Role::Measured).collect();
    let Some(longest) = measured.iter().map(|cell| sample_ns(plan, cell)).max() else { return 0 };
    let mut spans: Vec<u64> = measured.iter().map(|cell| cell.conditions.span_bytes.0).collect();
    spans.sort_unstable();
    spans.dedup();
    let curves = (plan.comparisons().len() / spans.len().max(1)).max(1) as u64;
    let windows = if search.prefetch_windows.is_empty() { 0 } else { curves * spans.len() as u64 };
    let step = STEP_METHODS + u64::from(plan.cells.iter().any(|cell| cell.role == Role::Control));
    let samples = (curves * CROSSINGS * steps * step + windows) * u64::from(plan.first_rounds());
    samples.saturating_mul(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Layer;
    use crate::plan::resolve::Variant;
    use crate::plan::resolve::tests::resolved;

    /// Sizes and samples are fixed, so that it is the same work on every machine.
    #[test]
    fn a_fleet_takes_half_a_minute() {
        let plan = resolved("fleet", Variant::Standard, &Layer::default());
        assert!((10..=30).contains(&(duration_ns(&plan) / 1_000_000_000)), "{}", duration_ns(&plan));
        assert!(plan.is_fixed() && plan.written_bytes().0 == 0);
        let measured = plan.cells.iter().filter(|cell| cell.role == Role::Measured);
        assert_eq!((measured.count(), plan.comparisons().len()), (10, 2));
    }

    #[test]
    fn what_is_read_page_by_page_takes_a_request_for_each() {
        let plan = resolved("scan", Variant::Quick, &Layer::default());
        let is_cold = |cell: &&Cell| cell.conditions.cache == CacheState::Cold && cell.role == Role::Measured;
        let cell = plan.cells.iter().find(is_cold).expect("a cold cell");
        let by = |method: &str| Cell { method: method.parse().expect("a method"), ..cell.clone() };
        let pages = cell.conditions.span_bytes.0 / rustix::param::page_size() as u64;
        assert!(sample_ns(&plan, &by("mmap:random")) >= pages * REQUEST_NS);
        assert!(sample_ns(&plan, &by("mmap")) < pages * REQUEST_NS / 4, "it is read ahead");
        let deep = sample_ns(&plan, &by("uring:direct+depth=32+buffer=4KiB"));
        assert!(deep < pages * REQUEST_NS / 4, "requests in flight do not wait for each other");
    }
}
