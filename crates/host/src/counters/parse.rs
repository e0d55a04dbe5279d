//! Parsers of the kernel's texts: pure, and without allocation.

use pagewise_model::counters::HostCounters;

/// The first line of /proc/stat, in clock ticks of all CPUs since boot (proc_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    /// User mode, including nice. Guests of this machine are already included.
    pub(crate) user: u64,
    /// Kernel mode, including interrupts.
    pub(crate) system: u64,
    pub(crate) idle: u64,
    /// Idle while a task waited for the device.
    pub(crate) wait: u64,
    pub(crate) steal: u64,
}

impl CpuTicks {
    /// user, nice, system, idle, iowait, irq, softirq, steal: the order since Linux 2.6.11.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let line = lines(text).find_map(|line| line.strip_prefix(b"cpu "))?;
        let mut ticks = [0; 8];
        let mut words = words(line);
        for tick in &mut ticks {
            *tick = number(words.next()?)?;
        }
        let [user, nice, system, idle, wait, interrupt, soft_interrupt, steal] = ticks;
        let system = system.checked_add(interrupt)?.checked_add(soft_interrupt)?;
        Some(Self { user: user.checked_add(nice)?, system, idle, wait, steal })
    }

    /// CPU steal as a share of all time since boot.
    pub(crate) fn steal_share(&self) -> Option<f64> {
        let parts = [self.system, self.idle, self.wait, self.steal];
        let total = parts.into_iter().try_fold(self.user, |sum, part| sum.checked_add(part))?;
        (total > 0).then(|| self.steal as f64 / total as f64)
    }
}

/// /proc/stat: CPU split, interrupts, context switches, tasks.
pub(super) fn stat(text: &[u8], tick_ns: u64, host: &mut HostCounters) {
    if let Some(ticks) = CpuTicks::parse(text) {
        let ns = |ticks: u64| ticks.checked_mul(tick_ns);
        host.user_ns = ns(ticks.user);
        host.system_ns = ns(ticks.system);
        host.idle_ns = ns(ticks.idle);
        host.wait_ns = ns(ticks.wait);
        host.steal_ns = ns(ticks.steal);
    }
    for line in lines(text) {
        let mut words = words(line);
        let counter = match words.next() {
            // The first number is the sum; one for each interrupt follows.
            Some(b"intr") => &mut host.interrupts,
            Some(b"ctxt") => &mut host.context_switches,
            // The reading process itself is running and is not counted, as in vmstat.
            Some(b"procs_running") => {
                host.running = words.next().and_then(number).map(|tasks| tasks.saturating_sub(1));
                continue;
            }
            Some(b"procs_blocked") => &mut host.blocked,
            _ => continue,
        };
        *counter = words.next().and_then(number);
    }
}

/// /proc/vmstat. Reclaim is counted by zone before Linux 4.8 (`pgscan_direct_normal`), and as one
/// number since. Refaults of file pages were `workingset_refault` until anonymous pages got a
/// separate counter in 5.9, and do not exist before 3.15.
pub(super) fn vmstat(text: &[u8], page_bytes: u64, host: &mut HostCounters) {
    for line in lines(text) {
        let mut words = words(line);
        let (Some(name), Some(value)) = (words.next(), words.next().and_then(number)) else { continue };
        match name {
            // The kernel converts sectors to KiB before it prints these.
            b"pgpgin" => host.block_in_bytes = value.checked_mul(1024),
            b"pgpgout" => host.block_out_bytes = value.checked_mul(1024),
            b"pswpin" => host.swap_in_bytes = value.checked_mul(page_bytes),
            b"pswpout" => host.swap_out_bytes = value.checked_mul(page_bytes),
            b"pgmajfault" => host.major_faults = Some(value),
            b"workingset_refault" | b"workingset_refault_file" => host.refaults = Some(value),
            _ => {
                let reclaim = [
                    (&b"pgscan_kswapd"[..], &mut host.scanned_by_kswapd),
                    (b"pgscan_direct", &mut host.scanned_directly),
                    (b"pgsteal_kswapd", &mut host.reclaimed_by_kswapd),
                    (b"pgsteal_direct", &mut host.reclaimed_directly),
                ];
                for (prefix, counter) in reclaim {
                    if name.strip_prefix(prefix).is_some_and(is_all_or_a_zone) {
                        *counter = Some(counter.unwrap_or(0).saturating_add(value));
                    }
                }
            }
        }
    }
}

/// True for suffixes of a counter of reclaim: empty or a zone; `_throttle` is neither.
fn is_all_or_a_zone(suffix: &[u8]) -> bool {
    matches!(suffix, b"" | b"_dma" | b"_dma32" | b"_normal" | b"_high" | b"_movable" | b"_device")
}

/// /proc/meminfo.
pub(super) fn meminfo(text: &[u8], host: &mut HostCounters) {
    let (mut cached, mut reclaimable, mut swap, mut swap_free) = (None, None, None, None);
    for line in lines(text) {
        let mut words = words(line);
        let field = match words.next() {
            Some(b"MemFree:") => &mut host.free_bytes,
            Some(b"Buffers:") => &mut host.buffer_bytes,
            Some(b"Cached:") => &mut cached,
            Some(b"SReclaimable:") => &mut reclaimable,
            Some(b"SwapTotal:") => &mut swap,
            Some(b"SwapFree:") => &mut swap_free,
            Some(b"Dirty:") => &mut host.dirty_bytes,
            Some(b"Writeback:") => &mut host.writeback_bytes,
            _ => continue,
        };
        // In the kernel's texts, k means 1024.
        let kib = words.next().and_then(number);
        *field = kib.filter(|_| words.next() == Some(b"kB")).and_then(|kib| kib.checked_mul(1024));
    }
    host.cached_bytes = cached.zip(reclaimable).and_then(|(cached, slab)| cached.checked_add(slab));
    host.swapped_bytes = swap.zip(swap_free).and_then(|(total, free)| total.checked_sub(free));
}

/// The line `TLB:` of /proc/interrupts, over all CPUs. Only x86 has it; arm64 flushes other CPUs'
/// translations without interrupts.
pub(super) fn tlb_shootdowns(text: &[u8]) -> Option<u64> {
    let line = lines(text).find_map(|line| line.trim_ascii_start().strip_prefix(b"TLB:"))?;
    // A number for each CPU, then the description.
    words(line).map_while(number).map(Some).reduce(|sum, cpu| sum?.checked_add(cpu?)).flatten()
}

/// Parse a file of /proc/pressure: time in which at least one task waited, and time in which all
/// did; in microseconds.
pub(super) fn pressure(text: &[u8]) -> (Option<u64>, Option<u64>) {
    let total = |kind: &[u8]| {
        let line = lines(text).find_map(|line| line.strip_prefix(kind)?.strip_prefix(b" "))?;
        number(words(line).find_map(|word| word.strip_prefix(b"total="))?)?.checked_mul(1000)
    };
    (total(b"some"), total(b"full"))
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
