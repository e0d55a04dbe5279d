//! Files of a plan: their sizes, and the bytes that are written.

use std::cmp::Reverse;

use super::{Plan, Source};
use crate::actor::Actor;
use crate::cell::{CacheState, Cell, Conditions};
use crate::content::Content;
use crate::ensure::ensure;
use crate::method::{Access, Alignment, MethodOption};
use crate::sync::{FOLIO_BYTES, Sync};
use crate::units::Bytes;

/// No device puts a record into safety more quickly.
const FASTEST_COMMIT_NS: u64 = 10_000;
/// The usual block of a filesystem.
const BLOCK_BYTES: u64 = 4096;
/// Rate of a device that nobody bounds, about.
const DEVICE_BYTES_PER_SECOND: u64 = 1 << 30;
/// Time at work of an actor around the measured region, about.
const ACTOR_AROUND_NS: u64 = 500_000_000;

impl Plan {
    /// Contents and sizes of the files that are read, largest first, without repetition.
    pub fn datasets(&self) -> Vec<(Content, Bytes)> {
        let read = self.cells.iter().filter(|cell| cell.conditions.workload().is_reading());
        let mut datasets: Vec<(Content, Bytes)> =
            read.map(|cell| (cell.conditions.content, cell.conditions.file_bytes)).collect();
        datasets.sort_unstable_by_key(|(content, size)| Reverse((*size, *content)));
        datasets.dedup();
        datasets
    }

    /// Sizes of the files of their own that actors write, or that they read, largest first, without
    /// repetition.
    pub fn actor_files(&self, written: bool) -> Vec<Bytes> {
        let actors = self.cells.iter().filter_map(|cell| cell.conditions.beside.as_ref());
        let actors = actors.filter(|actor| actor.is_writing() == written);
        let mut files: Vec<Bytes> = actors.filter_map(Actor::own_file_bytes).collect();
        files.sort_unstable_by_key(|size| Reverse(*size));
        files.dedup();
        files
    }

    /// The largest file that a workload writes.
    pub fn largest_written(&self) -> Option<Bytes> {
        let written = self.cells.iter().filter(|cell| !cell.conditions.workload().is_reading());
        written.map(|cell| cell.conditions.file_bytes).max()
    }

    /// Peak space that pagewise's own files take.
    pub fn space_bytes(&self) -> Bytes {
        Bytes(self.dataset_bytes().0.saturating_add(self.largest_written().map_or(0, Bytes::get)))
    }

    /// Cells that write to a file, as far as their method can; the memory ceiling writes to none.
    pub fn writing_cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| self.sample_writes(cell) > 0)
    }

    /// Bytes that a sample of `cell` makes a device write, with those of an actor.
    pub fn sample_writes(&self, cell: &Cell) -> u64 {
        self.own_writes(cell).saturating_add(self.actor_writes(&cell.conditions))
    }

    /// Bytes that an actor writes beside a sample, about.
    fn actor_writes(&self, conditions: &Conditions) -> u64 {
        let Some(actor) = conditions.beside.as_ref().filter(|actor| actor.is_writing()) else { return 0 };
        let rate = actor.bytes_per_second().unwrap_or(DEVICE_BYTES_PER_SECOND);
        let at_work_ns = self.longest_reading_ns(conditions).saturating_add(ACTOR_AROUND_NS);
        let around = u128::from(rate) * u128::from(at_work_ns) / 1_000_000_000;
        conditions.actor_bytes_before().0.saturating_add(u64::try_from(around).unwrap_or(u64::MAX))
    }

    /// Bytes that the worker makes a device write, including preparation of a warm file. A sync
    /// writes whole blocks: the last one is written again by the next sync, and the filesystem's
    /// journal takes another. A store through the mapping of a file that was written before dirties
    /// a whole folio, which each sync writes. Commits end with the sample.
    fn own_writes(&self, cell: &Cell) -> u64 {
        let conditions = &cell.conditions;
        let can_write = cell.method.access() != Access::Anonymous
            && cell.method.excluded_from(conditions, Alignment::ANY).is_none();
        match (conditions.ring(), conditions.writes()) {
            (Some(ring), Some(writes)) if can_write => {
                let before = Self::prepared_writes(conditions);
                let in_time = self.longest_reading_ns(conditions) / FASTEST_COMMIT_NS;
                let in_time = in_time.saturating_mul(u64::from(conditions.threads));
                let due = conditions.schedule().map(|schedule| schedule.all_due_within(self.sample_ns));
                let in_time = due.map_or(in_time, |due| due.min(in_time));
                let count = match writes.sync {
                    Sync::Commit => ring.records().min(in_time),
                    _ => ring.records(),
                };
                let records = count.saturating_mul(writes.record_bytes.0);
                let syncs = match writes.sync_of_records() {
                    Sync::None => 0,
                    Sync::End => 1,
                    Sync::Every(bytes) => records / bytes.0.max(1),
                    Sync::Commit => count,
                };
                // Neighbours share a folio; updates seldom do.
                let folios = if writes.is_update() { ring.records() } else { syncs };
                let beside = match before > 0 && Self::stores_into_large_folios(cell) {
                    true => folios.saturating_mul(FOLIO_BYTES).min(syncs.saturating_mul(ring.bytes())),
                    false => syncs.saturating_mul(2 * BLOCK_BYTES),
                };
                [records, before, beside].into_iter().fold(0, u64::saturating_add)
            }
            _ => 0,
        }
    }

    /// True if it stores through a mapping into a file whose folios may be large. Pages that faults
    /// bring in have folios of their own, unless advice asks for more.
    fn stores_into_large_folios(cell: &Cell) -> bool {
        let larger = [MethodOption::WillNeed, MethodOption::Sequential, MethodOption::HugePage];
        let are_large = match cell.conditions.cache {
            CacheState::WarmSmall => false,
            CacheState::Cold => larger.iter().any(|option| cell.method.has(*option)),
            _ => true,
        };
        are_large && cell.method.access() == Access::Mmap
    }

    /// Bytes of a file to write that is written once before.
    pub fn prepared_writes(conditions: &Conditions) -> u64 {
        match conditions.ring() {
            Some(ring) if !conditions.makes_file() => ring.bytes(),
            _ => 0,
        }
    }

    /// Bytes that the workloads write in the rounds that every method has.
    pub fn written_bytes(&self) -> Bytes {
        let of_cell =
            |cell: &Cell| self.sample_writes(cell).saturating_mul(u64::from(self.first_samples_of(cell)));
        Bytes(self.writing_cells().map(of_cell).fold(0u64, u64::saturating_add))
    }

    /// Bytes written to create the datasets of all blocks.
    pub fn all_dataset_bytes(&self) -> Bytes {
        Bytes(self.dataset_bytes().0.saturating_mul(u64::from(self.blocks)))
    }

    /// Bytes written to create the datasets of a block.
    pub fn dataset_bytes(&self) -> Bytes {
        let of_actors = [false, true].into_iter().flat_map(|written| self.actor_files(written));
        let read = match self.source {
            Source::Dataset { .. } => self.datasets(),
            Source::File { .. } => Vec::new(),
        };
        let sizes = read.into_iter().map(|(_, size)| size).chain(of_actors);
        Bytes(sizes.fold(0, |total, size| total.saturating_add(size.0)))
    }

    /// Check that several files are those of each replay.
    pub(crate) fn check_files(&self) -> Result<(), String> {
        let files = self.source.own_files().count() as u64;
        let bytes = self.source.own_files().map(|(_, identity)| identity.file_bytes.0);
        let bytes = bytes.fold(0, u64::saturating_add);
        let has_them = |conditions: &Conditions| {
            u64::from(conditions.files()) == files.max(1) && (files <= 1 || conditions.file_bytes.0 == bytes)
        };
        ensure(self.cells.iter().all(|cell| has_them(&cell.conditions)), || {
            format!("{files} files of {bytes} bytes: a cell of it reads other files")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Role;
    use crate::checksum::Consume;
    use crate::plan::{FileIdentity, OwnFile};
    use crate::trace::TraceKey;
    use crate::work::{Replay, Work};

    #[test]
    fn an_update_writes_its_block_or_its_folio() {
        let writes = |method: &str, cache| {
            let sync = Sync::Every(Bytes::mib(1));
            let update = crate::work::Update {
                block_bytes: Bytes::kib(4),
                updates: 512,
                reads_per_update: 0,
                sync,
                sync_call: None,
            };
            let conditions = Conditions { cache, ..Conditions::of(Work::Update(update), Bytes::mib(64)) };
            let method = method.parse().expect("a method");
            Plan::of(Vec::new()).sample_writes(&Cell { role: Role::Measured, method, conditions }) >> 20
        };
        // The file is written before, in both states; there are two syncs.
        assert_eq!([CacheState::Cold, CacheState::Warm].map(|cache| writes("pwrite", cache)), [66, 66]);
        assert_eq!([CacheState::Cold, CacheState::Warm].map(|cache| writes("mmap", cache)), [66, 194]);
        assert_eq!(writes("mmap", CacheState::WarmSmall), 66);
        assert_eq!(writes("mmap:willneed", CacheState::Cold), 194, "readahead makes folios larger");
    }

    /// A run file may come from anybody.
    #[test]
    fn several_files_are_those_of_each_cell() {
        let identity =
            |mib| FileIdentity { device: 1, inode: mib, file_bytes: Bytes::mib(mib), modified_ns: 0 };
        let plan = |files: u32, mib: u64, others: &[u64]| {
            let replay = Replay {
                trace: TraceKey::default(),
                file: 0,
                files,
                reads: 9,
                read_bytes: Bytes(9),
                longest: Bytes(1),
                trace_threads: 1,
                ballast: Bytes(0),
                consume: Consume::Touch,
                read_ahead: 0,
                gaps_ns: None,
            };
            let other = |mib: &u64| OwnFile { path: mib.to_string(), identity: identity(*mib) };
            let conditions = Conditions::of(Work::Replay(replay), Bytes::mib(mib));
            let method = "pread".parse().expect("a method");
            let cells = vec![Cell { role: Role::Measured, method, conditions }];
            let others = others.iter().map(other).collect();
            let source = Source::File {
                path: "f".into(),
                evict: true,
                identity: identity(1),
                others,
                directory: None,
            };
            Plan { source, ..Plan::of(cells) }
        };
        for (files, mib, others) in [(1, 1, &[][..]), (2, 3, &[2]), (3, 8, &[2, 5])] {
            assert_eq!(plan(files, mib, others).check_limits(), Ok(()));
        }
        for (files, mib, others) in [(2, 1, &[][..]), (1, 3, &[2]), (2, 2, &[2]), (3, 3, &[2])] {
            let refused = plan(files, mib, others).check_limits().expect_err("refused");
            assert!(refused.contains("a cell of it reads other files"), "{refused}");
        }
        assert_eq!(plan(3, 8, &[2, 5]).source.shown(), "f and 2 other files");
        assert_eq!(plan(1, 1, &[]).source.shown(), "f");
        let mut other_work = plan(2, 3, &[2]);
        other_work.cells[0].conditions.work = Work::RandomRead(crate::Reads::of(Bytes::kib(4)));
        other_work.check_limits().expect_err("reads by a table are of one file");
    }

    #[test]
    fn an_actor_that_writes_has_a_file_and_bytes_of_its_own() {
        let reads = crate::Reads::of(Bytes::kib(4));
        let beside = |actor: &str| {
            let beside = Some(actor.parse().expect("an actor"));
            let conditions = Conditions { beside, ..Conditions::of(Work::RandomRead(reads), Bytes::mib(8)) };
            Cell { role: Role::Measured, method: "pread".parse().expect("a method"), conditions }
        };
        let cells = ["append:pwrite,rate=20MiB/s,file=64MiB", "scan:pread,rate=max,file=64MiB"].map(beside);
        let plan = Plan { sample_ns: 450_000_000, ..Plan::of(cells.to_vec()) };
        assert_eq!(
            (plan.actor_files(true), plan.actor_files(false)),
            (vec![Bytes::mib(64)], vec![Bytes::mib(64)])
        );
        assert_eq!(plan.dataset_bytes(), Bytes::mib(136));
        assert_eq!(plan.cells.iter().map(|cell| plan.sample_writes(cell) >> 20).collect::<Vec<_>>(), [22, 0]);
        assert_eq!(plan.largest_written(), None, "no sample makes a file");
    }

    #[test]
    fn a_sync_writes_blocks_or_a_folio() {
        let writes = |method: &str, cache, sync: Sync| {
            let append = crate::Append { record_bytes: Bytes(128), passes: 1, sync, sync_call: None };
            let conditions = Conditions { cache, ..Conditions::of(Work::Append(append), Bytes::mib(4)) };
            Plan::of(Vec::new()).sample_writes(&Cell {
                role: Role::Measured,
                method: method.parse().expect("a method"),
                conditions,
            })
        };
        const MIB: u64 = 1 << 20;
        let each_kib = Sync::Every(Bytes::kib(1));
        assert_eq!(writes("pwrite", CacheState::Cold, Sync::None), 4 * MIB);
        assert_eq!(writes("pwrite", CacheState::Warm, Sync::None), 8 * MIB);
        assert_eq!(writes("pwrite", CacheState::Cold, each_kib), 4 * MIB + 4096 * 2 * 4096);
        // 100 ms and a third of them more take 13,333 commits.
        assert_eq!(writes("pwrite", CacheState::Cold, Sync::Commit), 13_333 * (128 + 2 * 4096));
        let each_byte = Sync::Every(Bytes(1));
        assert_eq!(
            writes("pwrite", CacheState::Cold, each_byte),
            4 * MIB + (4 * MIB / 128) * 2 * 4096,
            "a sync for each record"
        );
        assert_eq!(writes("mmap", CacheState::Cold, each_kib), 4 * MIB + 4096 * 2 * 4096);
        assert_eq!(writes("mmap", CacheState::Warm, Sync::Every(Bytes::mib(1))), 8 * MIB + 4 * 2 * MIB);
    }
}
