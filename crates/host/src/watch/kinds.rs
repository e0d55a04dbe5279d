//! The events of a watch: what their records mean, and which of them this user may have.

use std::sync::LazyLock;

use pagewise_model::watched::Pages;
use pagewise_sys::perf::EventSource;

use super::calls::{self, CALLS, WatchedCall};
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
    Called,
    /// Of a call whose result may be a descriptor that it binds, or of another.
    Returned {
        binds: bool,
    },
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
        self == Self::Returned { binds: true }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::SideBand => "mappings and switches",
            Self::MinorFault => "minor faults",
            Self::MajorFault => "major faults",
            Self::Switch => "switches",
            Self::Called => "calls",
            Self::Returned { .. } => "returns",
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

/// The tracepoints of calls: with the kernel one for all, whose filter leaves the others out, since
/// all events of a thread are taken from its CPU and put back whenever it waits. Without, there is
/// one for each call; the common one would count as the kernel's.
pub(super) fn of_calls(tracefs: &Tracefs, with_kernel: bool) -> Result<Vec<(Kind, EventSource)>, String> {
    let point = |name: &str| tracefs.tracepoint(name).map(|point| point.map(|point| point.number));
    let common = (point("raw_syscalls/sys_enter")?, point("raw_syscalls/sys_exit")?);
    // Its numbers have 64 bits, of which the first half is read.
    let is_readable = with_kernel && cfg!(target_endian = "little");
    if let (true, (Some(entered), Some(returned))) = (is_readable, common) {
        let of = |kind, number, filter: &'static LazyLock<String>| {
            (kind, EventSource::Tracepoint(number, Some(filter.as_str())))
        };
        return Ok(vec![
            of(Kind::Called, entered, &CALLED),
            of(Kind::Returned { binds: false }, returned, &RETURNED),
            of(Kind::Returned { binds: true }, returned, &BINDING),
        ]);
    }
    let mut found = Vec::new();
    for call in CALLS {
        let entered = point(&format!("syscalls/sys_enter_{}", call.0))?;
        let returned = point(&format!("syscalls/sys_exit_{}", call.0))?;
        // Not every architecture has every call.
        let Some((entered, returned)) = entered.zip(returned) else { continue };
        found.push((Kind::Called, EventSource::Tracepoint(entered, None)));
        found.push((Kind::Returned { binds: calls::binds(call) }, EventSource::Tracepoint(returned, None)));
    }
    match found.is_empty() {
        true => Err("this kernel has no tracepoints of calls (CONFIG_FTRACE_SYSCALLS)".to_string()),
        false => Ok(found),
    }
}

/// Filters of the tracepoints of all calls.
static CALLED: LazyLock<String> = LazyLock::new(|| filter(|_| true));
static RETURNED: LazyLock<String> = LazyLock::new(|| filter(|call| !calls::binds(call)));
static BINDING: LazyLock<String> = LazyLock::new(|| filter(calls::binds));

fn filter(is_kept: impl Fn(&WatchedCall) -> bool) -> String {
    let mut numbers: Vec<i32> = CALLS.iter().filter(|call| is_kept(call)).filter_map(calls::number).collect();
    numbers.sort_unstable();
    any_of(&numbers)
}

/// A filter that keeps these numbers. The kernel tries one term after the other, so that a search
/// by halves leaves it a few.
fn any_of(numbers: &[i32]) -> String {
    if numbers.len() <= 2 {
        let terms: Vec<String> = numbers.iter().map(|number| format!("id == {number}")).collect();
        return terms.join(" || ");
    }
    let (below, above) = numbers.split_at(numbers.len() / 2);
    format!("(id < {0} && ({1})) || (id >= {0} && ({2}))", above[0], any_of(below), any_of(above))
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
        let of = |kind, point: &Tracepoint| (kind, EventSource::Tracepoint(point.number, None));
        let around = self.mapped_around.iter().map(|point| of(Kind::MappedAround, point));
        let asked = self.asked_device.iter().map(|point| of(Kind::AskedDevice, point));
        [of(Kind::BroughtIn, &self.brought_in)].into_iter().chain(around).chain(asked).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if a filter keeps a number.
    fn keeps(filter: &str, number: i32) -> bool {
        // A term, or two of them in parentheses: `(id < 5 && (FILTER)) || (id >= 5 && (FILTER))`.
        let Some((below, above)) = filter.strip_prefix('(').and_then(|rest| split(rest)) else {
            let is = |term: &str| term == format!("id == {number}");
            return filter.split(" || ").any(is);
        };
        let half = |half: &str, compare: &str| {
            let (limit, filter) = half.strip_prefix(compare)?.split_once(" && ")?;
            let filter = filter.strip_prefix('(')?.strip_suffix(')')?.to_string();
            Some((limit.parse::<i32>().ok()?, filter))
        };
        let (below, above) = (half(below, "id < "), half(above, "id >= "));
        let ((limit, below), (same, above)) = below.zip(above).expect("two halves");
        assert_eq!(limit, same);
        keeps(if number < limit { &below } else { &above }, number)
    }

    /// The two parts of `A) || (B)`.
    fn split(rest: &str) -> Option<(&str, &str)> {
        let mut depth = 1;
        let end = rest.find(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            depth == 0
        })?;
        Some((&rest[..end], rest[end..].strip_prefix(") || (")?.strip_suffix(')')?))
    }

    #[test]
    fn filters_keep_the_calls_that_are_watched() {
        let numbers: Vec<i32> = CALLS.iter().filter_map(calls::number).collect();
        assert!(numbers.len() > 30, "{numbers:?}");
        for number in -1..500 {
            let is_watched = numbers.contains(&number);
            assert_eq!(keeps(&CALLED, number), is_watched, "{number}");
            assert_eq!(keeps(&RETURNED, number) || keeps(&BINDING, number), is_watched, "{number}");
            assert!(!keeps(&RETURNED, number) || !keeps(&BINDING, number), "{number}");
        }
    }
}
