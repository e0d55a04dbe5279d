//! Checks that bytes were synced when the worker says so, and by a call that reached the device.
//!
//! Four pieces of evidence that the worker does not control: pages that are dirty at the end of the
//! measured region ([`super::writes`]) or while it lasts, bytes that the device wrote, and flushes
//! of its volatile cache.

use pagewise_model::{Access, CacheState, FOLIO_BYTES, Sync};

use super::subject::Subject;
use crate::statistics::total;

/// A page that is written to during its writeback counts twice.
const COUNTED_TWICE: u64 = 2;
/// Smallest share of the written bytes that the device must have written, and of the syncs that
/// must have flushed it; the rest allows for counters that are read a little later.
const NEARLY_ALL: f64 = 0.98;
/// Smallest share of its waiting that a thread that commits spends in syncs. It waits for the
/// writeback of a page that it changes again, too.
const WAITS_FOR_SYNCS: f64 = 0.25;

impl Subject<'_> {
    /// Syncs that the worker claims.
    fn syncs(&self) -> u64 {
        total(&self.measurement.sync_duration_counts)
    }

    /// Writes that may be under way at once.
    fn writes_in_flight(&self) -> u64 {
        let (threads, depth) = (self.cell.conditions.threads, self.cell.method.depth());
        u64::from(threads).saturating_mul(u64::from(depth))
    }

    /// Size of the folios that are counted as dirty: calls make them as large as what they write;
    /// faults, and files that were written before, have larger ones.
    fn folio_bytes(&self) -> u64 {
        match self.cell.conditions.cache {
            CacheState::WarmSmall => self.context.page_bytes.max(self.asked().write_bytes),
            CacheState::Cold => self.written_at_once(),
            _ => FOLIO_BYTES,
        }
    }

    /// Bytes that the device writes for one that is dirty: the blocks of a call, whatever its
    /// folio; all of the folio of a mapping.
    pub(super) fn written_at_once(&self) -> u64 {
        let is_by_calls = matches!(self.cell.access(), Access::Pwrite | Access::Write | Access::Uring);
        let piece = self.asked().write_bytes;
        if is_by_calls { piece.next_power_of_two().max(self.context.page_bytes) } else { FOLIO_BYTES }
    }

    /// When it was to sync within the measured region, if it writes a file.
    fn measured_sync(&self) -> Option<Sync> {
        let sync = self.cell.method.sync_of(&self.cell.conditions.writes()?);
        (sync.is_measured() && self.cell.access() != Access::Anonymous).then_some(sync)
    }
}

/// Syncs that are missing, or do not fit into the measured region.
pub(super) fn inconsistent_syncs(subject: &Subject<'_>) -> Option<String> {
    subject.measured_sync()?;
    subject.claims().wrong_syncs(&subject.asked())
}

/// A single thread that commits waits for its syncs and for little else. What it waited in all is
/// known from the time that the process used a CPU or waited for one, so durations that are much
/// shorter are invented.
pub(super) fn invented_durations(subject: &Subject<'_>) -> Option<String> {
    subject.measured_sync().filter(|sync| *sync == Sync::Commit)?;
    // Direct writes wait for the device, several threads for each other, and records at a rate for
    // their moments.
    let conditions = &subject.cell.conditions;
    let waits_elsewhere =
        subject.cell.method.is_direct() || conditions.threads > 1 || conditions.rate.is_some();
    if waits_elsewhere || subject.context.memory_backed {
        return None;
    }
    let (evidence, measurement) = (subject.evidence, subject.measurement);
    let busy = evidence.cpu_ns?.saturating_add(evidence.run_queue_ns?);
    let waited = measurement.measured_ns.saturating_sub(busy);
    let ends = measurement.sync_duration_ns.iter().zip(&measurement.sync_duration_counts);
    let syncs = ends.fold(0u64, |sum, (ns, count)| sum.saturating_add(ns.saturating_mul(*count)));
    (syncs < (waited as f64 * WAITS_FOR_SYNCS) as u64).then(|| {
        format!("the syncs add up to {syncs} ns, and the worker waited {waited} ns or more within the measured region")
    })
}

/// While the worker writes, no more pages may be dirty than are written between two syncs, and in
/// flight.
pub(super) fn synced_late(subject: &Subject<'_>) -> Option<String> {
    let sync = subject.measured_sync()?;
    let cell = subject.cell;
    if super::writes::makes_dirty(&cell.method) {
        return None;
    }
    let seen = subject.evidence.written.as_ref()?.dirty_most_bytes?;
    let page = subject.context.page_bytes;
    let (piece, folio) = (subject.asked().write_bytes, subject.folio_bytes());
    let pieces = subject.writes_in_flight().saturating_add(1).saturating_mul(piece.next_multiple_of(page));
    let interval = match sync {
        // Neighbours share a folio; updates seldom do.
        Sync::Every(bytes) if cell.conditions.writes()?.is_update() => {
            bytes.0.div_ceil(piece.max(1)).saturating_mul(folio.max(page))
        }
        Sync::Every(bytes) => bytes.0.next_multiple_of(page),
        _ => 0,
    };
    let at_once = interval.saturating_add(pieces).saturating_add(2 * folio);
    let most = at_once.saturating_mul(COUNTED_TWICE);
    (seen > most).then(|| {
        format!("sync={sync} is not in force: {seen} bytes of the file were dirty at once, {most} may be")
    })
}

/// Check that synced data were written to the device.
pub(super) fn synced_bytes_missing(subject: &Subject<'_>) -> Option<String> {
    let sync = subject.measured_sync()?;
    let (evidence, context) = (subject.evidence, subject.context);
    if context.memory_backed || context.sparse_or_compressed_bytes {
        return None;
    }
    // What is overwritten before its sync is written once.
    let ring = subject.cell.conditions.ring()?.bytes();
    if matches!(sync, Sync::Every(bytes) if bytes.0 >= ring) {
        return None;
    }
    let (written, claimed) = (subject.device_written_at_most()?, evidence.requested_bytes);
    ((written as f64) < claimed as f64 * NEARLY_ALL).then(|| {
        format!(
            "sync={sync} is not in force: the device wrote {written} bytes of the {claimed} that were synced"
        )
    })
}

/// Each sync that makes bytes durable flushes the device's volatile cache. A direct write that
/// syncs flushes nothing where the device lets it bypass that cache (FUA).
pub(super) fn not_flushed(subject: &Subject<'_>) -> Option<String> {
    let sync = subject.measured_sync()?;
    let call = subject.cell.sync_call()?;
    let bypasses = call.is_write() && subject.cell.method.is_direct() && subject.context.writes_through;
    if subject.context.memory_backed || !call.is_durable() || bypasses {
        return None;
    }
    let (flushes, syncs) = (subject.evidence.device_flushes?, subject.syncs());
    // Several writes in flight that sync may share a flush.
    let at_once = if call.is_write() { subject.writes_in_flight() } else { 1 };
    let least = (syncs as f64 * NEARLY_ALL / at_once.max(1) as f64) as u64;
    (flushes < least).then(|| {
        format!("sync={sync} is not in force: {syncs} syncs by {call} were reported, the device was flushed {flushes} times")
    })
}

#[cfg(test)]
mod tests {
    use pagewise_model::CacheState::Cold;
    use pagewise_model::FailureKind::{InconsistentCounts, NotInForce};
    use pagewise_model::sample::Written;
    use pagewise_model::{Append, Bytes, Cell, CheckContext, FailureKind, SyncCall, Work};

    use crate::proof::honest::{CONTEXT, append, kinds, kinds_in, synced};

    /// Records of 100 B in a ring of 10 MiB, synced every 64 KiB: 160 syncs.
    fn every(method: &str) -> Cell {
        synced(append(method, Cold), "every:64KiB")
    }

    fn by(call: SyncCall, cell: Cell) -> Cell {
        let mut cell = cell;
        if let Work::Append(append) = &mut cell.conditions.work {
            *append = Append { sync_call: Some(call), ..*append };
        }
        cell
    }

    #[test]
    fn syncs_that_are_missing_are_noticed() {
        let counts = |counts: Vec<u64>| {
            kinds(&every("pwrite"), |measurement, evidence| {
                measurement.sync_duration_counts = counts;
                evidence.device_flushes = None;
            })
        };
        // A sync follows the record with which the interval is full.
        assert_eq!((counts(vec![159]), counts(vec![158])), (vec![], vec![InconsistentCounts]));
        assert_eq!(counts(vec![1 << 40]), [InconsistentCounts], "they do not fit into the region");
    }

    fn with_dirty(cell: &Cell, most: u64) -> Vec<FailureKind> {
        let poll = |written: &mut Written| (written.polls, written.dirty_most_bytes) = (3, Some(most));
        kinds(cell, |_, evidence| poll(evidence.written.as_mut().expect("read back")))
    }

    #[test]
    fn what_is_synced_only_at_the_end_is_dirty_before() {
        let cell = every("pwrite");
        assert_eq!(with_dirty(&cell, 128 << 10), []);
        assert_eq!(with_dirty(&cell, 256 << 10), [NotInForce]);
        assert_eq!(with_dirty(&every("mmap"), 4 << 20), [], "a folio may be as large");
        assert_eq!(with_dirty(&every("mmap"), 9 << 20), [NotInForce]);
        let commit = synced(append("pwrite", Cold), "commit");
        assert_eq!(
            (with_dirty(&commit, 32 << 10), with_dirty(&commit, 64 << 10)),
            (vec![], vec![NotInForce])
        );
        let mut several = commit;
        several.conditions.threads = 32;
        let seen = with_dirty(&several, 256 << 10);
        assert!(!seen.contains(&NotInForce), "each thread has a record in flight: {seen:?}");
    }

    #[test]
    fn synced_bytes_reach_the_device() {
        let device = |cell: &Cell, bytes: u64, context: &CheckContext| {
            kinds_in(cell, context, |_, evidence| evidence.device_written_bytes = Some(bytes))
        };
        let (cell, all) = (every("pwrite"), 10_485_700);
        assert_eq!(device(&cell, all, &CONTEXT), []);
        assert_eq!(device(&cell, all / 2, &CONTEXT), [NotInForce]);
        let compressed = CheckContext { sparse_or_compressed_bytes: true, ..CONTEXT };
        assert_eq!(device(&cell, all / 2, &compressed), []);
        assert_eq!(device(&synced(append("pwrite", Cold), "every:16MiB"), all / 2, &CONTEXT), []);
    }

    #[test]
    fn a_commit_waits_for_its_syncs() {
        let commit = synced(append("pwrite", Cold), "commit");
        let with = |cell: &Cell, share_in_syncs: f64| {
            kinds(cell, |measurement, evidence| {
                let (region, records) = (measurement.measured_ns, measurement.operations);
                (evidence.cpu_ns, evidence.run_queue_ns) = (Some(region / 5), Some(region / 5));
                evidence.device_flushes = None;
                measurement.sync_duration_ns =
                    vec![((region as f64 * share_in_syncs) as u64 / records).max(1)];
                measurement.sync_duration_counts = vec![records];
            })
        };
        assert_eq!(with(&commit, 0.5), []);
        assert_eq!(with(&commit, 0.1), [InconsistentCounts], "60 % of the region were waited");
        let direct = synced(append("pwrite:direct+buffer=100B", Cold), "commit");
        assert!(!with(&direct, 0.1).contains(&InconsistentCounts), "its writes wait for the device");
    }

    #[test]
    fn each_durable_sync_flushes_the_device() {
        let flushed = |cell: &Cell, flushes| kinds(cell, |_, evidence| evidence.device_flushes = flushes);
        let cell = every("pwrite");
        assert_eq!(flushed(&cell, Some(160)), []);
        assert_eq!(flushed(&cell, Some(100)), [NotInForce]);
        assert_eq!(flushed(&cell, None), [], "the device has no volatile cache");
        assert_eq!(flushed(&by(SyncCall::SyncFileRange, cell), Some(0)), [], "it is not durable");
        let direct = synced(append("pwrite:direct+buffer=64KiB", Cold), "every:64KiB");
        let by_write = by(SyncCall::ODsync, direct.clone());
        assert_eq!(flushed(&by_write, Some(0)), [], "it may write through");
        let cannot = CheckContext { writes_through: false, ..CONTEXT };
        let unflushed = kinds_in(&by_write, &cannot, |_, evidence| evidence.device_flushes = Some(0));
        assert_eq!(unflushed, [NotInForce], "a device without FUA must be flushed");
        assert_eq!(flushed(&direct, Some(0)), [NotInForce]);
        assert_eq!(Bytes::kib(64).0 * 160, 10 << 20);
    }
}
