//! Answers that are known beforehand for what is done once: scans, appends, fills, through the
//! whole program.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::needs::has_toolchain;
use crate::support::paused::PausedRun;
use crate::support::until::{
    Taken, can_limit_memory, cells, each_has_or_cannot, expect_honest, my_turn, samples, take_words, valid,
};
use crate::support::words::RESUME;
use crate::support::{self, PAGEWISE, Place, expect_whole, is_honest, load};
use pagewise_host::steps::RunStep;
use pagewise_model::run::Run;
use pagewise_model::sample::Written;
use pagewise_model::{Access, Alignment, Bytes, Cell, Evidence, Method, Outcome, Role, Sync};

const MIB: u64 = 1 << 20;
/// The worker's own faults and the bytes of its answers stay below these.
const OWN_FAULTS: u64 = 512;
const ANSWER_BYTES: u64 = 64 << 10;

fn words<'a>(question: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let common = ["--trial-rounds=4", "--seed=7", "--no-ceilings", "--json", "--out=run.jsonl"];
    [&["run", question][..], &common, more].concat()
}

/// A run that ends once every cell has a valid sample or is reported as unavailable; no sample is
/// wrong.
#[track_caller]
fn take(place: &Place, question: &str, more: &[&str]) -> Taken {
    let taken = take_words(place, &words(question, more), |run| each_has_or_cannot(run, 1));
    for sample in &taken.run.samples {
        let is_unavailable = matches!(sample.outcome, Outcome::Unavailable { .. });
        assert!(is_unavailable || is_honest(sample), "{}: {:?}", sample.cell, sample.outcome);
    }
    assert_eq!(place.entries().iter().filter(|name| name.starts_with('.')).count(), 0);
    taken
}

/// The methods that a question asks about by itself.
fn asked(question: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../questions/{question}.toml"));
    let table: toml::Table = fs::read_to_string(path).expect("a question").parse().expect("a table");
    let methods = table["methods"].as_array().expect("methods");
    methods.iter().map(|method| method.as_str().expect("a method").to_string()).collect()
}

/// The valid samples of a cell, or none where the reason why is one of `reasons`.
#[track_caller]
fn of_cell<'a>(run: &'a Run, cell: &Cell, reasons: &[&str]) -> Vec<&'a Evidence> {
    for sample in samples(run, |other| other == cell) {
        if let Outcome::Unavailable { reason } = &sample.outcome {
            assert!(reasons.iter().any(|part| reason.contains(part)), "{}: {reason}", sample.cell);
            return Vec::new();
        }
    }
    let seen = valid(run, |other| other == cell);
    assert!(!seen.is_empty(), "{} has no sample", cell.id());
    for (measurement, _) in &seen {
        assert_eq!(Some(measurement.operations), cell.conditions.fixed_operations(), "{}", cell.id());
    }
    seen.into_iter().map(|(_, evidence)| evidence).collect()
}

/// Every cell of the judged JSON that has samples has its figures.
#[track_caller]
fn expect_figures(taken: &Taken) {
    for cell in taken.judged["cells"].as_array().expect("cells") {
        if cell["status"] == "unavailable" {
            assert!(cell["reason"].is_string(), "{cell}");
            continue;
        }
        assert_eq!(cell["status"], "ok", "{cell}");
        for name in ["ops_per_second", "bytes_per_second", "ns_per_op"] {
            assert!(cell[name]["median"].as_f64().is_some_and(|value| value > 0.0), "{name}: {cell}");
        }
        for name in ["setup_ns", "measured_ns", "teardown_ns", "total_ns"] {
            assert!(cell[name].as_u64().is_some_and(|value| value > 0), "{name}: {cell}");
        }
        for name in ["minor_faults", "major_faults", "setup_faults", "user_ns", "system_ns"] {
            assert!(cell["evidence"][name].is_u64(), "{name}: {cell}");
        }
        assert_eq!(cell["covered"], 1.0, "{cell}");
    }
}

const NO_DIRECT: [&str; 2] = ["served from memory", "O_DIRECT"];

/// Why a method of a scan may be unavailable.
const SCAN_REASONS: [&str; 3] = ["O_DIRECT", "RWF_DONTCACHE", "io_uring"];

#[test]
fn every_scan_counts_the_same_lines_warm_and_cold() {
    const FILE_BYTES: u64 = 8 * MIB;
    let _turn = my_turn();
    let taken = take(&Place::new(), "scan", &["--file-size=8MiB", "--cache=cold,warm", "--consume=lines"]);
    expect_figures(&taken);
    let run = &taken.run;
    let methods: BTreeSet<String> = cells(run, |_| true).iter().map(|cell| cell.method.to_string()).collect();
    assert_eq!(methods, asked("scan"));
    let mut counts = BTreeSet::new();
    for cell in cells(run, |_| true) {
        for seen in of_cell(run, cell, &SCAN_REASONS) {
            let id = cell.id();
            assert_eq!(
                (seen.requested_bytes, Some(seen.checksum)),
                (FILE_BYTES, seen.expected_checksum),
                "{id}"
            );
            counts.insert(seen.checksum);
            if matches!(cell.method.access(), Access::Read | Access::Pread) {
                let pieces = FILE_BYTES / cell.method.buffer().map_or(64 << 10, |bytes| bytes.0);
                assert!(seen.read_calls.is_none_or(|calls| calls >= pieces), "{id}: {seen:?}");
                assert!(seen.read_call_bytes.is_none_or(|bytes| bytes >= FILE_BYTES), "{id}: {seen:?}");
            }
            assert!(seen.write_call_bytes.is_none_or(|bytes| bytes <= ANSWER_BYTES), "{id}: {seen:?}");
            if cell.method.is_direct() || cell.conditions.cache == pagewise_model::CacheState::Cold {
                let read =
                    seen.device_read_bytes.map(|bytes| bytes + seen.setup_device_read_bytes.unwrap_or(0));
                assert!(read.is_none_or(|bytes| bytes >= FILE_BYTES * 98 / 100), "{id}: {seen:?}");
            } else {
                assert_eq!(seen.resident_before_bytes, Some(FILE_BYTES), "{id}");
            }
        }
    }
    // Lines of text of 64 bytes on average, counted alike by all.
    assert_eq!(counts.len(), 1, "{counts:?}");
    let lines = *counts.first().expect("a count");
    assert!((FILE_BYTES / 128..FILE_BYTES / 32).contains(&lines), "{lines} lines");
}

/// A file, its newlines, and what its words add up to: all of them, and the first of each page.
struct Known {
    name: &'static str,
    bytes: Vec<u8>,
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    u64::from_le_bytes(word)
}

impl Known {
    fn lines(&self) -> u64 {
        self.bytes.iter().filter(|byte| **byte == b'\n').count() as u64
    }

    fn sum(&self) -> u64 {
        self.bytes.chunks(8).fold(0, |sum, bytes| sum.wrapping_add(word(bytes)))
    }

    fn touch(&self) -> u64 {
        let pages = self.bytes.chunks(rustix::param::page_size());
        pages.fold(0, |sum, page| sum.wrapping_add(word(page)))
    }
}

#[test]
fn scans_of_known_files_come_to_what_is_in_them() {
    let _turn = my_turn();
    let text: String = (0..20_000).map(|line| format!("{line:>0$}\n", line % 97)).collect();
    // Whole words, so that what is added up does not depend on where pieces end.
    let binary = {
        let mut random = pagewise_model::random::Random::new(11);
        (0..300_000 / 8).flat_map(|_| random.below(u64::MAX).to_le_bytes()).collect()
    };
    let files = [
        Known { name: "text", bytes: text.clone().into_bytes() },
        Known { name: "no-newline-at-the-end", bytes: text.trim_end().as_bytes().to_vec() },
        Known { name: "no-newline", bytes: vec![b'x'; 200_001] },
        Known { name: "newlines-alone", bytes: vec![b'\n'; 70_000] },
        Known { name: "binary", bytes: binary },
        Known { name: "one-byte", bytes: vec![b'\n'] },
    ];
    let methods = "--methods=mmap,mmap:in-place,mmap:populate+in-place,read,read:direct,pread:buffer=4KiB,uring:depth=4";
    for known in files {
        let place = Place::new();
        let path = place.write(known.name, &known.bytes);
        let file = format!("--file={}", path.display());
        let taken = take(&place, "scan", &[&file, "--cache=warm", "--consume=lines,touch,sum", methods]);
        for cell in cells(&taken.run, |_| true) {
            let consume = cell.conditions.consume().expect("a scan").to_string();
            let expected = match &*consume {
                "lines" => known.lines(),
                "touch" => known.touch(),
                // A last word that is cut is counted in its own way; all methods agree on it, as
                // the supervisor does.
                _ if !known.bytes.len().is_multiple_of(8) => continue,
                _ => known.sum(),
            };
            for seen in of_cell(&taken.run, cell, &SCAN_REASONS) {
                assert_eq!(seen.checksum, expected, "{}: {}", known.name, cell.id());
                assert_eq!(seen.requested_bytes, known.bytes.len() as u64, "{}: {}", known.name, cell.id());
            }
        }
        assert_eq!(fs::read(&path).expect("the file"), known.bytes, "{} was changed", known.name);
    }
    let place = Place::new();
    place.write("empty", "");
    let finished = place.run(&words("scan", &["--file=empty", "--cache=warm"])).expect_code(2);
    assert!(finished.stderr.contains("empty is empty"), "{finished:?}");
}

/// What must be in the evidence of every writer, whatever the method.
#[track_caller]
fn expect_written(cell: &Cell, seen: &Evidence) {
    let (id, conditions) = (cell.id(), &cell.conditions);
    let (ring, writes) = (conditions.ring().expect("a ring"), conditions.writes().expect("writes"));
    let records = conditions.file_bytes.0 / writes.record_bytes.0;
    let written = writes.updates.map_or(records, u64::from);
    let once = written * writes.record_bytes.0;
    let all = once * u64::from(writes.passes);
    assert_eq!(ring.bytes(), records * writes.record_bytes.0);
    assert_eq!(ring.records(), written * u64::from(writes.passes));
    let written = seen.written.as_ref().unwrap_or_else(|| panic!("{id}: {seen:?}"));
    let Written { missing_bytes, stray_bytes, expected_bytes, .. } = *written;
    assert_eq!((expected_bytes, missing_bytes, stray_bytes), (once, 0, 0), "{id}");
    assert_eq!(seen.requested_bytes, all, "{id}");
    assert_eq!((Some(seen.checksum), seen.checksum != 0), (seen.expected_checksum, writes.reads_each > 0));
    let mapped = cell.method.access() == Access::Mmap;
    assert_eq!(written.read_back, if mapped { "pread" } else { "mmap" }, "{id}");

    let (bytes, calls) = (seen.write_call_bytes, seen.write_calls);
    match cell.method.access() {
        // Of a FileChannel the word is that of its reads.
        Access::Pwrite | Access::Write | Access::Pread => {
            // The last piece of a pass is padded where writes are direct.
            let padded = if cell.method.is_direct() { u64::from(writes.passes) * 4096 } else { 0 };
            let most = all + padded + ANSWER_BYTES;
            assert!(bytes.is_none_or(|bytes| (all..=most).contains(&bytes)), "{id}: {bytes:?} of {all}");
            let buffer = cell.method.buffer().map_or(writes.record_bytes.0, |bytes| bytes.0);
            let fewest = all.div_ceil(buffer);
            assert!(calls.is_none_or(|calls| calls >= fewest), "{id}: {calls:?}, at least {fewest}");
        }
        _ => assert!(bytes.is_none_or(|bytes| bytes <= ANSWER_BYTES), "{id}: {bytes:?}"),
    }
    if writes.sync != Sync::None {
        assert!(written.dirty_end_bytes.is_none_or(|dirty| dirty == 0), "{id}: {written:?}");
    }
    // What reached the device by the end of the measured region.
    if cell.method.is_direct() || matches!(writes.sync, Sync::Every(_)) {
        assert!(seen.device_written_bytes.is_none_or(|bytes| bytes >= all), "{id}: {seen:?}");
    }
    let before = (written.dirty_before_bytes, written.allocated_before_bytes);
    let in_setup = cell.method.options().iter().any(|option| option.name() != "buffer");
    if conditions.cache == pagewise_model::CacheState::Cold && !in_setup {
        assert!(before.0.is_none_or(|dirty| dirty == 0), "{id}: {written:?}");
        let most = if conditions.makes_file() { 4096 } else { u64::MAX };
        assert!(before.1.is_none_or(|allocated| allocated <= most), "{id}: {written:?}");
        assert!(seen.resident_before_bytes.is_none_or(|resident| resident <= 4096), "{id}: {seen:?}");
    }
}

#[track_caller]
fn expect_all_written(taken: &Taken, question: &str, reasons: &[&str]) {
    expect_figures(taken);
    let run = &taken.run;
    assert!(run.header.plan.datasets().is_empty(), "nothing is read");
    let methods: BTreeSet<String> = cells(run, |_| true).iter().map(|cell| cell.method.to_string()).collect();
    // Methods of the question that cannot sync as asked are left out.
    let syncs = |method: &str| {
        let method: Method = method.parse().expect("a method");
        let suits = |cell: &&Cell| method.excluded_from(&cell.conditions, Alignment::ANY).is_none();
        let writes = cells(run, |_| true)[0].conditions.writes();
        !writes.is_some_and(|writes| writes.sync.is_measured()) || cells(run, |_| true).iter().any(suits)
    };
    let suited: BTreeSet<String> = asked(question).into_iter().filter(|method| syncs(method)).collect();
    assert_eq!(methods, suited);
    for cell in cells(run, |_| true) {
        for seen in of_cell(run, cell, reasons) {
            expect_written(cell, seen);
        }
    }
    for judged in taken.judged["cells"].as_array().expect("cells") {
        let missing = &judged["missing_bytes"];
        assert!(judged["status"] == "unavailable" || *missing == 0, "{judged}");
    }
}

#[test]
fn every_append_on_a_disk_is_whole() {
    let _turn = my_turn();
    // 100 and 1000 bytes do not divide the file. The engine's tests have each method with each size
    // and number of passes.
    for (passes, sizes) in [("--passes=1", "--record-size=10B,1000B"), ("--passes=3", "--record-size=100B")] {
        let more = ["--file-size=4MiB", sizes, passes];
        expect_all_written(&take(&Place::new(), "append", &more), "append", &NO_DIRECT);
    }
}

#[test]
fn every_update_is_whole() {
    let _turn = my_turn();
    let sizes = ["--file-size=4MiB", "--updates=200", "--block-size=1000B,4KiB"];
    // Where syncs are measured, direct methods that cannot write 1000 B are left out.
    for (sync, reads, left_out) in [("none", 2, 0), ("end", 0, 0), ("every:128KiB", 5, 2 * 3)] {
        let more = [format!("--sync={sync}"), format!("--reads-per-update={reads}")];
        let more = more.each_ref().map(String::as_str);
        // 1000 bytes do not divide the file, nor are they a multiple of a block.
        let taken = take(&Place::new(), "update", &[&sizes[..], &more].concat());
        expect_figures(&taken);
        let known = [&NO_DIRECT[..], &["is not a multiple of the", "under way at once"]].concat();
        let cells = cells(&taken.run, |cell| cell.role == Role::Measured);
        assert_eq!(cells.len(), 6 * 2 * 3 - left_out);
        for cell in cells {
            for seen in of_cell(&taken.run, cell, &known) {
                expect_written(cell, seen);
            }
        }
    }
}

#[test]
fn updates_of_other_workers_are_whole() {
    let _turn = my_turn();
    let mut methods = vec!["pwrite"];
    for (language, offered) in [
        ("go", "go/pwrite,go/mmap"),
        ("python", "python/pwrite,python/mmap:random"),
        ("jvm", "jvm/mmap,jvm/filechannel:heap-buffer,jvm/filechannel:direct-buffer"),
    ] {
        methods.extend(has_toolchain(language).then_some(offered));
    }
    let methods = format!("--methods={}", methods.join(","));
    let sizes = ["--file-size=4MiB", "--updates=200", "--reads-per-update=2", "--sync=every:64KiB"];
    let taken = take(&Place::new(), "update", &[&sizes[..], &[&methods, "--cache=cold"]].concat());
    for cell in cells(&taken.run, |cell| cell.role == Role::Measured) {
        of_cell(&taken.run, cell, &[]).into_iter().for_each(|seen| expect_written(cell, seen));
    }
}

#[test]
fn what_is_expected_is_judged_and_decides_the_status() {
    let _turn = my_turn();
    let Some(place) = Place::in_memory() else {
        return support::skipped("tmpfs", "there is no /dev/shm");
    };
    let common = "append --methods pwrite --file-size 2MiB --record-size 1KiB --sync commit --no-ceilings --json --out";
    for (run, more, verdict, status) in [
        // Twice as many samples as it needs: some may be disturbed.
        ("kept.jsonl", "--expect p50<100s --expect rate>=1 --rounds 24", "holds", 0),
        ("broken.jsonl", "--expect p50<1ns --expect rate>=1000000000k --rounds 24", "does-not-hold", 1),
        ("open.jsonl", "--expect p99.9<100s --rounds 24", "open", 5),
    ] {
        let words: Vec<&str> = common.split(' ').chain([run]).chain(more.split(' ')).collect();
        let finished = place.run(&words);
        // A machine that is busy leaves a method without some of its samples.
        let finished = if finished.code() == 1 { finished } else { finished.expect_code(status) };
        let cells = finished.judged()["cells"].clone();
        let expected = cells[0]["expected"].as_array().expect("what was expected");
        assert!(!expected.is_empty());
        for one in expected {
            assert_eq!(one["verdict"], verdict, "{one}");
        }
    }
    let shown = place.run(&["report", "--markdown", "open.jsonl"]).expect_code(0);
    assert!(shown.stdout.contains("100s is open: 0 of "), "{}", shown.stdout);
    assert!(shown.stdout.contains("it needs 120 samples (--rounds) and has 2"), "{}", shown.stdout);
}

#[test]
fn every_append_that_is_synced_is_whole() {
    let _turn = my_turn();
    for (sync, passes) in [("--sync=end", "--passes=3"), ("--sync=every:256KiB", "--passes=1")] {
        let more = ["--file-size=4MiB", "--record-size=100B,1KiB", passes, sync];
        let taken = take(&Place::new(), "append", &more);
        // Buffers of a MiB hold more than an interval.
        expect_all_written(&taken, "append", &[&NO_DIRECT[..], &["under way at once"]].concat());
        for cell in cells(&taken.run, |_| true) {
            for (measurement, _) in valid(&taken.run, |other| other == cell) {
                let in_teardown = sync == "--sync=end";
                assert_eq!(measurement.sync_ns > 0, in_teardown, "{}: {measurement:?}", cell.id());
                assert!(measurement.sync_ns <= measurement.teardown_ns, "{}: {measurement:?}", cell.id());
            }
        }
    }
}

#[test]
fn every_append_in_memory_is_whole() {
    let _turn = my_turn();
    let Some(place) = Place::in_memory() else {
        return support::skipped("tmpfs", "there is no /dev/shm");
    };
    for (sizes, passes, sync) in [
        ("--record-size=10B,1000B", "--passes=3", "--sync=none"),
        ("--record-size=100B", "--passes=1", "--sync=end"),
    ] {
        let taken = take(&place, "append", &["--file-size=4MiB", sizes, passes, sync]);
        expect_all_written(&taken, "append", &NO_DIRECT);
        for sample in samples(&taken.run, |cell| cell.method.is_direct()) {
            assert!(matches!(sample.outcome, Outcome::Unavailable { .. }), "{:?}", sample.outcome);
        }
        fs::remove_file(place.file("run.jsonl")).expect("remove");
    }
}

#[test]
fn a_file_that_was_written_before_holds_the_new_records() {
    let _turn = my_turn();
    let methods =
        "--methods=mmap,mmap:buffer=4KiB,mmap:populate,pwrite,write:buffer=64KiB,uring:depth=8+buffer=64KiB";
    let more = ["--file-size=4MiB", "--record-size=100B,1KiB", "--passes=1,2", "--cache=warm", methods];
    let taken = take(&Place::new(), "append", &more);
    expect_figures(&taken);
    for cell in cells(&taken.run, |_| true) {
        for seen in of_cell(&taken.run, cell, &["io_uring"]) {
            expect_written(cell, seen);
            let written = seen.written.as_ref().expect("read back");
            assert!(written.dirty_before_bytes.is_none_or(|dirty| dirty == 0), "{written:?}");
            assert!(written.allocated_before_bytes.is_none_or(|bytes| bytes >= 4 * MIB), "{written:?}");
            assert_eq!(seen.resident_before_bytes, Some(4 * MIB));
        }
    }
}

#[test]
fn every_fill_is_whole_on_a_disk_and_in_memory() {
    let _turn = my_turn();
    let reasons = ["MADV_HUGEPAGE", "mlock"];
    for place in [Some(Place::new()), Place::in_memory()].into_iter().flatten() {
        let directory = format!("--dir={}", place.path().display());
        let taken = take(&place, "fill", &[&directory, "--file-size=8MiB"]);
        expect_all_written(&taken, "fill", &reasons);
        // Faults in set-up and in the measured region.
        let faults = |name: &str| -> Option<(u64, u64)> {
            let cell = cells(&taken.run, |cell| cell.method.to_string() == name)[0];
            let seen = *of_cell(&taken.run, cell, &reasons).first()?;
            Some((seen.setup_faults?, seen.minor_faults? + seen.major_faults?))
        };
        let (plain_setup, plain) = faults("mmap").expect("faults");
        for name in ["mmap:populate-write", "mmap:touch", "mmap:touch+willneed"] {
            let (setup, region) = faults(name).expect("faults");
            assert!(region <= OWN_FAULTS && region < plain, "{name}: {region} faults, {plain} without");
            assert!(setup > plain_setup && setup > region, "{name}: {setup} faults in set-up, then {region}");
        }
        assert!(plain > plain_setup, "{plain_setup} faults in set-up, then {plain}");
    }
}

/// Bytes that one try of each sample wrote, with what made files warm before.
fn bytes_written(run: &Run) -> (u64, u64) {
    let mut tries = BTreeSet::new();
    let mut bytes = 0;
    for sample in &run.samples {
        let cell = run.header.plan.cells.iter().find(|cell| cell.id() == sample.cell).expect("a cell");
        if cell.role == Role::Ceiling || !tries.insert((&sample.cell, sample.round)) {
            continue;
        }
        let Outcome::Taken { evidence, .. } = &sample.outcome else { panic!("{:?}", sample.outcome) };
        bytes += evidence.requested_bytes;
        if cell.conditions.cache == pagewise_model::CacheState::Warm {
            bytes += cell.conditions.file_bytes.0;
        }
    }
    (bytes, tries.len() as u64)
}

#[test]
fn a_dry_run_says_how_much_will_be_written() {
    let _turn = my_turn();
    let place = Place::new();
    let plan = [
        "--file-size=1MiB",
        "--record-size=1KiB",
        "--passes=1,3",
        "--cache=cold,warm",
        "--methods=mmap,pwrite",
    ];
    let mut dry = words("append", &plan);
    dry.retain(|word| *word != "--json");
    let finished = place.run(&[&dry[..], &["--dry-run"]].concat()).expect_code(0);
    assert!(place.entries().is_empty(), "a dry run made {:?}", place.entries());
    let line = finished
        .stdout
        .lines()
        .find(|line| line.trim_start().starts_with("writes"))
        .expect("a line on writes")
        .to_string();
    // Cold 1 and 3 passes, warm one more each, with two methods, in 4 rounds.
    assert!(line.contains("80 MiB in 32 samples, at most 1 MiB at a time"), "{line}");

    let finished = place.run(&words("append", &plan));
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    expect_whole(&run);
    assert_eq!(bytes_written(&run), (80 * MIB, 32));
    assert_eq!(place.entries(), ["run.jsonl".to_string()].into());
    place.expect_no_trace();
}

#[test]
fn a_run_that_was_killed_leaves_a_file_that_the_next_start_sweeps() {
    let _turn = my_turn();
    let place = Place::new();
    let more = ["--file-size=16MiB", "--record-size=100B", "--methods=mmap,pwrite:buffer=64KiB"];
    let run = PausedRun::start(&place, &words("append", &more), RunStep::Answered);
    run.expect_at_step(3);
    run.kill();
    let left = place.traces().pop().expect("a file that was written");
    assert_eq!(place.traces(), std::slice::from_ref(&left), "an append needs no dataset");
    let before = load(&place.file("run.jsonl"));
    assert!(!before.is_complete());
    let finished = place.run(&RESUME);
    assert!(finished.stderr.contains(&format!("removed {}", left.display())), "{finished:?}");
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    expect_whole(&run);
    expect_honest(&run);
    assert_eq!(run.samples[..before.samples.len()], before.samples);
    place.expect_no_trace();
}

/// What the files of a run held, by checksum; each as often as there are rounds or less.
fn contents(seed: &str, cache: &str) -> BTreeSet<String> {
    let place = Place::new();
    let (script, sums) = (place.root().join("worker"), place.root().join("sums"));
    let directory = place.path();
    let text = format!(
        "#!/bin/sh\n{PAGEWISE} worker\nfor file in {0}/.pagewise-*; do cksum < $file >> {1}; done\n",
        directory.display(),
        sums.display()
    );
    fs::write(&script, text).expect("write");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("permissions");
    let command = script.to_string_lossy().into_owned();
    let more =
        ["--file-size=300KiB", "--record-size=1000B", "--methods=mmap", cache, "--worker-command", &command];
    let mut words = words("append", &more);
    words.retain(|word| !word.starts_with("--seed"));
    words.push(seed);
    let finished = place.run(&words);
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    for sample in &run.samples {
        let Outcome::Taken { evidence, .. } = &sample.outcome else { panic!("{:?}", sample.outcome) };
        assert_eq!(evidence.written.as_ref().map(|written| written.missing_bytes), Some(0), "{sample:?}");
    }
    place.expect_no_trace();
    let sums = fs::read_to_string(sums).expect("sums");
    sums.lines().map(str::to_string).collect()
}

#[test]
fn a_seed_says_what_is_written() {
    let _turn = my_turn();
    if PAGEWISE.contains(' ') {
        return support::skipped("path-without-space", "the path of the program holds a space");
    }
    let first = contents("--seed=7", "--cache=cold");
    assert_eq!(first.len(), 4, "one content for each round, whichever cell: {first:?}");
    // Written over something else it is the same in the end.
    assert_eq!(contents("--seed=7", "--cache=cold,warm"), first);
    assert!(contents("--seed=8", "--cache=cold").is_disjoint(&first));
}

#[test]
fn more_is_appended_than_memory_holds() {
    const LIMIT: u64 = 64 * MIB;
    let _turn = my_turn();
    if !can_limit_memory() {
        return;
    }
    let methods = "--methods=mmap,pwrite:buffer=64KiB";
    let more = ["--memory=64MiB", "--file-size=128MiB", "--record-size=1KiB", methods];
    let taken = take(&Place::new(), "append", &more);
    expect_figures(&taken);
    for cell in cells(&taken.run, |_| true) {
        assert_eq!(cell.conditions.host_settings.memory_limit_bytes, Some(Bytes(LIMIT)));
        for seen in of_cell(&taken.run, cell, &[]) {
            expect_written(cell, seen);
            let group = seen.group.as_ref().expect("a group");
            assert_eq!(group.limit_bytes, Some(LIMIT), "{group:?}");
            assert!(group.peak_bytes.is_none_or(|peak| peak > LIMIT / 2), "{group:?}");
            // What memory could not hold had to reach the device on the way.
            assert!(seen.resident_after_bytes.is_none_or(|bytes| bytes <= LIMIT), "{seen:?}");
            assert!(seen.device_written_bytes.is_none_or(|bytes| bytes >= 128 * MIB - LIMIT), "{seen:?}");
        }
    }
}
