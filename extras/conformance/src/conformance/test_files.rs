//! Test files: small files of known content, files to write, and what a worker holds of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Error, Result};
use pagewise_host::{Dataset, FileKey, cache, files, process};
use pagewise_lab::state::State;
use pagewise_lab::supervise::files::{Input, NoState};
use pagewise_lab::supervise::task::Task;
use pagewise_model::random::mix;
use pagewise_model::{Alignment, Conditions, Content, Workload};
use pagewise_protocol::Conversation;

/// Sizes of the files to read; the text ends within a page and a word.
pub const FILE_BYTES: [u64; 2] = [2 << 20, (3 << 19) + 4096];
pub const TEXT_BYTES: u64 = (2 << 20) + 4321;

/// The files of one `pagewise conformance`.
pub struct TestFiles {
    /// Two files of random words (a job shows whether the file of the previous one is still in
    /// use), and one of lines.
    inputs: [Input; 3],
    /// Alignment of buffers.
    pub alignment: Alignment,
    /// Seed of contents and offsets.
    pub seed: u64,
    /// Directory of the files.
    pub directory: PathBuf,
    /// Journal of their names.
    pub state: State,
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
            let dataset = Dataset::create(&path, bytes, content, mix(seed ^ made), &mut |_| {}, stop)?;
            let input = Input::dataset(dataset)?;
            // Where it does not stay in the page cache, jobs wait for the device, and are right all
            // the same.
            let _ = cache::warm(input.file(), bytes, stop);
            anyhow::Ok(input)
        };
        let inputs = [
            make(FILE_BYTES[0], Content::Random)?,
            make(FILE_BYTES[1], Content::Random)?,
            make(TEXT_BYTES, Content::Text)?,
        ];
        let page_bytes = rustix::param::page_size() as u64;
        let alignment = Alignment { direct_bytes: page_bytes.max(4096), page_bytes };
        Ok(Self { inputs, alignment, seed, directory, state, made })
    }

    /// The file that is read under these conditions.
    pub fn read_by(&self, conditions: &Conditions) -> &Input {
        self.inputs.iter().find(|input| input.suits(conditions)).expect("a file of each shape was made")
    }

    /// The other file of random words.
    pub fn another_than(&self, input: &Input) -> &Input {
        &self.inputs[usize::from(input.key.inode == self.inputs[0].key.inode)]
    }

    /// Path of a file that does not exist.
    pub fn new_path(&mut self) -> Result<PathBuf> {
        self.state.reserve(&self.directory, name(self.seed, &mut self.made))
    }

    /// A file of so many bytes that nobody wrote, removed with the value.
    pub fn sparse_file(&mut self, bytes: u64) -> Result<Input> {
        let path = self.new_path()?;
        Input::sparse(&path, bytes).with_context(|| format!("{} cannot be made", path.display()))
    }

    /// A file to write by a task under these conditions, removed with the value.
    pub fn new_file(&mut self, conditions: &Conditions, task: Task<'_>) -> Result<Input> {
        // An update overwrites what was written before.
        let (Task::Records(records), Workload::Update) = (task, conditions.workload()) else {
            return self.sparse_file(conditions.file_bytes.0);
        };
        let path = self.new_path()?;
        let made = Input::make_new(&path, conditions, records).map_err(|state| match state {
            NoState::Unavailable(reason) => Error::msg(reason),
            NoState::Failed(failure) => Error::msg(failure.detail),
            NoState::Stopped => Error::msg("stopped"),
        });
        made.with_context(|| format!("{} cannot be made", path.display()))
    }
}

fn name(seed: u64, made: &mut u64) -> u64 {
    *made += 1;
    mix(seed ^ mix(*made))
}

/// True if process `pid` has the file open or mapped.
fn holds(pid: u32, key: &FileKey) -> bool {
    process::mappings(pid, key).is_ok_and(|mappings| mappings > 0) || process::descriptors(pid, key) > 0
}

/// Fail unless the started process itself has the file open or mapped: a run reads the counters of
/// this process.
pub fn check_holder(worker: &Conversation, key: &FileKey) -> Result<(), String> {
    if holds(worker.pid(), key) {
        return Ok(());
    }
    match worker.processes().into_iter().find(|pid| holds(*pid, key)) {
        Some(pid) => Err(format!(
            "the file is held by process {pid} ({}), which the command started: pagewise reads the counters of the \
             process that it starts, so let the command become the worker (exec)",
            process::name(pid)
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
        let descriptors = process::descriptors(pid, key);
        if descriptors > 0 {
            return Err(format!(
                "{descriptors} descriptors of the file are left when it says closed: close before"
            ));
        }
    }
    Ok(())
}

/// Fail if a mapping extends beyond the span.
pub fn check_span(pid: u32, key: &FileKey, span_bytes: u64, page_bytes: u64) -> Result<(), String> {
    match process::mapping(pid, key) {
        Ok(Some(mapping)) if mapping.mapped_bytes > span_bytes.next_multiple_of(page_bytes) => Err(format!(
            "{} bytes of the file are mapped, the span has {span_bytes}: map and advise the span only",
            mapping.mapped_bytes
        )),
        _ => Ok(()),
    }
}
