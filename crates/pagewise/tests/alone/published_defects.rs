//! A worker that appends as a published study did is called invalid in every buffered cell of the
//! study's matrix, with the number of bytes that are missing; that number follows from a model of
//! the defects.
//!
//! Runs end as soon as every cell has a sample: what is missing depends on nothing but the sizes.

use std::collections::BTreeSet;

use crate::support::until::{Taken, cells, each_has_or_cannot, my_turn, samples, stop_words, take_words};
use crate::support::{FROM_OUTSIDE, Place, kinds, published_worker};
use pagewise_model::FailureKind::LostRecords;
use pagewise_model::ring::SOURCE_PERIOD;
use pagewise_model::run::Run;
use pagewise_model::sample::Written;
use pagewise_model::{Alignment, Cell, FailureKind, Outcome, Sample};
use serde_json::Value;

const RECORDS: &str = "--record-size=10B,100B,1KiB,2KiB";
const BUFFERS: &str = "--methods=mmap,mmap:buffer=100B,mmap:buffer=1KiB,mmap:buffer=2KiB,mmap:buffer=4KiB,\
    mmap:buffer=8KiB,mmap:buffer=12KiB,mmap:buffer=16KiB,mmap:buffer=1MiB";
/// The cells of the matrix whose buffer is larger than the record: all 8 buffers for 10 B, 7 for
/// 100 B, 6 for 1 KiB, 5 for 2 KiB.
const BUFFERED_CELLS: usize = 26;

fn words<'a>(worker: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let common = ["run", "append", "--rounds=7", "--seed=7", "--no-ceilings", "--json", "--out=run.jsonl"];
    [&common[..], &["--worker-command", worker], more].concat()
}

/// A run with the worker `kind` that ends once every cell has a sample.
#[track_caller]
fn run(kind: &str, more: &[&str]) -> Taken {
    let _turn = my_turn();
    let worker = published_worker(kind);
    let has_sample = |run: &Run, cell: &Cell| !samples(run, |other| other == cell).is_empty();
    let each = |run: Run| cells(&run, |_| true).iter().all(|cell| has_sample(&run, cell));
    let run = stop_words(&Place::in_memory().unwrap_or_else(Place::new), &words(&worker, more), each);
    assert_eq!(run.header.worker_command, Some(worker), "the run does not say whose samples these are");
    Taken::of(&run)
}

/// The same, with a valid sample in every cell.
#[track_caller]
fn honest(more: &[&str]) -> Run {
    let _turn = my_turn();
    let worker = published_worker("honest");
    take_words(&Place::in_memory().unwrap_or_else(Place::new), &words(&worker, more), |run| {
        each_has_or_cannot(run, 1)
    })
    .run
}

/// What the study's program does wrong, as the notes on it say.
#[derive(Clone, Copy, Default)]
struct Wrong {
    /// The record that fills the cache is lost at each flush.
    loses_one_per_cycle: bool,
    /// The cursor advances by a record, not by the bytes flushed.
    advances_by_record: bool,
    /// What does not fit before the end of the file is left out, and the cursor returns to 0.
    clips_at_end: bool,
    /// What is in the cache at the end is not flushed.
    keeps_rest: bool,
}

const PUBLISHED: Wrong =
    Wrong { loses_one_per_cycle: true, advances_by_record: true, clips_at_end: true, keeps_rest: true };

/// The sizes of a cell.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    record: usize,
    /// 0: none.
    buffer: usize,
    file: usize,
    passes: usize,
}

impl Sizes {
    fn of(cell: &Cell) -> Self {
        let writes = cell.conditions.writes().expect("a plan of append");
        Self {
            record: writes.record_bytes.0 as usize,
            buffer: cell.method.buffer().map_or(0, |bytes| bytes.0 as usize),
            file: cell.conditions.file_bytes.0 as usize,
            passes: writes.passes as usize,
        }
    }

    fn slots(&self) -> usize {
        self.file / self.record
    }

    fn is_buffered(&self) -> bool {
        self.buffer > self.record
    }
}

/// A file of which each byte says which byte of the source lies there, counted from 1; 0 for none.
struct Model {
    sizes: Sizes,
    wrong: Wrong,
    file: Vec<u16>,
    cursor: usize,
}

impl Model {
    /// Bytes of records that are missing once all records were offered to a program that is
    /// `wrong`.
    fn missing(sizes: Sizes, wrong: Wrong) -> u64 {
        let source: Vec<u16> = (1..=(SOURCE_PERIOD as usize + sizes.record) as u16).collect();
        let record = |index: usize| {
            let start = index * sizes.record % SOURCE_PERIOD as usize;
            &source[start..start + sizes.record]
        };
        let mut model = Model { sizes, wrong, file: vec![0; sizes.file], cursor: 0 };
        model.offer((0..sizes.slots() * sizes.passes).map(record));
        // The records of the last pass must be there.
        let last_pass = sizes.slots() * (sizes.passes - 1);
        let places = model.file.chunks_exact(sizes.record);
        let is_missing = |(slot, place): &(usize, &[u16])| *place != record(last_pass + slot);
        (places.enumerate().filter(is_missing).count() * sizes.record) as u64
    }

    fn offer<'a>(&mut self, records: impl Iterator<Item = &'a [u16]>) {
        let Sizes { record, buffer, .. } = self.sizes;
        let mut cache = Vec::new();
        for bytes in records {
            if buffer <= record {
                self.flush(bytes, record);
            } else if self.wrong.loses_one_per_cycle {
                if cache.len() + record < buffer {
                    cache.extend_from_slice(bytes);
                } else {
                    self.flush_cache(&mut cache);
                }
            } else {
                if cache.len() + record > buffer {
                    self.flush_cache(&mut cache);
                }
                cache.extend_from_slice(bytes);
            }
        }
        if !self.wrong.keeps_rest {
            self.flush_cache(&mut cache);
        }
    }

    fn flush_cache(&mut self, cache: &mut Vec<u16>) {
        let advance = if self.wrong.advances_by_record { self.sizes.record } else { cache.len() };
        self.flush(cache, advance);
        cache.clear();
    }

    fn flush(&mut self, bytes: &[u16], advance: usize) {
        let end =
            if self.wrong.clips_at_end { self.sizes.file } else { self.sizes.slots() * self.sizes.record };
        let fitting = bytes.len().min(end - self.cursor);
        self.file[self.cursor..self.cursor + fitting].copy_from_slice(&bytes[..fitting]);
        self.cursor += advance;
        if self.wrong.clips_at_end {
            if self.cursor >= end {
                self.cursor = 0;
            }
        } else {
            self.file[..bytes.len() - fitting].copy_from_slice(&bytes[fitting..]);
            self.cursor %= end;
        }
    }
}

/// What was found in the file of a sample.
#[track_caller]
fn written(sample: &Sample) -> &Written {
    match &sample.outcome {
        Outcome::Taken { evidence, .. } => evidence.written.as_ref().expect("the file was read back"),
        other => panic!("{}: {other:?}", sample.cell),
    }
}

/// The failures of a sample that the rest of the machine is not to blame for.
fn own_failures(sample: &Sample) -> Vec<FailureKind> {
    kinds(sample).into_iter().filter(|kind| !FROM_OUTSIDE.contains(kind)).collect()
}

/// Every sample of `cell` lacks `missing` bytes, and fails for it alone; with none missing it is
/// right.
#[track_caller]
fn expect_missing(taken: &Taken, cell: &Cell, missing: u64) {
    let sizes = Sizes::of(cell);
    let expected = (sizes.slots() * sizes.record) as u64;
    for sample in samples(&taken.run, |other| other == cell) {
        let found = written(sample);
        assert_eq!((found.expected_bytes, found.missing_bytes), (expected, missing), "{}", sample.cell);
        if missing == 0 {
            assert_eq!(own_failures(sample), [], "{}: {:?}", sample.cell, sample.failures());
            continue;
        }
        assert_eq!(own_failures(sample), [LostRecords], "{}: {:?}", sample.cell, sample.failures());
        let failure = sample.failures().iter().find(|failure| failure.kind == LostRecords).expect("one");
        let said = format!("{missing} of {expected} bytes of records are not in the file");
        assert!(failure.detail.starts_with(&said), "{}: {failure:?}, not '{said}'", sample.cell);
    }
    if missing > 0 {
        let judged = judged(taken, cell);
        assert_eq!(judged["status"], "invalid", "{judged}");
        assert!(
            judged["reason"].as_str().is_some_and(|reason| reason.contains(&missing.to_string())),
            "{judged}"
        );
        assert!(judged["ops_per_second"].is_null() && judged["ns_per_op"].is_null(), "{judged}");
    }
}

#[track_caller]
fn judged<'a>(taken: &'a Taken, cell: &Cell) -> &'a Value {
    let id = cell.id();
    let cells = taken.judged["cells"].as_array().expect("cells");
    cells.iter().find(|judged| judged["id"] == *id).unwrap_or_else(|| panic!("{id} is not judged"))
}

/// The cells that were measured: those in which a record fits its buffer.
fn measured(run: &Run) -> Vec<&Cell> {
    let fits = |cell: &Cell| cell.method.refuses(&cell.conditions.work, Alignment::ANY).is_none();
    for sample in samples(run, |cell| !fits(cell)) {
        let Outcome::Unavailable { reason } = &sample.outcome else { panic!("{:?}", sample.outcome) };
        assert!(reason.contains("does not fit into the buffer"), "{reason}");
    }
    cells(run, fits)
}

#[test]
fn every_buffered_cell_of_the_study_is_invalid_and_says_what_is_missing() {
    let taken = run("published", &["--file-size=10MiB", RECORDS, BUFFERS]);
    let mut buffered = 0;
    for cell in measured(&taken.run) {
        let sizes = Sizes::of(cell);
        let missing = Model::missing(sizes, PUBLISHED);
        // Without a buffer the study's program was right, for a pass.
        assert_eq!(missing > 0, sizes.is_buffered(), "{sizes:?}");
        buffered += usize::from(sizes.is_buffered());
        expect_missing(&taken, cell, missing);
        // One record in k = buffer / record survives, where it lies by chance.
        let all = (sizes.slots() * sizes.record) as u64;
        assert!(!sizes.is_buffered() || missing * 2 > all, "{sizes:?}: {missing} of {all}");
    }
    assert_eq!(buffered, BUFFERED_CELLS);
}

#[test]
fn an_honest_worker_is_believed_in_every_cell_of_the_study() {
    let run = honest(&["--file-size=10MiB", RECORDS, BUFFERS]);
    let cells = measured(&run);
    assert!(cells.len() > BUFFERED_CELLS);
    for cell in cells {
        for sample in samples(&run, |other| other == cell) {
            assert_eq!(own_failures(sample), [], "{}: {:?}", sample.cell, sample.failures());
            assert_eq!((written(sample).missing_bytes, written(sample).stray_bytes), (0, 0));
        }
    }
}

/// Records and buffers for one defect at a time: two passes, so that a cursor which is wrong at the
/// end shows.
const FEW: [&str; 4] = [
    "--file-size=1MiB",
    "--passes=2",
    "--record-size=100B,1KiB",
    "--methods=mmap,mmap:buffer=100B,mmap:buffer=1KiB,mmap:buffer=4KiB,mmap:buffer=12KiB,mmap:buffer=64KiB",
];

/// The worker `kind` is caught wherever the model says that bytes are missing, and believed
/// elsewhere; the cells in which it is caught.
#[track_caller]
fn caught(kind: &str, wrong: Wrong) -> BTreeSet<(usize, usize)> {
    let taken = run(kind, &FEW);
    let mut caught = BTreeSet::new();
    for cell in measured(&taken.run) {
        let sizes = Sizes::of(cell);
        let missing = Model::missing(sizes, wrong);
        if missing > 0 {
            caught.insert((sizes.record, sizes.buffer));
        }
        let tail = (sizes.file - sizes.slots() * sizes.record) as u64;
        for sample in samples(&taken.run, |other| other == cell) {
            let stray = written(sample).stray_bytes;
            assert!(stray <= tail, "{}: {stray} of {tail}", sample.cell);
            // A record that was cut at the end of the file left its first part there.
            assert_eq!(stray > 0, wrong.clips_at_end && tail > 0, "{}", sample.cell);
        }
        if missing > 0 || !(wrong.clips_at_end && tail > 0) {
            expect_missing(&taken, cell, missing);
        }
    }
    caught
}

#[test]
fn a_cursor_that_moves_by_a_record_is_noticed() {
    let caught = caught("cursor-by-record", Wrong { advances_by_record: true, ..Wrong::default() });
    let buffered = [
        (100, 1 << 10),
        (100, 4 << 10),
        (100, 12 << 10),
        (100, 64 << 10),
        (1024, 4 << 10),
        (1024, 12 << 10),
        (1024, 64 << 10),
    ];
    assert_eq!(caught, buffered.into());
}

#[test]
fn a_record_that_is_dropped_at_each_flush_is_noticed() {
    let caught = caught("last-dropped", Wrong { loses_one_per_cycle: true, ..Wrong::default() });
    assert_eq!(caught.len(), 7, "{caught:?}");
    assert!(!caught.contains(&(100, 0)) && !caught.contains(&(1024, 1 << 10)), "{caught:?}");
}

#[test]
fn a_record_that_is_cut_at_the_end_is_noticed() {
    let caught = caught("clipped-end", Wrong { clips_at_end: true, ..Wrong::default() });
    // 100 B do not divide the file: straight into the mapping too.
    for buffer in [0, 100, 1 << 10, 4 << 10, 12 << 10, 64 << 10] {
        assert!(caught.contains(&(100, buffer)), "{caught:?}");
    }
    // Where records and flushes end with the file nothing is cut.
    for buffer in [0, 1 << 10, 4 << 10, 64 << 10] {
        assert!(!caught.contains(&(1024, buffer)), "{caught:?}");
    }
    assert!(
        caught.contains(&(1024, 12 << 10)),
        "a flush of 12 records does not end with the file: {caught:?}"
    );
}

#[test]
fn a_rest_that_stays_in_the_buffer_is_noticed() {
    let caught = caught("rest-left", Wrong { keeps_rest: true, ..Wrong::default() });
    assert!(caught.iter().all(|(record, buffer)| buffer > record), "{caught:?}");
    assert_eq!(caught.len(), 7, "{caught:?}");
}
