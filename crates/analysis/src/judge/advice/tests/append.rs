//! Advice of appends.

use super::*;
use pagewise_model::{Bytes, CacheState, SyncCall, Work};

/// A method with nanoseconds a record.
fn append(method: &str, ns: f64) -> Timed {
    let cell = honest::append(method, CacheState::Cold);
    let records = cell.conditions.fixed_operations().expect("fixed");
    timed(cell, 1000, (ns * records as f64) as u64)
}

fn mapped(times: &[(&str, f64)]) -> Vec<Timed> {
    times
        .iter()
        .map(|(buffer, ns)| match *buffer {
            "" => append("mmap", *ns),
            size => append(&format!("mmap:buffer={size}"), *ns),
        })
        .collect()
}

fn buffers(judged: &Judged) -> &Buffers {
    match judged.advice[0].buffers().collect::<Vec<_>>()[..] {
        [found] => found,
        ref other => panic!("{other:#?}"),
    }
}

#[test]
fn the_plateau_has_edges() {
    let judged = judged(mapped(&[
        ("", 28.0),
        ("100B", 20.0),
        ("4KiB", 12.2),
        ("64KiB", 12.0),
        ("1MiB", 12.2),
        ("16MiB", 13.0),
    ]));
    let found = buffers(&judged);
    assert_eq!(
        (found.smallest_bytes, found.largest_bytes, found.best_bytes),
        (Bytes::kib(4), Bytes::mib(1), Bytes::kib(64))
    );
    assert!((found.best_ns_per_op - 12.04).abs() < 0.01, "{}", found.best_ns_per_op);
    assert_eq!(
        words::advice::buffers(found),
        "mmap (by the records alone, without set-up): the smallest good buffer is 4 KiB: from it to 1 MiB all are at most 2 % slower than the best (12 ns a record); \
         no buffer costs 2.33x, 100 B costs 1.67x, 16 MiB costs 1.08x."
    );
    noted(&judged, &words::advice::buffers(found));
}

#[test]
fn what_is_within_the_price_of_simplicity_is_good_and_what_costs_more_is_not() {
    let smallest = |ns: f64| buffers(&judged(mapped(&[("4KiB", ns), ("64KiB", 12.0)]))).smallest_bytes;
    assert_eq!(smallest(12.0 * 1.045), Bytes::kib(4));
    assert_eq!(smallest(12.0 * 1.055), Bytes::kib(64));
}

#[test]
fn a_gap_ends_the_plateau() {
    let judged = judged(mapped(&[("1KiB", 12.1), ("4KiB", 14.0), ("64KiB", 12.0), ("1MiB", 12.2)]));
    let found = buffers(&judged);
    assert_eq!(
        (found.smallest_bytes, found.unclear_bytes.as_slice()),
        (Bytes::kib(64), &[Bytes::kib(1)][..])
    );
    assert!(words::advice::buffers(found).ends_with("4 KiB costs 1.17x, 1 KiB is at most 1 % slower."));
}

#[test]
fn a_buffer_that_is_not_needed_is_not_advised() {
    let none = judged(mapped(&[("", 12.1), ("4KiB", 12.0), ("64KiB", 12.2)]));
    assert_eq!(buffers(&none).smallest_bytes, Bytes(0));
    assert_eq!(
        words::advice::buffers(buffers(&none)),
        "mmap (by the records alone, without set-up): no buffer is needed: without one and up to 64 KiB all are at most 2 % slower than the best (12 ns a record)."
    );
    let worse = judged(mapped(&[("", 10.0), ("4KiB", 12.0), ("64KiB", 13.0)]));
    assert_eq!(
        words::advice::buffers(buffers(&worse)),
        "mmap (by the records alone, without set-up): no buffer is the best (10 ns a record); 4 KiB costs 1.20x, 64 KiB costs 1.30x."
    );
}

#[test]
fn what_swings_is_unclear_and_not_behind() {
    let mut cells = mapped(&[("64KiB", 12.0), ("256KiB", 12.05), ("1MiB", 12.1)]);
    cells.push(append("mmap:buffer=4KiB", 10.0).unsteady(2.0));
    let judged = judged(cells);
    let found = buffers(&judged);
    assert_eq!(
        (found.smallest_bytes, found.unclear_bytes.as_slice()),
        (Bytes::kib(64), &[Bytes::kib(4)][..])
    );
    assert_eq!(
        words::advice::buffers(found),
        "mmap (by the records alone, without set-up): the smallest buffer known to be good is 64 KiB: from it to 1 MiB all are at most 1 % slower than \
         the best (12 ns a record); 4 KiB is at most 87 % slower."
    );
    let mut cells = mapped(&[("64KiB", 12.0)]);
    cells.push(append("mmap:buffer=4KiB", 10.0).unsteady(2.0));
    assert_eq!(
        words::advice::buffers(buffers(&self::judged(cells))),
        "mmap (by the records alone, without set-up): 64 KiB is ahead (12 ns a record); 4 KiB is at most 87 % slower."
    );
}

#[test]
fn scatter_widens_the_bound_of_what_is_good() {
    let mut cells = mapped(&[("64KiB", 12.0), ("1KiB", 24.0)]);
    cells.push(append("mmap:buffer=4KiB", 12.0).unsteady(1.02));
    let judged = judged(cells);
    let found = buffers(&judged);
    assert_eq!(found.smallest_bytes, Bytes::kib(4));
    assert!((0.01..0.05).contains(&found.bound), "{}", found.bound);
    assert!(
        words::advice::buffers(found).contains("% slower than the best")
            && words::advice::buffers(found).contains("1 KiB costs 2.0"),
        "{}",
        words::advice::buffers(found)
    );
}

#[test]
fn nothing_is_said_of_buffers_with_too_few_rounds() {
    let cells = || mapped(&[("4KiB", 13.0), ("64KiB", 12.0)]);
    let short = judged_in(3, cells());
    assert!(short.advice[0].buffers().next().is_none());
    assert!(
        notes(&short, 0)[0].starts_with("No buffer is advised, because no method has the 5 valid rounds")
    );
}

#[test]
fn a_buffer_without_figures_is_named_with_why() {
    let mut cells = mapped(&[("4KiB", 12.0), ("64KiB", 12.1), ("1MiB", 12.2)]);
    let last = cells.pop().expect("three").invalid();
    cells.push(last);
    let sentence = words::advice::buffers(buffers(&judged(cells)));
    assert!(sentence.ends_with("; mmap:buffer=1MiB is not ranked: no sample of it is valid."), "{sentence}");
    let mut cells = mapped(&[("64KiB", 12.0), ("1MiB", 12.1)]);
    cells.push(append("pwrite:buffer=4KiB", 30.0));
    cells.push(append("pwrite:buffer=64KiB", 30.0).invalid());
    noted(
        &self::judged(cells),
        "pwrite: no buffer is advised, because pwrite:buffer=64KiB is not ranked: no sample of it is valid.",
    );
}

#[test]
fn methods_of_one_kind_are_held_together_and_one_buffer_is_no_choice() {
    let judged = judged(vec![
        append("mmap:prealloc+buffer=4KiB", 12.0),
        append("mmap:prealloc+buffer=64KiB", 11.0),
        append("mmap", 20.0),
        append("mmap:buffer=4KiB", 12.5),
        append("pwrite:buffer=4KiB", 30.0),
        append("pwrite", 300.0),
        append("pwrite:direct+buffer=64KiB", 50.0),
        append("pwrite:direct+buffer=1MiB", 25.0),
    ]);
    let bases: Vec<&str> = judged.advice[0].buffers().map(|found| found.base.as_str()).collect();
    assert_eq!(bases, ["mmap:prealloc", "pwrite:direct"]);
}

#[test]
fn debts_and_stalls_are_reported() {
    let run =
        judged(vec![append("mmap", 20.0), append("pwrite", 30.0), append("pwrite:direct+buffer=1MiB", 50.0)]);
    let run = changed(run, |cell| {
        let mapped = cell.method == "mmap";
        cell.dirty_end_bytes = Some(if cell.method.contains("direct") { 0 } else { 10 << 20 });
        (cell.stalls, cell.stall_longest_ns) = (Some(u64::from(mapped) * 3), Some(12_400_000));
        if cell.method.contains("direct") {
            cell.stall_longest_ns = Some(0);
        }
    });
    noted(
        &run,
        "10 MiB of 10 MiB are still dirty at the end with mmap and pwrite: they have not reached the device.",
    );
    noted(
        &run,
        "Stalls over 1 ms: mmap 3 a sample, the longest 12.4 ms; pwrite in some samples, the longest 12.4 ms.",
    );
}

#[test]
fn syncs_that_are_not_durable_are_reported() {
    let warning = |call: SyncCall, memory: bool| {
        let cell = honest::synced(append("pwrite", 30.0).cell, "every:1MiB");
        let run = changed(judged(vec![Timed { cell, ..append("pwrite", 30.0) }]), |cell| {
            let syncs = cell.syncs.as_mut().expect("syncs");
            (syncs.call, syncs.in_memory, syncs.is_durable) = (call, memory, call.is_durable() && !memory);
        });
        notes(&run, 0).into_iter().find(|note| note.contains("not durable"))
    };
    assert_eq!(warning(SyncCall::Fdatasync, false), None);
    assert_eq!(
        warning(SyncCall::SyncFileRange, false).as_deref(),
        Some("sync_file_range is not durable: neither metadata nor the cache of the device are flushed.")
    );
    assert_eq!(
        warning(SyncCall::Fdatasync, true).as_deref(),
        Some("fdatasync is not durable here: the file is stored in memory.")
    );
}

#[test]
fn what_is_written_again_is_reported_where_syncs_are_measured() {
    let notes = |sync: &str| {
        let with = |method: &str, ns| {
            let timed = append(method, ns);
            Timed { cell: honest::synced(timed.cell, sync), ..timed }
        };
        let run = judged(vec![with("mmap", 20.0), with("pwrite", 30.0)]);
        let run = changed(run, |cell| {
            let reached = cell.evidence.as_ref().expect("evidence").requested_bytes;
            cell.device_written_bytes = Some(if cell.method == "mmap" { reached * 3 / 2 } else { reached });
        });
        notes(&run, 0)
    };
    let note =
        "Written to the device by any process, per byte that reached the file: mmap 1.50 B.".to_string();
    assert!(notes("every:1MiB").contains(&note));
    assert!(!notes("end").contains(&note) && !notes("none").contains(&note));
}

#[test]
fn file_sizes_are_summed_up_in_one_sentence() {
    let sized = |mib: u64, four_kib: f64| {
        mapped(&[("4KiB", four_kib), ("16KiB", 12.0), ("64KiB", 12.1)]).into_iter().map(move |timed| {
            let mut cell = timed.cell;
            (cell.conditions.file_bytes, cell.conditions.span_bytes) = (Bytes::mib(mib), Bytes::mib(mib));
            let records = cell.conditions.fixed_operations().expect("fixed");
            // The times were for 10 MiB.
            let ns = timed.measured_ns as f64 / 104_857.0;
            Timed { measured_ns: (ns * records as f64) as u64, cell, ..timed }
        })
    };
    let run = judged(sized(10, 12.2).chain(sized(100, 12.1)).chain(sized(1024, 20.0)).collect());
    let summary = "For records of 100 B the smallest good buffer of mmap is 4 KiB at 10 MiB and 100 MiB, 16 KiB at 1 GiB.";
    assert!(notes(&run, 2).iter().any(|note| note == summary));
    assert!(![0, 1].iter().flat_map(|index| notes(&run, *index)).any(|note| note == summary));
}

#[test]
fn a_situation_is_each_size_of_record() {
    let kib = |timed: Timed| {
        let mut cell = timed.cell;
        match &mut cell.conditions.work {
            Work::Append(append) => append.record_bytes = Bytes::kib(1),
            _ => unreachable!("it is an append"),
        }
        Timed { cell, ..timed }
    };
    let small =
        vec![append("mmap:buffer=4KiB", 12.2), append("mmap:buffer=64KiB", 12.0), append("mmap", 28.0)];
    let large =
        vec![append("mmap:buffer=4KiB", 14.0), append("mmap:buffer=64KiB", 14.1), append("mmap", 12.0)];
    let both = judged(small.into_iter().chain(large.into_iter().map(kib)).collect());
    assert_eq!(
        choices(&both),
        ["append, records of 100 B: mmap:buffer=4KiB", "append, records of 1 KiB: mmap"]
    );
    let alike = |ns| vec![append("mmap", ns), append("pwrite", 300.0)];
    let both = judged(alike(20.0).into_iter().chain(alike(21.0).into_iter().map(kib)).collect());
    assert_eq!(choices(&both), ["append, records of 100 B: mmap", "append, records of 1 KiB: mmap"]);
    let mut cells = mapped(&[("64KiB", 12.0), ("1MiB", 12.1)]);
    cells.push(append("mmap:buffer=4KiB", 12.0).unsteady(1.02));
    cells.push(append("mmap", 28.0));
    assert_eq!(choices(&judged(cells)), ["append: mmap:buffer=4KiB"]);
}
