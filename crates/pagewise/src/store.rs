//! Run files on disk: written line by line as samples are taken, continued after a kill.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pagewise_model::run::{Header, Record, Run};
use rustix::fs::FlockOperation;

/// A run file larger than this is none: a million samples take less.
const MAX_RUN_BYTES: u64 = 4 << 30;

/// A run file that is being written.
pub struct Store {
    file: File,
    path: PathBuf,
}

impl Store {
    /// Begins a run file; one that exists is never overwritten, unless it is empty: a run killed before its
    /// header leaves that.
    pub fn create(path: &Path, header: Header) -> Result<Self> {
        let is_empty = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0);
        let mut options = OpenOptions::new();
        let options = if is_empty { options.write(true) } else { options.write(true).create_new(true) };
        let file = options.open(path).map_err(|error| {
            let path = path.display();
            if error.kind() == io::ErrorKind::AlreadyExists {
                return anyhow::anyhow!("{path} exists; continue it with --resume or name another --out");
            }
            anyhow::anyhow!("the run file {path} cannot be made: {error}")
        })?;
        let mut store = Self { file, path: path.to_path_buf() };
        if let Err(error) = store.append(&Record::Header(Box::new(header))) {
            // A full disk: nothing is left behind.
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        Ok(store)
    }

    /// Opens a run file to continue it: its torn last line, if it has one, is cut off.
    pub fn resume(path: &Path) -> Result<(Self, Run)> {
        let (mut file, run) = open(path, OpenOptions::new().read(true).write(true))?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            .with_context(|| format!("{} is being written by another process", path.display()))?;
        file.set_len(run.intact_bytes)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .with_context(|| format!("{} cannot be continued", path.display()))?;
        Ok((Self { file, path: path.to_path_buf() }, run))
    }

    /// Writes one record and hands it to the kernel: it outlives the process from here on.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        self.file
            .write_all(record.to_line().as_bytes())
            .with_context(|| format!("the run file {} cannot be written", self.path.display()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads a run file.
pub fn load(path: &Path) -> Result<Run> {
    open(path, OpenOptions::new().read(true)).map(|(_, run)| run)
}

fn open(path: &Path, options: &OpenOptions) -> Result<(File, Run)> {
    let shown = path.display();
    let cannot = || format!("the run file {shown} cannot be opened");
    // stat(2) first: opening a pipe would wait for whoever writes into it.
    let metadata = std::fs::metadata(path).with_context(cannot)?;
    if !metadata.is_file() {
        bail!("{shown} is no regular file, so it is no run file");
    }
    let mut file = options.open(path).with_context(cannot)?;
    if metadata.len() > MAX_RUN_BYTES {
        bail!("{shown} is no run file: it has {} bytes", metadata.len());
    }
    // The first bytes tell a run file from some gigabytes of something else.
    let mut text = vec![0; 10.min(metadata.len() as usize)];
    file.read_exact(&mut text).with_context(|| format!("{shown} cannot be read"))?;
    if !text.is_empty() && !b"{\"check\":\"".starts_with(&text) {
        bail!("{shown}, line 1: no header of a pagewise run");
    }
    file.read_to_end(&mut text).with_context(|| format!("{shown} cannot be read"))?;
    let run = Run::parse(&text).map_err(|error| anyhow::anyhow!("{shown}, {error}"))?;
    Ok((file, run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::run::SCHEMA_VERSION;
    use pagewise_model::{Environment, Plan, Source};

    fn header() -> Header {
        Header {
            schema: SCHEMA_VERSION,
            plan: Plan {
                question: "read".into(),
                source: Source::Dataset { directory: ".".into() },
                seed: 0,
                rounds: 7,
                sample_ns: 1,
                latency_ns: 1,
                retakes: 0,
                drop_caches: false,
                workers: Default::default(),
                search: None,
                cells: Vec::new(),
            },
            environment: Environment::default(),
            workers: Vec::new(),
            worker_command: None,
        }
    }

    #[test]
    fn a_torn_line_is_cut_off_and_the_file_goes_on() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("run.jsonl");
        Store::create(&path, header()).expect("create");
        let whole = std::fs::read(&path).expect("read");
        std::fs::write(&path, [&whole[..], b"{\"check\":\"12"].concat()).expect("write");
        let (mut store, run) = Store::resume(&path).expect("resume");
        assert!(!run.is_complete());
        store
            .append(&Record::End { samples: 0, elapsed_ns: 1, supervisor_peak_bytes: None })
            .expect("append");
        assert!(load(&path).expect("load").is_complete());
    }

    #[test]
    fn what_a_run_killed_before_its_header_left_is_taken() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("run.jsonl");
        std::fs::write(&path, "").expect("write");
        Store::create(&path, header()).expect("create");
        assert!(!load(&path).expect("load").is_complete());
    }

    #[test]
    fn an_existing_file_is_not_overwritten() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("run.jsonl");
        std::fs::write(&path, "precious").expect("write");
        let error = Store::create(&path, header()).map(drop).expect_err("it exists");
        assert!(error.to_string().ends_with("exists; continue it with --resume or name another --out"));
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "precious");
        assert!(
            format!("{:#}", load(&path).expect_err("no run"))
                .ends_with("line 1: no header of a pagewise run")
        );
    }
}
