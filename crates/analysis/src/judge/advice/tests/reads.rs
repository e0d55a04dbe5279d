//! Headlines of runs that read.

use super::*;
use pagewise_model::{CacheState, Work};

fn read(method: &str, cache: CacheState, measured_ms: u64) -> Timed {
    timed(honest::cell(method, cache), MS, measured_ms * MS)
}

fn sequential(timed: Timed) -> Timed {
    let mut cell = timed.cell;
    cell.conditions.work = match cell.conditions.work {
        Work::RandomRead(reads) => Work::SequentialRead(reads),
        other => other,
    };
    Timed { cell, ..timed }
}

#[test]
fn random_reads_stand_for_reads() {
    let (cold, warm) = (CacheState::Cold, CacheState::Warm);
    let judged = judged(vec![
        read("mmap", warm, 80),
        read("pread", warm, 100),
        read("mmap", cold, 200),
        read("pread", cold, 100),
        sequential(read("pread", warm, 100)),
        sequential(read("mmap", warm, 90)),
    ]);
    assert_eq!(headline(&judged), ["Random reads: warm: choose mmap; cold: choose pread."]);
}

#[test]
fn of_sequential_reads_alone_the_headline_tells_them() {
    let warm = CacheState::Warm;
    let cells = vec![read("mmap", warm, 80), read("pread", warm, 100), read("uring:depth=32", warm, 100)];
    let judged = judged(cells.into_iter().map(sequential).collect());
    assert_eq!(headline(&judged), ["Sequential reads: choose mmap."]);
    assert_eq!(judged.advice[0].reason, None);
}

#[test]
fn a_tie_names_few_and_counts_many() {
    let warm = CacheState::Warm;
    let tied = |count: usize| {
        let methods = ["pread", "mmap", "uring:depth=32", "pread:random", "mmap:random"];
        headline(&judged(methods[..count].iter().map(|method| read(method, warm, 100)).collect()))
    };
    assert_eq!(tied(2), ["Random reads: choose pread (mmap is not shown to be behind)."]);
    assert_eq!(tied(5), ["Random reads: choose pread (4 others are not shown to be behind)."]);
}

#[test]
fn what_carries_no_advice_says_why() {
    let judged = judged(vec![read("pread", CacheState::Warm, 100)]);
    assert_eq!(headline(&judged), ["Random reads: no advice, because there is only one method."]);
    assert_eq!(judged.advice[0].reason.as_deref(), Some("there is only one method"));
    assert!(headline(&Judged { comparisons: Vec::new(), advice: Vec::new(), ..judged.clone() }).is_empty());
}
