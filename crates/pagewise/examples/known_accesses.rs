//! A program whose accesses to a file are known, so that tests know what a watch of it has to
//! see.
//!
//! `known_accesses FILE` reads FILE, of 32 MiB: with a descriptor of its own 300 blocks of 4 KiB in
//! its first half, none where the one before ended, and in a second thread the first 100 blocks of
//! 8 KiB in order. Then it maps the file and touches a byte of every 16th page of the second half.
//! It ends with status 7. `known_accesses FILE again` does that again and again until its stdin
//! ends. `known_accesses FILE together` has three threads read FILE at once with one descriptor:
//! thread t of 0, 1, 2 reads 100 (t + 1) blocks of 4 KiB of its own third, none where the one
//! before ended, and waits for the others after every tenth. `known_accesses FILE shared` has three
//! threads touch the same page of a mapping at once, 256 pages one after the other: one of them
//! reads it, and those that come while it does wait for it. If none came so, it does that again.
//! Then one puts 16 pages in place ahead.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pagewise_sys::{Advice, FileMapping};
use rustix::fs::{Advice as FileAdvice, fadvise};

const PAGE: usize = 4096;
const PAGES: usize = 8192;
const MOST_PASSES: usize = 50;

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = Path::new(&arguments[0]);
    match arguments.get(1).map(String::as_str) {
        Some("again") => again(path),
        word => {
            match word {
                Some("together") => together(path)?,
                Some("shared") => shared(path)?,
                _ => once(path)?,
            }
            Ok(ExitCode::from(7))
        }
    }
}

fn once(path: &Path) -> io::Result<()> {
    let _open = access(path)?;
    // What descriptors are can be looked up as long as they are open.
    thread::sleep(Duration::from_millis(500));
    Ok(())
}

fn again(path: &Path) -> io::Result<ExitCode> {
    thread::spawn(|| {
        let mut rest = Vec::new();
        let _ = io::stdin().read_to_end(&mut rest);
        std::process::exit(0);
    });
    loop {
        let _open = access(path)?;
        thread::sleep(Duration::from_millis(5));
    }
}

/// The files, still open.
fn access(path: &Path) -> io::Result<(File, File)> {
    let file = File::open(path)?;
    // Pages that were written together would be mapped together, without a fault for each.
    fadvise(&file, 0, None, FileAdvice::DontNeed)?;
    fadvise(&file, 0, None, FileAdvice::Random)?;
    let mut block = [0; PAGE];
    for index in 0..300 {
        file.read_exact_at(&mut block, (index * 37 % (PAGES / 2) * PAGE) as u64)?;
    }
    let owned = path.to_path_buf();
    let other = thread::spawn(move || in_order(&owned)).join().map_err(|_| io::ErrorKind::Other)??;
    let mapping = FileMapping::new(&file, PAGES * PAGE, false)?;
    mapping.advise(0..PAGES * PAGE, Advice::Random)?;
    let bytes = mapping.bytes();
    let sum: u64 = (PAGES / 2..PAGES).step_by(16).map(|page| u64::from(bytes[page * PAGE])).sum();
    std::hint::black_box(sum);
    Ok((file, other))
}

fn in_order(path: &Path) -> io::Result<File> {
    let mut file = File::open(path)?;
    let mut block = [0; 2 * PAGE];
    (0..100).try_for_each(|_| file.read_exact(&mut block))?;
    Ok(file)
}

/// Every thread goes ahead a tenth of its reads at a time, so all are there to the end.
fn together(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    fadvise(&file, 0, None, FileAdvice::Random)?;
    let turns = Barrier::new(3);
    let read = |thread: usize| -> io::Result<()> {
        let third = PAGES / 3;
        let mut block = [0; PAGE];
        for index in 0..100 * (thread + 1) {
            file.read_exact_at(&mut block, ((thread * third + index * 37 % third) * PAGE) as u64)?;
            if (index + 1) % (10 * (thread + 1)) == 0 {
                turns.wait();
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let read = &read;
        let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || read(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| io::ErrorKind::Other)?)
    })?;
    thread::sleep(Duration::from_millis(500));
    Ok(())
}

/// A page is touched by all threads before the next one is by any, until one has waited for a page
/// that another reads.
fn shared(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    for _ in 0..MOST_PASSES {
        fadvise(&file, 0, None, FileAdvice::DontNeed)?;
        let mapping = FileMapping::new(&file, PAGES * PAGE, false)?;
        mapping.advise(0..PAGES * PAGE, Advice::Random)?;
        if is_waited_for(mapping.bytes())? {
            break;
        }
    }
    let mapping = FileMapping::new(&file, PAGES * PAGE, false)?;
    mapping.advise(0..16 * PAGE, Advice::PopulateRead)?;
    Ok(())
}

fn is_waited_for(bytes: &[u8]) -> io::Result<bool> {
    // Who waits for the others keeps its CPU: woken up, it would come when the page is there.
    let arrived = AtomicUsize::new(0);
    let touch = || {
        let before = blocked()?;
        for (turn, page) in (PAGES / 2..PAGES).step_by(16).enumerate() {
            arrived.fetch_add(1, Ordering::Relaxed);
            while arrived.load(Ordering::Relaxed) < (turn + 1) * 3 {
                thread::yield_now();
            }
            std::hint::black_box(bytes[page * PAGE]);
        }
        let after = blocked()?;
        Ok::<_, io::Error>(after.0 - before.0 > after.1 - before.1)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(touch)).collect();
        let waited = threads.into_iter().map(|thread| thread.join().map_err(|_| io::ErrorKind::Other)?);
        Ok(waited.collect::<io::Result<Vec<bool>>>()?.contains(&true))
    })
}

/// How often this thread has left its CPU because it waited, and its major faults.
fn blocked() -> io::Result<(u64, u64)> {
    let (status, stat) =
        (fs::read_to_string("/proc/thread-self/status")?, fs::read_to_string("/proc/thread-self/stat")?);
    let left = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    // The tenth field behind the name, which may have spaces.
    let major = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(9));
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    Ok((number(left), number(major)))
}
