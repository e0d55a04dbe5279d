//! What a worker is tried on: small files whose bytes are known, files to write, and memory that it reaches by a path.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use pagewise_host::{Dataset, FileKey, NewFile, files, process};
use pagewise_model::random::mix;
use pagewise_model::{Alignment, Conditions, Content};
use pagewise_protocol::{Conversation, Job};
use pagewise_sys::SharedMemory;
use rustix::fs::OFlags;

use crate::state::State;

/// Sizes of the files that are read; the text ends in the middle of a page and of a word.
const FILE_BYTES: [u64; 2] = [2 << 20, (3 << 19) + 4096];
const TEXT_BYTES: u64 = (2 << 20) + 4321;
/// What of a shorter file is there, and how large it is said to be.
pub const SHORT_BYTES: u64 = 64 << 10;
pub const SHORT_SAID_BYTES: u64 = 4 << 20;

/// A file that is read.
pub struct ReadFile {
    dataset: Dataset,
    /// What tells its mappings and descriptors from others.
    pub key: FileKey,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl ReadFile {
    /// The seed from which they follow.
    pub fn seed(&self) -> u64 {
        self.dataset.seed()
    }

    /// A path by which a worker opens it.
    pub fn worker_path(&self) -> String {
        descriptor_path(self.dataset.file())
    }
}

/// Where a trial takes place.
pub struct Ground {
    /// Two files of random words, so that a job shows whether the file of the one before is still in use.
    pub random: [ReadFile; 2],
    /// One of lines.
    pub text: ReadFile,
    /// Size of a page.
    pub page_bytes: u64,
    /// What O_DIRECT demands here.
    pub direct_alignment: u64,
    /// Seed of all that is drawn.
    pub seed: u64,
    directory: PathBuf,
    state: State,
    made: u64,
}

impl Ground {
    /// Makes the files in `directory`. Their names are in the journal of `state` first.
    pub fn make(directory: &Path, mut state: State, seed: u64, stop: &AtomicBool) -> Result<Self> {
        files::check_directory(directory)?;
        let directory = directory.canonicalize().with_context(|| directory.display().to_string())?;
        let mut made = 0;
        let mut make = |bytes: u64, content: Content| {
            let path = state.reserve(&directory, name(seed, &mut made))?;
            read_file(&path, bytes, content, mix(seed ^ made), stop)
        };
        let random = [make(FILE_BYTES[0], Content::Random)?, make(FILE_BYTES[1], Content::Random)?];
        let text = make(TEXT_BYTES, Content::Text)?;
        let page_bytes = rustix::param::page_size() as u64;
        let direct_alignment = page_bytes.max(4096);
        Ok(Self { random, text, page_bytes, direct_alignment, seed, directory, state, made })
    }

    /// A file to be written; whoever gets it removes it.
    pub fn new_file(&mut self, bytes: u64) -> Result<NewFile> {
        let path = self.state.reserve(&self.directory, name(self.seed, &mut self.made))?;
        NewFile::create(&path, bytes).with_context(|| format!("{} cannot be made", path.display()))
    }

    /// A path where nothing is.
    pub fn missing_path(&mut self) -> Result<String> {
        let path = self.state.reserve(&self.directory, name(self.seed, &mut self.made))?;
        path.to_str().map(str::to_string).context("the directory is no UTF-8 text")
    }

    /// What buffers must be multiples of here.
    pub fn alignment(&self) -> Alignment {
        Alignment { direct_bytes: self.direct_alignment, page_bytes: self.page_bytes }
    }

    /// What a worker is told of a trial.
    pub fn job(&self, method: &str, conditions: &Conditions, path: String) -> Job {
        Job {
            path,
            direct_flag: OFlags::DIRECT.bits(),
            direct_alignment: self.direct_alignment,
            ..Job::of(method, conditions, self.page_bytes)
        }
    }
}

fn name(seed: u64, made: &mut u64) -> u64 {
    *made += 1;
    mix(seed ^ mix(*made))
}

fn read_file(path: &Path, len: u64, content: Content, seed: u64, stop: &AtomicBool) -> Result<ReadFile> {
    let dataset = Dataset::create(path, len, content, seed, &mut |_| {}, stop)?;
    // It comes into the page cache too, so that a job is not as slow as the device is.
    let mut bytes = vec![0; len as usize];
    dataset
        .file()
        .read_exact_at(&mut bytes, 0)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(ReadFile { key: FileKey::of(dataset.file())?, dataset, bytes })
}

/// A path by which any process of this user opens what this process has open.
pub fn descriptor_path(file: &impl AsFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_fd().as_raw_fd())
}

/// Memory that holds `bytes`, for a worker to read.
pub fn memory_of(bytes: &[u8]) -> io::Result<SharedMemory> {
    let mut memory = SharedMemory::create("pagewise-conformance", bytes.len())?;
    memory.bytes_mut().copy_from_slice(bytes);
    Ok(memory)
}

/// Whether process `pid` has the file open or mapped.
fn holds(pid: u32, key: &FileKey) -> bool {
    process::mappings(pid, key).is_ok_and(|mappings| mappings > 0) || descriptors(pid, key) > 0
}

fn descriptors(pid: u32, key: &FileKey) -> usize {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    let of_file = |entry: &fs::DirEntry| {
        fs::metadata(entry.path())
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == (key.device, key.inode))
    };
    entries.flatten().filter(of_file).count()
}

/// Whether the process that was started holds the file itself: its counters are what is read in a run.
pub fn held_by_itself(worker: &Conversation, key: &FileKey) -> Result<(), String> {
    if holds(worker.pid(), key) {
        return Ok(());
    }
    match worker.processes().into_iter().find(|pid| holds(*pid, key)) {
        Some(pid) => Err(format!(
            "the file is held by process {pid} ({}), which the command started: pagewise reads the counters of the \
             process that it starts, so let the command become the worker (exec)",
            name_of(pid)
        )),
        None => Err("no process of it has the file open or mapped when it says ready: do so before opened"
            .to_string()),
    }
}

/// Whether nothing of the file is left.
pub fn released(worker: &Conversation, key: &FileKey) -> Result<(), String> {
    for pid in worker.processes() {
        let mappings = process::mappings(pid, key).unwrap_or(0);
        if mappings > 0 {
            return Err(format!(
                "{mappings} mappings of the file are left when it says closed: unmap before, since a mapped page cannot be \
                 evicted"
            ));
        }
        let descriptors = descriptors(pid, key);
        if descriptors > 0 {
            return Err(format!(
                "{descriptors} descriptors of the file are left when it says closed: close before"
            ));
        }
    }
    Ok(())
}

/// What a process is called.
pub fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_string()
}

/// A file that is removed with the value.
pub struct Removed(pub NewFile);

impl Drop for Removed {
    fn drop(&mut self) {
        // What cannot be removed stands in the journal.
        let _ = self.0.remove();
    }
}

impl Removed {
    /// The open file.
    pub fn file(&self) -> &File {
        self.0.file()
    }
}
