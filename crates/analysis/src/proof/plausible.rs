//! Plausibility of numbers: rates that memory does not deliver, latencies that no machine has, more
//! reads in flight than the method has.

use pagewise_model::format::{bytes, counted, time};
use pagewise_model::sample::Measurement;
use pagewise_model::{Access, Bytes, CacheState, Cell, Consume, MethodOption, Work};

use super::subject::Subject;
use crate::proof::measured::{operations, total_ns};

/// A rate may exceed the measured bandwidth of this machine's memory by this factor: caches, and a
/// busy moment during that measurement.
pub const MEMORY_FACTOR: f64 = 1.5;
/// So may the measured region of one-shot work by this factor, which is not what is ranked: what it
/// reads or writes may stay in a cache that the measurement of memory did not fit.
const REGION_FACTOR: f64 = 3.0;

/// The number of latencies, none of them short, that do not fall into one bucket of 1 %.
const SCATTERED: u64 = 100;
/// Shorter latencies may all be the same tick of a coarse clock.
const COARSE_NS: u64 = 10_000;

/// Reads in flight by the device's own count, relative to threads that read one after another. A
/// request counts from its start in the block layer to its end, including interrupts and wake-ups.
const IN_FLIGHT_FACTOR: f64 = 1.25;
/// The device counts in milliseconds.
const IN_FLIGHT_SLACK_NS: u64 = 10_000_000;
/// Share of the reads that are separate requests; the others may be merged.
const REQUESTS_SHARE: f64 = 0.98;

/// Bytes of all operations over the time of both phases, as the worker reports them; for one-shot
/// work over the total time, as some of the work may be done in set-up.
pub fn byte_rate(cell: &Cell, measurement: &Measurement) -> f64 {
    let bytes = cell.conditions.bytes_of(operations(measurement));
    let ns = match cell.conditions.is_one_shot() {
        true => total_ns(measurement),
        false => measurement.measured_ns.saturating_add(measurement.latency_phase_within().1),
    };
    bytes as f64 * 1e9 / ns.max(1) as f64
}

/// The rate of a method that must move or read all bytes is at most that of memory.
pub(super) fn faster_than_memory(subject: &Subject<'_>) -> Option<String> {
    let cell = subject.cell;
    let in_place_touched =
        cell.method.has(MethodOption::InPlace) && cell.conditions.consume() == Some(Consume::Touch);
    if cell.access() == Access::Anonymous || in_place_touched {
        return None;
    }
    let memory = subject.evidence.memory_bytes_per_second?.max(1) as f64;
    let beyond =
        |rate: f64, factor: f64, whence: &'static str| (rate > memory * factor).then_some((rate, whence));
    // A method that pagewise does not know may have done its work in set-up, and say so.
    let has_region = cell.conditions.is_one_shot() && cell.access() != Access::Unknown;
    let in_region =
        || beyond(region_rate(cell, subject.measurement), REGION_FACTOR, " in the measured region");
    let (rate, whence) = beyond(byte_rate(cell, subject.measurement), MEMORY_FACTOR, "")
        .or_else(|| has_region.then(in_region).flatten())?;
    let mib = |rate: f64| rate / f64::from(1 << 20);
    Some(format!(
        "{:.0} MiB/s{whence} is implausible: this machine's memory delivers {:.0} MiB/s, and a method that moves or reads all bytes is not {:.1} times as fast",
        mib(rate),
        mib(memory),
        rate / memory
    ))
}

/// Bytes of all operations over the time of the measured region.
fn region_rate(cell: &Cell, measurement: &Measurement) -> f64 {
    let reading_ns = measurement.measured_ns.saturating_sub(measurement.gaps_ns).max(1);
    cell.conditions.bytes_of(measurement.operations) as f64 * 1e9 / reading_ns as f64
}

/// Latencies must scatter.
pub(super) fn latencies_all_alike(subject: &Subject<'_>) -> Option<String> {
    let measurement = subject.measurement;
    let mut filled =
        measurement.latency_ns.iter().zip(&measurement.latency_counts).filter(|(_, count)| **count > 0);
    let (upper_ns, count) = filled.next()?;
    let alike = filled.next().is_none() && *count >= SCATTERED && *upper_ns >= COARSE_NS;
    alike.then(|| format!("all {count} latencies are {upper_ns} ns: those of real operations scatter"))
}

/// True if the method has one read at a time in each thread, and nothing is read ahead.
fn is_one_at_a_time(subject: &Subject<'_>) -> bool {
    let method = &subject.cell.method;
    let has = |option| method.has(option);
    let ahead = has(MethodOption::WillNeed)
        || has(MethodOption::Prefetch)
        || method.prefetch_window().is_some()
        || method.reads_all_in_setup();
    match method.access() {
        Access::Pread => !ahead && (method.is_direct() || has(MethodOption::Random)),
        Access::Mmap => !ahead && has(MethodOption::Random),
        _ => false,
    }
}

/// The time of all reads of the device together, if it exceeds the most that threads can cause that
/// read one after another.
fn excess_in_flight(subject: &Subject<'_>) -> Option<String> {
    let (conditions, evidence) = (&subject.cell.conditions, subject.evidence);
    // A cold start's windows do not cover all of the time between readings, a cap holds requests
    // back, and an actor makes some of its own.
    let comparable = conditions.reads().is_some()
        && conditions.beside.is_none()
        && conditions.cache != CacheState::ColdStart
        && conditions.host_settings.device_cap.is_none();
    if !comparable || !is_one_at_a_time(subject) {
        return None;
    }
    let (busy, requests) = (evidence.device_read_ns?, evidence.device_read_requests?);
    // A read larger than a request of the device is several requests at once.
    let of_one = requests.div_ceil(subject.reads().max(1)).max(1);
    let threads = u64::from(conditions.threads);
    let most = ((evidence.wall_ns as f64 * threads as f64 * of_one as f64 * IN_FLIGHT_FACTOR) as u64)
        .saturating_add(IN_FLIGHT_SLACK_NS);
    (busy > most).then(|| {
        format!(
            "the device read for {} in a sample of {}, of which {} with one read at a time explain at most {}",
            time(busy as f64),
            time(evidence.wall_ns as f64),
            counted(threads, "thread"),
            time(most as f64)
        )
    })
}

/// A request counts with all of its time when it ends, so a slow one of another process may have
/// begun long before.
fn is_of_others(subject: &Subject<'_>) -> bool {
    subject.evidence.device_other_bytes != Some(0)
}

/// More reads in flight than the method has: it reads ahead.
pub(super) fn reads_ahead(subject: &Subject<'_>) -> Option<String> {
    let excess = excess_in_flight(subject).filter(|_| !is_of_others(subject))?;
    Some(format!("{excess}: {} does not read ahead", subject.cell.method))
}

/// More reads in flight while other processes use the device: the owner of the reads is unknown.
pub(super) fn in_flight_of_others(subject: &Subject<'_>) -> Option<String> {
    let excess = excess_in_flight(subject).filter(|_| is_of_others(subject))?;
    let others = subject.evidence.device_other_bytes.map(|others| bytes(Bytes(others)));
    let others = others.unwrap_or_else(|| "an unknown number of bytes".to_string());
    Some(format!("{excess}; others moved {others}, and these reads may be theirs"))
}

/// Each direct read is a separate request: fewer of them mean that blocks other than the table's
/// were read.
pub(super) fn requests_missing(subject: &Subject<'_>) -> Option<String> {
    let cell = subject.cell;
    let direct = cell.access() == Access::Pread && cell.method.is_direct();
    if !direct
        || !matches!(cell.conditions.work, Work::RandomRead(_))
        || subject.context.sparse_or_compressed_bytes
    {
        return None;
    }
    // A device that does not count requests gives no evidence.
    let requests = subject.evidence.device_read_requests.filter(|requests| *requests > 0)?;
    let least = (subject.reads() as f64 * REQUESTS_SHARE) as u64;
    (requests < least).then(|| {
        format!(
            "the device served {requests} requests for {} reads: {} makes one of each at least",
            subject.reads(),
            cell.method
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::proof::honest::{append, cell, fill, kinds, scan};
    use pagewise_model::CacheState::{Cold, Warm};
    use pagewise_model::Evidence;
    use pagewise_model::FailureKind::{
        Contaminated, Implausible, InconsistentCounts, MethodContradicted, NotDirect,
    };
    use pagewise_model::sample::Measurement;

    #[test]
    fn rates_beyond_memory_are_implausible() {
        // Honest samples request 40 MiB in 150 ms.
        let with = |method: &str, bytes_per_second| {
            kinds(&cell(method, Warm), |_, evidence| {
                evidence.memory_bytes_per_second = Some(bytes_per_second)
            })
        };
        for method in ["pread", "mmap", "mine/get", "uring"] {
            assert_eq!(with(method, 200 << 20), [], "{method}: 267 MiB/s are less than 1.5 times as much");
            assert_eq!(with(method, 100 << 20), [Implausible], "{method}");
        }
        assert_eq!(with("anonymous", 1), [], "it is the ceiling");
        assert_eq!(
            with("mmap:in-place", 1),
            [],
            "touched in place it looks at a word of each page, and is not ranked"
        );
        let in_place = |bytes_per_second| {
            kinds(&scan("mmap:in-place", Warm), move |_, evidence| {
                evidence.memory_bytes_per_second = Some(bytes_per_second);
            })
        };
        assert_eq!((in_place(1 << 30), in_place(100 << 20)), (vec![], vec![Implausible]));
        for cell in [append("mmap", Cold), fill("mmap:populate-write", Cold), scan("read", Warm)] {
            let instant = |measurement: &mut Measurement, evidence: &mut Evidence| {
                // What the region leaves out, set-up takes, so the total is that of an honest
                // sample.
                measurement.setup_ns += measurement.measured_ns - 1_000;
                evidence.setup_wall_ns = Some(measurement.setup_ns);
                measurement.measured_ns = 1_000;
                evidence.wall_ns = 2_000;
                evidence.cpu_ns = Some(1_000);
                measurement.latency_counts.clear();
                measurement.latency_ns.clear();
                evidence.memory_bytes_per_second = Some(10 << 30);
            };
            assert_eq!(kinds(&cell, instant), [Implausible], "{}", cell.id());
        }
        for cell in [append("mmap", Cold), fill("mmap", Cold)] {
            let slow = |_: &mut _, evidence: &mut Evidence| evidence.memory_bytes_per_second = Some(1 << 20);
            assert_eq!(kinds(&cell, slow), [Implausible], "{}", cell.id());
        }
    }

    #[test]
    fn latencies_that_do_not_scatter_are_noticed() {
        let latencies = |ns: &[u64], counts: &[u64]| {
            kinds(&cell("pread", Warm), |measurement, _| {
                let timed: u64 = counts.iter().sum();
                measurement.latency_phase_operations = timed;
                measurement.operations = 160 - timed;
                (measurement.latency_ns, measurement.latency_counts) = (ns.to_vec(), counts.to_vec());
            })
        };
        assert_eq!(latencies(&[700_000], &[120]), [InconsistentCounts]);
        assert_eq!(latencies(&[690_000, 700_000], &[60, 60]), []);
        assert_eq!(latencies(&[690_000, 700_000], &[0, 120]), [InconsistentCounts]);
        assert_eq!(latencies(&[1_500_000], &[40]), [], "too few to scatter");
        let records = kinds(&append("mmap", Cold), |measurement, _| {
            (measurement.latency_ns, measurement.latency_counts) = (vec![100], vec![1000]);
        });
        assert_eq!(records, [], "it may be a tick of a coarse clock");
    }

    #[test]
    fn reads_ahead_of_a_method_that_has_none_are_noticed() {
        // Two threads for 151 ms.
        let busy = |method: &str, read_ns, others| {
            kinds(&cell(method, Cold), |_, evidence| {
                evidence.device_read_ns = Some(read_ns);
                evidence.device_other_bytes = Some(others);
            })
        };
        for method in ["pread:random", "pread:direct", "mmap:random", "mine/pread:random"] {
            assert_eq!(busy(method, 300_000_000, 0), [], "{method}");
            assert_eq!(busy(method, 800_000_000, 0), [MethodContradicted], "{method}");
            assert_eq!(
                busy(method, 800_000_000, 4096),
                [Contaminated],
                "{method}: others did it, or may have"
            );
        }
        for method in ["pread", "mmap", "uring:depth=8", "mmap:random+prefetch", "mine/get"] {
            assert_eq!(busy(method, 800_000_000, 0), [], "{method}");
        }
        let split = kinds(&cell("pread:direct", Cold), |_, evidence| {
            evidence.device_read_ns = Some(800_000_000);
            evidence.device_read_requests = Some(4 * 2560);
        });
        assert_eq!(split, [], "a read that the device gets in four requests has four in flight");
    }

    #[test]
    fn other_blocks_than_the_tables_are_noticed() {
        let requests = |method: &str, requests| {
            kinds(&cell(method, Cold), |_, evidence| evidence.device_read_requests = Some(requests))
        };
        for method in ["pread:direct", "jvm/pread:direct", "mine/pread:direct"] {
            assert_eq!((requests(method, 2560), requests(method, 0)), (vec![], vec![]), "{method}");
            assert_eq!(requests(method, 100), [NotDirect], "{method}");
        }
        assert_eq!(requests("pread", 100), [], "the kernel may read several at once");
        assert_eq!(requests("uring:direct", 100), [], "what is in flight may be merged");
    }
}
