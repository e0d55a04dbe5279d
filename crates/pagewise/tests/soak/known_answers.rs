//! Answers that are known before anything is measured: counts and ratios that follow from the
//! sizes, the offsets and how Linux reads, whatever the machine's speed.

use std::collections::BTreeSet;
use std::fs;

use crate::support::until::{
    Taken, can_limit_memory, cells, each_has, each_method_has, expect_honest, judged_cell, my_turn, samples,
    take, valid,
};
use crate::support::{self, Place, is_honest, kinds};
use pagewise_host::{OffsetTable, Readahead};
use pagewise_model::random::mix;
use pagewise_model::run::Run;
use pagewise_model::{Cell, Evidence, FailureKind, Outcome, Role, Sample};

const READ_BYTES: u64 = 16 << 10;

fn method(name: &'static str) -> impl Fn(&Cell) -> bool {
    move |cell| cell.role != Role::Ceiling && cell.method.to_string() == name
}

/// Bytes that the device delivered and bytes that were asked for, of all valid samples of a method.
#[track_caller]
fn pooled(run: &Run, name: &'static str) -> (f64, f64) {
    let of_method = valid(run, method(name));
    assert!(!of_method.is_empty(), "no sample of {name} is valid");
    let sum =
        |field: &dyn Fn(&Evidence) -> u64| of_method.iter().map(|(_, seen)| field(seen)).sum::<u64>() as f64;
    (sum(&|seen| seen.device_read_bytes.expect("device bytes")), sum(&|seen| seen.requested_bytes))
}

/// Device bytes over bytes asked for.
#[track_caller]
fn amplification(run: &Run, name: &'static str) -> f64 {
    let (device, requested) = pooled(run, name);
    device / requested
}

#[test]
fn data_that_fit_the_memory_are_read_from_it() {
    let _turn = my_turn();
    if !can_limit_memory() {
        return;
    }
    // Pages of the worker's own code may have to come back, and the host may reclaim pages that
    // look idle: a few of the 8,000 of the file.
    const STRAY_BYTES: u64 = 1 << 20;
    let stray_pages = STRAY_BYTES / rustix::param::page_size() as u64;
    let methods = ["mmap", "mmap:random", "pread", "pread:random", "uring:depth=32"];
    let place = Place::new();
    let list = format!("--methods={}", methods.join(","));
    let more = ["--memory=64MiB", "--span=0.5x", "--cache=warm", "--sample=50ms", "--no-ceilings", &list];
    // More is read than memory holds: what is asked for is there.
    let enough = |run: &Run| {
        let requested =
            |name| -> u64 { valid(run, method(name)).iter().map(|(_, seen)| seen.requested_bytes).sum() };
        methods.iter().all(|name| requested(*name) > 64 << 20)
    };
    let taken = take(&place, &more, enough);
    expect_honest(&taken.run);
    for name in methods {
        for (_, seen) in valid(&taken.run, method(name)) {
            let capacity = cells(&taken.run, method(name))[0].conditions.cache_capacity().expect("a limit").0;
            let span = cells(&taken.run, method(name))[0].conditions.span_bytes.0;
            assert!(span.abs_diff(capacity / 2) <= 1 << 20, "{span} of {capacity}");
            let (read, faults) = (seen.device_read_bytes.expect("bytes"), seen.major_faults.expect("faults"));
            assert!(read <= STRAY_BYTES && faults <= stray_pages, "{name}: {read} bytes, {faults} faults");
            let group = seen.group.as_ref().expect("a group");
            assert_eq!(group.limit_bytes, Some(64 << 20));
            assert!(group.refaults.is_some_and(|pages| pages <= stray_pages), "{name}: {group:?}");
            let resident = seen.resident_after_bytes.expect("residency");
            assert!(span - resident <= STRAY_BYTES, "{name}: {resident} of {span}");
            assert!(group.file_bytes.is_some_and(|bytes| bytes >= resident), "{name}: {group:?}");
        }
    }
}

/// Of uniform reads of a file that is larger than the cache, those miss that the cache does not
/// hold: 1 - cache / file. n reads are binomial, so at a quarter held the ratio scatters by
/// sqrt(0.25 / 0.75 / n): with 5,000 reads, 3 % are almost four standard deviations. A slow disk
/// has so many too.
#[test]
fn above_memory_uniform_reads_miss_what_the_cache_does_not_hold() {
    const READS: f64 = 5_000.0;
    let _turn = my_turn();
    if !can_limit_memory() {
        return;
    }
    let exact = ["mmap:random", "pread:random"];
    let common = ["--memory=32MiB", "--span=4x", "--cache=warm", "--reads-per-op=1", "--no-ceilings"];
    let place = Place::new();
    // Two threads are quicker to do so many reads.
    let more = ["--methods=mmap:random,pread:random", "--threads=2", "--sample=500ms", "--readahead=128KiB"];
    let enough = |run: &Run| {
        exact.iter().all(|name| {
            let seen = valid(run, method(name));
            seen.iter().map(|(_, seen)| seen.requested_bytes / READ_BYTES).sum::<u64>() as f64 >= READS
        })
    };
    // How far a method is from what is expected: as a share of it, and in words.
    let off = |taken: &Taken, name: &'static str| {
        let (device, requested) = pooled(&taken.run, name);
        // What each sample's cache held, weighted with what was asked of it.
        let expected: f64 = valid(&taken.run, method(name))
            .iter()
            .map(|(_, seen)| {
                let cached =
                    seen.group.as_ref().and_then(|group| group.file_bytes).expect("file pages") as f64;
                let span = cells(&taken.run, method(name))[0].conditions.span_bytes.0 as f64;
                (1.0 - cached / span) * seen.requested_bytes as f64
            })
            .sum();
        let (found, expected) = (device / requested, expected / requested);
        println!("{name}: {found:.4} of the bytes asked for, {expected:.4} expected");
        (found / expected - 1.0).abs()
    };
    // What the cache holds is seen at the end of a sample, and memory that others are short of
    // changes meanwhile.
    let taken = (0..3)
        .map(|_| {
            let _ = fs::remove_file(place.file("run.jsonl"));
            take(&place, &[&common[..], &more].concat(), enough)
        })
        .inspect(|taken| expect_honest(&taken.run))
        .find(|taken| exact.iter().all(|name| off(taken, name) <= 0.03))
        .expect("in one of three runs as many reads miss as the cache does not hold");
    for (_, seen) in valid(&taken.run, method("mmap:random")) {
        // Each page that comes from the device is a fault that waits; 64 pages may be the worker's
        // own.
        let (faults, pages) =
            (seen.major_faults.expect("faults"), seen.device_read_bytes.expect("bytes") / 4096);
        assert!(faults.abs_diff(pages) <= 64 + pages / 50, "{faults} faults, {pages} pages");
    }
    for (_, seen) in valid(&taken.run, method("pread:random")) {
        assert!(seen.major_faults.is_some_and(|faults| faults <= 64), "{seen:?}");
    }

    let place = Place::new();
    let more = ["--methods=pread,pread:direct,mmap", "--readahead=128KiB", "--sample=100ms"];
    let taken = take(&place, &[&common[..], &more].concat(), |run| each_method_has(run, 1));
    // Readahead that others interrupt delivers another share in a short sample than in its warm-up.
    let is_honest = |sample: &Sample| {
        is_honest(sample) || kinds(sample).iter().all(|kind| *kind == FailureKind::NotSettled)
    };
    assert!(taken.run.samples.iter().all(is_honest), "{:?}", taken.run.samples);
    let held = |name| {
        let seen = valid(&taken.run, method(name))[0].1;
        let cell = cells(&taken.run, method(name))[0];
        seen.group.as_ref().and_then(|group| group.file_bytes).expect("file pages") as f64
            / cell.conditions.span_bytes.0 as f64
    };
    // Readahead of pread now and then takes random reads for a sequence; those of a sample scatter
    // by 5 %.
    let plain = amplification(&taken.run, "pread");
    assert!((0.95 * (1.0 - held("pread"))..=1.3).contains(&plain), "pread: {plain}");
    let direct = amplification(&taken.run, "pread:direct");
    assert!((direct - 1.0).abs() < 0.001, "pread:direct: {direct}");
    // A fault brings in 128 KiB for a read of 16: eight times as much where it misses.
    let mapped = amplification(&taken.run, "mmap");
    assert!((2.0..=8.0).contains(&mapped), "mmap: {mapped}");
    println!("pread {plain:.3}, pread:direct {direct:.3}, mmap {mapped:.3}");
}

/// A fault of a mapping without advice reads `ra_pages` around its page, from `ra_pages / 2` before
/// it on, but not before the file (`do_sync_mmap_readahead` in mm/filemap.c). Pages of the window
/// that are there are not read again.
///
/// Two things of the kernel's could add to it, and are kept out. The page a quarter before the
/// window's end is marked: touching it reads the next window too; it lies 8 pages behind the one
/// that faulted, a read touches 4, and another read in the same window is rare in a large file.
/// After a hundred misses without a hit (`MMAP_LOTSAMISS`) nothing is read around any more; a
/// sample of so many windows is left out.
#[test]
fn a_plain_mapping_reads_the_union_of_its_windows() {
    const READAHEAD: u64 = 128 << 10;
    // `MMAP_LOTSAMISS` in mm/filemap.c.
    const MISSES: u64 = 100;
    let _turn = my_turn();
    let place = Place::new();
    let Some(setting) = Readahead::of(&place.path()).ok().filter(|setting| setting.read().is_ok()) else {
        return support::skipped("readahead", "no readahead is shown");
    };
    let found = setting.read().expect("readahead");
    if let Err(reason) = setting.set(&found) {
        return support::skipped("readahead", &reason.to_string());
    }
    // Too small for a lead-in, whose reads would be in the union.
    let more = [
        "--methods=mmap",
        "--cache=cold",
        "--file-size=128MiB",
        "--readahead=128KiB",
        "--reads-per-op=1",
        "--sample=4ms",
        "--no-ceilings",
    ];
    let taken = take(&place, &more, |run| each_has(run, 3));
    expect_honest(&taken.run);
    assert_eq!(setting.read().expect("readahead"), found, "readahead is not what it was");

    let page = rustix::param::page_size() as u64;
    let (window, file_pages) = (READAHEAD / page, (128 << 20) / page);
    let (mut read, mut expected) = (0, 0);
    for sample in samples(&taken.run, method("mmap")) {
        let Some((measurement, seen)) = sample.valid() else { continue };
        let cell = cells(&taken.run, |cell| cell.id() == sample.cell)[0];
        // As the supervisor draws it for a dataset.
        let seed = mix(taken.run.header.plan.seed ^ u64::from(sample.round));
        let table = OffsetTable::new(&cell.conditions, seed).expect("a table");
        let order = table.as_drawn();
        let mut cached = BTreeSet::new();
        let mut windows = 0;
        for operation in 0..measurement.thread_operations[0] {
            let offset = table.operation(&order, 0, operation).expect("within the table")[0];
            for touched in offset / page..(offset + READ_BYTES) / page {
                if !cached.contains(&touched) {
                    let start = touched.saturating_sub(window / 2);
                    cached.extend(start..(start + window).min(file_pages));
                    windows += 1;
                }
            }
        }
        if windows >= MISSES {
            println!("left out: {windows} windows, after which the kernel may have stopped reading around");
            continue;
        }
        assert_eq!(seen.readahead_bytes, Some(READAHEAD));
        read += seen.device_read_bytes.expect("device bytes");
        expected += cached.len() as u64 * page;
    }
    println!("{read} bytes read, {expected} in the union of the windows");
    if expected == 0 {
        support::inconclusive("the device is so fast that every sample has too many windows");
    }
    assert!((read as f64 / expected as f64 - 1.0).abs() <= 0.03, "{read} of {expected}");
}

#[test]
fn a_cold_start_ends_with_everything_in_the_cache() {
    const FILE_BYTES: u64 = 64 << 20;
    let _turn = my_turn();
    let place = Place::new();
    let more =
        ["--methods=pread", "--cache=cold-start", "--file-size=64MiB", "--sample=100ms", "--no-ceilings"];
    // The kernel may take a few pages back while somebody else needs memory, and they are read
    // again. Who drops the page cache of the whole machine takes more; such a sample says nothing.
    const FEW_BYTES: u64 = FILE_BYTES / 500;
    let keeps = |seen: &Evidence| {
        let resident =
            seen.windows.iter().map(|window| window.resident_bytes).chain([seen.resident_after_bytes]);
        let resident: Vec<u64> = resident.map(|bytes| bytes.expect("residency")).collect();
        resident.windows(2).all(|pair| pair[1] + FEW_BYTES >= pair[0])
    };
    let kept = |run: &Run| {
        let measured = valid(run, |cell| cell.role == Role::Measured);
        measured.iter().filter(|(_, seen)| keeps(seen)).count()
    };
    // Rates become steady only while nobody else takes the CPU.
    let is_timed = |run: &Run| {
        let judged = Taken::of(run).judged;
        !judged_cell(&judged, "measured", "pread", READ_BYTES)["time_to_warm_ns"].is_null()
    };
    let refused = |run: &Run| unavailable(run).is_some();
    let taken = take(&place, &more, |run| refused(run) || (kept(run) >= 1 && is_timed(run)));
    if unavailable(&taken.run).is_some_and(|reason| reason.contains("in memory")) {
        return support::skipped("disk", "nothing is evicted from memory");
    }
    expect_honest(&taken.run);
    for (_, seen) in valid(&taken.run, |_| true).into_iter().filter(|(_, seen)| keeps(seen)) {
        assert_eq!(seen.resident_before_bytes, Some(0));
        assert!(seen.resident_after_bytes.is_some_and(|bytes| bytes + FEW_BYTES >= FILE_BYTES), "{seen:?}");
        let (first, last) = (seen.windows[0], seen.windows[seen.windows.len() - 1]);
        assert!(first.device_read_bytes.is_some_and(|bytes| bytes > FILE_BYTES / 100), "{first:?}");
        assert!(last.device_read_bytes.is_some_and(|bytes| bytes <= FEW_BYTES), "{last:?}");
        // Each byte of the file is read once, whatever was read ahead of it.
        let read = seen.device_read_bytes.expect("device bytes");
        assert!(read.abs_diff(FILE_BYTES) <= FILE_BYTES / 20, "{read} bytes were read");
    }
    let cell = judged_cell(&taken.judged, "measured", "pread", READ_BYTES);
    let to_warm = |key: &str| cell[key]["median"].as_f64().unwrap_or_else(|| panic!("no {key}"));
    assert!(to_warm("time_to_warm_ns") > 0.0);
    assert!((to_warm("bytes_to_warm") / FILE_BYTES as f64 - 1.0).abs() <= 0.05, "{cell}");
    assert!(cell["cold_start"].as_array().is_some_and(|course| course.len() >= 6), "{cell}");
}

/// Why the first cell that is unavailable is.
fn unavailable(run: &Run) -> Option<&str> {
    run.samples.iter().find_map(|sample| match &sample.outcome {
        Outcome::Unavailable { reason } => Some(reason.as_str()),
        _ => None,
    })
}

#[test]
fn popular_places_stay_in_the_cache() {
    let _turn = my_turn();
    if !can_limit_memory() {
        return;
    }
    let place = Place::new();
    let more = [
        "--methods=pread:random",
        "--memory=32MiB",
        "--span=4x",
        "--cache=warm",
        "--skew=uniform,zipf:0.99",
        "--reads-per-op=1",
        "--sample=100ms",
        "--no-ceilings",
    ];
    let taken = take(&place, &more, |run| each_method_has(run, 1));
    expect_honest(&taken.run);
    let share = |skew: &str| {
        let of_skew = valid(&taken.run, |cell| {
            cell.conditions.reads().is_some_and(|reads| reads.skew.to_string() == skew)
        });
        let sum = |field: &dyn Fn(&Evidence) -> u64| {
            of_skew.iter().map(|(_, seen)| field(seen)).sum::<u64>() as f64
        };
        sum(&|seen| seen.device_read_bytes.expect("device bytes")) / sum(&|seen| seen.requested_bytes)
    };
    let (uniform, zipf) = (share("uniform"), share("zipf:0.99"));
    println!("{uniform:.3} of uniform reads miss, {zipf:.3} of those by zipf 0.99");
    // By its sums, a quarter of the places have three quarters of the reads and more.
    assert!(zipf < uniform * 0.6, "{zipf} against {uniform}");
}
