//! Each check broken on purpose, and honest samples close to its limits.

use crate::proof::honest::{CONTEXT, append, fill, kinds, kinds_in, reading, synced, update};
use pagewise_model::CacheState::{Cold, Warm, WarmSmall};
use pagewise_model::CheckContext as Context;
use pagewise_model::FailureKind::{
    Contaminated, LostRecords, MethodContradicted, MissingReads, MissingWrites, NotCold, NotDirect,
    NotInForce, NotWarm, WrongChecksum,
};
use pagewise_model::sample::Written;
use pagewise_model::{Cell, Evidence, FailureKind};

const IN_MEMORY: Context = Context { memory_backed: true, ..CONTEXT };
const COMPRESSED: Context = Context { sparse_or_compressed_bytes: true, ..CONTEXT };

fn with_written(cell: &Cell, change: impl FnOnce(&mut Written)) -> Vec<FailureKind> {
    kinds(cell, |_, evidence| change(evidence.written.as_mut().expect("read back")))
}

fn sentence(cell: &Cell, change: impl FnOnce(&mut Written)) -> String {
    let (measurement, mut evidence) =
        (crate::proof::honest::measurement_of(cell), crate::proof::honest::evidence(cell));
    change(evidence.written.as_mut().expect("read back"));
    let failures = crate::proof::failures(cell, &measurement, &evidence, &CONTEXT);
    failures.into_iter().map(|failure| failure.detail).collect::<Vec<_>>().join("; ")
}

#[test]
fn records_that_are_not_in_the_file_are_noticed() {
    for method in ["mmap", "mmap:buffer=4KiB", "pwrite:buffer=4KiB", "uring", "pwrite:direct+buffer=4KiB"] {
        let cell = append(method, Cold);
        assert_eq!(with_written(&cell, |written| written.missing_bytes = 1), [LostRecords], "{method}");
        assert_eq!(with_written(&cell, |written| written.stray_bytes = 1), [LostRecords], "{method}");
        assert_eq!(with_written(&cell, |written| written.expected_bytes -= 100), [LostRecords], "{method}");
        assert!(kinds(&cell, |_, evidence| evidence.written = None).contains(&LostRecords), "{method}");
    }
    assert_eq!(kinds(&append("anonymous", Cold), |_, _| {}), [], "there is no file");
}

#[test]
fn what_is_lost_is_reported_in_bytes_and_records() {
    let half = |written: &mut Written| {
        written.missing_bytes = 5_242_900;
        written.first_missing_at = Some(100);
    };
    assert_eq!(
        sentence(&append("mmap:buffer=200B", Cold), half),
        "5242900 of 10485700 bytes of records are not in the file; the first is missing at offset 100 \
         (52429 records of 104857)"
    );
}

#[test]
fn what_was_written_before_time_was_up_must_be_there() {
    let early = |cell: &Cell, change: &dyn Fn(&mut Evidence)| {
        kinds(cell, |measurement, evidence| {
            measurement.operations = 1000;
            measurement.thread_operations = vec![1000];
            measurement.latency_counts = vec![20, 3];
            evidence.requested_bytes = 100_000;
            let written = evidence.written.as_mut().expect("read back");
            written.expected_bytes = 100_000;
            change(evidence);
        })
    };
    let cell = append("pwrite", Cold);
    assert_eq!(early(&cell, &|_| {}), []);
    let missing = |evidence: &mut Evidence| evidence.written.as_mut().expect("read back").missing_bytes = 100;
    assert_eq!(early(&cell, &missing), [LostRecords]);
    assert_eq!(early(&cell, &|evidence| evidence.requested_bytes = 99_900), [], "the last is still staged");
}

#[test]
fn writes_that_were_not_made_are_noticed() {
    let all = 10_485_700;
    for method in ["pwrite", "write", "pwrite:buffer=4KiB", "write:buffer=4KiB"] {
        let cell = append(method, Cold);
        let bytes = |bytes| kinds(&cell, |_, evidence| evidence.write_call_bytes = bytes);
        assert_eq!((bytes(Some(all)), bytes(Some(all - 1))), (vec![], vec![MissingWrites]), "{method}");
        assert_eq!(bytes(None), [], "{method}");
    }
    let calls =
        |method: &str, calls| kinds(&append(method, Cold), |_, evidence| evidence.write_calls = Some(calls));
    assert_eq!((calls("pwrite", 104_857), calls("pwrite", 104_856)), (vec![], vec![MissingWrites]));
    let buffered = "pwrite:buffer=4KiB";
    assert_eq!((calls(buffered, 2560), calls(buffered, 2559)), (vec![], vec![MissingWrites]));
    assert_eq!(calls("uring:depth=4", 0), []);
    assert_eq!(calls("mmap", 0), []);
}

#[test]
fn a_mapping_that_makes_write_calls_is_none() {
    let calls = |method: &str, bytes| {
        kinds(&append(method, Cold), |_, evidence| evidence.write_call_bytes = Some(bytes))
    };
    assert_eq!((calls("mmap", 1 << 20), calls("mmap", 2 << 20)), (vec![], vec![MethodContradicted]));
    assert_eq!(calls("uring", 2 << 20), []);
}

#[test]
fn a_file_that_was_not_new_is_noticed() {
    for method in ["mmap", "mmap:sequential", "pwrite", "write:direct+buffer=4KiB", "uring"] {
        let cell = append(method, Cold);
        let allocated = |bytes| with_written(&cell, |written| written.allocated_before_bytes = Some(bytes));
        assert_eq!((allocated(4096), allocated(8192)), (vec![], vec![NotCold]), "{method}");
        let dirty = |bytes| with_written(&cell, |written| written.dirty_before_bytes = Some(bytes));
        assert_eq!((dirty(4096), dirty(8192)), (vec![], vec![NotCold]), "{method}");
        let resident = |bytes| kinds(&cell, |_, evidence| evidence.resident_before_bytes = Some(bytes));
        assert_eq!((resident(4096), resident(8192)), (vec![], vec![NotCold]), "{method}");
    }
}

#[test]
fn what_set_up_did_to_a_new_file_is_its_own() {
    let of = |method: &str, context: &Context| {
        kinds_in(&fill(method, Cold), context, |_, evidence| {
            evidence.resident_before_bytes = Some(16 << 20);
            evidence.minor_faults = Some(500);
            let written = evidence.written.as_mut().expect("read back");
            written.allocated_before_bytes = Some(16 << 20);
        })
    };
    for method in ["mmap:populate-write", "mmap:touch", "mmap:prealloc", "mmap:pretouch=1MiB"] {
        assert_eq!(of(method, &CONTEXT), [], "{method}");
    }
    for method in ["mmap:populate", "mmap:lock"] {
        assert_eq!(of(method, &CONTEXT), [NotCold], "{method}: reading a hole takes no block");
        assert_eq!(of(method, &IN_MEMORY), [], "{method}: but a page");
    }
    let dirty = |method: &str| {
        with_written(&fill(method, Cold), |written| written.dirty_before_bytes = Some(16 << 20))
    };
    assert_eq!((dirty("mmap:touch"), dirty("mmap:populate")), (vec![], vec![NotCold]));
}

#[test]
fn a_new_file_needs_a_proof() {
    let unknown = |resident, allocated| {
        kinds(&append("mmap", Cold), |_, evidence| {
            evidence.resident_before_bytes = resident;
            let written = evidence.written.as_mut().expect("read back");
            written.allocated_before_bytes = allocated;
            written.dirty_before_bytes = None;
        })
    };
    assert_eq!((unknown(Some(0), None), unknown(None, Some(0))), (vec![], vec![]));
    assert_eq!(unknown(None, None), [NotCold]);
}

#[test]
fn a_file_to_update_that_was_not_evicted_is_noticed() {
    for method in ["mmap", "mmap:random", "pwrite", "uring", "pwrite:direct"] {
        let cell = update(method, Cold);
        let resident = |bytes| kinds(&cell, |_, evidence| evidence.resident_before_bytes = bytes);
        assert_eq!((resident(Some(4096)), resident(Some(8192))), (vec![], vec![NotCold]), "{method}");
        assert_eq!(resident(None), [NotCold], "{method}");
        let allocated = |bytes| with_written(&cell, |written| written.allocated_before_bytes = Some(bytes));
        assert_eq!((allocated(16 << 20), allocated(15 << 20)), (vec![], vec![NotWarm]), "{method}");
        assert_eq!(with_written(&cell, |written| written.dirty_before_bytes = Some(4096)), [NotWarm]);
        // A store reads its page first.
        let read = |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(1 << 20);
        assert_eq!(kinds(&cell, read), [], "{method}");
    }
    let populated = |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = Some(16 << 20);
    assert_eq!(kinds(&update("mmap:populate", Cold), populated), []);
    assert_eq!(with_written(&update("pwrite", Warm), |written| written.missing_bytes = 4096), [LostRecords]);
    let resident = |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = Some(15 << 20);
    assert_eq!(kinds(&update("pwrite", Warm), resident), [NotWarm], "also what is not updated");
}

#[test]
fn reads_between_updates_that_were_not_made_are_noticed() {
    for method in ["mmap", "pwrite", "uring", "pwrite:direct", "uring:direct"] {
        let cell = reading(update(method, Warm));
        assert_eq!(kinds(&cell, |_, evidence| evidence.checksum += 1), [WrongChecksum], "{method}");
        let none: &[FailureKind] = match method {
            "pwrite" | "pwrite:direct" => &[MissingReads],
            _ => &[],
        };
        let calls = |_: &mut _, evidence: &mut Evidence| evidence.read_calls = Some(1499);
        assert_eq!(kinds(&cell, calls), none, "{method}");
        let bytes = |_: &mut _, evidence: &mut Evidence| evidence.read_call_bytes = Some(1499 * 4096);
        let otherwise: &[FailureKind] = if method == "mmap" { &[NotInForce] } else { none };
        assert_eq!(kinds(&cell, bytes), otherwise, "{method}");
        let device: &[FailureKind] = if method.contains("direct") { &[NotDirect] } else { &[] };
        let few = kinds(&cell, |_, evidence| evidence.device_read_bytes = Some(5 << 20));
        let few: Vec<_> = few.into_iter().filter(|kind| *kind == NotDirect).collect();
        assert_eq!(few, device, "{method}");
    }
    // Without reads nothing is known of them, and nothing asked.
    assert_eq!(kinds(&update("mmap", Warm), |_, evidence| evidence.checksum += 1), []);
}

#[test]
fn folios_that_are_not_small_are_noticed() {
    let folio = |cell: &Cell, context: &Context, bytes| {
        kinds_in(cell, context, |_, evidence| {
            evidence.written.as_mut().expect("read back").folio_bytes = bytes;
        })
    };
    for method in ["mmap", "pwrite", "pwrite:direct"] {
        let cell = update(method, WarmSmall);
        assert_eq!(folio(&cell, &CONTEXT, Some(4096)), [], "{method}");
        assert_eq!(folio(&cell, &CONTEXT, Some(8192)), [NotWarm], "{method}");
        assert_eq!(folio(&cell, &CONTEXT, None), [NotWarm], "{method}");
        assert_eq!(folio(&update(method, Warm), &CONTEXT, Some(1 << 20)), [], "{method}");
    }
}

#[test]
fn a_file_that_was_not_written_before_is_noticed() {
    for method in ["mmap", "pwrite", "uring", "mmap:buffer=4KiB"] {
        let cell = append(method, Warm);
        let resident = |bytes| kinds(&cell, |_, evidence| evidence.resident_before_bytes = Some(bytes));
        // The last 60 B belong to no record, but share a page with some.
        assert_eq!((resident(10_485_700), resident(10_481_600)), (vec![], vec![NotWarm]), "{method}");
        let allocated = |bytes| with_written(&cell, |written| written.allocated_before_bytes = Some(bytes));
        assert_eq!((allocated(10 << 20), allocated(0)), (vec![], vec![NotWarm]), "{method}");
        assert_eq!(with_written(&cell, |written| written.dirty_before_bytes = Some(4096)), [NotWarm]);
        assert_eq!(with_written(&cell, |written| written.dirty_before_bytes = None), []);
        let read = |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(1 << 20);
        assert_eq!(kinds(&cell, read), [NotWarm], "{method}");
    }
    let blocks = |context: &Context| {
        kinds_in(&append("pwrite", Warm), context, |_, evidence| {
            evidence.written.as_mut().expect("read back").allocated_before_bytes = Some(4096);
        })
    };
    assert_eq!(blocks(&COMPRESSED), []);
    let touched = |written: &mut Written| written.dirty_before_bytes = Some(16 << 20);
    assert_eq!(with_written(&fill("mmap:touch", Warm), touched), []);
    let fault = |_: &mut _, evidence: &mut Evidence| evidence.major_faults = Some(1);
    assert_eq!(kinds(&append("mmap", Warm), fault), [NotWarm]);
}

#[test]
fn direct_writes_do_not_look_at_the_cache_but_at_blocks() {
    let cell = append("pwrite:direct+buffer=4KiB", Warm);
    assert_eq!(kinds(&cell, |_, evidence| evidence.resident_before_bytes = Some(0)), []);
    assert_eq!(with_written(&cell, |written| written.allocated_before_bytes = Some(0)), [NotWarm]);
    let unknown = |_: &mut _, evidence: &mut Evidence| {
        evidence.resident_before_bytes = None;
        evidence.written.as_mut().expect("read back").allocated_before_bytes = None;
    };
    assert_eq!(kinds(&cell, unknown), [NotWarm]);
}

#[test]
fn blocks_that_were_not_allocated_are_noticed() {
    for method in ["mmap:prealloc", "pwrite:prealloc", "uring:prealloc"] {
        let cell = append(method, Cold);
        let allocated = |bytes| with_written(&cell, |written| written.allocated_before_bytes = bytes);
        assert_eq!((allocated(Some(10 << 20)), allocated(None)), (vec![], vec![]), "{method}");
        assert_eq!(allocated(Some((10 << 20) - 4096)), [NotInForce], "{method}");
    }
}

#[test]
fn a_sync_that_was_not_made_is_noticed() {
    let end = synced(append("mmap", Cold), "end");
    let every = synced(append("pwrite", Cold), "every:1MiB");
    assert_eq!((kinds(&end, |_, _| {}), kinds(&every, |_, _| {})), (vec![], vec![]));
    // 60 B after the last record, and a page.
    let at_end = |cell, bytes| with_written(cell, |written| written.dirty_end_bytes = Some(bytes));
    assert_eq!((at_end(&end, 4156), at_end(&end, 4157)), (vec![], vec![NotInForce]));
    assert_eq!(at_end(&every, 10 << 20), [NotInForce]);
    assert_eq!(at_end(&append("mmap", Cold), 10 << 20), []);
    let after = |cell, bytes| with_written(cell, |written| written.dirty_after_bytes = Some(bytes));
    assert_eq!((after(&end, 10 << 20), after(&every, 10 << 20)), (vec![], vec![NotInForce]));
    assert_eq!(with_written(&end, |written| written.dirty_end_bytes = None), []);
}

#[test]
fn direct_writes_served_from_memory_are_noticed() {
    for method in ["pwrite:direct+buffer=4KiB", "write:direct+buffer=4KiB", "uring:direct+buffer=4KiB"] {
        let cell = append(method, Cold);
        let to_device = |context, bytes| {
            kinds_in(&cell, context, |_, evidence| evidence.device_written_bytes = Some(bytes))
        };
        assert_eq!((to_device(&CONTEXT, 10_300_000), to_device(&CONTEXT, 0)), (vec![], vec![NotDirect]));
        assert_eq!(to_device(&COMPRESSED, 0), [], "{method}");
        assert_eq!(to_device(&IN_MEMORY, 0), [NotDirect], "{method}");
        assert_eq!(kinds(&cell, |_, evidence| evidence.descriptor_direct = Some(false)), [NotDirect]);
        let flags = |_: &mut _, evidence: &mut Evidence| evidence.device_written_bytes = None;
        assert_eq!(kinds(&cell, flags), [], "{method}");
        let unknown = |_: &mut _, evidence: &mut Evidence| {
            evidence.device_written_bytes = None;
            evidence.descriptor_direct = None;
        };
        assert_eq!(kinds(&cell, unknown), [NotDirect], "{method}");
    }
}

#[test]
fn others_that_read_the_device_are_noticed_where_it_is_written() {
    let others = |cell: &Cell, written: u64, other: u64| {
        kinds(cell, |_, evidence| {
            evidence.device_written_bytes = Some(written);
            evidence.device_other_bytes = Some(written + other);
        })
    };
    let cell = append("pwrite", Cold);
    // A tenth of 10,485,700 and 4 MiB.
    assert_eq!(
        (others(&cell, 10 << 20, 5_242_874), others(&cell, 10 << 20, 5_242_875)),
        (vec![], vec![Contaminated])
    );
    assert_eq!(others(&cell, 4096, 50 << 20), [], "it stays in the page cache");
    let in_memory = kinds_in(&cell, &IN_MEMORY, |_, evidence| {
        evidence.device_written_bytes = Some(10 << 20);
        evidence.device_other_bytes = Some(50 << 20);
    });
    assert_eq!(in_memory, []);
}

#[test]
fn advice_of_written_mappings_must_be_in_force() {
    let flags = |method: &str, flags: &str| {
        kinds(&fill(method, Cold), |_, evidence| evidence.mapping_flags = Some(flags.to_string()))
    };
    assert_eq!(
        (flags("mmap:lock", "rd wr sh lo"), flags("mmap:lock", "rd wr sh")),
        (vec![], vec![NotInForce])
    );
    assert_eq!(flags("mmap:sequential", "rd wr sh rr"), [NotInForce]);
    assert_eq!(flags("mmap:hugepage", "rd wr sh"), [NotInForce]);
    let cell = fill("mmap:hugepage+populate-write", Cold);
    let mut seen = crate::proof::honest::evidence(&cell);
    assert_eq!(crate::proof::no_effect(&cell, &seen), None);
    seen.huge_mapped_bytes = Some(0);
    assert!(crate::proof::no_effect(&cell, &seen).is_some());
}

#[test]
fn others_that_write_the_device_are_noticed() {
    let written = |cell: &Cell, context: &Context, bytes: u64| {
        kinds_in(cell, context, |_, evidence| {
            evidence.device_written_bytes = Some(bytes);
            evidence.device_other_bytes = Some(bytes);
        })
    };
    // 1.25 times 10,485,700 and 8 MiB.
    let most = 13_107_125 + (8 << 20);
    for method in ["mmap", "pwrite", "uring:direct+buffer=4KiB"] {
        for sync in ["none", "end"] {
            let cell = synced(append(method, Cold), sync);
            let at = |bytes| written(&cell, &CONTEXT, bytes);
            assert_eq!((at(most), at(most + 1)), (vec![], vec![Contaminated]), "{method} {sync}");
            let in_memory = written(&cell, &IN_MEMORY, most + 1);
            assert!(!in_memory.contains(&Contaminated), "{method} {sync}");
        }
    }
    // 10,485,700 B take 10 syncs of 1 MiB, 64 KiB and what a dirty byte is written with: a page of
    // a call, also in a file whose folios are large, and 2 MiB of a mapping.
    for (method, cache, folio) in
        [("pwrite", Cold, 4 << 10), ("pwrite", Warm, 4 << 10), ("mmap", Cold, 2 << 20)]
    {
        let every = synced(append(method, cache), "every:1MiB");
        let syncs = 10 * ((64 << 10) + folio);
        let at = |bytes| written(&every, &CONTEXT, bytes);
        assert_eq!(
            (at(most + syncs), at(most + syncs + 1)),
            (vec![], vec![Contaminated]),
            "{method} {cache:?}"
        );
    }
    // Each of 500 updates may lie in a folio of its own.
    let of_updates = 2_560_000 + (8 << 20);
    let each = (64 << 10) + (4 << 10);
    for (method, most) in [
        ("mmap", of_updates + 2 * ((64 << 10) + (2 << 20)) + 500 * (2 << 20)),
        ("pwrite", of_updates + 2 * each),
    ] {
        let every = synced(update(method, Warm), "every:1MiB");
        let at = |bytes| written(&every, &CONTEXT, bytes);
        assert_eq!((at(most), at(most + 1)), (vec![], vec![Contaminated]), "{method}");
    }
    // Pages that set-up made dirty are written too.
    let touched = fill("mmap:touch", Cold);
    assert_eq!(written(&touched, &CONTEXT, 40 << 20), []);
    assert_eq!(written(&fill("mmap", Cold), &CONTEXT, 40 << 20), [Contaminated]);
}
