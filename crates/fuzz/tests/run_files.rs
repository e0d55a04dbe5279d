//! Run files of anybody: read, judged and printed in every way, or refused with one sentence.

mod judged;

use pagewise_analysis::judge::AsOf;
use pagewise_analysis::{judge, proof};
use pagewise_curves::CURVES;
use pagewise_fuzz::run_file::{JsonRunFile, changed};
use pagewise_fuzz::{Campaign, corpus};
use pagewise_model::run::{Record, Run};
use pagewise_model::{FailureKind, Sample};
use pagewise_page::PAGE;
use pagewise_report::curves_door;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::{csv, json, markdown, screen, table, vmstat};

/// What a report may take: the largest case has some hundred KiB, and what is made of a number in
/// it is GiB.
const DATA_BYTES: u64 = 64 << 20;

fn run_files() -> Vec<JsonRunFile> {
    corpus::files("run-files").into_iter().map(|(_, text)| JsonRunFile::new(&text)).collect()
}

/// The text of a run that was read.
fn printed(run: &Run) -> String {
    let header = Record::Header(Box::new(run.header.clone()));
    let mut text = header.to_line();
    let push_checks = |text: &mut String, index: usize| {
        let here = run.checks.iter().filter(|(first, _)| *first == index);
        here.for_each(|(_, context)| text.push_str(&Record::Checks(*context).to_line()));
    };
    for (index, sample) in run.samples.iter().enumerate() {
        push_checks(&mut text, index);
        text.push_str(&Record::Sample(Box::new(sample.clone())).to_line());
    }
    push_checks(&mut text, run.samples.len());
    text.push_str(&Record::Seconds { seconds: run.seconds.clone() }.to_line());
    for _ in 0..run.resumptions {
        text.push_str(&Record::Resumed { unix_s: 1 }.to_line());
    }
    if let Some(elapsed_ns) = run.elapsed_ns {
        let samples = run.samples.len() as u64;
        text.push_str(&Record::End { samples, elapsed_ns, supervisor_peak_bytes: None }.to_line());
    }
    text
}

/// Reads, judges and prints a run file; whether it is one.
#[track_caller]
fn report(text: &[u8], width: usize) -> bool {
    curves_door::offer(&[CURVES]);
    let run = match Run::parse(text) {
        Ok(run) => run,
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("line ") && !message.is_empty(), "{message}");
            return false;
        }
    };
    let judged = judge(&run);
    let mut out = Vec::new();
    let documented = [JudgedRun::of("run.jsonl", &run, &judged)];
    json::write(&mut out, &documented).expect("written to memory");
    judged::check_json(&out);
    out.clear();
    assert!(!table::document(&documented[0]).lines(width).is_empty());
    // Twice, since an answer may be of several runs.
    assert!(
        screen::lines(&[documented[0].clone(), documented[0].clone()], width).len() <= screen::MOST_LINES
    );
    assert!(screen::lines(&documented, width).len() <= screen::MOST_LINES);
    out.clear();
    csv::samples::write(&mut out, std::slice::from_ref(&run)).expect("written to memory");
    judged::check_csv(&out, run.samples.len());
    out.clear();
    csv::cells::write(&mut out, &documented).expect("written to memory");
    judged::check_csv(&out, run.header.plan.cells.len());
    out.clear();
    markdown::write(&mut out, &documented).expect("written to memory");
    (PAGE.plots)(&documented).iter().for_each(|drawn| out.extend(drawn.svg.bytes()));
    (PAGE.runs)(&mut out, &documented).expect("written to memory");
    // The libraries at the end of a page have the word.
    let text = std::str::from_utf8(&out).expect("documents are text");
    assert!(!text.split("<script>").next().unwrap_or_default().contains("NaN"));
    out.clear();
    vmstat::write(&mut out, &vmstat::rows(&run.seconds)).expect("written to memory");
    judged::check_csv(&out, usize::MAX);
    true
}

#[test]
fn changed_run_files_are_reported_or_refused() {
    let corpus = run_files();
    let campaign = Campaign {
        test: "changed_run_files_are_reported_or_refused",
        target: "run-files",
        data_bytes: DATA_BYTES,
    };
    campaign.run(|case| {
        let text = changed(&mut case.random, &corpus);
        case.input(&text);
        let width = [60, 80, 100, 140, 200][case.random.below(5) as usize];
        report(&text, width);
    });
}

#[test]
fn what_is_read_prints_to_what_is_read_again() {
    let corpus = run_files();
    let campaign = Campaign {
        test: "what_is_read_prints_to_what_is_read_again",
        target: "verdicts",
        data_bytes: DATA_BYTES,
    };
    campaign.run(|case| {
        let text = changed(&mut case.random, &corpus);
        case.input(&text);
        let Ok(run) = Run::parse(&text) else { return };
        let again = Run::parse(printed(&run).as_bytes()).expect("what was printed is a run file");
        assert_eq!(Run { intact_bytes: run.intact_bytes, ..again.clone() }, run);
        let json = |run: &Run| {
            let mut out = Vec::new();
            let judged = judge(run);
            json::write(&mut out, &[JudgedRun::of("run.jsonl", run, &judged)]).expect("written to memory");
            out
        };
        assert!(json(&run) == json(&again), "the same samples have the same verdict");
    });
}

#[test]
fn the_corpus_is_whole() {
    for (name, text) in corpus::files("run-files") {
        assert!(report(&text, 100), "{name}");
        assert_eq!(
            JsonRunFile::new(&text).to_text().len(),
            text.len(),
            "{name} is written as pagewise writes it"
        );
    }
}

/// What once went wrong: a file of the corpus, where in its samples or its header, and what is put
/// there.
const FAILED: [(&str, &str, &str, &str); 18] = [
    ("more rounds than can be held", "read-warm", "/plan/rounds", "4294967295"),
    ("a sample of a round that nobody planned", "read-warm", "/round", "4294967295"),
    ("a latency phase as long as time itself", "read-warm", "/outcome/measurement/latency_phase_ns", MOST),
    ("operations of both phases", "read-warm", "/outcome/measurement/latency_phase_operations", MOST),
    ("set-up as long as time itself", "append", "/outcome/measurement/setup_ns", MOST),
    ("a valid sample of no time", "read-warm", "/outcome/measurement/measured_ns", "0"),
    ("a valid sample of no operation", "scan", "/outcome/measurement/operations", "0"),
    ("more operations than there is work", "append", "/outcome/measurement/operations", MOST),
    ("more latencies than can be counted", "read-warm", "/outcome/measurement/latency_counts", MOST_TWICE),
    ("more stalls than can be counted", "read-warm", "/outcome/measurement/stalls", MOST),
    ("more CPU time than there are CPUs", "read-warm", "/outcome/evidence/cpu_ns", MOST),
    ("user and system time", "scan", "/outcome/evidence/user_ns", MOST),
    ("faults of both kinds", "fill", "/outcome/evidence/minor_faults", MOST),
    ("more verified reads than can be counted", "read-warm", "/outcome/evidence/verified_reads", MOST),
    ("windows of a cold start", "cold-start", "/outcome/evidence/windows/0/device_read_bytes", MOST),
    ("records of no bytes", "append", "/plan/cells/0/conditions/record_bytes", "0"),
    ("reads larger than any file", "read-warm", "/plan/cells/0/conditions/read_bytes", MOST),
    (
        "limits larger than any memory",
        "memory",
        "/plan/cells/0/conditions/host_settings/memory_limit_bytes",
        MOST,
    ),
];
const MOST: &str = "18446744073709551615";
const MOST_TWICE: &str = "[18446744073709551615,18446744073709551615,1,1]";

#[test]
fn what_failed_once_is_reported_or_refused() {
    for (name, file, place, value) in FAILED {
        println!("{name}");
        let run = JsonRunFile::new(&corpus::file("run-files", &format!("{file}.jsonl")));
        let changed = run.with(place, &serde_json::from_str(value).expect("json"));
        report(changed.to_text().as_bytes(), 100);
    }
}

/// A check that was changed is noticed here: then the corpus is made anew, and the commit says what
/// changed. Only kinds are compared, since a message may be reworded.
#[test]
fn checks_find_in_the_corpus_what_they_found_when_it_was_measured() {
    let mut wrong = Vec::new();
    for (name, text) in corpus::files("run-files") {
        let run = Run::parse(&text).expect("a run file of the corpus");
        let again = proof::again(&run);
        for (now, then) in again.run.samples.iter().zip(&run.samples) {
            let kinds = |sample: &Sample| -> Vec<FailureKind> {
                sample.failures().iter().map(|failure| failure.kind).collect()
            };
            if kinds(now) != kinds(then) {
                wrong.push(format!("{name}: {} round {}: {:?}", then.cell, then.round, now.failures()));
            }
        }
        // Files of the format before run files held what checks need.
        let older =
            ["lucene.jsonl", "cliff.jsonl", "cold-start.jsonl", "memory.jsonl"].contains(&name.as_str());
        assert_eq!(again.as_measured > 0, older, "{name}");
        let as_of = if older { AsOf::Measurement } else { AsOf::Report };
        assert_eq!(judge(&run).validity.as_of, as_of, "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
