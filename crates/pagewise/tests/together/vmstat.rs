//! `report --vmstat` as a command: what it prints, and what it refuses.

use crate::support::Place;
use pagewise_model::Plan;
use pagewise_model::counters::{HostCounters, HostSecond};
use pagewise_model::run::{Header, Record};

fn run_file(seconds: &[u64]) -> String {
    let header = Header::of(Plan { sample_ns: 1, retakes: 0, ..Plan::of(Vec::new()) });
    let second = |second: &u64| HostSecond {
        at_ns: second * 1_000_000_000,
        begins: *second == 0,
        host: HostCounters { context_switches: Some(second * 500), running: Some(2), ..Default::default() },
    };
    // Written between samples: in parts.
    let parts = seconds.chunks(2).map(|part| Record::Seconds { seconds: part.iter().map(second).collect() });
    let records = std::iter::once(Record::Header(Box::new(header))).chain(parts);
    records.map(|record| record.to_line()).collect()
}

#[test]
fn the_seconds_of_a_run_are_csv() {
    let place = Place::new();
    place.write("run.jsonl", run_file(&[0, 1, 2]));
    let finished = place.run(&["report", "run.jsonl", "--vmstat"]).expect_code(0);
    let rows: Vec<&str> = finished.stdout.lines().collect();
    assert_eq!(
        rows,
        [
            "seconds,r,b,swpd,free,buff,cache,si,so,bi,bo,in,cs,us,sy,id,wa,st",
            "1.000,2,,,,,,,,,,,500,,,,,",
            "2.000,2,,,,,,,,,,,500,,,,,",
        ]
    );
    assert_eq!(finished.stderr, "");
}

#[test]
fn what_it_cannot_print_is_one_sentence() {
    let place = Place::new();
    place.write("run.jsonl", run_file(&[0, 1, 2]));
    place.write("none.jsonl", run_file(&[]));
    place.write("one.jsonl", run_file(&[0]));
    let cases = [
        ("none.jsonl --vmstat", "none.jsonl has no readings of the host"),
        ("one.jsonl --vmstat", "one.jsonl has no readings of the host"),
        ("run.jsonl one.jsonl --vmstat", "--vmstat prints the seconds of one run: 2 run files were given"),
        ("run.jsonl --vmstat --json", "'--vmstat' cannot be used with '--json'"),
        ("run.jsonl --vmstat --csv", "'--vmstat' cannot be used with '--csv"),
        ("missing.jsonl --vmstat", "the run file missing.jsonl cannot be opened"),
    ];
    for (arguments, sentence) in cases {
        let words: Vec<&str> = std::iter::once("report").chain(arguments.split(' ')).collect();
        let finished = place.run(&words).expect_code(2);
        assert!(finished.stderr.contains(sentence), "{arguments}: {finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{arguments}: {finished:?}");
        assert_eq!(finished.stdout, "", "{arguments}");
    }
}
