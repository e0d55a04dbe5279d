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
fn a_situation_is_each_kind_of_read_in_each_state() {
    let (cold, warm) = (CacheState::Cold, CacheState::Warm);
    let judged = judged(vec![
        read("mmap", warm, 80),
        read("pread", warm, 100),
        read("mmap", cold, 200),
        read("pread", cold, 100),
        sequential(read("pread", warm, 100)),
        sequential(read("mmap", warm, 90)),
    ]);
    let found = choices(&judged);
    assert_eq!(found, ["random reads, warm: mmap", "random reads, cold: pread", "sequential reads: mmap"]);
}

#[test]
fn what_carries_no_advice_says_why() {
    let judged = judged(vec![read("pread", CacheState::Warm, 100)]);
    assert_eq!(choices(&judged), ["random reads: –"]);
    assert_eq!(words::advice::silence(&judged.comparisons[0]).as_deref(), Some("there is only one method"));
}
