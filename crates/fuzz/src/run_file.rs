//! Run files with records left out, doubled, reordered, taken from other runs or changed, with
//! valid checks.

use pagewise_model::random::Random;
use pagewise_model::run::line_of;
use serde_json::Value;

use crate::document;
use crate::numbers;

/// Records of a case, so that it stays small.
const MOST_RECORDS: usize = 60;

/// A valid run file as JSON.
#[derive(Clone, Debug)]
pub struct JsonRunFile {
    records: Vec<Value>,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// A field of a sample.
    Sample,
    /// A field of any record: header, seconds, end.
    Any,
    /// One field of all samples of a cell: a single round seldom changes a median.
    Cell,
    /// Records left out, doubled, exchanged.
    Drop,
    Double,
    Swap,
    /// A sample of another run, under the name of a cell of this one or its own.
    Splice,
    /// A sample under the name of another cell, or of another round.
    Rename,
    /// A cell of another run in the plan.
    Cells,
}

const OPERATIONS: [Operation; 14] = [
    Operation::Sample,
    Operation::Sample,
    Operation::Sample,
    Operation::Sample,
    Operation::Any,
    Operation::Any,
    Operation::Cell,
    Operation::Cell,
    Operation::Drop,
    Operation::Double,
    Operation::Swap,
    Operation::Splice,
    Operation::Rename,
    Operation::Cells,
];

impl JsonRunFile {
    /// Parse a complete run file.
    ///
    /// # Panics
    /// If it is not valid: it is from the corpus.
    pub fn new(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let record = |line| {
            let mut line: Value = serde_json::from_slice(line).expect("a line of a run file");
            line["record"].take()
        };
        Self { records: lines.map(record).collect() }
    }

    /// Records.
    pub fn records(&self) -> &[Value] {
        &self.records
    }

    /// Text, with valid checks.
    pub fn to_text(&self) -> String {
        self.records.iter().map(|record| line_of(&document::to_text(record))).collect()
    }

    /// The run file with `value` at `pointer` (RFC 6901) of every record that has such a value.
    ///
    /// # Panics
    /// If none has.
    pub fn with(mut self, pointer: &str, value: &Value) -> Self {
        let found = self.records.iter_mut().filter_map(|record| record.pointer_mut(pointer));
        let changed = found.map(|old| *old = value.clone()).count();
        assert!(changed > 0, "no record has {pointer}");
        self
    }

    /// Some of its records: the header, the end, and samples of a few cells or a few samples of
    /// all.
    fn part(&self, random: &mut Random) -> Self {
        let mut records = self.records.clone();
        if random.below(3) > 0 {
            // Whole cells, so that there is something to judge.
            let keep = random.next_u64();
            records.retain(|record| match record["cell"].as_str() {
                Some(cell) => {
                    let cell = cell
                        .bytes()
                        .fold(keep, |hash, byte| pagewise_model::random::mix(hash ^ u64::from(byte)));
                    !cell.is_multiple_of(3)
                }
                None => true,
            });
        }
        while records.len() > MOST_RECORDS {
            records.remove(1 + random.below(records.len() as u64 - 1) as usize);
        }
        Self { records }
    }
}

/// Positions of records of a kind.
fn places(records: &[Value], kind: &str) -> Vec<usize> {
    (0..records.len()).filter(|index| records[*index]["kind"] == kind).collect()
}

fn pick<T: Copy>(random: &mut Random, items: &[T]) -> Option<T> {
    if items.is_empty() { None } else { Some(items[random.below(items.len() as u64) as usize]) }
}

/// A run file of `corpus` after a few operations; its last line may be torn, and rarely a byte
/// differs under an unchanged check.
pub fn changed(random: &mut Random, corpus: &[JsonRunFile]) -> Vec<u8> {
    let draw = |random: &mut Random| random.below(corpus.len() as u64) as usize;
    let mut run = corpus[draw(random)].part(random);
    let donor = &corpus[draw(random)];
    for _ in 0..random.below(6) {
        let operation = OPERATIONS[random.below(OPERATIONS.len() as u64) as usize];
        change(random, &mut run.records, &donor.records, operation);
    }
    // Wrong counts end every other question, so they are mostly right.
    if random.below(8) > 0 {
        let samples = places(&run.records, "sample").len();
        for end in places(&run.records, "end") {
            run.records[end]["samples"] = Value::from(samples);
        }
    }
    let mut text = run.to_text().into_bytes();
    match random.below(20) {
        0 => text.truncate(random.below(text.len() as u64 + 1) as usize),
        1 if !text.is_empty() => {
            let at = random.below(text.len() as u64) as usize;
            text[at] ^= 1 << random.below(8);
        }
        _ => {}
    }
    text
}

fn change(random: &mut Random, records: &mut Vec<Value>, donor: &[Value], operation: Operation) {
    let samples = places(records, "sample");
    match operation {
        Operation::Sample => {
            let (sample, other) = (pick(random, &samples), pick(random, &places(donor, "sample")));
            if let (Some(sample), Some(other)) = (sample, other) {
                let within = document::DocumentChange::draw(random);
                document::change(random, &mut records[sample], &donor[other], within);
            }
        }
        Operation::Any => {
            let kinds = ["header", "checks", "seconds", "extended", "end", "resumed"];
            let kind = kinds[random.below(kinds.len() as u64) as usize];
            if let Some(place) = pick(random, &places(records, kind)) {
                let other = pick(random, &places(donor, kind)).map_or(&Value::Null, |other| &donor[other]);
                let within = document::DocumentChange::draw(random);
                document::change(random, &mut records[place], other, within);
            }
        }
        Operation::Cell => {
            let Some(first) = pick(random, &samples) else { return };
            let cell = records[first]["cell"].clone();
            let (seed, within) = (random.next_u64(), document::DocumentChange::draw(random));
            for sample in records.iter_mut().filter(|record| record["cell"] == cell) {
                // The same draws: the same position in samples of the same structure.
                document::change(&mut Random::new(seed), sample, &Value::Null, within);
            }
        }
        Operation::Drop => {
            if records.len() > 1 {
                records.remove(random.below(records.len() as u64) as usize);
            }
        }
        Operation::Double => {
            if let Some(place) = pick(random, &(0..records.len()).collect::<Vec<_>>()) {
                let to = random.below(records.len() as u64 + 1) as usize;
                records.insert(to, records[place].clone());
            }
        }
        Operation::Swap => {
            if records.len() > 2 {
                let from = 1 + random.below(records.len() as u64 - 1) as usize;
                let to = 1 + random.below(records.len() as u64 - 1) as usize;
                records.swap(from, to);
            }
        }
        Operation::Splice => {
            let Some(other) = pick(random, &places(donor, "sample")) else { return };
            let mut sample = donor[other].clone();
            if let Some(here) = pick(random, &samples).filter(|_| random.below(4) > 0) {
                sample["cell"] = records[here]["cell"].clone();
                records.insert(here, sample);
            } else {
                records.insert(1.min(records.len()), sample);
            }
        }
        Operation::Rename => {
            let (Some(one), Some(other)) = (pick(random, &samples), pick(random, &samples)) else { return };
            let field = ["cell", "round", "attempt"][random.below(3) as usize];
            records[one][field] = match field {
                "cell" => records[other]["cell"].clone(),
                _ => Value::from(numbers::edge(random, 1)),
            };
        }
        Operation::Cells => {
            let others = donor.first().and_then(|header| header.pointer("/plan/cells")?.as_array());
            let (Some(others), Some(header)) = (others, records.first_mut()) else { return };
            let other = pick(random, &(0..others.len()).collect::<Vec<_>>());
            let cells = header.pointer_mut("/plan/cells").and_then(|cells| cells.as_array_mut());
            if let (Some(other), Some(cells)) = (other, cells) {
                cells.push(others[other].clone());
            }
        }
    }
}
