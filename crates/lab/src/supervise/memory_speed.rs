//! Bandwidth of this machine's memory, measured when a cell is first sampled: no method that copies
//! or examines all bytes is faster. It is used by a check, is not a ceiling of the run, and does
//! not depend on a worker.
//!
//! Timed region: `for each chunk of the memory: memcpy(buffer, chunk)`, or counting a byte in it.
//! The memory is not larger than what the cell's accesses reach, and chunks are at least a page, so
//! that caches help as much as possible; the fastest of several intervals counts.

use std::hint::black_box;
use std::time::Duration;

use pagewise_analysis::proof::plausible::MEMORY_FACTOR;
use pagewise_host::memory::Memory;
use pagewise_model::{Access, Cell, Conditions, Consume, MethodOption, Skew};
use pagewise_sys::AnonymousMemory;
use rustix::time::ClockId;

/// Maximum memory: larger than most CPU caches.
const MEMORY_MAX_BYTES: u64 = 128 << 20;
/// Maximum where less than eight times that is available.
const SCARCE_MAX_BYTES: u64 = 8 << 20;
/// Bounds of the size of a chunk.
const CHUNK_MAX_BYTES: u64 = 4 << 20;
const CHUNK_MIN_BYTES: u64 = 4 << 10;
/// Size of the pieces of a scan.
const PIECE_BYTES: u64 = 64 << 10;
/// Number of intervals, and their minimum length.
const INTERVALS: usize = 5;
const INTERVAL: Duration = Duration::from_millis(1);
/// Bytes between two readings of the clock, at least: a reading takes as long as some ten copies of
/// a page in a cache of the CPU.
const READING_BYTES: usize = 4 << 20;
/// Number of further measurements before a sample is called faster.
const AGAIN: usize = 20;
/// Pause before a further measurement where a sample would be called implausible: other load on the
/// memory may last a while.
const PAUSE: Duration = Duration::from_millis(50);

/// Kind of a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CopyKind {
    memory_bytes: usize,
    chunk_bytes: usize,
    /// True if bytes are examined in place instead of copied.
    in_place: bool,
}

/// Measured bandwidths.
#[derive(Default)]
pub struct MemorySpeeds(Vec<(CopyKind, u64)>);

impl MemorySpeeds {
    /// Bytes per second that the threads of `cell` can copy, or examine in place where its method
    /// may do so; `None` if there is no memory for it. If a sample was faster (`rate` bytes per
    /// second), measure again: other load may have slowed the first measurement.
    pub fn of(&mut self, cell: &Cell, cpus: u32, rate: f64) -> Option<u64> {
        let kind = kind(cell);
        let threads = u64::from(cell.conditions.threads.min(cpus).max(1));
        let index = match self.0.iter().position(|(known, _)| *known == kind) {
            Some(index) => index,
            None => {
                self.0.push((kind, measure(kind).ok()?));
                self.0.len() - 1
            }
        };
        let known = &mut self.0[index].1;
        for _ in 0..AGAIN {
            if rate <= known.saturating_mul(threads) as f64 {
                break;
            }
            if rate > known.saturating_mul(threads) as f64 * MEMORY_FACTOR {
                std::thread::sleep(PAUSE);
            }
            *known = (*known).max(measure(kind).ok()?);
        }
        Some(known.saturating_mul(threads))
    }
}

fn kind(cell: &Cell) -> CopyKind {
    let conditions = &cell.conditions;
    let chunk_bytes = conditions.work.parameters().access_bytes().unwrap_or(PIECE_BYTES);
    let chunk_bytes = chunk_bytes.clamp(CHUNK_MIN_BYTES, CHUNK_MAX_BYTES);
    let most = if is_scarce() { SCARCE_MAX_BYTES } else { MEMORY_MAX_BYTES };
    let skewed = conditions.reads().is_some_and(|reads| reads.skew != Skew::Uniform);
    // Popular positions are in the nearest caches.
    let reached = if skewed { chunk_bytes } else { reached_bytes(conditions) };
    // A method that examines all bytes need not copy them; one that touches a word of each page has
    // copied the rest, or has not read it.
    let all_bytes = matches!(conditions.consume(), Some(Consume::Sum | Consume::Lines));
    let may_stay = cell.method.has(MethodOption::InPlace) || cell.access() == Access::Unknown;
    CopyKind {
        memory_bytes: reached.min(most).max(chunk_bytes) as usize,
        chunk_bytes: chunk_bytes as usize,
        in_place: all_bytes && may_stay,
    }
}

/// Bytes of the span that accesses can reach: those between what is drawn and the next aligned
/// offset are in no read.
fn reached_bytes(conditions: &Conditions) -> u64 {
    let span_bytes = conditions.span_bytes.0;
    let Some(reads) = conditions.reads() else { return span_bytes };
    let (drawn_bytes, align_bytes) = (reads.drawn_bytes(conditions.workload()), reads.align_bytes.0);
    if drawn_bytes < align_bytes { span_bytes / align_bytes * drawn_bytes } else { span_bytes }
}

/// True if the machine has too little memory for the maximum.
fn is_scarce() -> bool {
    Memory::read().available_bytes.is_some_and(|available| available < 8 * MEMORY_MAX_BYTES)
}

/// Bytes per second.
fn measure(kind: CopyKind) -> std::io::Result<u64> {
    let mut memory = AnonymousMemory::new(kind.memory_bytes)?;
    memory.bytes_mut().fill(1);
    let mut buffer = AnonymousMemory::new(kind.chunk_bytes)?;
    buffer.bytes_mut().fill(1);
    let speeds = (0..INTERVALS).map(|_| {
        let (started, mut bytes) = (cpu_time(), 0u64);
        while cpu_time() - started < INTERVAL {
            for _ in 0..passes(kind.memory_bytes) {
                bytes += go_through(memory.bytes(), buffer.bytes_mut(), kind);
            }
        }
        let used_ns = (cpu_time() - started).as_nanos().max(1);
        (u128::from(bytes) * 1_000_000_000 / used_ns) as u64
    });
    Ok(speeds.max().unwrap_or(0))
}

/// Passes between two readings of the clock.
fn passes(memory_bytes: usize) -> usize {
    READING_BYTES.div_ceil(memory_bytes.max(1))
}

/// CPU time of this thread, which excludes other processes.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Copy or examine the memory once; return its bytes.
#[inline(never)]
fn go_through(memory: &[u8], buffer: &mut [u8], kind: CopyKind) -> u64 {
    let chunks = memory.chunks_exact(kind.chunk_bytes);
    if kind.in_place {
        return chunks
            .map(|chunk| (black_box(memchr::memchr_iter(b'\n', chunk).count()) + chunk.len()) as u64)
            .sum();
    }
    let mut bytes = 0;
    for chunk in chunks {
        buffer[..chunk.len()].copy_from_slice(chunk);
        black_box(&mut *buffer);
        bytes += chunk.len() as u64;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use pagewise_model::{Bytes, Reads, Work};

    use super::*;

    #[test]
    fn the_clock_is_no_part_of_a_small_memory() {
        for memory_bytes in [1, 4096, 48 << 10, 4 << 20, 128 << 20] {
            let between = passes(memory_bytes) * memory_bytes;
            assert!((READING_BYTES..READING_BYTES + memory_bytes).contains(&between), "{memory_bytes}");
        }
    }

    #[test]
    fn what_lies_between_reads_is_not_reached() {
        let of = |work: fn(Reads) -> Work, read_bytes, align_bytes| {
            let reads =
                Reads { align_bytes: Bytes(align_bytes), reads_per_op: 4, ..Reads::of(Bytes(read_bytes)) };
            reached_bytes(&Conditions::of(work(reads), Bytes::mib(64)))
        };
        let random =
            [(512, 4096), (4096, 4096), (16384, 4096)].map(|(read, align)| of(Work::RandomRead, read, align));
        assert_eq!(random, [8 << 20, 64 << 20, 64 << 20]);
        // Reads of a sequential operation follow each other.
        assert_eq!([512, 1024].map(|read| of(Work::SequentialRead, read, 4096)), [32 << 20, 64 << 20]);
    }

    #[test]
    fn all_of_the_memory_is_gone_through() {
        for in_place in [false, true] {
            for (memory_bytes, chunk_bytes) in [(4096, 4096), (1 << 20, 5000), (8 << 20, 4 << 20)] {
                let kind = CopyKind { memory_bytes, chunk_bytes, in_place };
                let mut buffer = vec![0; chunk_bytes];
                let whole = (memory_bytes / chunk_bytes * chunk_bytes) as u64;
                assert_eq!(go_through(&vec![7; memory_bytes], &mut buffer, kind), whole);
                assert!(in_place || buffer.iter().all(|byte| *byte == 7));
                assert!(measure(kind).expect("memory") > 0);
            }
        }
    }
}
