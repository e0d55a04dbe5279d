//! Honest samples, in which tests change one thing.

mod one_shot;
mod runtimes;

use super::*;
use crate::proof::calls;
use pagewise_model::CacheState;
use pagewise_model::sample::Placement;
use pagewise_model::{
    Actor, ActorEvidence, ActorWindow, ActorWrites, Bytes, Conditions, Consume, DeviceCap, GroupCounters,
    HostSettings, KernelSettings, MethodOption, Numa, RateWindow, Reads, Role, Work,
};

pub(crate) use one_shot::{
    append, fill, reading, replay, replay_by_three, replay_of_three_files, replay_with_gaps, scan, synced,
    update,
};

pub(crate) const CONTEXT: Context = Context {
    page_bytes: 4096,
    cpus: 4,
    answer_ns: 0,
    forgives_answers: true,
    sparse_or_compressed_bytes: false,
    memory_backed: false,
    writes_through: true,
    readahead_bytes: None,
    beating: None,
};

/// A cell that reads 16 KiB sixteen times per operation, from 256 MiB, on two threads.
pub(crate) fn cell(method: &str, cache: CacheState) -> Cell {
    let method = match method {
        "anonymous" => pagewise_model::Method::anonymous(),
        text => text.parse().expect(text),
    };
    Cell {
        role: Role::Measured,
        method,
        conditions: Conditions {
            threads: 2,
            cache,
            ..Conditions::of(
                Work::RandomRead(Reads { reads_per_op: 16, ..Reads::of(Bytes::kib(16)) }),
                Bytes::mib(256),
            )
        },
    }
}

/// The reads of a cell, mutable.
pub(crate) fn reads_mut(cell: &mut Cell) -> &mut Reads {
    cell.conditions.work.reads_mut().expect("it reads by the table")
}

/// A cell with a memory limit: `mib` of 256 MiB, so that the span fits or does not.
pub(crate) fn limited(method: &str, cache: CacheState, mib: u64) -> Cell {
    let mut cell = cell(method, cache);
    cell.conditions.host_settings.memory_limit_bytes = Some(Bytes::mib(mib));
    cell
}

/// A cell with every other setting.
pub(crate) fn set(method: &str, cache: CacheState) -> Cell {
    let mut cell = cell(method, cache);
    cell.conditions.host_settings = HostSettings {
        worker_bytes: None,
        memory_limit_bytes: None,
        device_cap: Some("read-iops=2000,read-bandwidth=50MiB/s".parse::<DeviceCap>().expect("a cap")),
        kernel: KernelSettings { readahead_bytes: Some(Bytes::kib(128)), ..Default::default() },
        cpus: Some("0-1,3".parse().expect("CPUs")),
        numa: Some(Numa::Other),
    };
    cell
}

/// A cell at a rate of 1,000 operations a second.
pub(crate) fn at_rate(method: &str, cache: CacheState) -> Cell {
    let mut cell = cell(method, cache);
    cell.conditions.rate = Some("16k/s".parse().expect("a rate"));
    cell
}

/// A cell with an actor beside it, under a limit of so many MiB or under none.
pub(crate) fn beside(method: &str, cache: CacheState, actor: &str, limit: Option<u64>) -> Cell {
    let mut cell = cell(method, cache);
    let limit = limit.map(Bytes::mib);
    cell.conditions.host_settings.memory_limit_bytes = limit;
    let actor: Actor = actor.parse().expect("an actor");
    cell.conditions.beside = Some(actor.sized(limit));
    cell
}

/// Activity of the honest actor of `cell` around a region of so many ns: four requests, the first
/// of which begins 20 ms before it.
fn actor(cell: &Cell, region_ns: u64) -> Option<ActorEvidence> {
    let actor = cell.conditions.beside.as_ref()?;
    let wall_ns = region_ns / 3;
    let rate = actor.rate.map_or(1000, |rate| rate.per_second());
    let operations = (u128::from(rate) * u128::from(wall_ns) / 1_000_000_000) as u64;
    let window = |index: i64| ActorWindow {
        began_ns: index * (wall_ns as i64 + 500_000) - 20_000_000,
        wall_ns,
        elapsed_ns: wall_ns - 100_000,
        operations,
        bytes: operations * actor.op_bytes.0,
        is_right: true,
    };
    let windows: Vec<ActorWindow> = (0..4).map(window).collect();
    let bytes = windows.iter().map(|window| window.bytes).sum();
    let records = windows.iter().map(|window| window.operations).sum();
    let writes = ActorWrites { records, syncs: records, dirty_most_bytes: Some(0), ..ActorWrites::default() };
    Some(ActorEvidence {
        bytes_before: cell.conditions.actor_bytes_before().0 + 1000,
        windows,
        device_read_bytes: Some(if actor.is_writing() { 0 } else { bytes }),
        is_in_group: Some(true),
        writes: actor.is_writing().then_some(writes),
    })
}

/// 120 operations in 100 ms, and 40 in a latency phase of 50 ms: 40 MiB in all.
pub(crate) fn measurement() -> Measurement {
    Measurement {
        setup_ns: 50_000,
        measured_ns: 100_000_000,
        operations: 120,
        teardown_ns: 9_000,
        latency_phase_ns: 50_000_000,
        latency_phase_operations: 40,
        thread_operations: vec![81, 79],
        latency_ns: vec![1_500_000, 2_000_000],
        latency_counts: vec![30, 10],
        ..Measurement::default()
    }
}

/// Operations of a cold start in eight windows of 20 ms: the last five are steady.
pub(crate) fn cold_start() -> Measurement {
    Measurement {
        measured_ns: 160_000_000,
        operations: 160,
        latency_phase_ns: 0,
        latency_phase_operations: 0,
        latency_ns: Vec::new(),
        latency_counts: Vec::new(),
        ..measurement()
    }
}

/// Measurement of `cell` by an honest worker.
pub(crate) fn measurement_of(cell: &Cell) -> Measurement {
    if cell.conditions.workload().is_one_shot() {
        return one_shot::measurement(cell);
    }
    if cell.conditions.rate.is_some() {
        // All that are due in 160 ms, some of which wait for each other.
        return Measurement {
            due_operations: 160,
            latency_ns: vec![800_000, 6_000_000],
            latency_counts: vec![152, 8],
            thread_operations: vec![80, 80],
            ..cold_start()
        };
    }
    match (cell.conditions.cache, cell.conditions.host_settings.device_cap) {
        (CacheState::ColdStart, _) => cold_start(),
        (_, None) => measurement(),
        // Under a cap a sample is long, and has no latency phase.
        (_, Some(_)) => Measurement { measured_ns: 1_050_000_000, ..cold_start() },
    }
}

/// Bytes that an honest worker requests.
fn requested(cell: &Cell) -> u64 {
    cell.conditions.bytes_of(cell.conditions.fixed_operations().unwrap_or(160))
}

/// Bytes of the span in the page cache before and after, and bytes from the device.
fn cached(cell: &Cell) -> (u64, u64, u64) {
    let requested = requested(cell);
    let span = cell.conditions.span_bytes.0;
    let holds = cell.conditions.cache_capacity().map_or(span, |capacity| capacity.0.min(span));
    let populated = cell.method.reads_all_in_setup();
    match (cell.conditions.cache, cell.depends_on_cache()) {
        (_, false) => (0, 0, if cell.method.is_direct() { requested } else { 0 }),
        (CacheState::Cold, _) if !populated => (0, requested.min(holds), requested),
        (CacheState::ColdStart, _) if !populated => (0, requested / 2, requested / 2),
        (CacheState::Warm, _) if cell.conditions.shares_cache() => (holds, holds / 2, requested / 2),
        (CacheState::Warm, _) if !cell.conditions.fits_memory() => (holds, holds, requested / 2),
        _ => (holds, holds, 0),
    }
}

fn windows(cell: &Cell, device_bytes: u64) -> Vec<RateWindow> {
    let window = |operations, device_read_bytes, resident_bytes| RateWindow {
        elapsed_ns: 20_000_000,
        operations,
        device_read_bytes: Some(device_read_bytes),
        resident_bytes: Some(resident_bytes),
        ..RateWindow::default()
    };
    match cell.conditions.cache {
        CacheState::ColdStart => {
            let third = device_bytes / 3;
            let filling = [window(10, third, third), window(10, third, 2 * third)];
            let full = window(20, device_bytes - 2 * third, device_bytes);
            filling.into_iter().chain([full]).chain([window(24, 0, device_bytes); 5]).collect()
        }
        CacheState::Warm if !cell.conditions.stays_in_memory() => vec![window(160, device_bytes, 1 << 27); 5],
        _ => Vec::new(),
    }
}

fn group(cell: &Cell, resident: u64, device_bytes: u64) -> Option<GroupCounters> {
    let host_settings = &cell.conditions.host_settings;
    let limit = host_settings.memory_limit_bytes.map(|limit| limit.0);
    let file = if cell.depends_on_cache() { resident } else { 0 };
    let taken =
        limit.zip(cell.conditions.cache_capacity()).map_or(3 << 20, |(limit, capacity)| limit - capacity.0);
    host_settings.needs_group().then(|| GroupCounters {
        version: "v2".to_string(),
        limit_bytes: limit,
        peak_bytes: Some(limit.unwrap_or(file + taken)),
        usage_bytes: Some(limit.filter(|_| cell.conditions.shares_cache()).unwrap_or(file + taken)),
        file_bytes: Some(file),
        cap_read_iops: host_settings.device_cap.and_then(|cap| cap.read_iops),
        cap_read_bytes_per_second: host_settings
            .device_cap
            .and_then(|cap| cap.read_bytes_per_second)
            .map(|bytes| bytes.0),
        device_read_bytes: Some(device_bytes),
        ..GroupCounters::default()
    })
}

/// VmFlags of a mapping with the method's advice; of random and sequential the last one counts.
fn flags(cell: &Cell) -> String {
    let pattern = cell.method.options().iter().rev().find_map(|option| match option {
        MethodOption::Random => Some(" rr"),
        MethodOption::Sequential => Some(" sr"),
        _ => None,
    });
    let of = |option, flag| if cell.method.has(option) { flag } else { "" };
    let (huge, locked) = (of(MethodOption::HugePage, " hg"), of(MethodOption::Lock, " lo"));
    format!("rd sh mr mw me ms{}{huge}{locked}", pattern.unwrap_or_default())
}

/// The supervisor's observations of `cell` with an honest worker.
pub(crate) fn evidence(cell: &Cell) -> Evidence {
    let requested = requested(cell);
    let by_calls = matches!(cell.access(), pagewise_model::Access::Pread | pagewise_model::Access::Read);
    let by_page =
        expected(&cell.method, cell.conditions.workload()).major_faults == expected::MajorFaults::OnePerPage;
    let (before, after, device_bytes) = cached(cell);
    let host_settings = &cell.conditions.host_settings;
    let measured = measurement_of(cell);
    let wall_ns = measured.measured_ns + measured.latency_phase_ns + 1_000_000;
    let seen = Evidence {
        actor: actor(cell, wall_ns),
        wall_ns,
        requested_bytes: requested,
        device_read_bytes: Some(device_bytes),
        device_other_bytes: Some(0),
        device_read_requests: Some(if device_bytes > 0 { 2560 } else { 0 }),
        read_call_bytes: Some(if by_calls { requested + 20 } else { 20 }),
        read_calls: Some(if by_calls { 2561 } else { 1 }),
        minor_faults: Some(12),
        major_faults: Some(if by_page { device_bytes / CONTEXT.page_bytes } else { 0 }),
        cpu_ns: Some(120_000_000),
        resident_before_bytes: Some(before),
        resident_after_bytes: Some(after),
        recorded_missing_bytes: (cell.conditions.cache == CacheState::Recorded).then_some(0),
        recorded_added_bytes: (cell.conditions.cache == CacheState::Recorded).then_some(0),
        residency_source: "cachestat".to_string(),
        huge_mapped_bytes: Some(after),
        mapping_flags: Some(flags(cell)),
        descriptor_direct: Some(cell.method.is_direct()),
        expected_checksum: Some(77),
        checksum: 77,
        verified_reads: 64,
        differing_reads: 0,
        steal_ns: Some(0),
        clock_step_ns: Some(0),
        group: group(cell, after, device_bytes),
        readahead_bytes: Some(host_settings.kernel.readahead_bytes.map_or(8 << 20, |bytes| bytes.0)),
        cpus_allowed: Some(host_settings.cpus.as_ref().map_or("0-3".to_string(), ToString::to_string)),
        placement: host_settings.numa.map(|numa| Placement {
            worker_node: 0,
            page_node: match numa {
                Numa::Same => 0,
                Numa::Other => 1,
                Numa::Node(node) => node,
            },
            pages: 1000,
            pages_on_node: 1000,
        }),
        windows: windows(cell, device_bytes),
        setup_device_read_bytes: Some(match (cell.method.reads_all_in_setup(), cell.conditions.cache) {
            (true, CacheState::Cold) => cell.conditions.span_bytes.0,
            _ => 0,
        }),
        ..Evidence::default()
    };
    if cell.conditions.workload().is_one_shot() { one_shot::evidence(cell, seen) } else { seen }
}

/// The kinds of failures that result from changing an honest sample; at most one.
pub(crate) fn kinds(cell: &Cell, change: impl FnOnce(&mut Measurement, &mut Evidence)) -> Vec<FailureKind> {
    kinds_in(cell, &CONTEXT, change)
}

pub(crate) fn kinds_in(
    cell: &Cell,
    context: &Context,
    change: impl FnOnce(&mut Measurement, &mut Evidence),
) -> Vec<FailureKind> {
    let (mut measurement, mut evidence) = (measurement_of(cell), evidence(cell));
    change(&mut measurement, &mut evidence);
    failures(cell, &measurement, &evidence, context).into_iter().map(|failure| failure.kind).collect()
}
