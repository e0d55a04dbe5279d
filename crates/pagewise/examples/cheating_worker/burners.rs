//! Threads that nobody asked for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Threads that use CPU time while the sample is taken, and wait otherwise.
pub struct Burners {
    burning: Arc<AtomicBool>,
}

impl Burners {
    /// Many against few CPUs, so that they get most of the time also on a busy machine.
    const THREADS: u32 = 16;

    /// Starts them, at rest.
    pub fn start() -> Self {
        let burning = Arc::new(AtomicBool::new(false));
        for _ in 0..Self::THREADS {
            let burning = burning.clone();
            std::thread::spawn(move || {
                loop {
                    while burning.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        Self { burning }
    }

    /// Until the result is dropped.
    pub fn spin(&self) -> Spinning {
        self.burning.store(true, Ordering::Relaxed);
        Spinning(self.burning.clone())
    }

    /// Until clearly more CPU time was used than passed since `started`; false where the machine
    /// does not give so much.
    pub fn burn(&self, started: Instant) -> io::Result<bool> {
        self.burning.store(true, Ordering::Relaxed);
        let before = cpu_ns()?;
        let enough = loop {
            std::thread::sleep(Duration::from_millis(10));
            let (used, passed) = (cpu_ns()? - before, started.elapsed().as_nanos() as u64);
            let enough = used > passed * 11 / 10 + 100_000_000;
            if enough || passed > 4_000_000_000 {
                break enough;
            }
        };
        self.burning.store(false, Ordering::Relaxed);
        Ok(enough)
    }
}

/// Burners at work.
pub struct Spinning(Arc<AtomicBool>);

impl Drop for Spinning {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// CPU time of all threads of this process.
fn cpu_ns() -> io::Result<u64> {
    let mut total = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        total += text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(total)
}
