//! The events of a watch: what their records mean, and which of them this user may have.

use pagewise_model::watched::{Call, Pages};
use pagewise_sys::perf::EventSource;

use super::calls::{Arguments, CALLS};
use super::tracefs::{Tracefs, Tracepoint};

/// The kernel's unit of requests, whatever a device has.
const SECTOR_BYTES: u64 = 512;

/// The meaning of an event's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    SideBand,
    MinorFault,
    MajorFault,
    Switch,
    Called(usize),
    Returned(usize),
    BroughtIn,
    MappedAround,
    AskedDevice,
}

/// Tracepoints of the page cache, and of requests to block devices, which not every kernel has. The
/// one of pages mapped around is there from Linux 6.11 on.
#[derive(Clone, Debug)]
pub(super) struct CachePoints {
    pub(super) brought_in: Tracepoint,
    pub(super) mapped_around: Option<Tracepoint>,
    pub(super) asked_device: Option<Tracepoint>,
}

impl Kind {
    /// True if an event of this kind must be looked at at once.
    pub(super) fn is_quick(self) -> bool {
        let Self::Returned(index) = self else { return false };
        matches!(CALLS[index].1(&Arguments::default()), Call::Open | Call::Duplicate)
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::SideBand => "mappings and switches",
            Self::MinorFault => "minor faults",
            Self::MajorFault => "major faults",
            Self::Switch => "switches",
            Self::Called(_) => "calls",
            Self::Returned(_) => "returns",
            Self::BroughtIn => "pages brought in",
            Self::MappedAround => "pages mapped around faults",
            Self::AskedDevice => "requests to devices",
        }
    }
}

impl CachePoints {
    pub(super) fn pages(&self, kind: Kind, raw: &[u8]) -> Option<Pages> {
        let point =
            if kind == Kind::BroughtIn { Some(&self.brought_in) } else { self.mapped_around.as_ref() };
        let point = point?;
        let field = |name| point.value(raw, name);
        let first = field("index")?;
        let count = match field("last_index") {
            Some(last) => last.checked_sub(first)?.checked_add(1)?,
            None => 1u64.checked_shl(field("order").unwrap_or(0).try_into().ok()?)?,
        };
        Some(Pages { device: device(field("s_dev")?), inode: field("i_ino")?, first, count })
    }

    /// The disk and the bytes of a request that reads; `None`: it does not. The kernel names the
    /// disk also where a partition is asked.
    pub(super) fn read_of_device(&self, raw: &[u8]) -> Option<((u32, u32), u64)> {
        let point = self.asked_device.as_ref()?;
        let field = |name| point.value(raw, name);
        // `R` or `RA`, or a flush before it (`FR`).
        let is_read = point.bytes(raw, "rwbs")?.iter().take_while(|letter| **letter != 0).take(2);
        let is_read = is_read.copied().find(|letter| *letter != b'F') == Some(b'R');
        is_read.then_some((device(field("dev")?), field("nr_sector")? * SECTOR_BYTES))
    }
}

/// A device number as the kernel itself has it: 20 bits for the minor one.
fn device(number: u64) -> (u32, u32) {
    ((number >> 20) as u32, (number & 0xf_ffff) as u32)
}

/// The tracepoints of calls.
pub(super) fn of_calls(tracefs: &Tracefs) -> Result<Vec<(Kind, EventSource)>, String> {
    let mut found = Vec::new();
    for (index, (name, _)) in CALLS.iter().enumerate() {
        let entered = tracefs.tracepoint(&format!("syscalls/sys_enter_{name}"))?;
        let returned = tracefs.tracepoint(&format!("syscalls/sys_exit_{name}"))?;
        // Not every architecture has every call.
        let Some((entered, returned)) = entered.zip(returned) else { continue };
        found.push((Kind::Called(index), EventSource::Tracepoint(entered.number)));
        found.push((Kind::Returned(index), EventSource::Tracepoint(returned.number)));
    }
    match found.is_empty() {
        true => Err("this kernel has no tracepoints of calls (CONFIG_FTRACE_SYSCALLS)".to_string()),
        false => Ok(found),
    }
}

impl CachePoints {
    pub(super) fn find(tracefs: &Tracefs) -> Result<Self, String> {
        let brought_in = tracefs.tracepoint("filemap/mm_filemap_add_to_page_cache")?;
        let brought_in = brought_in.ok_or("this kernel has no tracepoints of the page cache")?;
        let asked_device = tracefs.tracepoint("block/block_bio_queue")?;
        let mapped_around = tracefs.tracepoint("filemap/mm_filemap_map_pages")?;
        Ok(Self { brought_in, mapped_around, asked_device })
    }

    pub(super) fn events(&self) -> Vec<(Kind, EventSource)> {
        let of = |kind, point: &Tracepoint| (kind, EventSource::Tracepoint(point.number));
        let around = self.mapped_around.iter().map(|point| of(Kind::MappedAround, point));
        let asked = self.asked_device.iter().map(|point| of(Kind::AskedDevice, point));
        [of(Kind::BroughtIn, &self.brought_in)].into_iter().chain(around).chain(asked).collect()
    }
}
