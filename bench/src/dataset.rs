//! The file that is read, and the folder it lies in, which is gone afterwards: at the end, on an
//! error, and on Ctrl-C or SIGTERM, with the groups and settings that were made. (Not on SIGKILL:
//! the folder is then `pagewise-bench-*`, and `pagewise clean` with PAGEWISE_STATE_DIR at its
//! `state` sweeps what a run left.)

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use pagewise_host::cgroup;
use pagewise_model::{Bytes, Content};
use pagewise_sys::residency;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tempfile::TempDir;

/// Seed of the file's content.
pub const CONTENT_SEED: u64 = 20_260_101;

/// Size of the calls in which the file is written: it sets the size of folios in the page cache.
const WRITE_BYTES: usize = 1 << 20;

/// A folder that vanishes.
pub struct Scratch {
    folder: TempDir,
    undo: Arc<Mutex<Undo>>,
}

/// What is undone on a signal, when nothing is dropped.
#[derive(Default)]
struct Undo {
    /// A run of pagewise that is going on, with the executable and the state that sweep after it.
    run: Option<(Pid, PathBuf, PathBuf)>,
    /// Groups that may be there.
    groups: Vec<PathBuf>,
}

impl Scratch {
    /// Makes it within `parent`.
    pub fn new(parent: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("pagewise-bench-")
            .tempdir_in(parent)
            .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
        let undo = Arc::new(Mutex::new(Undo::default()));
        remove_on_signal(folder.path().to_path_buf(), Arc::clone(&undo))?;
        Ok(Self { folder, undo })
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Has groups of these paths removed on a signal, with what runs in them.
    pub fn sweep_on_signal(&self, groups: Vec<PathBuf>) {
        lock(&self.undo).groups.extend(groups);
    }

    /// Has a run that changes settings of the machine ended on a signal, and swept after by
    /// `executable`.
    pub fn run_begins(&self, process: u32, executable: &Path) {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        lock(&self.undo).run = process.map(|pid| (pid, executable.to_path_buf(), self.path("state")));
    }

    /// Call it before the process is waited for: its id may be another's afterwards.
    pub fn run_ends(&self) {
        lock(&self.undo).run = None;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // While a signal is served this waits for the end of the process.
        drop(lock(&self.undo));
    }
}

fn lock(undo: &Mutex<Undo>) -> MutexGuard<'_, Undo> {
    undo.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove_on_signal(folder: PathBuf, undo: Arc<Mutex<Undo>>) -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Held to the end, so that the folder with the run's journal is not dropped meanwhile.
            let undo = lock(&undo);
            if let Some((pid, executable, state)) = &undo.run {
                // The process ends either way, so what fails here is left, as it is below.
                let _ = kill_process(*pid, Signal::KILL);
                let ended = Path::new("/proc").join(pid.to_string()).join("exe");
                for _ in 0..500 {
                    // A dead process that nobody has waited for has no program.
                    if std::fs::read_link(&ended).is_err() {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                let mut clean = Command::new(executable);
                clean.arg("clean").env("PAGEWISE_STATE_DIR", state);
                let _ = clean.stdin(Stdio::null()).stdout(Stdio::null()).status();
            }
            for group in &undo.groups {
                let _ = cgroup::sweep(group);
            }
            let _ = std::fs::remove_dir_all(&folder);
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// A file of known content that lies whole in the page cache.
pub struct Dataset {
    /// Where.
    pub path: PathBuf,
    /// How large.
    pub file_bytes: u64,
}

impl Dataset {
    /// Random bytes.
    pub fn create(scratch: &Scratch, size: Bytes) -> Result<Self> {
        Self::create_with(scratch, size, Content::Random)
    }

    /// Writes it and waits until it is on the device, so that no writeback falls into a
    /// measurement.
    pub fn create_with(scratch: &Scratch, size: Bytes, content: Content) -> Result<Self> {
        let path = scratch.path("data");
        let mut file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let mut block = vec![0; WRITE_BYTES];
        for offset in (0..size.0).step_by(WRITE_BYTES) {
            content.fill(CONTENT_SEED, offset, &mut block);
            let len = WRITE_BYTES.min((size.0 - offset) as usize);
            file.write_all(&block[..len])
                .with_context(|| format!("cannot write {} bytes to {}", size.0, path.display()))?;
        }
        file.sync_all()?;
        Ok(Self { path, file_bytes: size.0 })
    }

    /// Refuses to go on unless every page is in the page cache. What another program evicted is
    /// read again.
    pub fn require_cached(&self) -> Result<()> {
        let mut file = File::open(&self.path)?;
        let pages = self.file_bytes.div_ceil(rustix::param::page_size() as u64);
        if self.cached_pages(&file)? != pages {
            std::io::copy(&mut file, &mut std::io::sink())?;
        }
        let cached = self.cached_pages(&file)?;
        ensure!(cached == pages, "{cached} of {pages} pages of {} are cached", self.path.display());
        Ok(())
    }

    /// Drops it from the page cache, so that direct reads need not look there.
    pub fn evict(&self) -> Result<()> {
        let file = File::open(&self.path)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    }

    fn cached_pages(&self, file: &File) -> Result<u64> {
        match residency::cachestat(file.as_fd(), 0, self.file_bytes) {
            Ok(stat) => Ok(stat.cached),
            Err(_) => Ok(residency::mincore_pages(file, self.file_bytes as usize)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_is_cached_and_gone_afterwards() {
        let parent = tempfile::tempdir().expect("folder");
        let scratch = Scratch::new(parent.path()).expect("scratch");
        let dataset = Dataset::create(&scratch, Bytes::mib(3)).expect("written");
        dataset.require_cached().expect("just written");
        assert_eq!(std::fs::metadata(&dataset.path).expect("there").len(), 3 << 20);
        drop(scratch);
        assert_eq!(std::fs::read_dir(parent.path()).expect("there").count(), 0);
    }
}
