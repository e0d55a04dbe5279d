//! What somebody else does to a sample while it is taken is caught, and by the check that is meant
//! for it: nothing else would have called the sample invalid. An honest run with the same words is
//! not flagged.
//!
//! The others act while the run stands at a step ([`support::paused`]).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::outsider::{charged, dataset, set_limit};
use crate::support::paused::PausedRun;
use crate::support::until::{arguments, can_limit_memory, expect_honest, my_turn, stop_when, take, valid};
use crate::support::{self, FROM_OUTSIDE, Place, kinds};
use pagewise_host::steps::RunStep;
use pagewise_model::FailureKind::{
    self, ChargedToOtherCgroup, ColdOverrun, Contaminated, LimitNotHeld, MethodContradicted, NotCold,
    NotSettled,
};
use pagewise_model::run::Run;
use pagewise_model::{Failure, Outcome, Role, Sample};
use pagewise_sys::{AnonymousMemory, FileMapping};

/// Samples that are looked at.
const SAMPLES: usize = 3;

/// Data four times as large as the cache.
const ABOVE: [&str; 7] = [
    "--methods=pread:random",
    "--memory=32MiB",
    "--span=4x",
    "--cache=warm",
    "--sample=250ms",
    "--reads-per-op=1",
    "--no-ceilings",
];

/// A run of `more` with nobody beside it, until a sample of it is valid.
#[track_caller]
fn expect_believed(more: &[&str]) {
    let taken = take(&Place::new(), more, |run| !valid(run, |cell| cell.role != Role::Ceiling).is_empty());
    expect_honest(&taken.run);
}

/// The samples of a run with somebody who acts each time it comes to `step`; a few, as each shows
/// the same.
#[track_caller]
fn beside(place: &Place, more: &[&str], step: RunStep, act: impl FnMut(&PausedRun)) -> Vec<Sample> {
    let run = PausedRun::start(place, &arguments(more), step);
    run.act_until(|run| run.samples.len() >= SAMPLES, act).samples
}

/// The checks that a sample failed, without those that any busy machine fails but for `but`.
fn failed(sample: &Sample, but: FailureKind) -> BTreeSet<FailureKind> {
    kinds(sample).into_iter().filter(|kind| *kind == but || !FROM_OUTSIDE.contains(kind)).collect()
}

/// Every sample failed `kind` and nothing else.
#[track_caller]
fn expect_caught(samples: &[Sample], kind: FailureKind) {
    assert!(!samples.is_empty());
    for sample in samples {
        assert_eq!(failed(sample, kind), [kind].into(), "{}: {:?}", sample.cell, sample.outcome);
    }
}

fn in_memory(path: &Path) -> bool {
    let file = File::open(path).expect("open");
    pagewise_host::cache::in_memory(&file).is_some()
}

/// Reads a part of a file, which the page cache then holds for whoever read it.
fn read_part(path: &Path, from: u64, len: u64) {
    let Ok(file) = File::open(path) else { return };
    let mut piece = vec![0; 1 << 20];
    let mut offset = from;
    while offset < from + len {
        match file.read_at(&mut piece, offset) {
            Ok(read) if read > 0 => offset += read as u64,
            _ => return,
        }
    }
}

#[test]
fn a_limit_that_is_lifted_behind_the_workers_back() {
    const FITS: [&str; 6] = [
        "--methods=pread",
        "--memory=64MiB",
        "--span=0.5x",
        "--cache=warm",
        "--sample=200ms",
        "--no-ceilings",
    ];
    const LIFTED: u64 = 256 << 20;
    let _turn = my_turn();
    if !can_limit_memory() {
        return;
    }
    expect_believed(&FITS);
    let place = Place::new();
    let lifted = beside(&place, &FITS, RunStep::WorkerStarted, |run| {
        for worker in run.workers() {
            set_limit(worker, LIFTED).expect("a group");
        }
    });
    expect_caught(&lifted, LimitNotHeld);
    for sample in &lifted {
        let is_named = |failure: &Failure| failure.detail.contains("limit is 268435456 bytes");
        assert!(sample.failures().iter().any(is_named), "{:?}", sample.failures());
    }
}

/// The limit is right before and after; what was charged meanwhile shows the change.
#[test]
fn a_limit_that_is_lifted_for_a_while() {
    let _turn = my_turn();
    if !can_limit_memory() {
        return;
    }
    expect_believed(&ABOVE);
    let place = Place::new();
    let samples = beside(&place, &ABOVE, RunStep::GoSent, |run| {
        for worker in run.workers() {
            set_limit(worker, 64 << 20).expect("a group");
            // Until its reads have made use of it, which those of a short trial need not.
            for _ in 0..200 {
                if charged(worker).expect("a group") > 40 << 20 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            set_limit(worker, 32 << 20).expect("a group");
        }
    });
    for sample in &samples {
        // What the cache gained and lost again may also have kept it from settling.
        let found = failed(sample, LimitNotHeld);
        assert!(found.contains(&LimitNotHeld), "{:?}", sample.outcome);
        assert!(found.is_subset(&[LimitNotHeld, NotSettled].into()), "{:?}", sample.failures());
    }
}

/// A file of the test's own beside the dataset, which lies on the same device.
fn other_file(place: &Place) -> PathBuf {
    let path = place.root().join("other");
    let mut file = File::create(&path).expect("create");
    for piece in 0..64_u64 {
        let mut bytes = vec![0; 1 << 20];
        pagewise_model::content::fill(5, piece << 20, &mut bytes);
        file.write_all(&bytes).expect("write");
    }
    file.sync_all().expect("sync");
    path
}

#[test]
fn somebody_who_reads_the_device() {
    const DIRECT: [&str; 4] =
        ["--methods=pread:direct", "--file-size=64MiB", "--sample=150ms", "--no-ceilings"];
    let _turn = my_turn();
    let place = Place::new();
    let path = other_file(&place);
    let direct =
        File::options().read(true).custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32).open(&path);
    let Some(direct) = direct.ok().filter(|_| !in_memory(&path)) else {
        return support::skipped("disk", "the build directory takes no direct reads");
    };
    expect_believed(&DIRECT);
    let mut memory = AnonymousMemory::new(1 << 20).expect("memory");
    let samples = beside(&place, &DIRECT, RunStep::GoSent, |_| {
        for piece in 0..64 {
            direct.read_at(memory.bytes_mut(), piece << 20).expect("read");
        }
    });
    expect_caught(&samples, Contaminated);
    for sample in &samples {
        let is_named = |failure: &Failure| failure.detail.starts_with("others moved ");
        assert!(sample.failures().iter().any(is_named), "{:?}", sample.failures());
        assert!(sample.attempt < 3);
    }
    // Such a sample is taken again, twice at most.
    let attempts: BTreeSet<u32> = samples.iter().map(|sample| sample.attempt).collect();
    assert_eq!(attempts, [0, 1, 2].into());
}

#[test]
fn somebody_who_warms_a_cold_file() {
    const COLD: [&str; 5] =
        ["--methods=pread:random", "--cache=cold", "--file-size=128MiB", "--sample=300ms", "--no-ceilings"];
    let _turn = my_turn();
    let place = Place::new();
    if in_memory(&place.path()) {
        return support::skipped("disk", "nothing is evicted from memory");
    }
    expect_believed(&COLD);
    let directory = place.path();
    let warms = |_: &PausedRun| read_part(&dataset(&directory).expect("a dataset"), 0, 128 << 20);
    // Before `go`, and while it reads.
    for sample in beside(&place, &COLD, RunStep::WorkerReady, warms) {
        let found = failed(&sample, NotCold);
        assert!(found.contains(&NotCold), "{:?}", sample.outcome);
        assert!(found.is_subset(&[NotCold, ColdOverrun].into()), "{:?}", sample.failures());
    }
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    for sample in beside(&place, &COLD, RunStep::GoSent, warms) {
        let found = failed(&sample, Contaminated);
        assert!(!found.is_empty(), "{:?}", sample.outcome);
        // What others bring in beside its reads is read for the worker too where both wait for it.
        let besides = [NotCold, ColdOverrun, Contaminated, MethodContradicted].into();
        assert!(found.is_subset(&besides), "{:?}", sample.failures());
    }
}

#[test]
fn a_mapping_that_keeps_a_cold_file_resident() {
    const COLD: [&str; 5] =
        ["--methods=pread", "--cache=cold", "--file-size=64MiB", "--sample=10ms", "--no-ceilings"];
    let _turn = my_turn();
    let place = Place::new();
    if in_memory(&place.path()) {
        return support::skipped("disk", "nothing is evicted from memory");
    }
    expect_believed(&[&COLD[..], &["--readahead=none"]].concat());
    let (directory, mut mapping) = (place.path(), None);
    let run = PausedRun::start(&place, &arguments(&COLD), RunStep::WorkerStarted);
    let run = run.act_until(
        |run| run.samples.iter().any(is_broken),
        |_| {
            mapping.get_or_insert_with(|| {
                let file = File::open(dataset(&directory).expect("a dataset")).expect("open");
                FileMapping::new(&file, 64 << 20, true).expect("map")
            });
        },
    );
    let named = fs::read_to_string("/proc/self/comm").expect("a name");
    let last = run.samples.iter().find(|sample| is_broken(sample)).expect("a file that cannot be evicted");
    assert_eq!(kinds(last), [NotCold]);
    let detail = &last.failures()[0].detail;
    assert!(detail.contains("mapped by another process") && detail.contains(named.trim()), "{detail}");
}

fn is_broken(sample: &Sample) -> bool {
    matches!(sample.outcome, Outcome::Broken { .. })
}

#[test]
fn somebody_who_warms_the_file_from_outside_the_limit() {
    const FITS: [&str; 6] = [
        "--methods=pread",
        "--memory=128MiB",
        "--span=0.5x",
        "--cache=warm",
        "--sample=20ms",
        "--no-ceilings",
    ];
    let _turn = my_turn();
    if !can_limit_memory() {
        return;
    }
    expect_believed(&FITS);
    let place = Place::new();
    let directory = place.path();
    // The process that warms begins at the front.
    let run = PausedRun::start(&place, &arguments(&FITS), RunStep::Warming).act_until(
        |run| run.samples.len() >= SAMPLES,
        |_| read_part(&dataset(&directory).expect("a dataset"), 40 << 20, 20 << 20),
    );
    let span = run.header.plan.cells[0].conditions.span_bytes.0;
    let mut caught = 0;
    for (index, sample) in run.samples.iter().enumerate() {
        let context = run.check_context(index).expect("the context of the checks");
        let Outcome::Taken { evidence, .. } = &sample.outcome else { panic!("{:?}", sample.outcome) };
        let resident = evidence.resident_after_bytes.expect("residency");
        let charged = evidence.group.as_ref().and_then(|group| group.file_bytes).expect("file pages");
        // Where the outsider came too late, there is nothing to be caught: 2 % of the span, and
        // what CPUs charge ahead.
        let most = charged + span / 50 + 64 * u64::from(context.cpus) * context.page_bytes;
        let expected = if resident > most { vec![ChargedToOtherCgroup] } else { vec![] };
        let found: Vec<_> = failed(sample, ChargedToOtherCgroup).into_iter().collect();
        assert_eq!(found, expected, "{resident} resident, {charged} charged: {:?}", sample.failures());
        caught += expected.len();
    }
    assert!(caught > 0, "the outsider was too late {} times", run.samples.len());
}

/// The worker finds more in the cache than its limit has room for. With nobody beside it the same
/// run is believed: [`a_limit_that_is_lifted_for_a_while`].
#[test]
fn somebody_who_holds_a_part_of_the_file_in_the_cache() {
    let _turn = my_turn();
    if !can_limit_memory() {
        return;
    }
    let place = Place::new();
    let directory = place.path();
    let samples = beside(&place, &ABOVE, RunStep::CachePrepared, |_| {
        read_part(&dataset(&directory).expect("a dataset"), 80 << 20, 32 << 20);
    });
    assert!(!samples.is_empty());
    for sample in &samples {
        let found = failed(sample, ChargedToOtherCgroup);
        assert!(found.contains(&ChargedToOtherCgroup), "{:?}", sample.outcome);
        assert!(found.is_subset(&[ChargedToOtherCgroup, NotSettled].into()), "{:?}", sample.failures());
    }
}

/// What lies in memory is charged to whoever wrote it, and cannot be evicted to be charged anew.
#[test]
fn a_file_in_memory_that_was_made_outside_the_limit() {
    let _turn = my_turn();
    let shm = Path::new("/dev/shm");
    if !can_limit_memory() {
        return;
    }
    if !shm.is_dir() || !in_memory(shm) {
        return support::skipped("tmpfs", "/dev/shm is no tmpfs");
    }
    let more = [
        "--methods=mmap,pread",
        "--memory=32MiB",
        "--span=0.5x",
        "--cache=warm,cold",
        "--sample=20ms",
        "--no-ceilings",
    ];
    let place = Place::on(shm);
    let is_cold = |sample: &Sample| sample.cell.contains("/cold,");
    let both = |run: Run| run.samples.iter().any(is_cold) && !run.samples.iter().all(is_cold);
    let run = stop_when(&place, &more, both);
    let mut seen = BTreeSet::new();
    for sample in &run.samples {
        seen.insert(is_cold(sample));
        match &sample.outcome {
            Outcome::Unavailable { reason } => {
                assert!(is_cold(sample), "{}: {reason}", sample.cell);
                assert!(reason.contains("in memory"), "{reason}");
            }
            _ => expect_caught(std::slice::from_ref(sample), ChargedToOtherCgroup),
        }
    }
    assert_eq!(seen, [false, true].into());
}
