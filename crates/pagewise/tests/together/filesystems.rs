//! The same command on other filesystems, on the user's own file, with less permitted, and as
//! another user.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::paused::PausedRun;
use crate::support::{
    self, Finished, PAGEWISE, Place, expect_refused, expect_whole, is_honest, kinds, load, of_method,
    of_methods,
};
use pagewise_host::steps::RunStep;
use pagewise_model::FailureKind::{ColdOverrun, FileChanged, NotCold, WorkerDied};
use pagewise_model::run::Run;
use pagewise_model::{Outcome, Role, Sample};
use pagewise_sys::FileMapping;

/// A small run; what is left out here is said by the test.
const SMALL: [&str; 8] = [
    "run",
    "read",
    "--workload=random-read",
    "--threads=1",
    "--trial-rounds=2",
    "--sample=5ms",
    "--json",
    "--out=run.jsonl",
];

#[track_caller]
fn measure(place: &Place, more: &[&str]) -> (Run, Finished) {
    let finished = place.run(&[&SMALL[..], more].concat());
    let run = load(&place.file("run.jsonl"));
    expect_whole(&run);
    place.expect_no_trace();
    let finished = finished.expect_code_for(&run);
    (run, finished)
}

/// Every sample is one that a quiet machine would call valid.
#[track_caller]
fn expect_honest(samples: &[&Sample]) {
    assert!(!samples.is_empty());
    for sample in samples {
        assert!(is_honest(sample), "{}: {:?}", sample.cell, sample.outcome);
    }
}

#[track_caller]
fn unavailable<'a>(samples: &[&'a Sample]) -> &'a str {
    match samples {
        [sample] => match &sample.outcome {
            Outcome::Unavailable { reason } => reason,
            other => panic!("not unavailable: {other:?}"),
        },
        several => panic!("one sample says it: {several:?}"),
    }
}

fn filesystem(path: &Path) -> String {
    let output = Command::new("stat").args(["-f", "-c", "%T"]).arg(path).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string()).unwrap_or_default()
}

#[test]
fn an_overview_without_files_in_memory_leaves_fill_out() {
    const NAME: &str = "an_overview_without_files_in_memory_leaves_fill_out";
    if !support::in_own_mounts(NAME, "mount --bind /tmp /dev/shm") {
        return;
    }
    let place = Place::new();
    let note = "note: fill is left out, since /dev/shm is not a tmpfs here: ask it with a directory, as in pagewise \
                fill --dir DIR\n";
    for words in [&["--dry-run"][..], &["--dry-run", "--dir", "."], &["--dry-run", "--budget", "60s"]] {
        let finished = place.run(words).expect_code(0);
        assert!(finished.stderr.contains(note), "{finished:?}");
        let questions: Vec<&str> = finished
            .stdout
            .lines()
            .filter_map(|line| line.trim().strip_prefix("question "))
            .map(str::trim)
            .collect();
        assert_eq!(questions, ["read", "scan", "append"]);
    }
    // As in a container, whose /dev/shm has 64 MiB.
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "none", "/dev/shm"]).status();
    assert!(mounted.expect("mount").success());
    let finished = place.run(&["--dry-run"]).expect_code(0);
    assert!(
        finished.stderr.contains("note: fill is left out: a dataset of 64 MiB does not fit"),
        "{finished:?}"
    );
    place
        .run(&["--dry-run", "--budget", "60s"])
        .expect_code(0)
        .stdout
        .find("fill")
        .expect("a smaller file fits");
    assert!(Command::new("umount").arg("/dev/shm").status().expect("umount").success());
    let refused = place.run(&["fill", "--dry-run"]);
    support::expect_refused(&refused, "/dev/shm is not a tmpfs here: name a directory with --dir");
    place.run(&["fleet", "--dry-run"]).expect_code(0);
}

#[test]
fn on_the_filesystem_of_the_build() {
    let place = Place::new();
    if filesystem(&place.path()) == "tmpfs" {
        return support::skipped("disk", "the build directory lies in memory");
    }
    let methods = "--methods=mmap,mmap:random+prefetch,mmap:populate,mmap:in-place,pread,pread:random,pread:direct,uring:depth=4,uring:direct+fixed+depth=4";
    let (run, _) = measure(&place, &["--cache=warm,cold", "--consume=sum", "--file-size=32MiB", methods]);
    let mut refused = BTreeSet::new();
    for sample in of_methods(&run) {
        match &sample.outcome {
            // What this machine does not offer must say so; the rest must be believed.
            Outcome::Unavailable { reason } => drop(refused.insert(reason.clone())),
            _ => {
                // Readahead of megabytes fills a small file at once.
                let found: Vec<_> = kinds(sample).into_iter().filter(|kind| *kind != ColdOverrun).collect();
                assert!(
                    found.iter().all(|kind| support::FROM_OUTSIDE.contains(kind)),
                    "{}: {:?}",
                    sample.cell,
                    sample.outcome
                );
            }
        }
    }
    println!("unavailable here: {refused:?}");
    for method in ["mmap", "pread"] {
        assert!(of_method(&run, method).iter().any(|sample| sample.valid().is_some()), "{method}");
    }
}

#[test]
fn in_memory() {
    let shm = Path::new("/dev/shm");
    if filesystem(shm) != "tmpfs" {
        return support::skipped("tmpfs", "/dev/shm is no tmpfs");
    }
    let place = Place::on(shm);
    let methods = "--methods=mmap,pread,pread:direct,uring:direct+depth=4";
    let (run, finished) = measure(&place, &["--cache=warm,cold", "--file-size=8MiB", methods]);
    for cell in run.header.plan.cells.iter().filter(|cell| cell.role != Role::Ceiling) {
        let samples: Vec<&Sample> = run.samples.iter().filter(|sample| sample.cell == cell.id()).collect();
        if cell.method.is_direct() {
            // Linux 6.6 takes O_DIRECT on tmpfs; before, open(2) refuses it.
            let reason = unavailable(&samples);
            assert!(reason.contains("served from memory") || reason.contains("was refused"), "{reason}");
        } else if cell.conditions.cache == pagewise_model::CacheState::Cold {
            assert!(unavailable(&samples).contains("keeps its files in memory: nothing to evict"));
        } else {
            expect_honest(&samples);
        }
    }
    let judged = finished.judged();
    let cells = judged["cells"].as_array().expect("cells");
    for cell in cells.iter().filter(|cell| cell["cache"] == "cold" && cell["role"] == "measured") {
        assert_eq!(cell["status"], "unavailable", "{cell}");
        assert!(cell["reason"].is_string(), "{cell}");
    }
    // What this place does not offer is no shortcoming of the run.
    finished.expect_code_for(&run);
}

/// cachestat(2) sees no page of a file of overlayfs, and said that nothing of it was in memory.
#[test]
fn the_cache_of_overlayfs_is_that_of_its_layer() {
    const NAME: &str = "the_cache_of_overlayfs_is_that_of_its_layer";
    const SETUP: &str = "mount -t tmpfs tmpfs /mnt && mkdir /mnt/l /mnt/u /mnt/w && \
        mount -t overlay -o lowerdir=/mnt/l,upperdir=/mnt/u,workdir=/mnt/w overlay /dev/shm";
    if !support::is_root() || !support::in_own_mounts(NAME, SETUP) {
        return;
    }
    let place = Place::on(Path::new("/dev/shm"));
    let (run, _) = measure(&place, &["--methods=pread,mmap", "--cache=warm", "--file-size=4MiB", "--dir=."]);
    let samples = of_methods(&run);
    expect_honest(&samples);
    for sample in samples {
        let Outcome::Taken { evidence, .. } = &sample.outcome else { panic!("{:?}", sample.outcome) };
        assert_eq!(
            (evidence.residency_source.as_str(), evidence.resident_before_bytes),
            ("mincore", Some(4 << 20))
        );
    }
}

/// Bytes of a file that the page cache holds.
fn resident(path: &Path) -> Option<u64> {
    let file = File::open(path).expect("open");
    let len = file.metadata().expect("metadata").len();
    use std::os::fd::AsFd;
    let stat = pagewise_sys::residency::cachestat(file.as_fd(), 0, len).ok()?;
    Some(stat.cached * rustix::param::page_size() as u64)
}

/// A file of somebody else's, of words that do not repeat, on storage.
fn user_file(place: &Place, name: &str, mib: u64) -> PathBuf {
    let path = place.file(name);
    let mut file = File::create(&path).expect("create");
    let mut piece = vec![0; 1 << 20];
    for index in 0..mib {
        pagewise_model::content::fill(99, index << 20, &mut piece);
        file.write_all(&piece).expect("write");
    }
    file.sync_all().expect("sync");
    path
}

fn evict(path: &Path) {
    let file = File::open(path).expect("open");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("fadvise");
}

/// Content, size and times of change, of which none may differ afterwards.
fn state_of(path: &Path) -> (Vec<u8>, i64, i64, i64, u64, u32) {
    let metadata = fs::metadata(path).expect("metadata");
    let times = (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime_nsec());
    (fs::read(path).expect("read"), times.0, times.1, times.2, metadata.ino(), metadata.mode())
}

#[test]
fn the_users_file_is_read_and_never_changed() {
    let place = Place::new();
    let path = user_file(&place, "index.bin", 9);
    let before = state_of(&path);
    let (run, _) = measure(
        &place,
        &["--file=index.bin", "--methods=mmap,mmap:random,pread", "--read-size=5000B", "--align=1B"],
    );
    let samples = of_methods(&run);
    expect_honest(&samples);
    for (_, evidence) in samples.iter().filter_map(|sample| sample.valid()) {
        assert!(evidence.expected_checksum.is_some() && evidence.verified_reads > 0);
    }
    assert!(state_of(&path) == before);
    assert_eq!(place.entries(), ["index.bin", "run.jsonl"].map(str::to_string).into());
}

/// Of 32 MiB.
const NEARLY_ALL: u64 = 28 << 20;

#[test]
fn the_users_file_is_only_evicted_on_request() {
    let place = Place::new();
    if filesystem(&place.path()) == "tmpfs" {
        return support::skipped("disk", "nothing is evicted from memory");
    }
    let path = user_file(&place, "index.bin", 32);
    let before = state_of(&path);
    let Some(whole) = resident(&path) else {
        return support::skipped("cachestat", "there is no cachestat");
    };
    // Nearly all: a machine that takes idle pages away by itself (DAMON) may have begun.
    assert!(whole >= NEARLY_ALL, "{whole}");
    // As it is: it is in the cache, and stays.
    measure(&place, &["--file=index.bin", "--methods=pread"]);
    assert!(resident(&path) >= Some(NEARLY_ALL), "a run as-is dropped pages: {:?}", resident(&path));
    // As it is: none of it is, and neither knowing what it holds nor comparing bytes brings in any.
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    evict(&path);
    assert_eq!(resident(&path), Some(0));
    measure(&place, &["--file=index.bin", "--methods=pread:direct"]);
    assert_eq!(resident(&path), Some(0), "direct reads filled the cache");
    // Cold, and allowed.
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    let (run, finished) =
        measure(&place, &["--file=index.bin", "--methods=pread", "--cache=cold", "--evict"]);
    let samples = of_methods(&run);
    expect_honest(&samples);
    assert!(!finished.stderr.contains("warning"), "{finished:?}");
    for (_, evidence) in samples.iter().filter_map(|sample| sample.valid()) {
        assert_eq!(evidence.resident_before_bytes, Some(0));
    }
    assert!(state_of(&path) == before);
}

#[test]
fn a_file_that_another_process_maps_is_warned_of_and_not_called_cold() {
    let place = Place::new();
    if filesystem(&place.path()) == "tmpfs" {
        return support::skipped("disk", "nothing is evicted from memory");
    }
    let path = user_file(&place, "index.bin", 4);
    let mapping = FileMapping::new(File::open(&path).expect("open"), 4 << 20, true).expect("map");
    assert!(mapping.bytes().iter().step_by(4096).any(|byte| *byte > 0));
    let (run, finished) = measure(
        &place,
        &["--file=index.bin", "--methods=pread", "--reads-per-op=1", "--cache=cold", "--evict"],
    );
    assert_eq!(finished.code(), 1, "{finished:?}");
    let pid = std::process::id();
    assert!(
        finished.stderr.contains("warning: ") && finished.stderr.contains(&format!("(pid {pid})")),
        "{finished:?}"
    );
    for sample in of_methods(&run) {
        let (failures, _) = support::broken(sample);
        assert_eq!(kinds(sample), [NotCold]);
        assert!(failures[0].detail.contains("mapped by another process"), "{failures:?}");
        assert!(failures[0].detail.contains(&format!("({pid})")), "{failures:?}");
    }
    drop(mapping);
}

#[test]
fn a_file_truncated_during_the_run_is_an_invalid_cell_that_says_so() {
    let place = Place::new();
    let path = user_file(&place, "index.bin", 8);
    let arguments =
        [&SMALL[..], &["--file=index.bin", "--methods=mmap,mmap:random", "--no-ceilings"]].concat();
    let run = PausedRun::start(&place, &arguments, RunStep::WorkerReady);
    run.expect_at_step(1);
    File::options().write(true).open(&path).expect("open").set_len(4096).expect("truncate");
    let finished = run.act_until_end(|_| {}).expect_code(1);
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete());
    for sample in of_methods(&run) {
        let (failures, _) = support::broken(sample);
        assert_eq!(failures[0].kind, FileChanged);
        assert!(
            failures[0]
                .detail
                .contains("index.bin changed its size from 8388608 to 4096 bytes during the run"),
            "{failures:?}"
        );
    }
    let first = of_methods(&run)[0];
    assert_eq!(kinds(first), [FileChanged, WorkerDied], "{first:?}");
    assert!(first.failures()[1].detail.contains("killed by SIGBUS"), "{first:?}");
    let judged = finished.judged();
    for cell in judged["cells"].as_array().expect("cells").iter().filter(|cell| cell["role"] == "measured") {
        assert_eq!(cell["status"], "invalid");
        assert!(cell["reason"].as_str().is_some_and(|reason| reason.contains("changed its size")), "{cell}");
    }
    place.expect_no_trace();
}

#[test]
fn a_file_written_to_during_the_run_is_noticed() {
    let place = Place::new();
    let path = user_file(&place, "index.bin", 8);
    let arguments = [&SMALL[..], &["--file=index.bin", "--methods=pread"]].concat();
    let running = PausedRun::start(&place, &arguments, RunStep::SampleRecorded);
    running.expect_at_step(1);
    // The same bytes: only the modification time shows it.
    let file = File::options().write(true).open(&path).expect("open");
    let mut byte = [0];
    std::os::unix::fs::FileExt::read_exact_at(&File::open(&path).expect("open"), &mut byte, 77)
        .expect("read");
    std::os::unix::fs::FileExt::write_all_at(&file, &byte, 77).expect("write");
    drop(file);
    running.act_until_end(|_| {}).expect_code(1);
    let run = load(&place.file("run.jsonl"));
    let last = run.samples.last().expect("a sample");
    let changed = run.samples.iter().filter(|sample| kinds(sample).contains(&FileChanged)).count();
    assert!(changed > 0, "{last:?}");
    assert!(last.failures()[0].detail.contains("was written to during the run"), "{last:?}");
}

#[test]
fn a_file_whose_name_goes_to_another_is_read_to_the_end() {
    let place = Place::new();
    let path = user_file(&place, "index.bin", 8);
    // The same bytes, and warm: a worker that opened the name would be quick and right, and not
    // cold.
    fs::copy(&path, place.file("other.bin")).expect("copy");
    let arguments =
        [&SMALL[..], &["--file=index.bin", "--cache=cold", "--evict", "--methods=pread", "--reads-per-op=1"]];
    let running = PausedRun::start(&place, &arguments.concat(), RunStep::SampleRecorded);
    running.expect_at_step(1);
    fs::rename(place.file("other.bin"), &path).expect("rename");
    running.act_until_end(|_| {});
    let run = load(&place.file("run.jsonl"));
    expect_whole(&run);
    let samples = of_methods(&run);
    expect_honest(&samples);
    for (_, evidence) in samples.iter().filter_map(|sample| sample.valid()) {
        let Some(read) = evidence.device_read_bytes else { continue };
        assert!(read >= evidence.requested_bytes, "{evidence:?}");
    }
}

#[test]
fn a_file_without_data_is_refused_and_one_with_holes_warned_of() {
    let place = Place::new();
    let mut file = File::create(place.file("holes.bin")).expect("create");
    file.set_len(16 << 20).expect("set_len");
    // A filesystem that does not report extents measures it.
    if pagewise_sys::written_bytes(&file, 16 << 20).is_ok() {
        let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 16 << 20);
        let refused = place.run(&["read", "holes.bin", "--methods=pread"]);
        expect_refused(&refused, "was never written: its 16777216 bytes are holes or only preallocated");
    }
    file.write_all(&vec![1; 4 << 20]).expect("write");
    let (_, finished) =
        measure(&place, &["--file=holes.bin", "--methods=pread,pread:direct", "--cache=warm"]);
    let warnings = finished.judged()["warnings"].to_string();
    let message = "75.0 % of it was never written: 4194304 of its 16777216 bytes hold data";
    assert!(warnings.contains(message), "{warnings}");
}

/// perl is part of every Debian; it sets a seccomp filter that answers io_uring_setup with EPERM,
/// as the default filters of containers do, and becomes the command.
const WITHOUT_IO_URING: &str = r#"
    my ($prctl, $machine) = @ARGV[0, 1]; splice(@ARGV, 0, 2);
    my $filter = pack('SCCL' x 4,
        0x20, 0, 0, 0,              # load the number of the system call
        0x15, 0, 1, 425,            # io_uring_setup on every architecture
        0x06, 0, 0, 0x00050001,     # EPERM
        0x06, 0, 0, 0x7fff0000);    # allow
    my $program = pack('S x![P] P', 4, $filter);
    syscall($prctl, 38, 1, 0, 0, 0) == 0 or exit 77;
    syscall($prctl, 22, 2, $program, 0, 0) == 0 or exit 77;
    exec { $ARGV[0] } @ARGV or exit 77;
"#;

#[test]
fn where_io_uring_is_blocked_the_rest_runs() {
    let prctl = match std::env::consts::ARCH {
        "x86_64" => "157",
        "aarch64" | "riscv64" => "167",
        other => {
            return support::skipped("seccomp", &format!("the number of prctl on {other} is not known here"));
        }
    };
    let place = Place::new();
    let mut command = Command::new("perl");
    command.args(["-e", WITHOUT_IO_URING, prctl, "-", PAGEWISE]).args(SMALL);
    command.args(["--file-size=4MiB", "--cache=warm", "--methods=pread,uring:depth=4,uring:direct+depth=4"]);
    place.settle(&mut command);
    let Ok(child) = command.spawn() else { return support::skipped("perl", "there is no perl") };
    let finished = place.finish(child);
    if finished.code() == 77 {
        return support::skipped("seccomp", "no seccomp filter can be set");
    }
    let run = load(&place.file("run.jsonl"));
    expect_whole(&run);
    for method in ["uring:depth=4", "uring:direct+depth=4"] {
        let reason = unavailable(&of_method(&run, method));
        assert!(reason.contains("io_uring_setup was refused"), "{reason}");
        assert!(reason.contains("Operation not permitted"), "{reason}");
    }
    expect_honest(&of_method(&run, "pread"));
    finished.expect_code_for(&run);
    place.expect_no_trace();
}

#[test]
fn an_unprivileged_user_measures_with_less_evidence() {
    if !rustix::process::geteuid().is_root() {
        return support::skipped("root", "only root can become another user");
    }
    let place = Place::on(&std::env::temp_dir());
    let more = ["--file-size=16MiB", "--cache=warm,cold", "--methods=mmap:random,pread,pread:direct"];
    let Some(mut command) = place.command_as(65_534, &[&SMALL[..], &more].concat()) else { return };
    let finished = place.finish(command.spawn().expect("start"));
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    expect_whole(&run);
    assert_eq!(fs::metadata(place.file("run.jsonl")).expect("metadata").uid(), 65_534);
    for sample in of_methods(&run) {
        if !matches!(sample.outcome, Outcome::Unavailable { .. }) {
            assert!(is_honest(sample), "{}: {:?}", sample.cell, sample.outcome);
        }
    }
    assert!(of_method(&run, "pread").iter().any(|sample| sample.valid().is_some()));
    place.expect_no_trace();
    let mut doctor = place.command_as(65_534, &["doctor", "--json"]).expect("as above");
    let finished = place.finish(doctor.spawn().expect("start"));
    assert!(serde_json::from_str::<serde_json::Value>(&finished.stdout).is_ok(), "{finished:?}");
}

#[test]
fn a_file_of_somebody_else_is_read_without_the_right_to_write_it() {
    if !rustix::process::geteuid().is_root() {
        return support::skipped("root", "only root can become another user");
    }
    let place = Place::on(&std::env::temp_dir());
    let path = user_file(&place, "index.bin", 16);
    let before = state_of(&path);
    let more = ["--file=index.bin", "--methods=mmap:random,pread", "--cache=as-is"];
    let Some(mut command) = place.command_as(65_534, &[&SMALL[..], &more].concat()) else { return };
    let finished = place.finish(command.spawn().expect("start"));
    let run = load(&place.file("run.jsonl"));
    expect_whole(&run);
    expect_honest(&of_methods(&run));
    for (_, evidence) in of_methods(&run).iter().filter_map(|sample| sample.valid()) {
        // cachestat refuses and mincore lies to such a caller: nothing may be claimed.
        if evidence.resident_before_bytes.is_none() {
            assert!(evidence.residency_source.contains("cachestat"), "{}", evidence.residency_source);
        }
    }
    finished.expect_code_for(&run);
    assert!(state_of(&path) == before);
}
