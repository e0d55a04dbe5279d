//! Conditions on recorded evidence.

use super::*;
use crate::proof::honest::limited;
use crate::proof::honest::{CONTEXT, cell, evidence, kinds, kinds_in, replay_of_three_files};
use pagewise_model::CacheState::{AsIs, Cold, ColdStart, Warm};
use pagewise_model::CheckContext as Context;
use pagewise_model::FailureKind::{ColdOverrun, Contaminated, NotCold, NotDirect, NotInForce, NotWarm};

const HOLED_FILE: Context = Context { sparse_or_compressed_bytes: true, ..CONTEXT };

#[test]
fn a_cache_that_was_not_empty_is_noticed() {
    for method in ["pread", "mmap:random", "uring"] {
        let cell = cell(method, Cold);
        assert_eq!(kinds(&cell, |_, evidence| evidence.resident_before_bytes = Some(4096)), [NotCold]);
    }
    let warmed = |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = Some(1 << 28);
    assert_eq!(kinds(&cell("mmap:populate", Cold), warmed), []);
    assert_eq!(kinds(&cell("pread:direct", Cold), warmed), []);
}

#[test]
fn cold_bytes_must_come_from_the_device() {
    let few = |_: &mut _, evidence: &mut Evidence| {
        evidence.device_read_bytes = Some(evidence.requested_bytes / 100 * 97);
    };
    let cell = cell("pread", Cold);
    assert_eq!(kinds(&cell, few), [NotCold]);
    assert_eq!(kinds_in(&cell, &HOLED_FILE, few), [], "a file with holes");
    assert_eq!(kinds(&cell, |_, evidence| evidence.device_read_bytes = None), []);
}

#[test]
fn cold_without_residency_is_proven_by_device_bytes() {
    let cell = cell("pread", Cold);
    assert_eq!(kinds(&cell, |_, evidence| evidence.resident_before_bytes = None), []);
    let unknown = |read| {
        move |_: &mut _, evidence: &mut Evidence| {
            evidence.resident_before_bytes = None;
            evidence.device_read_bytes = read;
        }
    };
    assert_eq!(kinds_in(&cell, &HOLED_FILE, unknown(Some(1000))), [NotCold]);
    assert_eq!(kinds_in(&cell, &HOLED_FILE, unknown(None)), [NotCold]);
}

#[test]
fn a_cold_block_cannot_be_read_twice() {
    let mut small = cell("pread", Cold);
    small.conditions.span_bytes.0 = 39 << 20;
    assert_eq!(kinds(&small, |_, _| {}), [NotCold, ColdOverrun]);
}

#[test]
fn a_cache_that_was_not_full_is_noticed() {
    let short = |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = Some((1 << 28) - 4096);
    for method in ["pread", "mmap", "uring", "mmap:populate"] {
        assert_eq!(kinds(&cell(method, Warm), short), [NotWarm], "{method}");
    }
    assert_eq!(kinds(&cell("pread:direct", Warm), short), []);
    assert_eq!(kinds(&cell("anonymous", Warm), short), []);
    assert_eq!(kinds(&cell("pread", AsIs), short), []);
}

#[test]
fn warm_needs_nothing_from_the_device() {
    let read = |bytes| move |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(bytes);
    assert_eq!(kinds(&cell("pread", Warm), read(60 << 10)), []);
    assert_eq!(kinds(&cell("pread", Warm), read(70 << 10)), [NotWarm]);
    let fault = |_: &mut _, evidence: &mut Evidence| evidence.major_faults = Some(1);
    assert_eq!(kinds(&cell("mmap", Warm), fault), [NotWarm]);
    assert_eq!(kinds(&cell("pread", Warm), fault), []);
}

#[test]
fn warm_without_residency_needs_another_proof() {
    let unknown = |read, faults| {
        move |_: &mut _, evidence: &mut Evidence| {
            evidence.resident_before_bytes = None;
            evidence.device_read_bytes = read;
            evidence.major_faults = faults;
        }
    };
    assert_eq!(kinds(&cell("mmap", Warm), unknown(None, Some(0))), []);
    assert_eq!(kinds(&cell("pread", Warm), unknown(Some(0), None)), []);
    assert_eq!(kinds(&cell("pread", Warm), unknown(None, Some(0))), [NotWarm]);
}

#[test]
fn a_span_that_ends_within_a_page_may_be_counted_either_way() {
    let mut odd = cell("pread", Warm);
    odd.conditions.span_bytes.0 = (1 << 28) - 100;
    assert_eq!(kinds(&odd, |_, evidence| evidence.resident_before_bytes = Some(1 << 28)), []);
    assert_eq!(kinds(&odd, |_, evidence| evidence.resident_before_bytes = Some((1 << 28) - 100)), []);
}

#[test]
fn what_willneed_brought_in_during_set_up_is_still_cold() {
    let set_up = |mib: u64| {
        move |_: &mut _, evidence: &mut Evidence| {
            evidence.resident_before_bytes = Some(mib << 20);
            evidence.device_read_bytes = evidence.device_read_bytes.map(|read| read - (mib << 20));
            evidence.device_other_bytes = Some(mib << 20);
        }
    };
    assert_eq!(kinds(&cell("pread:willneed", Cold), set_up(8)), []);
    assert_eq!(kinds(&cell("pread", Cold), set_up(8)), [NotCold, Contaminated]);
    let warmed = |_: &mut _, evidence: &mut Evidence| {
        evidence.resident_before_bytes = Some(256 << 20);
        evidence.device_read_bytes = Some(0);
    };
    assert_eq!(
        kinds(&cell("pread:willneed", Cold), warmed),
        [NotCold],
        "one readahead is not the whole file"
    );
    let unknown = |_: &mut _, evidence: &mut Evidence| {
        evidence.resident_before_bytes = None;
        evidence.device_read_bytes = Some(0);
    };
    assert_eq!(kinds(&cell("pread:willneed", Cold), unknown), [NotCold], "then the device must prove it");
}

#[test]
fn a_direct_replay_has_a_direct_descriptor_of_each_file() {
    let direct =
        |descriptor| move |_: &mut _, evidence: &mut Evidence| evidence.descriptor_direct = descriptor;
    let cell = replay_of_three_files("pread:direct", Cold);
    assert_eq!(kinds(&cell, direct(Some(true))), []);
    assert_eq!(kinds(&cell, direct(Some(false))), [NotDirect]);
    assert_eq!(kinds(&cell, direct(None)), [NotDirect], "one of them has none");
}

/// A small file may be missing as a whole, within a page of all bytes.
#[test]
fn a_warm_replay_has_every_byte_of_its_files_in_memory() {
    let mut cell = replay_of_three_files("pread", Warm);
    cell.conditions.span_bytes.0 += 100;
    let span = cell.conditions.span_bytes.0;
    let resident = |bytes| {
        move |_: &mut _, evidence: &mut Evidence| {
            (evidence.resident_before_bytes, evidence.device_read_bytes) = (Some(bytes), Some(0));
        }
    };
    assert_eq!(kinds(&cell, resident(span)), []);
    assert_eq!(kinds(&cell, resident(span - 1)), [NotWarm]);
}

#[test]
fn a_cold_sample_that_got_nothing_from_the_device_is_contaminated_by_who_did() {
    let served = |_: &mut _, evidence: &mut Evidence| {
        evidence.device_read_bytes = Some(0);
        evidence.device_other_bytes = Some(64 << 20);
    };
    assert_eq!(kinds_in(&cell("pread", Cold), &HOLED_FILE, served), [Contaminated]);
}

#[test]
fn advice_that_is_not_in_force_is_noticed() {
    let flags = |flags: &'static str| {
        move |_: &mut _, evidence: &mut Evidence| evidence.mapping_flags = Some(flags.to_string())
    };
    assert_eq!(kinds(&cell("mmap:random", Warm), flags("rd sh")), [NotInForce]);
    assert_eq!(kinds(&cell("mmap:random", Warm), flags("rd rr")), []);
    assert_eq!(kinds(&cell("mmap:sequential+willneed", Warm), flags("rd rr")), [NotInForce]);
    assert_eq!(kinds(&cell("mmap:random+hugepage", Warm), flags("rd rr")), [NotInForce]);
    assert_eq!(kinds(&cell("mmap", Warm), flags("rd")), []);
    assert_eq!(kinds(&cell("pread:random", Warm), flags("rd")), []);
    assert_eq!(kinds(&cell("mmap:random", Warm), |_, evidence| evidence.mapping_flags = None), []);
}

#[test]
fn a_mapping_that_was_not_populated_is_noticed() {
    let faults = |count| move |_: &mut _, evidence: &mut Evidence| evidence.minor_faults = Some(count);
    assert_eq!(kinds(&cell("mmap:populate", Warm), faults(2000)), []);
    assert_eq!(kinds(&cell("mmap:populate", Warm), faults(4096)), [NotInForce]);
    assert_eq!(kinds(&cell("mmap:populate-read", Warm), faults(4096)), [NotInForce]);
    assert_eq!(kinds(&cell("mmap", Warm), faults(65536)), []);
}

#[test]
fn huge_pages_that_are_none_have_no_effect() {
    let cell_huge = cell("mmap:hugepage", Warm);
    let mut seen = evidence(&cell_huge);
    assert_eq!(no_effect(&cell_huge, &seen), None);
    seen.huge_mapped_bytes = Some(0);
    assert!(no_effect(&cell_huge, &seen).is_some());
    assert_eq!(no_effect(&cell("mmap", Warm), &seen), None);
}

#[test]
fn direct_reads_served_from_memory_are_noticed() {
    for method in ["pread:direct", "uring:direct+depth=8"] {
        let cell = cell(method, Warm);
        assert_eq!(kinds(&cell, |_, evidence| evidence.descriptor_direct = Some(false)), [NotDirect]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.device_read_bytes = Some(0)), [NotDirect]);
        let hidden = |before, after| {
            kinds_in(&cell, &HOLED_FILE, move |_, evidence| {
                evidence.device_read_bytes = Some(0);
                (evidence.resident_before_bytes, evidence.resident_after_bytes) = (before, after);
            })
        };
        // Where the device's bytes may be too few the page cache decides: nothing came into it, and
        // it did not hold the file.
        assert_eq!(hidden(Some(0), Some(0)), [], "{method}");
        assert_eq!(hidden(Some(100 << 20), Some(100 << 20)), [], "{method}");
        assert_eq!(hidden(Some(0), Some(64 << 20)), [NotDirect], "{method}");
        assert_eq!(hidden(Some(256 << 20), Some(256 << 20)), [NotDirect], "{method}");
        let all_came = kinds_in(&cell, &HOLED_FILE, |_, evidence| {
            (evidence.resident_before_bytes, evidence.resident_after_bytes) =
                (Some(256 << 20), Some(256 << 20));
        });
        assert_eq!(all_came, [], "{method}: what was in memory came from the device");
        assert_eq!(hidden(None, None), [NotDirect], "{method}");
        let few = kinds_in(&cell, &HOLED_FILE, |_, evidence| {
            evidence.requested_bytes = 1 << 20;
            (evidence.resident_before_bytes, evidence.resident_after_bytes) = (Some(0), Some(1 << 20));
        });
        assert!(few.contains(&NotDirect), "{method}: {few:?}");
        let unknown = |_: &mut _, evidence: &mut Evidence| {
            evidence.device_read_bytes = None;
            evidence.descriptor_direct = None;
        };
        assert_eq!(kinds_in(&cell, &HOLED_FILE, unknown), [NotDirect]);
    }
}

#[test]
fn others_on_the_device_are_noticed_where_it_matters() {
    let busy = |_: &mut _, evidence: &mut Evidence| evidence.device_other_bytes = Some(9 << 20);
    assert_eq!(kinds(&cell("pread", Cold), busy), [Contaminated]);
    assert_eq!(kinds(&cell("pread:direct", Warm), busy), [Contaminated]);
    assert_eq!(kinds(&cell("pread", Warm), busy), []);
    assert_eq!(
        kinds(&cell("pread", Cold), |_, evidence| evidence.device_other_bytes = Some(8 << 20)),
        [],
        "a tenth of 40 MiB and 4 MiB"
    );
    let cached = |_: &mut _, evidence: &mut Evidence| {
        evidence.device_other_bytes = Some(900 << 20);
        evidence.device_read_bytes = Some(4096);
    };
    assert_eq!(kinds(&cell("pread", AsIs), cached), [], "a page of metadata is no use of the device");
}

#[test]
fn others_on_the_device_are_noticed_above_memory() {
    let busy = |_: &mut _, evidence: &mut Evidence| evidence.device_other_bytes = Some(9 << 20);
    assert_eq!(kinds(&limited("pread", Warm, 128), busy), [Contaminated]);
    assert_eq!(kinds(&limited("pread", Warm, 320), busy), [], "everything comes from memory");
    let by_group = |_: &mut _, evidence: &mut Evidence| {
        evidence.device_read_bytes = None;
        evidence.device_other_bytes = Some(9 << 20);
    };
    assert_eq!(kinds(&limited("pread:direct", AsIs, 320), by_group), [Contaminated]);
}

#[test]
fn cpu_time_that_was_stolen_is_noticed() {
    let stolen = |ms: u64| kinds(&cell("mmap", Warm), |_, evidence| evidence.steal_ns = Some(ms * 1_000_000));
    // Two threads of 151 ms: a fifth of 302 ms, and two ticks.
    assert_eq!((stolen(80), stolen(81)), (vec![], vec![Contaminated]));
}

#[test]
fn pages_that_were_taken_from_a_cold_start_are_noticed() {
    let lost = |bytes: u64| {
        move |_: &mut _, evidence: &mut Evidence| {
            let last = evidence.windows.last_mut().expect("a window");
            last.resident_bytes = last.resident_bytes.map(|resident| resident - bytes);
        }
    };
    let cell = cell("pread", CacheState::ColdStart);
    let share = cell.conditions.span_bytes.0 / 50;
    assert_eq!((kinds(&cell, lost(share)), kinds(&cell, lost(share + 1))), (vec![], vec![Contaminated]));
    let limited = limited("pread", CacheState::ColdStart, 128);
    assert_eq!(kinds(&limited, lost(share + 1)), [], "a cache that is full gives pages up");
}

#[test]
fn a_clock_that_stepped_is_noticed() {
    let stepped = |ns| kinds(&cell("mmap", Warm), |_, evidence| evidence.clock_step_ns = Some(ns));
    assert_eq!((stepped(1_100_000), stepped(-1_100_000)), (vec![], vec![]));
    assert_eq!((stepped(1_200_000), stepped(-1_200_000)), (vec![Contaminated], vec![Contaminated]));
}

#[test]
fn a_cold_start_begins_cold_and_fills_from_the_device() {
    let cell = cell("pread", ColdStart);
    assert_eq!(kinds(&cell, |_, evidence| evidence.resident_before_bytes = Some(4096)), [NotCold]);
    assert_eq!(kinds(&cell, |_, evidence| evidence.resident_before_bytes = None), [NotCold]);
    let warmed_by_others =
        |_: &mut _, evidence: &mut Evidence| evidence.resident_after_bytes = Some(256 << 20);
    assert_eq!(kinds(&cell, warmed_by_others), [NotCold]);
    assert_eq!(kinds_in(&cell, &HOLED_FILE, warmed_by_others), []);
}

#[test]
fn a_span_that_fits_under_a_limit_must_be_whole() {
    let short = |_: &mut _, evidence: &mut Evidence| {
        evidence.resident_before_bytes = Some((1 << 28) - 4096);
    };
    assert_eq!(kinds(&limited("pread", Warm, 320), short), [NotWarm]);
    assert_eq!(kinds(&limited("pread", Warm, 128), short), [], "above memory it cannot be");
}

#[test]
fn a_populated_mapping_above_memory_takes_faults() {
    let faults = |_: &mut _, evidence: &mut Evidence| evidence.minor_faults = Some(1 << 20);
    assert_eq!(kinds(&limited("mmap:populate", Warm, 128), faults), []);
    assert_eq!(kinds(&limited("mmap:populate", Warm, 320), faults), [NotInForce]);
}
