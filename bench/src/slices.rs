//! Loops alternating in one process in slices of a few milliseconds.
//!
//! One and the same loop differs by one to five percent from one opening to the next, for as long
//! as it is open. (Running it on four buffers and four descriptors in turn showed up to 1.5 % by
//! buffer and nothing by descriptor; the rest is not explained.) So all loops are opened anew again
//! and again, in random order, and an opening is one observation.
//!
//! Every thread lives through all slices of a cell, and has its own engine reader and its own bare
//! loops. At the start of each slice all threads meet at a barrier; a slice lasts from the first
//! thread's first clock to the last thread's last one, whichever loop it ran. All slices of a cell
//! do the same number of reads, each the next ones of the offset table, and what they consumed is
//! compared with what the file holds.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use pagewise_engine::clock::now_ns;
use pagewise_engine::operations::Latencies;
use pagewise_engine::reader::{self, TablePart};
use pagewise_engine::sampling::timed::Limits;
use pagewise_engine::sampling::{Bounds, Phases, ThreadWork, Turn, empty_latencies};
use pagewise_model::pieces::{Masks, piece_reads};
use pagewise_model::random::Random;
use pagewise_model::{Consume, Method};
use pagewise_protocol::{Go, Job, PhaseBounds, SamplingPolicy};
use pagewise_sys::{FileMapping, SharedMemory};

use crate::bare::Bare;
use crate::cell::Cell;
use crate::dataset::{CONTENT_SEED, Dataset};
use crate::offsets::{Offsets, Table};

/// Reads of a thread's offset table.
const TABLE_READS: u64 = 1 << 20;

/// Which loop a slice runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The engine's throughput phase.
    Engine,
    /// The same with each thread's part of the table in one piece: what pieces cost.
    OnePiece,
    /// The bare loop.
    Bare,
    /// The bare loop again, with a mapping and buffers of its own: what it differs by is noise.
    Control,
}

const SIDES: [Side; 4] = [Side::Engine, Side::OnePiece, Side::Bare, Side::Control];

/// Draws the offset table of each thread.
pub fn draw_tables(dataset: &Dataset, cell: &Cell, seed: u64) -> Vec<Table> {
    let operations = TABLE_READS / u64::from(cell.reads_per_op());
    let seed_of = |thread: u32| seed.wrapping_add(u64::from(thread));
    (0..cell.threads)
        .map(|thread| Table::draw(cell, dataset.file_bytes, operations, seed_of(thread)))
        .collect()
}

/// Rates in reads per second, pair by pair.
#[derive(Default)]
pub struct Rates {
    /// Of the engine.
    pub engine: Vec<f64>,
    /// Of the engine with a table in one piece.
    pub one_piece: Vec<f64>,
    /// Of the bare loop.
    pub bare: Vec<f64>,
    /// Of the bare loop again.
    pub control: Vec<f64>,
}

/// One thread with all its loops.
struct Lane<'a> {
    engine: EngineSide,
    one_piece: EngineSide,
    bare: Bare,
    control: Bare,
    offsets: Offsets<'a>,
    reads_per_op: usize,
}

/// What one thread did in one slice.
pub struct TimedSlice {
    /// First clock.
    pub started_ns: u64,
    /// Last clock.
    pub ended_ns: u64,
    checksum: u64,
}

/// Loops of a cell, open and warm.
pub struct Slices<'a> {
    lanes: Vec<Lane<'a>>,
}

impl<'a> Slices<'a> {
    /// Opens all sides in random order and fills their page tables.
    pub fn open(dataset: &Dataset, cell: &Cell, tables: &'a [Table], random: &mut Random) -> Result<Self> {
        let (mut engine, mut one_piece, mut bare, mut control) = (vec![], vec![], vec![], vec![]);
        let mut order = SIDES;
        random.shuffle(&mut order);
        for side in order {
            match side {
                Side::Engine => engine = engine_sides(dataset, cell, cell.access.name(), tables, true)?,
                Side::OnePiece => one_piece = engine_sides(dataset, cell, cell.access.name(), tables, false)?,
                Side::Bare => bare = Bare::open(&dataset.path, cell)?,
                Side::Control => control = Bare::open(&dataset.path, cell)?,
            }
        }
        let lanes = engine.into_iter().zip(one_piece).zip(bare).zip(control).zip(tables);
        let reads_per_op = cell.reads_per_op() as usize;
        let lanes = lanes.map(|((((engine, one_piece), bare), control), table)| Lane {
            engine,
            one_piece,
            bare,
            control,
            offsets: table.offsets(),
            reads_per_op,
        });
        Ok(Self { lanes: lanes.collect() })
    }

    /// Operations of one thread that take the bare loop about `slice_ns`.
    pub fn calibrate(&mut self, slice_ns: u64) -> Result<usize> {
        let mut operations = 8;
        for _ in 0..6 {
            let rates = self.run(&[Side::Bare; 5], operations)?;
            let mut elapsed: Vec<u64> = rates.iter().map(|(_, elapsed_ns)| *elapsed_ns).collect();
            elapsed.sort_unstable();
            let factor = slice_ns as f64 / elapsed[elapsed.len() / 2] as f64;
            operations = ((operations as f64 * factor.min(16.0)) as usize).clamp(1, self.most_operations());
        }
        Ok(operations)
    }

    fn most_operations(&self) -> usize {
        self.lanes[0].offsets.reads().len() / self.lanes[0].reads_per_op
    }

    /// Alternates the three sides, in random order within each pair.
    pub fn pairs(&mut self, pairs: usize, operations: usize, random: &mut Random) -> Result<Rates> {
        let mut order = Vec::with_capacity(3 * pairs);
        for _ in 0..pairs {
            let mut sides = SIDES;
            random.shuffle(&mut sides);
            order.extend(sides);
        }
        let reads = (operations * self.lanes[0].reads_per_op * self.lanes.len()) as f64;
        let mut rates = Rates::default();
        for (side, elapsed_ns) in self.run(&order, operations)? {
            let rate = reads * 1e9 / elapsed_ns as f64;
            match side {
                Side::Engine => rates.engine.push(rate),
                Side::OnePiece => rates.one_piece.push(rate),
                Side::Bare => rates.bare.push(rate),
                Side::Control => rates.control.push(rate),
            }
        }
        Ok(rates)
    }

    /// Runs slices in this order and returns how long each took.
    fn run(&mut self, order: &[Side], operations: usize) -> Result<Vec<(Side, u64)>> {
        if order.contains(&Side::Engine) {
            for Lane { engine, one_piece, offsets, reads_per_op, .. } in &mut self.lanes {
                engine.put(*offsets, operations * *reads_per_op);
                one_piece.put(*offsets, operations * *reads_per_op);
            }
        }
        let phases = Phases::of(self.lanes.len());
        let slices: Vec<Result<Vec<TimedSlice>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .lanes
                .iter_mut()
                .map(|lane| scope.spawn(|| lane.run(order, operations, &phases)))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a lane does not panic")).collect()
        });
        let slices = slices.into_iter().collect::<Result<Vec<_>>>()?;
        for (lane, slices) in self.lanes.iter().zip(&slices) {
            lane.verify(order, slices, operations)?;
        }
        Ok(order.iter().enumerate().map(|(slice, side)| (*side, extent(&slices, slice))).collect())
    }
}

/// From the first thread's start to the last thread's end.
fn extent(slices: &[Vec<TimedSlice>], slice: usize) -> u64 {
    let of_slice = || slices.iter().map(|thread| &thread[slice]);
    let started = of_slice().map(|slice| slice.started_ns).min().unwrap_or(0);
    let ended = of_slice().map(|slice| slice.ended_ns).max().unwrap_or(0);
    ended.saturating_sub(started).max(1)
}

/// What a thread of a job does, and the memory of its table in pieces of so many reads.
pub struct EngineSide {
    work: Box<dyn ThreadWork>,
    memory: SharedMemory,
    piece_reads: usize,
    touch_at: u64,
    /// For the next sample, made ahead as a worker does.
    latencies: Latencies,
}

impl EngineSide {
    /// Put the table in place, where each slice of so many reads begins anew.
    pub fn put(&mut self, offsets: Offsets<'_>, slice_reads: usize) {
        self.touch_at = offsets.touch_at() as u64;
        let reads = offsets.reads();
        let mut words = self.memory.bytes_mut().chunks_exact_mut(8);
        for slice in (0..reads.len()).step_by(slice_reads) {
            let mut masks = Masks::default();
            let end = reads.len().min(slice + slice_reads);
            let of_piece = if self.piece_reads == 0 { slice_reads } else { self.piece_reads };
            for piece in (slice..end).step_by(of_piece) {
                let part = offsets.part(piece, of_piece.min(end - piece));
                for (offset, word) in part.reads().iter().zip(&mut words) {
                    word.copy_from_slice(&(offset ^ masks.mask()).to_le_bytes());
                }
                if end - slice > 2 * of_piece {
                    masks.end_piece(part.expected_checksums(CONTENT_SEED).1);
                }
            }
        }
    }

    /// The throughput phase of a sample, ended by a count so that it does the same reads as the
    /// bare loop.
    pub fn sample(&mut self, first: usize, operations: usize, phases: &Phases) -> Result<TimedSlice> {
        let bounds = PhaseBounds::of_throughput(operations as u64, 0);
        let limits = Limits { bounds, policy: SamplingPolicy::default() };
        let (first_operation, touch_at) = (first as u64, self.touch_at);
        let go = Go { first_operation, sample_ns: u64::MAX / 2, touch_at, ..Go::default() };
        let latencies = std::mem::replace(&mut self.latencies, empty_latencies());
        // `sample` meets the others twice: at the start and behind the throughput phase.
        let turn = Turn { thread: 0, go: &go, phases, latencies };
        let sample = self.work.sample(Bounds::Timed(limits), turn);
        let sample = sample.map_err(|failure| anyhow!("{}", failure.detail))?;
        ensure!(
            sample.operations == operations as u64,
            "the engine did {} of {operations} operations",
            sample.operations
        );
        let (started_ns, ended_ns) = (sample.started_ns, sample.ended_ns);
        Ok(TimedSlice { started_ns, ended_ns, checksum: sample.checksum })
    }
}

/// The readers of a job, and the table of each thread.
pub fn engine_sides(
    dataset: &Dataset,
    cell: &Cell,
    method: &str,
    tables: &[Table],
    in_pieces: bool,
) -> Result<Vec<EngineSide>> {
    let method: Method = method.parse().map_err(|error| anyhow!("{error}"))?;
    let page_bytes = rustix::param::page_size() as u64;
    let job = Job {
        method: method.to_string(),
        workload: cell.workload.name().into(),
        path: dataset.path.to_str().context("a path that is text")?.to_string(),
        file_bytes: dataset.file_bytes,
        span_bytes: dataset.file_bytes,
        threads: cell.threads,
        descriptor: "shared".into(),
        read_bytes: cell.read_bytes.0,
        reads_per_op: cell.reads_per_op(),
        piece_reads: match in_pieces {
            true => piece_reads(&method, u64::from(cell.reads_per_op()), TABLE_READS),
            false => 0,
        },
        consume: "touch".into(),
        page_bytes,
        direct_flag: rustix::fs::OFlags::DIRECT.bits(),
        direct_alignment: page_bytes,
        warm_page_tables: 1,
        ..Job::default()
    };
    // Shared memory, as a worker gets it, for each thread of its own.
    let (mut memories, mut parts) = (Vec::new(), Vec::new());
    for table in tables {
        let reads = table.offsets().reads().len();
        let mut memory = SharedMemory::create("table", reads * 8)?;
        memory.bytes_mut().fill(0);
        let mapping = Arc::new(FileMapping::new(memory.file(), reads * 8, true)?);
        parts.push(TablePart::new(mapping, 0..reads, job.piece_reads));
        memories.push(memory);
    }
    let opened = reader::open(&method, &job, Consume::Touch, false, parts)
        .map_err(|failure| anyhow!("{}", failure.detail))?;
    let mut sides = Vec::new();
    for (mut work, memory) in opened.into_iter().zip(memories) {
        work.warm_page_tables();
        let (piece_reads, latencies) = (job.piece_reads as usize, empty_latencies());
        sides.push(EngineSide { work, memory, piece_reads, touch_at: 0, latencies });
    }
    Ok(sides)
}

impl Lane<'_> {
    /// A thread that fails goes on to meet the others at each barrier, and reports it at the end.
    fn run(&mut self, order: &[Side], operations: usize, phases: &Phases) -> Result<Vec<TimedSlice>> {
        let slices: Vec<_> = order
            .iter()
            .enumerate()
            .map(|(slice, side)| self.slice(*side, slice, operations, phases))
            .collect();
        slices.into_iter().collect()
    }

    fn slice(&mut self, side: Side, slice: usize, operations: usize, phases: &Phases) -> Result<TimedSlice> {
        let first = self.first_operation(slice, operations);
        match side {
            Side::Engine => self.engine.sample(first, operations, phases),
            Side::OnePiece => self.one_piece.sample(first, operations, phases),
            Side::Bare | Side::Control => self.bare(side, first, operations, phases),
        }
    }

    fn bare(&mut self, side: Side, first: usize, operations: usize, phases: &Phases) -> Result<TimedSlice> {
        let offsets = part_of(self.offsets, first, operations, self.reads_per_op);
        let bare = if side == Side::Bare { &mut self.bare } else { &mut self.control };
        phases.meet();
        let started_ns = now_ns();
        let checksum = bare.read(offsets);
        let ended_ns = now_ns();
        phases.meet();
        Ok(TimedSlice { started_ns, ended_ns, checksum: checksum.context("the bare loop failed")? })
    }

    /// Each slice goes on where the one before ended, and never across the end of the table.
    fn first_operation(&self, slice: usize, operations: usize) -> usize {
        let slices = self.offsets.reads().len() / self.reads_per_op / operations;
        slice % slices * operations
    }

    fn verify(&self, order: &[Side], slices: &[TimedSlice], operations: usize) -> Result<()> {
        let mut expected: Vec<(u64, u64)> = Vec::new();
        for (slice, (timed, side)) in slices.iter().zip(order).enumerate() {
            let first = self.first_operation(slice, operations);
            let index = first / operations;
            if index == expected.len() {
                let part = part_of(self.offsets, first, operations, self.reads_per_op);
                expected.push(part.expected_checksums(CONTENT_SEED));
            }
            let (alike, weighted) = expected[index];
            ensure!(
                timed.checksum
                    == if matches!(side, Side::Engine | Side::OnePiece) { weighted } else { alike },
                "slice {slice} consumed other bytes than the file's"
            );
        }
        Ok(())
    }
}

fn part_of(offsets: Offsets<'_>, first: usize, operations: usize, reads_per_op: usize) -> Offsets<'_> {
    offsets.part(first * reads_per_op, operations * reads_per_op)
}

#[cfg(test)]
mod tests {
    use pagewise_model::Bytes;

    use super::*;
    use crate::dataset::Scratch;

    #[test]
    fn both_sides_consume_the_same_bytes_in_all_cells() {
        let parent = tempfile::tempdir().expect("folder");
        let scratch = Scratch::new(parent.path()).expect("scratch");
        let dataset = Dataset::create(&scratch, Bytes::mib(4)).expect("written");
        for cell in Cell::all() {
            let tables = draw_tables(&dataset, &cell, 1);
            let mut random = Random::new(1);
            let mut slices = Slices::open(&dataset, &cell, &tables, &mut random).expect("opens");
            let rates = slices.pairs(7, 3, &mut random).expect("checksums agree");
            assert_eq!((rates.engine.len(), rates.bare.len(), rates.control.len()), (7, 7, 7));
        }
    }
}
