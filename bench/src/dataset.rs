//! The file that is read, and the folder it lies in, which is gone afterwards: at the end, on an error, and
//! on Ctrl-C or SIGTERM. (Not on SIGKILL: the folder is then `pagewise-bench-*`.)

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pagewise_model::{Bytes, content};
use pagewise_sys::residency;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tempfile::TempDir;

/// Seed of the file's content.
pub const CONTENT_SEED: u64 = 20_260_101;

/// Size of the calls in which the file is written: it sets the size of folios in the page cache.
const WRITE_BYTES: usize = 1 << 20;

/// A folder that vanishes.
pub struct Scratch(TempDir);

impl Scratch {
    /// Makes it within `parent`.
    pub fn new(parent: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("pagewise-bench-")
            .tempdir_in(parent)
            .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
        remove_on_signal(folder.path().to_path_buf())?;
        Ok(Self(folder))
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn remove_on_signal(folder: PathBuf) -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // The process ends either way; what cannot be removed is left.
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
    /// Writes it and waits until it is on the device, so that no writeback falls into a measurement.
    pub fn create(scratch: &Scratch, size: Bytes) -> Result<Self> {
        let path = scratch.path("data");
        let mut file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let mut block = vec![0; WRITE_BYTES];
        for offset in (0..size.0).step_by(WRITE_BYTES) {
            content::fill(CONTENT_SEED, offset, &mut block);
            let len = WRITE_BYTES.min((size.0 - offset) as usize);
            file.write_all(&block[..len])
                .with_context(|| format!("cannot write {} bytes to {}", size.0, path.display()))?;
        }
        file.sync_all()?;
        Ok(Self { path, file_bytes: size.0 })
    }

    /// Refuses to go on unless every page is in the page cache. What another program evicted is read again.
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
