//! Honest samples of one-shot work: scans, appends and fills.

use super::*;
use pagewise_model::ThreadCounters;
use pagewise_model::sample::Written;
use pagewise_model::trace::key::TraceKey;
use pagewise_model::work::Update;
use pagewise_model::{Access, Append, Fill, MethodOption, Replay, Scan, Sync};

fn once(method: &str, cache: CacheState, work: Work, file_bytes: Bytes) -> Cell {
    let mut cell = cell(method, cache);
    cell.conditions = Conditions {
        work,
        threads: 1,
        file_bytes,
        span_bytes: file_bytes,
        content: work.workload().facts().usual_content,
        ..cell.conditions
    };
    cell
}

/// A cell that counts the lines of 64 MiB.
pub(crate) fn scan(method: &str, cache: CacheState) -> Cell {
    once(method, cache, Work::Scan(Scan { consume: Consume::Lines }), Bytes::mib(64))
}

/// A cell that replays 20,000 reads of 100 MiB in all, of a file of 64 MiB.
pub(crate) fn replay(method: &str) -> Cell {
    let work = Replay {
        trace: TraceKey::default(),
        file: 0,
        files: 1,
        reads: 20_000,
        read_bytes: Bytes::mib(100),
        longest: Bytes::kib(64),
        trace_threads: 1,
        ballast: Bytes::mib(4),
        consume: Consume::Touch,
        read_ahead: 0,
        gaps_ns: None,
    };
    once(method, CacheState::Cold, Work::Replay(work), Bytes::mib(64))
}

/// The replay of three files, which together are as large.
pub(crate) fn replay_of_three_files(method: &str, cache: CacheState) -> Cell {
    let mut cell = replay(method);
    if let Work::Replay(replay) = &mut cell.conditions.work {
        replay.files = 3;
    }
    cell.conditions.cache = cache;
    cell
}

/// The replay with gaps of 60 ms in all.
pub(crate) fn replay_with_gaps(method: &str) -> Cell {
    let mut cell = replay(method);
    if let Work::Replay(replay) = &mut cell.conditions.work {
        replay.gaps_ns = Some(60_000_000);
    }
    cell
}

/// A replay by three threads of 10,000, 9,000 and 1,000 reads.
pub(crate) fn replay_by_three(method: &str) -> Cell {
    let mut cell = replay(method);
    if let Work::Replay(replay) = &mut cell.conditions.work {
        replay.trace_threads = 3;
    }
    cell.conditions.threads = 3;
    cell
}

/// A cell that appends records of 100 B to a ring of 10 MiB, in one pass.
pub(crate) fn append(method: &str, cache: CacheState) -> Cell {
    let work = Append { record_bytes: Bytes(100), passes: 1, sync: Sync::None, sync_call: None };
    once(method, cache, Work::Append(work), Bytes::mib(10))
}

/// A cell that fills a file of 16 MiB in blocks of 128 B.
pub(crate) fn fill(method: &str, cache: CacheState) -> Cell {
    let work = Fill { block_bytes: Bytes(128), sync: Sync::None, sync_call: None };
    once(method, cache, Work::Fill(work), Bytes::mib(16))
}

/// A cell that updates 500 blocks of 4 KiB in a file of 16 MiB.
pub(crate) fn update(method: &str, cache: CacheState) -> Cell {
    let work = Update {
        block_bytes: Bytes::kib(4),
        updates: 500,
        reads_per_update: 0,
        sync: Sync::None,
        sync_call: None,
    };
    once(method, cache, Work::Update(work), Bytes::mib(16))
}

/// The cell of updates with three reads before each.
pub(crate) fn reading(mut cell: Cell) -> Cell {
    match &mut cell.conditions.work {
        Work::Update(update) => update.reads_per_update = 3,
        _ => panic!("{} updates nothing", cell.id()),
    }
    cell
}

/// The cell with another time of the sync.
pub(crate) fn synced(mut cell: Cell, text: &str) -> Cell {
    let when = text.parse().expect("a sync");
    match &mut cell.conditions.work {
        Work::Append(append) => append.sync = when,
        Work::Fill(fill) => fill.sync = when,
        Work::Update(update) => update.sync = when,
        _ => panic!("{} writes nothing", cell.id()),
    }
    cell
}

/// All of the work, in 100 ms.
pub(super) fn measurement(cell: &Cell) -> Measurement {
    let conditions = &cell.conditions;
    let of_ring = || conditions.ring().map(|ring| ring.records());
    let operations = conditions.fixed_operations().or_else(of_ring).expect("it is done once");
    let syncs = match conditions.writes().map(|writes| writes.sync) {
        Some(Sync::Every(bytes)) => (operations * conditions.op_bytes()).div_ceil(bytes.0),
        Some(Sync::Commit) => operations,
        _ => 0,
    };
    let capped = cell.conditions.host_settings.device_cap.is_some();
    let timed = operations.min(1000);
    let gaps_ns = conditions.gaps_ns();
    Measurement {
        gaps_ns,
        gap_wait_ns: gaps_ns,
        setup_ns: 30_000_000,
        measured_ns: if capped { 1_050_000_000 } else { 100_000_000 },
        operations,
        teardown_ns: 20_000_000,
        sync_ns: 0,
        thread_operations: vec![operations / u64::from(conditions.threads); conditions.threads as usize],
        sync_duration_ns: if syncs > 0 { vec![500] } else { Vec::new() },
        sync_duration_counts: if syncs > 0 { vec![syncs] } else { Vec::new() },
        latency_ns: if timed > 10 { vec![80, 9000] } else { Vec::new() },
        latency_counts: if timed > 10 { vec![timed - 10, 10] } else { Vec::new() },
        ..Measurement::default()
    }
}

/// The supervisor's observations of it. The file is on a disk.
pub(super) fn evidence(cell: &Cell, seen: Evidence) -> Evidence {
    match cell.conditions.ring() {
        Some(ring) => written(cell, ring.records() * cell.conditions.op_bytes(), seen),
        None => scanned(cell, seen),
    }
}

fn scanned(cell: &Cell, seen: Evidence) -> Evidence {
    let by_calls = matches!(cell.access(), Access::Pread | Access::Read);
    let pieces = calls::reads(cell, cell.conditions.fixed_operations().unwrap_or(1));
    let several = cell.conditions.threads > 1;
    let thread_reads = if several { vec![10_000, 9_000, 1_000] } else { Vec::new() };
    let reading = thread_reads.iter().map(|reads| if by_calls { *reads } else { 0 }).chain([1]);
    let threads = reading.map(|calls| ThreadCounters {
        read_calls: Some(calls),
        cpu_ns: Some(1_000_000),
        ..ThreadCounters::default()
    });
    Evidence {
        threads: if several { threads.collect() } else { Vec::new() },
        thread_reads,
        read_calls: Some(if by_calls { pieces + 1 } else { 1 }),
        cpu_ns: Some(60_000_000),
        verified_reads: 0,
        ..seen
    }
}

fn written(cell: &Cell, written_bytes: u64, seen: Evidence) -> Evidence {
    let conditions = &cell.conditions;
    let has = |options: &[MethodOption]| options.iter().any(|option| cell.method.has(*option));
    let page = CONTEXT.page_bytes;
    let file = conditions.file_bytes.0;
    let of_records = written_bytes.min(conditions.ring().expect("it writes").bytes());
    let warm = conditions.cache.is_warm();
    let exists = warm || conditions.cache == CacheState::Cold && !conditions.makes_file();
    let made_dirty = has(&[MethodOption::PopulateWrite, MethodOption::Touch]);
    let brought_in = made_dirty || has(&[MethodOption::Populate, MethodOption::Lock, MethodOption::WillNeed]);
    let synced = conditions.writes().expect("it writes").sync;
    let mapped = cell.access() == Access::Mmap;
    let by_calls = matches!(cell.access(), Access::Pwrite | Access::Write);
    let to_file = cell.access() != Access::Anonymous;
    let between = calls::reads(cell, measurement(cell).operations);
    let between_bytes = between * conditions.op_bytes();
    let dirty = if cell.method.is_direct() || !to_file { 0 } else { of_records };
    let unless = |is: bool, bytes: u64| if is { 0 } else { bytes };
    Evidence {
        requested_bytes: written_bytes,
        device_read_bytes: Some(unless(!cell.method.is_direct(), between_bytes)),
        device_read_requests: Some(unless(!cell.method.is_direct(), between)),
        read_call_bytes: Some(unless(!by_calls, between_bytes)),
        read_calls: Some(1 + unless(!by_calls, between)),
        device_other_bytes: Some(written_bytes),
        device_written_bytes: Some(if cell.method.is_direct() || synced.is_measured() {
            written_bytes
        } else {
            0
        }),
        device_flushes: Some(measurement(cell).sync_duration_counts.iter().sum()),
        write_call_bytes: Some(if by_calls { written_bytes + 500 } else { 500 }),
        write_calls: Some(if by_calls {
            written_bytes.div_ceil(calls::largest_write_bytes(cell).expect("it writes")) + 1
        } else {
            1
        }),
        minor_faults: Some(if mapped && !made_dirty { file / page } else { 12 }),
        setup_faults: Some(if brought_in { file / page } else { 12 }),
        cpu_ns: Some(90_000_000),
        resident_before_bytes: Some(if warm || brought_in { file } else { 0 }),
        written: to_file.then(|| Written {
            read_back: if mapped { "pread" } else { "mmap" }.to_string(),
            expected_bytes: of_records,
            missing_bytes: 0,
            first_missing_at: None,
            stray_bytes: 0,
            dirty_before_bytes: Some(if made_dirty { file } else { 0 }),
            polls: u64::from(synced.is_measured()),
            dirty_most_bytes: synced.is_measured().then_some(0),
            dirty_after_bytes: Some(unless(synced.is_measured(), dirty)),
            dirty_end_bytes: Some(unless(synced != Sync::None, dirty)),
            folio_bytes: conditions.updates_cached().then_some(page),
            allocated_before_bytes: Some(if exists || made_dirty || has(&[MethodOption::Prealloc]) {
                file
            } else {
                0
            }),
        }),
        expected_checksum: Some(0),
        checksum: 0,
        verified_reads: 0,
        ..seen
    }
}
