//! The check of the page cache with which a replay begins, where it was looked at when the program
//! was recorded.

use pagewise_model::CacheState;

use super::conditions::{ALL_FROM_DEVICE, brought_in_by_setup};
use super::outside;
use super::subject::Subject;

/// A replay from the cache as it was recorded begins with the pages that were there, all of them
/// and no others but those that its set-up brings in. Its worker reads nothing else before.
pub(super) fn not_as_recorded(subject: &Subject<'_>) -> Option<String> {
    let (cell, evidence) = (subject.cell, subject.evidence);
    if cell.conditions.cache != CacheState::Recorded || !cell.depends_on_cache() {
        return None;
    }
    let (Some(missing), Some(added)) = (evidence.recorded_missing_bytes, evidence.recorded_added_bytes)
    else {
        return Some(
            "which pages were in the page cache is unknown, so they are not proven to be those of the recording"
                .to_string(),
        );
    };
    let most = match (cell.method.reads_all_in_setup(), subject.context.sparse_or_compressed_bytes) {
        (true, true) => u64::MAX,
        (true, false) => (evidence.setup_device_read_bytes.unwrap_or(0) as f64 / ALL_FROM_DEVICE) as u64,
        (false, _) => brought_in_by_setup(subject),
    };
    if missing > 0 || added > most {
        return Some(format!(
            "before it began, {missing} bytes were missing of those in the page cache when it was recorded, and {added} others were there"
        ));
    }
    outside::from_device_before_go(subject)
}
