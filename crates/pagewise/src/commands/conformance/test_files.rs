//! Test files: small files of known content, files to write, and memory that a worker opens by a path.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use pagewise_host::{Dataset, FileKey, WrittenFile, files, process};
use pagewise_model::random::mix;
use pagewise_model::{Alignment, Conditions, Content};
use pagewise_protocol::{Conversation, Job, descriptor_path};
use pagewise_sys::SharedMemory;
use rustix::fs::OFlags;

use crate::state::State;

/// Sizes of the files to read; the text ends within a page and a word.
const FILE_BYTES: [u64; 2] = [2 << 20, (3 << 19) + 4096];
const TEXT_BYTES: u64 = (2 << 20) + 4321;
/// Actual and claimed size of a short file.
pub const SHORT_BYTES: u64 = 64 << 10;
pub const SHORT_CLAIMED_BYTES: u64 = 4 << 20;

/// A file to read.
pub struct ReadFile {
    dataset: Dataset,
    /// Identity of the file in mappings and descriptors.
    pub key: FileKey,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl ReadFile {
    /// Seed of its content.
    pub fn seed(&self) -> u64 {
        self.dataset.seed()
    }

    /// Path by which a worker opens it.
    pub fn worker_path(&self) -> String {
        descriptor_path(self.dataset.file())
    }
}

/// The files of one `pagewise conformance`.
pub struct TestFiles {
    /// Two files of random words: a job shows whether the file of the previous one is still in use.
    pub random: [ReadFile; 2],
    /// A file of lines.
    pub text: ReadFile,
    /// Size of a page.
    pub page_bytes: u64,
    /// Alignment for O_DIRECT.
    pub direct_alignment: u64,
    /// Seed of contents and offsets.
    pub seed: u64,
    directory: PathBuf,
    state: State,
    made: u64,
}

impl TestFiles {
    /// Create the files in `directory`, after their names are in the journal of `state`.
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

    /// A file to write, removed with the value.
    pub fn new_file(&mut self, bytes: u64) -> Result<TemporaryFile> {
        let path = self.state.reserve(&self.directory, name(self.seed, &mut self.made))?;
        let new = WrittenFile::create(&path, bytes)
            .with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(TemporaryFile(new))
    }

    /// Path of a file that does not exist.
    pub fn missing_path(&mut self) -> Result<String> {
        let path = self.state.reserve(&self.directory, name(self.seed, &mut self.made))?;
        path.to_str().map(str::to_string).context("the directory is no UTF-8 text")
    }

    /// Alignment of buffers.
    pub fn alignment(&self) -> Alignment {
        Alignment { direct_bytes: self.direct_alignment, page_bytes: self.page_bytes }
    }

    /// A job of `method` on the file at `path`.
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
    // Brings it into the page cache too, so that a job does not wait for the device.
    let mut bytes = vec![0; len as usize];
    dataset
        .file()
        .read_exact_at(&mut bytes, 0)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(ReadFile { key: FileKey::of(dataset.file())?, dataset, bytes })
}

/// Shared memory that contains `bytes`.
pub fn memory_of(bytes: &[u8]) -> io::Result<SharedMemory> {
    let mut memory = SharedMemory::create("pagewise-conformance", bytes.len())?;
    memory.bytes_mut().copy_from_slice(bytes);
    Ok(memory)
}

/// True if process `pid` has the file open or mapped.
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

/// Fail unless the started process itself has the file open or mapped: a run reads the counters of this process.
pub fn check_holder(worker: &Conversation, key: &FileKey) -> Result<(), String> {
    if holds(worker.pid(), key) {
        return Ok(());
    }
    match worker.processes().into_iter().find(|pid| holds(*pid, key)) {
        Some(pid) => Err(format!(
            "the file is held by process {pid} ({}), which the command started: pagewise reads the counters of the \
             process that it starts, so let the command become the worker (exec)",
            process_name(pid)
        )),
        None => Err("no process of it has the file open or mapped when it says ready: do so before opened"
            .to_string()),
    }
}

/// Fail if a process of the worker still has the file open or mapped.
pub fn check_released(worker: &Conversation, key: &FileKey) -> Result<(), String> {
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

/// Name of a process.
pub fn process_name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_string()
}

/// A file to write, removed with the value.
pub struct TemporaryFile(pub WrittenFile);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // The next start removes what is in the journal.
        let _ = self.0.remove();
    }
}

impl TemporaryFile {
    /// The open file.
    pub fn file(&self) -> &File {
        self.0.file()
    }
}
