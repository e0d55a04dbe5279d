//! A program whose accesses to the pages of a mapped file are known, so that tests know what a
//! recording in windows has to hold.
//!
//! `known_touches FILE ORDER COUNT LIST` maps FILE and touches COUNT pages of it in the order
//! uniform, zipf or sequential; it writes their numbers into the new file LIST first, as 32 bits
//! each. Half-way it starts a child, and fails to start another. `known_touches FILE lives RESULT`
//! does what a tracer could disturb (waits without a signal handler, children, threads) for a
//! second and [`LIVES`] touches, and writes what went wrong to RESULT, or `right`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pagewise_model::random::Random;
use pagewise_sys::FileMapping;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const PAGE: usize = 4096;
/// Touches that are several windows, however slow the machine.
const LIVES: u64 = 12_000;

/// Page numbers in the order of their touches.
fn order(name: &str, pages: usize, count: usize) -> Vec<usize> {
    let mut random = Random::new(7);
    let mut below = |limit: usize| random.below(limit as u64) as usize;
    match name {
        "sequential" => (0..count).map(|index| index % pages).collect(),
        "uniform" => (0..count).map(|_| below(pages)).collect(),
        "zipf" => {
            let mut sums: Vec<f64> = Vec::with_capacity(pages);
            for rank in 0..pages {
                sums.push(sums.last().unwrap_or(&0.0) + 1.0 / ((rank + 1) as f64).powf(0.99));
            }
            let most = sums.last().copied().unwrap_or(1.0);
            let mut rank = || {
                let at = below(1 << 30) as f64 / (1u64 << 30) as f64 * most;
                sums.partition_point(|sum| *sum < at).min(pages - 1)
            };
            // Neighbours in rank are no neighbours in the file.
            (0..count).map(|_| rank() * 7919 % pages).collect()
        }
        other => panic!("no order {other}"),
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = File::open(&arguments[0])?;
    let len = file.metadata()?.len() as usize;
    if arguments[1] == "lives" {
        let wrong = lives(&file, len)?;
        let report = if wrong.is_empty() { "right".to_string() } else { wrong.join("; ") };
        return fs::write(&arguments[2], report);
    }
    let count: usize = arguments[2].parse().map_err(io::Error::other)?;
    let order = order(&arguments[1], len / PAGE, count);
    let list: Vec<u8> = order.iter().flat_map(|page| (*page as u32).to_ne_bytes()).collect();
    fs::write(&arguments[3], list)?;
    let mapping = FileMapping::new(&file, len, false)?;
    let bytes = mapping.bytes();
    let touch = |pages: &[usize]| pages.iter().map(|page| u64::from(bytes[page * PAGE])).sum::<u64>();
    let (first, second) = order.split_at(count / 2);
    let sum = touch(first);
    // A child shares this memory until it executes its program, or finds that there is none.
    Command::new("true").status()?;
    let absent = Command::new("/nowhere/program").status();
    println!("{} {}", sum + touch(second), absent.is_err());
    Ok(())
}

fn lives(file: &File, len: usize) -> io::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mapping = FileMapping::new(file, len, false)?;
    let bytes = mapping.bytes();
    let (over, touches) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    thread::scope(|scope| {
        let touching: Vec<_> = (0..2)
            .map(|thread| {
                let (over, touches) = (&over, &touches);
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    let mut buffer = [0; 64];
                    while !over.load(Ordering::Relaxed) {
                        let at = random.below(len as u64 - 64) as usize;
                        file.read_exact_at(&mut buffer, at as u64).expect("read");
                        if bytes[at..at + 64] != buffer {
                            return Some(format!("other bytes at {at}"));
                        }
                        touches.fetch_add(1, Ordering::Relaxed);
                    }
                    None
                })
            })
            .collect();
        let (mut waits, mut is_first) = (0, true);
        // Once at least: on a busy machine the start alone may take a second. A thread that has
        // found something wrong touches no more.
        let is_touching = || touching.iter().all(|thread| !thread.is_finished());
        let goes_on = || {
            let touches = touches.load(Ordering::Relaxed);
            began.elapsed() < Duration::from_secs(1) || touches < LIVES && is_touching()
        };
        while std::mem::take(&mut is_first) || goes_on() {
            let timeout = Timespec { tv_sec: 0, tv_nsec: 30_000_000 };
            let (waits_for, _keep) = rustix::pipe::pipe()?;
            let waited = Instant::now();
            match poll(&mut [PollFd::new(&waits_for, PollFlags::IN)], Some(&timeout)) {
                Ok(0) if waited.elapsed() >= Duration::from_millis(30) => waits += 1,
                other => wrong.push(format!("a wait ended with {other:?}")),
            }
            let status = Command::new("sh")
                .args(["-c", "cat \"$0\" | wc -c >/dev/null; exit 7", "/proc/self/stat"])
                .status()?;
            if status.code() != Some(7) {
                wrong.push(format!("a child ended with {status}"));
            }
        }
        if waits == 0 {
            wrong.push("nothing was waited for".into());
        }
        over.store(true, Ordering::Relaxed);
        wrong.extend(touching.into_iter().filter_map(|thread| thread.join().expect("no panic")));
        Ok(wrong)
    })
}
