//! Scan, append and fill where the filesystem gives less than was asked for: it fills up during the
//! run, knows no fallocate(2), or maps nothing huge. A cell is unavailable or invalid with the
//! reason in words, the others go on, and nothing is left behind. All of it in mounts of their own,
//! which vanish with the test.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::paused::PausedRun;
use crate::support::{self, Finished, Place, in_own_mounts, is_honest, kinds, load, of_method, skipped};
use pagewise_host::steps::RunStep;
use pagewise_model::run::Run;
use pagewise_model::{FailureKind, Outcome, Sample};
use rustix::fs::FallocateFlags;

/// For `in_own_mounts`: the files of tests lie in memory, so that directories which are mounted on
/// vanish too.
const OWN_PLACES: &str = concat!("mount -t tmpfs -o size=256m none ", env!("CARGO_TARGET_TMPDIR"));

/// Mounts a filesystem of its own at `place`, with the words of mount(8).
fn mounted(place: &Place, words: &[&str]) -> Option<PathBuf> {
    let directory = place.root().join("mounted");
    fs::create_dir(&directory).expect("directory");
    let status = Command::new("mount").args(words).arg(&directory).status().expect("mount(8)");
    status.success().then_some(directory)
}

/// Measures in `directory`; the run file lies elsewhere. Nothing of it is left in `directory`.
#[track_caller]
fn measure(place: &Place, question: &str, directory: &Path, more: &[&str]) -> (Run, Finished) {
    measure_while(place, question, directory, more, || {})
}

/// The same where somebody acts each time a file to write was made, and writes to a file `filler`
/// at most.
#[track_caller]
fn measure_while(
    place: &Place,
    question: &str,
    directory: &Path,
    more: &[&str],
    act: impl Fn(),
) -> (Run, Finished) {
    let directory_word = format!("--dir={}", directory.display());
    let common =
        ["run", question, &directory_word, "--trial-rounds=4", "--no-ceilings", "--json", "--out=run.jsonl"];
    let words = [&common[..], more].concat();
    let finished = PausedRun::start(place, &words, RunStep::NewFileMade).act_until_end(|_| act());
    finished.judged();
    let run = load(&place.file("run.jsonl"));
    let finished = finished.expect_code_for(&run);
    assert!(run.is_complete());
    let left = fs::read_dir(directory).expect("list").map(|entry| entry.expect("entry").file_name());
    let left: Vec<String> = left.map(|name| name.to_string_lossy().into_owned()).collect();
    let is_ours = |name: &&String| !["filler", "lost+found"].contains(&name.as_str());
    assert_eq!(left.iter().filter(is_ours).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new(), "the journal still names something");
    place.expect_no_process();
    (run, finished)
}

/// How a cell ended: what is wrong with its last sample, in words.
#[track_caller]
fn end_of(run: &Run, method: &str) -> String {
    let samples = of_method(run, method);
    let last: &Sample = samples.last().unwrap_or_else(|| panic!("{method} has no sample"));
    match &last.outcome {
        Outcome::Unavailable { reason } => format!("unavailable: {reason}"),
        _ => format!("{:?}: {:?}", kinds(last), last.failures()),
    }
}

/// Takes all room of a filesystem.
fn fill_up(directory: &Path) {
    let file = File::options().create(true).append(true).open(directory.join("filler")).expect("a file");
    for piece in [1 << 20, 64 << 10, 4 << 10] {
        let len = || file.metadata().map_or(0, |metadata| metadata.len());
        while rustix::fs::fallocate(&file, FallocateFlags::empty(), len(), piece).is_ok() {}
    }
}

/// What is to be said of each method once the filesystem is full.
const WHEN_FULL: [(&str, &[&str]); 12] = [
    ("mmap", &["WorkerDied", "killed by SIGBUS", "the filesystem is full (ENOSPC)"]),
    ("mmap:buffer=4KiB", &["WorkerDied", "the filesystem is full (ENOSPC)"]),
    ("mmap:touch", &["WorkerDied", "the filesystem is full (ENOSPC)"]),
    ("mmap:populate", &["WorkerDied", "the filesystem is full (ENOSPC)"]),
    ("mmap:populate-write", &["unavailable: ", "the filesystem has no space"]),
    ("mmap:prealloc", &["unavailable: fallocate", "No space left on device", "the filesystem has no space"]),
    ("pwrite", &["unavailable: pwrite", "No space left on device", "the filesystem has no space"]),
    ("pwrite:buffer=4KiB", &["unavailable: pwrite", "the filesystem has no space"]),
    ("pwrite:prealloc+buffer=4KiB", &["unavailable: fallocate", "the filesystem has no space"]),
    ("write", &["unavailable: write", "No space left on device", "the filesystem has no space"]),
    ("write:buffer=4KiB", &["unavailable: write", "the filesystem has no space"]),
    ("mmap:pretouch=64KiB", &["the filesystem"]),
];

#[track_caller]
fn expect_full(run: &Run) {
    for (method, words) in WHEN_FULL {
        let end = end_of(run, method);
        println!("{method}\n    {end}");
        for word in words {
            assert!(end.contains(word), "{method}: '{word}' is not in: {end}");
        }
        assert!(!end.contains(".pagewise-") || end.contains("/mounted/.pagewise-"), "by its name: {end}");
        // Whatever was taken before the filesystem was full.
        let samples = of_method(run, method);
        let before = &samples[..samples.len() - 1];
        assert!(before.iter().all(|sample| is_honest(sample) || sample.valid().is_none()));
    }
}

fn methods() -> String {
    let names: Vec<&str> = WHEN_FULL.iter().map(|(method, _)| *method).collect();
    format!("--methods={}", names.join(","))
}

#[test]
fn memory_that_fills_up_during_an_append() {
    if !in_own_mounts("memory_that_fills_up_during_an_append", OWN_PLACES) {
        return;
    }
    let place = Place::new();
    let Some(directory) = mounted(&place, &["-t", "tmpfs", "-o", "size=40m", "none"]) else {
        return skipped("mount", "tmpfs cannot be mounted");
    };
    let more = ["--file-size=4MiB", "--record-size=1KiB", &methods()];
    let (run, finished) = measure_while(&place, "append", &directory, &more, || fill_up(&directory));
    finished.expect_code_for(&run);
    expect_full(&run);
}

#[test]
fn a_disk_that_fills_up_during_a_fill() {
    if !in_own_mounts("a_disk_that_fills_up_during_a_fill", OWN_PLACES) {
        return;
    }
    let place = Place::new();
    let image = place.root().join("image");
    File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("an image");
    let made =
        Command::new("mkfs.ext4").args(["-q", "-F", "-E", "nodiscard", "-m", "0"]).arg(&image).status();
    let directory = made.is_ok_and(|status| status.success()).then(|| {
        let image = image.to_str().expect("a path of text");
        mounted(&place, &["-o", "loop", image])
    });
    let Some(directory) = directory.flatten() else {
        return skipped("mount", "a loop device cannot be mounted");
    };
    let more = ["--file-size=4MiB", "--block-size=1KiB", &methods()];
    let (run, finished) = measure_while(&place, "fill", &directory, &more, || fill_up(&directory));
    finished.expect_code_for(&run);
    expect_full(&run);
}

#[test]
fn no_room_for_what_is_to_be_written_before() {
    if !in_own_mounts("no_room_for_what_is_to_be_written_before", OWN_PLACES) {
        return;
    }
    let place = Place::new();
    let Some(directory) = mounted(&place, &["-t", "tmpfs", "-o", "size=40m", "none"]) else {
        return skipped("mount", "tmpfs cannot be mounted");
    };
    let more = ["--file-size=4MiB", "--record-size=1KiB", "--cache=warm", "--methods=mmap,pwrite"];
    let (run, finished) = measure_while(&place, "append", &directory, &more, || fill_up(&directory));
    finished.expect_code_for(&run);
    for method in ["mmap", "pwrite"] {
        let end = end_of(&run, method);
        assert!(
            end.contains("unavailable: there is no room for a file of 4194304 bytes: No space left"),
            "{end}"
        );
    }
}

#[test]
fn what_does_not_fit_is_refused_before_the_first_byte() {
    if !in_own_mounts("what_does_not_fit_is_refused_before_the_first_byte", OWN_PLACES) {
        return;
    }
    let place = Place::new();
    let Some(directory) = mounted(&place, &["-t", "tmpfs", "-o", "size=24m", "none"]) else {
        return skipped("mount", "tmpfs cannot be mounted");
    };
    for question in ["append", "fill"] {
        let directory = format!("--dir={}", directory.display());
        let finished = place.run(&["run", question, &directory, "--file-size=12MiB"]);
        support::expect_refused(&finished, "12 MiB");
        assert!(finished.stderr.contains("24 MiB are free, and 16 MiB are to be left free"), "{finished:?}");
    }
    assert_eq!(fs::read_dir(&directory).expect("list").count(), 0);
    assert!(place.entries().is_empty());
}

#[test]
fn a_filesystem_without_fallocate() {
    if !in_own_mounts("a_filesystem_without_fallocate", OWN_PLACES) {
        return;
    }
    let place = Place::new();
    let Some(directory) = mounted(&place, &["-t", "ramfs", "none"]) else {
        return skipped("mount", "ramfs cannot be mounted");
    };
    for question in ["append", "fill"] {
        let more = ["--file-size=2MiB", "--methods=mmap:prealloc,pwrite:prealloc,mmap,pwrite"];
        let (run, _) = measure(&place, question, &directory, &more);
        for method in ["mmap:prealloc", "pwrite:prealloc"] {
            let end = end_of(&run, method);
            assert!(end.contains("unavailable: fallocate was refused for "), "{end}");
            assert!(end.contains("not supported (os error 95)"), "{end}");
        }
        for method in ["mmap", "pwrite"] {
            for sample in of_method(&run, method) {
                assert!(is_honest(sample), "{}: {:?}", sample.cell, sample.outcome);
            }
        }
        fs::remove_file(place.file("run.jsonl")).expect("remove");
    }
}

const HUGE: &str = "mmap:hugepage+populate-write";

/// What filling by huge pages comes to on tmpfs mounted with `huge=`; `None` where it cannot be
/// mounted so.
#[track_caller]
fn filled_hugely(place: &Place, huge: &str) -> Option<Run> {
    let directory = mounted(place, &["-t", "tmpfs", "-o", &format!("size=128m,huge={huge}"), "none"])?;
    let more = ["--file-size=8MiB", &format!("--methods=mmap,{HUGE}")];
    Some(measure(place, "fill", &directory, &more).0)
}

#[test]
fn the_advice_for_huge_pages_is_believed_only_where_some_are_mapped() {
    let name = "the_advice_for_huge_pages_is_believed_only_where_some_are_mapped";
    if !in_own_mounts(name, OWN_PLACES) {
        return;
    }
    let Some(run) = filled_hugely(&Place::new(), "never") else {
        return skipped("mount", "tmpfs cannot be mounted");
    };
    let end = end_of(&run, HUGE);
    assert!(end.starts_with("unavailable: "), "{end}");
    println!("{end}");
    assert!(end.contains("no byte of the mapping is in huge pages"), "{end}");
    assert!(of_method(&run, "mmap").iter().all(|sample| is_honest(sample)));

    let allowed = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled").unwrap_or_default();
    if allowed.is_empty() || allowed.contains("[deny]") {
        return skipped("huge-tmpfs", "the kernel gives tmpfs no huge pages, however it is mounted");
    }
    for huge in ["advise", "always"] {
        let Some(run) = filled_hugely(&Place::new(), huge) else {
            return skipped("mount", &format!("tmpfs cannot be mounted with huge={huge}"));
        };
        let samples = of_method(&run, HUGE);
        for sample in &samples {
            assert!(is_honest(sample), "huge={huge}: {}: {:?}", sample.cell, sample.outcome);
            let Outcome::Taken { evidence, .. } = &sample.outcome else { unreachable!("it is honest") };
            assert!(evidence.huge_mapped_bytes > Some(0), "huge={huge}: {:?}", evidence.huge_mapped_bytes);
        }
        assert!(!samples.is_empty());
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_reported() {
    let place = Place::new();
    let methods = "--methods=mmap,pwrite:buffer=64KiB";
    let arguments = [
        "run",
        "append",
        "--file-size=4MiB",
        "--trial-rounds=4",
        "--no-ceilings",
        "--json",
        "--out=run.jsonl",
        methods,
    ];
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 2048 && exec \"$@\"", "sh", support::PAGEWISE]).args(arguments);
    place.settle(&mut command);
    let finished = place.finish(command.spawn().expect("start")).expect_code(1);
    let run = load(&place.file("run.jsonl"));
    for method in ["mmap", "pwrite:buffer=64KiB"] {
        let end = end_of(&run, method);
        println!("{end}");
        assert!(end.contains("File too large"), "{end}");
        assert!(of_method(&run, method).iter().all(|sample| sample.valid().is_none()));
    }
    assert!(!finished.stdout.is_empty());
    assert!(run.samples.iter().all(|sample| !kinds(sample).contains(&FailureKind::WorkerDied)));
    place.expect_no_trace();
}
