//! Checks that written bytes are in the file, and that the file was new, or written before, as the
//! cell requests.
//!
//! A writer's claim proves nothing: the file is read back by another access once the writer has
//! exited ([`Written`]). Without that there is no result. A copy to anonymous memory writes no
//! file, and has no such evidence.

use pagewise_model::sample::Written;
use pagewise_model::{Access, CacheState, Method, MethodOption, RecordRing, Sync};

use super::conditions::not_all_from_device;
use super::subject::{SYNC_BYTES, Subject};
use crate::proof::calls;
use pagewise_model::format::percent_of;

/// Smallest share of directly written bytes that must have reached the device; the rest allows for
/// a block that two writes share.
const ALL_TO_DEVICE: f64 = 0.98;
/// Largest share of the written bytes that may have been read from the device on a warm file.
const NONE_FROM_DEVICE: f64 = 0.001;
/// From this share of the written bytes, the device is involved.
const DEVICE_SHARE: f64 = 0.01;
/// The device may write this multiple of the bytes that reached the file, and [`METADATA_BYTES`]:
/// metadata and the journal.
const WRITTEN_FACTOR: f64 = 1.25;
/// See [`WRITTEN_FACTOR`].
const METADATA_BYTES: u64 = 8 << 20;
/// A mapping makes no write calls except for the answer.
const ANSWER_BYTES: u64 = 1 << 20;

impl Subject<'_> {
    /// The positions of records, if the sample writes a file.
    fn ring_in_file(&self) -> Option<RecordRing> {
        let ring = self.cell.conditions.ring()?;
        (self.cell.access() != Access::Anonymous).then_some(ring)
    }

    fn has_any(&self, options: &[MethodOption]) -> bool {
        has_any(&self.cell.method, options)
    }
}

fn has_any(method: &Method, options: &[MethodOption]) -> bool {
    options.iter().any(|option| method.has(*option))
}

/// True if set-up makes pages of the file dirty before the clock starts.
pub(super) fn makes_dirty(method: &Method) -> bool {
    has_any(method, &[MethodOption::PopulateWrite, MethodOption::Touch]) || method.pretouch().is_some()
}

/// True if set-up may bring pages of the file into the page cache, including holes.
fn brings_in(method: &Method) -> bool {
    let all = [
        MethodOption::Populate,
        MethodOption::PopulateRead,
        MethodOption::WillNeed,
        MethodOption::Lock,
        MethodOption::Prealloc,
    ];
    makes_dirty(method) || has_any(method, &all)
}

/// True if set-up allocates blocks of the file. In memory a block is a page, so reading a hole
/// allocates one there.
fn allocates(method: &Method, memory_backed: bool) -> bool {
    let in_memory = [MethodOption::Populate, MethodOption::PopulateRead, MethodOption::Lock];
    makes_dirty(method)
        || method.has(MethodOption::Prealloc)
        || (memory_backed && has_any(method, &in_memory))
}

/// Each position must hold the record that was written there last, and nothing may be written where
/// no record belongs.
pub(super) fn lost_records(subject: &Subject<'_>) -> Option<String> {
    let ring = subject.ring_in_file()?;
    let record = subject.cell.conditions.op_bytes();
    let Some(written) = &subject.evidence.written else {
        return subject
            .is_complete()
            .then(|| "the file was not read back, so the records are not proven to be in it".to_string());
    };
    let expected = subject.operations().min(ring.slots()).saturating_mul(record);
    if written.expected_bytes != expected {
        return Some(format!(
            "{} bytes of records were looked for in the file, it must hold {expected}",
            written.expected_bytes
        ));
    }
    let Written { missing_bytes, stray_bytes, first_missing_at, .. } = *written;
    let missing = (missing_bytes > 0).then(|| {
        let first = first_missing_at.map_or(String::new(), |at| format!("; the first is missing at offset {at}"));
        let (count, of) = (missing_bytes.div_ceil(record), expected / record);
        format!(
            "{missing_bytes} of {expected} bytes of records are not in the file{first} ({count} records of {of})"
        )
    });
    let other_bytes =
        (stray_bytes > 0).then(|| format!("{stray_bytes} bytes are in the file where no record belongs"));
    let found: Vec<String> = missing.into_iter().chain(other_bytes).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// The kernel counts the results of write(2) and pwrite(2): `vfs_write` adds to wchar and syscw
/// (fs/read_write.c). A mapping makes no calls, and io_uring's writes bypass these counters.
pub(super) fn missing_writes(subject: &Subject<'_>) -> Option<String> {
    if !matches!(subject.cell.access(), Access::Pwrite | Access::Write) {
        return None;
    }
    let claimed = subject.evidence.requested_bytes;
    if let Some(bytes) = subject.evidence.write_call_bytes.filter(|bytes| *bytes < claimed) {
        return Some(format!(
            "{bytes} bytes went through write calls, {claimed} were reported to be in the file"
        ));
    }
    let fewest = claimed.div_ceil(calls::largest_write_bytes(subject.cell)?);
    let made = subject.evidence.write_calls.filter(|made| *made < fewest)?;
    Some(format!("{made} write calls were made, {claimed} bytes take at least {fewest}"))
}

/// A mapping must be written by stores, not by calls.
pub(super) fn mapping_makes_calls(subject: &Subject<'_>) -> Option<String> {
    subject.ring_in_file().filter(|_| subject.cell.access() == Access::Mmap)?;
    let most = subject.evidence.requested_bytes / 100 + ANSWER_BYTES;
    let bytes = subject.evidence.write_call_bytes.filter(|bytes| *bytes > most)?;
    Some(format!("{bytes} bytes went through write calls, {} makes none", subject.cell.method))
}

/// A new file must have no blocks, no cached pages and no dirty pages, except for those of the
/// method's own set-up. A page is allowed: filesystems keep small metadata next to the inode.
pub(super) fn not_new(subject: &Subject<'_>) -> Option<String> {
    subject.ring_in_file().filter(|_| subject.cell.conditions.makes_file())?;
    let (evidence, page) = (subject.evidence, subject.context.page_bytes);
    let method = &subject.cell.method;
    let resident = evidence.resident_before_bytes;
    let (allocated, dirty) = before(evidence.written.as_ref());
    let over = |bytes: Option<u64>, is_of_setup: bool| bytes.filter(|bytes| *bytes > page && !is_of_setup);
    if let Some(bytes) = over(allocated, allocates(method, subject.context.memory_backed)) {
        return Some(format!("{bytes} bytes of the file had blocks before it began: it was not new"));
    }
    if let Some(bytes) = over(resident, brings_in(method)) {
        return Some(format!(
            "{bytes} bytes of the file were in the page cache before it began: it was not new"
        ));
    }
    if let Some(bytes) = over(dirty, makes_dirty(method)) {
        return Some(format!("{bytes} bytes of the file were dirty before it began: it was not new"));
    }
    (resident.is_none() && allocated.is_none())
        .then(|| "neither residency nor blocks are known, so the file is not proven to be new".to_string())
}

/// Blocks and dirty bytes before the clock started.
fn before(written: Option<&Written>) -> (Option<u64>, Option<u64>) {
    written.map_or((None, None), |written| (written.allocated_before_bytes, written.dirty_before_bytes))
}

/// A cold file that is updated was written before and has left the page cache, except for what the
/// method's own set-up brings in. A direct write finds nothing there either.
pub(super) fn not_evicted(subject: &Subject<'_>) -> Option<String> {
    let conditions = &subject.cell.conditions;
    subject.ring_in_file().filter(|_| conditions.cache == CacheState::Cold && !conditions.makes_file())?;
    let page = subject.context.page_bytes;
    match subject.evidence.resident_before_bytes {
        None => Some("residency is unknown, so the file is not proven to be cold".to_string()),
        Some(bytes) if bytes > page && !brings_in(&subject.cell.method) => {
            Some(format!("{bytes} bytes of the file were in the page cache before it began"))
        }
        Some(_) => None,
    }
}

/// A file that was written before must have its blocks, and no dirty pages except for those of the
/// method's own set-up. If it is warm, it must be in the page cache and need nothing from the
/// device.
pub(super) fn not_written_before(subject: &Subject<'_>) -> Option<String> {
    let conditions = &subject.cell.conditions;
    let is_warm = conditions.cache.is_warm();
    let is_known = is_warm || conditions.cache == CacheState::Cold;
    let ring = subject.ring_in_file().filter(|_| is_known && !conditions.makes_file())?;
    let (evidence, page) = (subject.evidence, subject.context.page_bytes);
    let (allocated, dirty) = before(evidence.written.as_ref());
    let in_cache = is_warm && subject.cell.depends_on_cache() && conditions.fits_memory();
    let resident = evidence.resident_before_bytes;
    let short = |bytes: Option<u64>| bytes.filter(|bytes| bytes.div_ceil(page) < ring.bytes().div_ceil(page));
    let all = ring.bytes();
    if let Some(bytes) = short(resident).filter(|_| in_cache) {
        let share = percent_of(bytes, all);
        return Some(format!("{bytes} of {all} bytes ({share}) were in the page cache before it began"));
    }
    if let Some(bytes) = short(allocated).filter(|_| !subject.context.sparse_or_compressed_bytes) {
        return Some(format!(
            "{bytes} of {all} bytes had blocks before it began: the file was not written before"
        ));
    }
    if let Some(bytes) = dirty.filter(|bytes| *bytes > 0 && !makes_dirty(&subject.cell.method)) {
        return Some(format!("{bytes} bytes of the file were still dirty before it began"));
    }
    if let Some(sentence) = read_back_in(subject).filter(|_| in_cache) {
        return Some(sentence);
    }
    (resident.is_none() && allocated.is_none()).then(|| {
        "neither residency nor blocks are known, so the file is not proven to have been written before"
            .to_string()
    })
}

/// Folios must have one page where small ones were asked for: they decide what a store makes dirty.
/// In memory there is no writeback, and no answer.
pub(super) fn folios_not_small(subject: &Subject<'_>) -> Option<String> {
    subject.ring_in_file().filter(|_| subject.cell.conditions.cache == CacheState::WarmSmall)?;
    let page = subject.context.page_bytes;
    match subject.evidence.written.as_ref()?.folio_bytes {
        Some(bytes) if bytes > page => Some(format!(
            "the file is in the page cache in folios of {bytes} bytes, and not of a page of {page}"
        )),
        Some(_) => None,
        None if subject.context.memory_backed => None,
        None => Some("the size of its folios is unknown, so they are not proven to be small".to_string()),
    }
}

/// A file in the page cache must need nothing from the device.
fn read_back_in(subject: &Subject<'_>) -> Option<String> {
    let most = (subject.evidence.requested_bytes as f64 * NONE_FROM_DEVICE) as u64;
    let own = subject.allowance();
    if let Some(read) = subject.device_bytes().filter(|read| *read > most.max(own.code_bytes)) {
        return Some(format!("{read} bytes came from the device for a file that was in the page cache"));
    }
    let mapped = subject.cell.access() == Access::Mmap;
    let faults = subject.evidence.major_faults.filter(|faults| mapped && *faults > own.code_faults)?;
    Some(format!("{faults} major faults occurred"))
}

/// fallocate(2) must allocate all blocks of the file, or it had no effect.
pub(super) fn not_preallocated(subject: &Subject<'_>) -> Option<String> {
    subject.ring_in_file().filter(|_| subject.has_any(&[MethodOption::Prealloc]))?;
    let (page, file) = (subject.context.page_bytes, subject.cell.conditions.file_bytes.0);
    let (allocated, _) = before(subject.evidence.written.as_ref());
    let bytes = allocated.filter(|bytes| bytes.div_ceil(page) < file.div_ceil(page))?;
    Some(format!("fallocate is not in force: {bytes} of {file} bytes of the file had blocks before it began"))
}

/// Synced bytes must not be dirty: at the end of the measured region under `every`, after tear-down
/// under both. A writer that syncs what it wrote does not sync bytes after the last record.
pub(super) fn not_synced(subject: &Subject<'_>) -> Option<String> {
    let ring = subject.ring_in_file().filter(|_| subject.is_complete())?;
    let written = subject.evidence.written.as_ref()?;
    let sync = subject.cell.conditions.writes()?.sync;
    let behind = subject.cell.conditions.file_bytes.0.saturating_sub(ring.bytes());
    let most = behind.saturating_add(subject.context.page_bytes);
    let over = |bytes: Option<u64>| bytes.filter(|bytes| *bytes > most);
    let (bytes, when) = match sync {
        Sync::None => return None,
        Sync::End => (over(written.dirty_end_bytes)?, "after tear-down"),
        Sync::Every(_) | Sync::Commit => over(written.dirty_after_bytes)
            .map(|bytes| (bytes, "at the end of the measured region"))
            .or_else(|| Some((over(written.dirty_end_bytes)?, "after tear-down")))?,
    };
    Some(format!("sync={sync} is not in force: {bytes} bytes of the file were still dirty {when}"))
}

/// A direct write has reached the device when it is done. Some filesystems (tmpfs) accept O_DIRECT
/// and serve the write from memory: the device's bytes reveal it.
pub(super) fn written_not_direct(subject: &Subject<'_>) -> Option<String> {
    subject.ring_in_file().filter(|_| subject.cell.method.is_direct())?;
    let (evidence, context) = (subject.evidence, subject.context);
    let (written, claimed) = (subject.device_written_at_most(), evidence.requested_bytes);
    match (evidence.descriptor_direct, written) {
        (Some(false), _) => Some("the worker's descriptor does not have O_DIRECT".to_string()),
        _ if context.memory_backed => {
            Some("the file is stored in memory, so no written byte reached a device".to_string())
        }
        (None, None) => Some(
            "neither the descriptor's flags nor device bytes are known, so it is not proven to be direct"
                .into(),
        ),
        (Some(true), _) if context.sparse_or_compressed_bytes => None,
        (_, Some(bytes)) if (bytes as f64) < claimed as f64 * ALL_TO_DEVICE => Some(format!(
            "{bytes} bytes were written to the device, {} of the {claimed} that were written directly",
            percent_of(bytes, claimed)
        )),
        _ => None,
    }
}

/// Direct reads between updates that did not all come from the device.
pub(super) fn read_between_not_direct(subject: &Subject<'_>) -> Option<String> {
    let asked = subject.read_between_bytes().filter(|_| subject.cell.method.is_direct())?;
    not_all_from_device(subject.evidence, asked, 0).filter(|_| !subject.context.sparse_or_compressed_bytes)
}

/// The kernel writes back for all processes, and dirty pages of others were written before the
/// sample. Device writes beyond all pages that the sample can have made dirty are therefore those
/// of others.
pub(super) fn device_written_by_others(subject: &Subject<'_>) -> Option<String> {
    subject.ring_in_file().filter(|_| !subject.context.memory_backed)?;
    let (written, own) = (subject.device_written_at_least()?, subject.evidence.requested_bytes);
    let conditions = &subject.cell.conditions;
    let in_setup = if makes_dirty(&subject.cell.method) { conditions.file_bytes.0 } else { 0 };
    let syncs = match conditions.writes()?.sync {
        Sync::Every(bytes) => own.div_ceil(bytes.0.max(1)),
        Sync::Commit => subject.operations(),
        Sync::None | Sync::End => 0,
    };
    let by_syncs = syncs.saturating_mul(SYNC_BYTES.saturating_add(subject.written_at_once()));
    let of_records = (own as f64 * WRITTEN_FACTOR) as u64;
    // Neighbours share a folio; updates seldom do.
    let stores_singly = conditions.writes()?.is_update() && subject.cell.access() == Access::Mmap;
    let folios = if stores_singly { subject.operations() } else { 0 };
    let by_folios = folios.saturating_mul(subject.written_at_once());
    let most =
        [METADATA_BYTES, in_setup, by_syncs, by_folios].into_iter().fold(of_records, u64::saturating_add);
    (written > most).then(|| {
        let others = written - most;
        format!("others wrote at least {others} bytes to the device while the worker wrote {own}")
    })
}

/// Other processes that read the device slow down writes to it. A sample that stays in the page
/// cache is not affected.
pub(super) fn device_read_by_others(subject: &Subject<'_>) -> Option<String> {
    subject.ring_in_file().filter(|_| !subject.context.memory_backed)?;
    let evidence = subject.evidence;
    let (written, own) = (evidence.device_written_bytes?, evidence.requested_bytes);
    if (written as f64) < own as f64 * DEVICE_SHARE {
        return None;
    }
    let others = evidence.device_other_bytes?.saturating_sub(written);
    let most = subject.others_allowed(own);
    (others > most)
        .then(|| format!("others read {others} bytes from the device while the worker wrote {own}"))
}

#[cfg(test)]
mod tests;
