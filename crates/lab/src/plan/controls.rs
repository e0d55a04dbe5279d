//! Additional cells: controls that show the noise, and the ceilings.

use pagewise_model::{
    Access, Alignment, Append, Bytes, CacheState, Cell, Conditions, Consume, Descriptor, HostSettings,
    Method, MethodOption, Reads, Role, Sync, SyncCall, Work, Workload,
};

/// Size of the reads of the bandwidth ceiling.
const BANDWIDTH_READ: Bytes = Bytes::mib(1);
const BANDWIDTH_DEPTH: u32 = 8;
/// Consecutive reads of the ceiling of scans.
const SCAN_READS: u32 = 16;

/// One method of each comparison a second time: the difference is noise.
pub fn controls(cells: &[Cell]) -> Vec<Cell> {
    let mut controls: Vec<Cell> = Vec::new();
    for cell in cells {
        if controls.iter().any(|control| control.conditions == cell.conditions) {
            continue;
        }
        let rivals = || cells.iter().filter(|other| other.conditions == cell.conditions);
        let usual = |rival: &&Cell| rival.method.to_string() == "pread";
        // A method that some filesystems refuse would leave the comparison without a noise.
        let refusable =
            [MethodOption::Direct, MethodOption::HugePage, MethodOption::Prealloc, MethodOption::DontCache];
        let safe = |rival: &&Cell| {
            !refusable.iter().any(|option| rival.method.has(*option))
                && rival.method.access() != Access::Uring
                && rival.method.excluded_from(&rival.conditions, Alignment::ANY).is_none()
        };
        let baseline = rivals().find(usual).or_else(|| rivals().find(safe)).unwrap_or(cell);
        controls.push(Cell { role: Role::Control, ..baseline.clone() });
    }
    controls
}

/// Cells for the maxima of device and memory at the sizes that the cells issue.
pub fn ceilings(cells: &[Cell], page_bytes: u64) -> Vec<Cell> {
    let mut ceilings: Vec<Cell> = Vec::new();
    let mut add = |method: Method, conditions: Conditions| {
        // The same, whether its threads were counted or are one for each CPU.
        let conditions = Conditions { thread_per_cpu: false, ..conditions };
        let ceiling = Cell { role: Role::Ceiling, method, conditions };
        if !ceilings.contains(&ceiling) {
            ceilings.push(ceiling);
        }
    };
    for cell in cells {
        let is_copying =
            cell.copies() && !matches!(cell.conditions.workload(), Workload::Scan | Workload::Replay);
        // Records that are committed wait for the device, not for memory.
        if is_copying && is_in_memory(&cell.conditions) && !cell.conditions.is_committing() {
            let host_settings = HostSettings {
                cpus: cell.conditions.host_settings.cpus.clone(),
                numa: cell.conditions.host_settings.numa,
                ..HostSettings::default()
            };
            add(Method::anonymous(), in_memory(&cell.conditions, host_settings));
        }
        for (method, conditions) in of_device(cell, page_bytes).into_iter().chain(of_syncs(cell, page_bytes))
        {
            add(method, conditions);
        }
    }
    ceilings
}

/// Cell for the device's rate of syncs: pieces as large as those that `cell` syncs, in whole blocks
/// past the page cache, over a file that was written before.
fn of_syncs(cell: &Cell, page_bytes: u64) -> Option<(Method, Conditions)> {
    let writes = cell.conditions.writes()?;
    let synced = match writes.sync_of_records() {
        Sync::Every(bytes) => bytes,
        Sync::Commit => writes.record_bytes,
        Sync::None | Sync::End => return None,
    };
    let piece = Bytes(synced.0.checked_next_multiple_of(page_bytes)?);
    if piece > cell.conditions.file_bytes || piece > Method::MAX_BUFFER {
        return None;
    }
    let work = Work::Append(Append {
        record_bytes: piece,
        passes: 1,
        sync: Sync::Commit,
        sync_call: Some(SyncCall::Fdatasync),
    });
    let host_settings = HostSettings { memory_limit_bytes: None, ..cell.conditions.host_settings.clone() };
    let conditions = Conditions {
        work,
        threads: 1,
        cache: CacheState::Warm,
        descriptor: Descriptor::Shared,
        rate: None,
        beside: None,
        host_settings,
        ..cell.conditions.clone()
    };
    Some((Method::direct_pwrite(piece), conditions))
}

/// True if the bytes come from memory, or go there.
fn is_in_memory(conditions: &Conditions) -> bool {
    let from_cache =
        matches!(conditions.cache, CacheState::Warm | CacheState::AsIs) && conditions.stays_in_memory();
    from_cache || !conditions.workload().is_reading()
}

/// Conditions of the work in memory, without the cache or a device.
fn in_memory(conditions: &Conditions, host_settings: HostSettings) -> Conditions {
    let (work, cache) = match conditions.work {
        work if work.writes().is_some() => (work.without_sync(), CacheState::Cold),
        work => (work, CacheState::AsIs),
    };
    Conditions { work, cache, rate: None, beside: None, host_settings, ..conditions.clone() }
}

/// Cells for the device's maximum at the sizes that `cell` issues.
fn of_device(cell: &Cell, page_bytes: u64) -> Vec<(Method, Conditions)> {
    let Conditions { cache, file_bytes, .. } = cell.conditions;
    let fits = cache == CacheState::Warm && cell.conditions.stays_in_memory() && !cell.method.is_direct();
    // A ceiling reads one file, and one of several has too few bytes for it.
    if fits || cell.conditions.files() > 1 || !cell.conditions.workload().is_reading() {
        return Vec::new();
    }
    let at = |work: Work| Conditions {
        work,
        span_bytes: file_bytes,
        cache: CacheState::AsIs,
        descriptor: Descriptor::Shared,
        rate: None,
        beside: None,
        // Direct reads bypass the page cache, and the ceiling's own buffers need not fit under the
        // limit.
        host_settings: HostSettings { memory_limit_bytes: None, ..cell.conditions.host_settings.clone() },
        ..cell.conditions.clone()
    };
    let reads = |read_bytes: Bytes, reads_per_op: u32, align_bytes: Bytes, consume: Consume| Reads {
        reads_per_op,
        align_bytes: Bytes(align_bytes.0.next_multiple_of(page_bytes)),
        consume,
        ..Reads::of(read_bytes)
    };
    let mut all = Vec::new();
    let Some(own) = cell.conditions.reads() else {
        // A scan is sequential, so the device may be read in order.
        if file_bytes >= BANDWIDTH_READ {
            let sequential = reads(BANDWIDTH_READ, SCAN_READS, BANDWIDTH_READ, Consume::Touch);
            if Bytes(sequential.op_bytes()) <= file_bytes {
                all.push((Method::uring_direct(BANDWIDTH_DEPTH), at(Work::SequentialRead(sequential))));
            }
        }
        return all;
    };
    let random = |read_bytes: Bytes, reads_per_op: u32| {
        at(Work::RandomRead(reads(read_bytes, reads_per_op, own.align_bytes, own.consume)))
    };
    all.push((Method::uring_direct(Method::DEFAULT_DEPTH), random(own.read_bytes, own.reads_per_op)));
    all.push((Method::uring_direct(1), random(own.read_bytes, own.reads_per_op)));
    let by_page = cell.access() == Access::Mmap && cell.method.has(MethodOption::Random);
    if by_page
        && cell.depends_on_cache()
        && cell.conditions.workload() == Workload::RandomRead
        && own.read_bytes.0 > page_bytes
    {
        all.push((Method::uring_direct(Method::DEFAULT_DEPTH), random(Bytes(page_bytes), own.reads_per_op)));
        all.push((Method::uring_direct(1), random(Bytes(page_bytes), own.reads_per_op)));
    }
    if file_bytes >= BANDWIDTH_READ {
        all.push((Method::uring_direct(BANDWIDTH_DEPTH), random(BANDWIDTH_READ, 1)));
    }
    all
}
