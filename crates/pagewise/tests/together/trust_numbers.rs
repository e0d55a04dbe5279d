//! Numbers in a run file: none makes a report take more memory than the file has bytes for, or
//! count to where nobody gets. What no run has is refused with a sentence.

use std::process::Command;

use crate::support::Place;
use pagewise_model::run::{Header, Record};
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Bytes, CacheState, Cell, Conditions, Environment, Evidence, Outcome, Plan, Reads, Role, Sample, Work,
};
use serde_json::{Value, json};

const FORMS: [&[&str]; 6] =
    [&[], &["--json"], &["--csv=samples"], &["--csv"], &["--markdown"], &["--html=-"]];

/// The `index`-th of many cells, `methods` of them under the same conditions.
fn cell(index: usize, methods: usize) -> Cell {
    let (comparison, method) = ((index / methods) as u64, index % methods);
    let text = if method == 0 { "pread".to_string() } else { format!("mmap:prefetch={method}") };
    Cell {
        role: Role::Measured,
        method: text.parse().expect("a method"),
        conditions: Conditions {
            cache: CacheState::Warm,
            ..Conditions::of(
                Work::RandomRead(Reads {
                    reads_per_op: 1 + (comparison / 64) as u32,
                    align_bytes: Bytes::kib(4),
                    ..Reads::of(Bytes::kib(4 + 4 * (comparison % 64)))
                }),
                Bytes::gib(1),
            )
        },
    }
}

fn header(rounds: u32, cells: Vec<Cell>) -> Record {
    Record::Header(Box::new(Header {
        environment: Environment { page_bytes: 4096, cpus: 2, ..Environment::default() },
        ..Header::of(Plan { rounds, sample_ns: 200_000_000, retakes: 2, ..Plan::of(cells) })
    }))
}

fn sample(cell: &Cell, round: u32) -> Record {
    let measurement = Measurement {
        measured_ns: 200_000_000,
        operations: 5_000 + u64::from(round) % 7,
        latency_ns: vec![40_000],
        latency_counts: vec![5_000],
        ..Measurement::default()
    };
    let evidence = Evidence { wall_ns: 200_400_000, requested_bytes: 5_000 << 14, ..Evidence::default() };
    let outcome = Outcome::Taken {
        measurement: Box::new(measurement),
        evidence: Box::new(evidence),
        failures: Vec::new(),
    };
    Record::Sample(Box::new(Sample::of(cell, round, outcome)))
}

fn text(records: &[Record]) -> String {
    records.iter().map(Record::to_line).collect()
}

/// The same record with the number at `pointer` set, if such a record can be read.
fn with(record: &Record, pointer: &str, number: &Value) -> Option<Record> {
    let mut value = serde_json::to_value(record).expect("a record");
    *value.pointer_mut(pointer)? = number.clone();
    serde_json::from_value(value).ok()
}

/// Where the numbers of a value stand.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_string()),
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| numbers(value, &format!("{path}/{key}"), found));
        }
        Value::Array(values) => values
            .iter()
            .enumerate()
            .for_each(|(index, value)| numbers(value, &format!("{path}/{index}"), found)),
        _ => {}
    }
}

#[test]
fn counts_that_no_run_has_are_refused_with_a_sentence() {
    let place = Place::apart();
    let cells = vec![cell(0, 2), cell(1, 2)];
    let head = header(7, cells.clone());
    let (first, second) = (sample(&cells[0], 0), sample(&cells[1], 0));
    let largest = json!(u32::MAX);
    let refused = [
        (with(&head, "/plan/rounds", &largest), None, "line 1: 4294967295 rounds"),
        (with(&head, "/plan/cells/0/conditions/threads", &largest), None, "line 1: 4294967295 threads"),
        (with(&head, "/plan/cells/0/conditions/reads_per_op", &largest), None, "line 1: 4294967295 reads"),
        (with(&head, "/plan/retakes", &largest), None, "line 1: 4294967295 repetitions of a sample"),
        (None, with(&second, "/round", &largest), "line 3: a sample of round 4294967295"),
        (None, with(&second, "/round", &json!(7)), "line 3: a sample of round 7"),
        (None, with(&second, "/attempt", &largest), "line 3: attempt 4294967295"),
    ];
    for (changed_head, changed_sample, sentence) in refused {
        let head = changed_head.unwrap_or_else(|| head.clone());
        place.write(
            "run.jsonl",
            text(&[head, first.clone(), changed_sample.unwrap_or_else(|| second.clone())]),
        );
        for form in FORMS {
            let finished = place.run(&[&["report", "run.jsonl"], form].concat()).expect_code(2);
            assert!(finished.stderr.contains(sentence), "{sentence}: {finished:?}");
        }
        place.run(&["run", "--resume", "--out=run.jsonl", "--dry-run"]).expect_code(2);
    }
}

#[test]
fn no_number_anywhere_ends_a_report_by_a_signal() {
    let place = Place::apart();
    let cells = vec![cell(0, 2), cell(1, 2)];
    let mut records = vec![header(7, cells.clone())];
    records.extend((0..7).flat_map(|round| cells.iter().map(move |cell| sample(cell, round))));
    for line in [0, 3] {
        let mut places = Vec::new();
        numbers(&serde_json::to_value(&records[line]).expect("a record"), "", &mut places);
        assert!(places.len() > 10, "{places:?}");
        for pointer in &places {
            for number in [json!(0), json!(u32::MAX), json!(u64::MAX)] {
                let Some(changed) = with(&records[line], pointer, &number) else { continue };
                let mut changed_records = records.clone();
                changed_records[line] = changed;
                place.write("run.jsonl", text(&changed_records));
                // A table and a page show what is judged; the other forms only write down what is
                // there.
                for form in [&["report", "run.jsonl"][..], &["report", "run.jsonl", "--html=-"]] {
                    let finished = place.run(form);
                    let code = finished.status.code();
                    assert!(matches!(code, Some(0 | 2)), "{pointer} = {number}: {finished:?}");
                    // The libraries of a page have the word.
                    let shown = finished.stdout.split("<script>").next().unwrap_or_default();
                    assert!(!shown.contains("NaN"), "{pointer} = {number}: {shown}");
                }
            }
        }
    }
}

#[test]
fn what_a_report_takes_follows_from_the_bytes_of_its_file() {
    // One slot for each round of each cell would be 400 MB.
    let place = Place::apart();
    let cells: Vec<Cell> = (0..5_000).map(|index| cell(index, 50)).collect();
    let mut records = vec![header(10_000, cells.clone())];
    records.extend(cells.iter().step_by(10).map(|cell| sample(cell, 9_999)));
    place.write("run.jsonl", text(&records));
    for form in FORMS {
        let command = place.command(&[&["report", "run.jsonl"], form].concat());
        let mut limited = Command::new("prlimit");
        limited.arg("--as=300000000").arg("--").arg(command.get_program()).args(command.get_args());
        place.settle(&mut limited);
        let finished = place.finish(limited.spawn().expect("prlimit starts"));
        assert_eq!(finished.code(), 0, "it is shown, although not complete: {}", finished.stderr);
    }
}

#[test]
fn many_cells_are_reported() {
    let place = Place::apart();
    for methods in [8, 1_000] {
        let cells: Vec<Cell> = (0..2_000).map(|index| cell(index, methods)).collect();
        let mut records = vec![header(7, cells.clone())];
        let sampled = &cells[..214];
        records.extend((0..7).flat_map(|round| sampled.iter().map(move |cell| sample(cell, round))));
        place.write("run.jsonl", text(&records));
        let table = place.run(&["report", "run.jsonl"]).expect_code(0);
        assert!(table.stdout.contains("1,498 of 1,498 samples valid"), "{}", &table.stdout[..1000]);
        let answer = place.run(&["report", "run.jsonl", "--answer"]).expect_code(0).stdout;
        assert!(answer.lines().count() <= 40, "{answer}");
        let json = place.run(&["report", "run.jsonl", "--json"]).expect_code(0).judged();
        assert_eq!(json["cells"].as_array().map(Vec::len), Some(2_000));
        let csv = place.run(&["report", "run.jsonl", "--csv=samples"]).expect_code(0);
        assert_eq!(csv.stdout.lines().count(), 1_499);
        let cells = place.run(&["report", "run.jsonl", "--csv"]).expect_code(0);
        assert_eq!(cells.stdout.lines().count(), 2_001);
        let page = place.run(&["report", "run.jsonl", "--html=-"]).expect_code(0).stdout;
        assert!(page.contains("1,498 of 1,498 samples valid") && page.len() < 6_000_000, "{}", page.len());
    }
}
