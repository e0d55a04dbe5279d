//! The accounts of one file: how it is read and written, what faults on it, and what came in.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use pagewise_model::inspection::{BroughtIn, By, Calls, InspectedFile, Mapped, Waits};
use pagewise_model::watched::ReadOrder;

use super::pages::PageSet;
use super::waits::WaitCounts;

/// Sizes of calls that are shown.
const SHOWN_SIZES: usize = 4;

/// Major number, minor number, inode.
pub(super) type Identity = (u32, u32, u64);

#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) path: Option<String>,
    pub(super) identity: Identity,
    /// Major and minor number of its disk.
    pub(super) disk: Option<(u32, u32)>,
    pub(super) len: Option<u64>,
    pub(super) code: bool,
    pub(super) direct: bool,
    pub(super) order: ReadOrder,
    pub(super) mapping_order: ReadOrder,
    pub(super) other_advice: Vec<&'static str>,
    pub(super) reads: CallCounts,
    pub(super) writes: CallCounts,
    pub(super) syncs: WaitCounts,
    pub(super) prefaults: WaitCounts,
    pub(super) faults: FaultCounts,
    /// Everything that came in, so that what came in again is known.
    pub(super) brought_in: PageSet,
    pub(super) by_faults: PageSet,
    pub(super) around: PageSet,
    pub(super) calls_pages: u64,
    pub(super) faults_pages: u64,
    pub(super) again_pages: u64,
    pub(super) large: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct CallCounts {
    pub(super) count: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    pub(super) sizes: HashMap<u64, u64>,
    pub(super) in_order: u64,
    pub(super) located: u64,
    pub(super) threads: HashSet<u32>,
    pub(super) in_calls_ns: u64,
    pub(super) waits: WaitCounts,
    pub(super) device_read_bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FaultCounts {
    pub(super) minor: u64,
    pub(super) major: u64,
    pub(super) pages: PageSet,
    /// Major faults of a page that had faulted before, and was evicted since.
    pub(super) again: u64,
    pub(super) last_page: HashMap<u32, u64>,
    pub(super) in_order: u64,
    pub(super) in_order_pages: u64,
    pub(super) waits: WaitCounts,
}

impl File {
    /// With `unseen`, pages may have been put in place without an observation of it.
    pub(super) fn inspected(&self, page_bytes: u64, cache: bool, unseen: bool) -> InspectedFile {
        let faults = &self.faults;
        let faulted_pages = faults.pages.len();
        let shows_device = cache && self.disk.is_some();
        InspectedFile {
            path: self.path.clone(),
            identity: self.identity,
            file_bytes: self.len,
            filesystem: None,
            block_device: None,
            code: self.code,
            direct: self.direct,
            said_to_be_read: self.order,
            mapping_said_to_be_read: self.mapping_order,
            other_advice: self.other_advice.iter().map(|advice| advice.to_string()).collect(),
            reads: self.reads.calls(shows_device),
            writes: self.writes.calls(shows_device),
            syncs: any(&self.syncs),
            prefaults: any(&self.prefaults),
            mapping: (faulted_pages > 0).then(|| Mapped {
                minor_faults: faults.minor,
                major_faults: faults.major,
                faulted_pages,
                in_order: faults.in_order,
                in_order_pages: faults.in_order_pages,
                threads: faults.last_page.len() as u64,
                waits: faults.waits.waits(),
            }),
            brought_in: (cache && self.calls_pages + self.faults_pages > 0).then(|| {
                let came = if faulted_pages > 0 { self.by_faults.len() } else { 0 };
                let share = |touched: u64| 1.0 - touched as f64 / came as f64;
                // Calls use pages that faults brought in, and large pages are mapped without being
                // reported.
                let bounded = !unseen && !self.large && self.reads.count == 0;
                let touched_at_most = || self.by_faults.shared_with(&[&faults.pages, &self.around]);
                BroughtIn {
                    bytes: (self.calls_pages + self.faults_pages) * page_bytes,
                    by_calls_bytes: self.calls_pages * page_bytes,
                    by_faults_bytes: self.faults_pages * page_bytes,
                    again_bytes: self.again_pages * page_bytes,
                    per_read: (self.reads.bytes > 0)
                        .then(|| (self.calls_pages * page_bytes) as f64 / self.reads.bytes as f64),
                    per_faulted: (faulted_pages > 0)
                        .then(|| self.faults_pages as f64 / (faulted_pages + faults.again) as f64),
                    untouched_at_least: (came > 0 && bounded).then(|| share(touched_at_most())),
                    untouched_at_most: (came > 0)
                        .then(|| share(self.by_faults.shared_with(&[&faults.pages]))),
                }
            }),
        }
    }
}

/// Waits of calls of which each one counts, also where it did not wait; `None`: there was no call.
fn any(calls: &WaitCounts) -> Option<Waits> {
    Some(calls.waits()).filter(|waits| waits.count > 0)
}

impl File {
    /// Note the order in which it is read from now on, by a descriptor or a mapping.
    pub(super) fn expect(&mut self, order: ReadOrder, mapped: bool) {
        let known = if mapped { &mut self.mapping_order } else { &mut self.order };
        let before = std::mem::replace(known, order);
        if before != ReadOrder::Normal && before != order {
            self.otherwise_advised("an order of reads that was announced before another one");
        }
    }

    /// Note other advice, which changes what is cached of it.
    pub(super) fn otherwise_advised(&mut self, advice: &'static str) {
        if !self.other_advice.contains(&advice) {
            self.other_advice.push(advice);
        }
    }

    /// The waits of a kind.
    pub(super) fn waits(&mut self, by: By) -> &mut WaitCounts {
        match by {
            By::Faults => &mut self.faults.waits,
            By::Reads => &mut self.reads.waits,
            By::Writes => &mut self.writes.waits,
            By::Syncs => &mut self.syncs,
            By::Prefaults => &mut self.prefaults,
        }
    }
}

impl CallCounts {
    fn calls(&self, shows_device: bool) -> Option<Calls> {
        let mut sizes: Vec<(u64, u64)> = self.sizes.iter().map(|(size, count)| (*size, *count)).collect();
        sizes.sort_by_key(|(size, count)| (Reverse(*count), *size));
        sizes.truncate(SHOWN_SIZES);
        (self.count > 0).then(|| Calls {
            count: self.count,
            failed: self.failed,
            bytes: self.bytes,
            sizes,
            in_order: self.in_order,
            located: self.located,
            threads: self.threads.len() as u64,
            in_calls_ns: Some(self.in_calls_ns),
            waits: self.waits.waits(),
            device_read_bytes: shows_device.then_some(self.device_read_bytes),
        })
    }
}
