//! Run files on disk: written line by line as samples are taken, continued after a kill.
//!
//! A run file appears under its name with its header and its lock, and never replaces an existing
//! file. Its writer holds the lock as long as it writes, whatever its state directory, and only
//! appends, so that two processes never write one run file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use pagewise_host::file_lock::try_lock;
use pagewise_host::steps::{RunStep, reached};
use pagewise_host::trusted::{self, Refusal};
use pagewise_host::{files, scratch};
use pagewise_model::run::{Header, Record, Run};
use rustix::fs::{AtFlags, CWD, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::exit::Exit;
use crate::output::{self, STANDARD_STREAM};

/// A larger file is not a run file: a million samples take less.
const MAX_RUN_BYTES: u64 = 4 << 30;
/// A longer line is no header: a plan of ten thousand cells takes less.
const MAX_HEADER_BYTES: u64 = 256 << 20;
/// Readable by all, and writable by no other user whatever the umask: it decides where a run
/// continues.
const MODE: Mode = Mode::from_raw_mode(0o644);
/// Time that another process may hold the lock of a file that was just made: one that resumes it
/// finds it empty, and releases it.
const MOMENT: Duration = Duration::from_secs(5);
/// Time that a killed run may hold the lock: a child that it was about to start holds its files
/// until it executes a program.
const ORPHANED: Duration = Duration::from_millis(500);

/// The run that goes to stdout, for its answer.
static KEPT: OnceLock<File> = OnceLock::new();

/// A run file that is being written, with its lock.
pub struct RunFile {
    file: File,
    path: PathBuf,
    /// Stdout, if the file itself is in memory and goes there line by line.
    stdout: Option<File>,
}

/// A run file to be continued.
pub struct Resumed {
    /// Destination of records, after [`RunFile::cut`].
    pub store: RunFile,
    /// Content.
    pub run: Run,
    /// Reason that another user could have written it, or put it there.
    pub doubt: Option<Refusal>,
}

impl RunFile {
    /// Begin a run file at an unused path.
    pub fn create(path: &Path, header: Header) -> Result<Self> {
        let taken = || anyhow!("{} exists: continue it with --resume or name another --out", path.display());
        Self::create_first([path.to_path_buf()], header)?.ok_or_else(taken)
    }

    /// Begin a run file that goes to stdout. What else is printed to stdout from now on goes to
    /// stderr.
    pub fn to_stdout(header: Header) -> Result<Self> {
        let cannot = || "the run file cannot go to stdout";
        let stdout = output::take_stdout().with_context(cannot)?;
        let file: File =
            rustix::fs::memfd_create("pagewise-run", MemfdFlags::CLOEXEC).with_context(cannot)?.into();
        let kept = KEPT.get_or_init(|| file.try_clone().expect("a process may have one more file"));
        let mut store = Self { file, path: scratch::reopen_path(kept), stdout: Some(stdout) };
        store.write(&Record::Header(Box::new(header)).to_line())?;
        Ok(store)
    }

    /// Begin a run file at the first of `paths` that is unused: no file, no link. `None`: all
    /// exist.
    pub fn create_first(paths: impl IntoIterator<Item = PathBuf>, header: Header) -> Result<Option<Self>> {
        let line = Record::Header(Box::new(header)).to_line();
        for path in paths {
            // This check only avoids useless work; the name is never taken from an existing file in
            // any case.
            if std::fs::symlink_metadata(&path).is_ok() {
                continue;
            }
            if let Some(store) = Self::appear(&path, &line)? {
                reached(RunStep::RunFileMade);
                return Ok(Some(store));
            }
        }
        Ok(None)
    }

    /// A nameless file gets lock and header, then its name: nobody finds it without them, and
    /// nothing of it remains if the disk is full or the process is killed. `None`: the name exists.
    fn appear(path: &Path, line: &str) -> Result<Option<Self>> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
        // Not every filesystem supports files without a name (open(2), O_TMPFILE), or giving them
        // one later.
        let Ok(nameless) = rustix::fs::open(files::parent(path), flags, MODE) else {
            return Self::appear_named(path, line);
        };
        let mut store = Self { file: nameless.into(), path: path.to_path_buf(), stdout: None };
        lock(&store.file, path, Duration::ZERO)?;
        store.write(line)?;
        reached(RunStep::HeaderWritten);
        let descriptor = scratch::reopen_path(&store.file);
        match rustix::fs::linkat(CWD, &descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => Ok(Some(store)),
            Err(Errno::EXIST) => Ok(None),
            Err(_) => Self::appear_named(path, line),
        }
    }

    /// Make the file at `path` on a filesystem without nameless files.
    fn appear_named(path: &Path, line: &str) -> Result<Option<Self>> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
        let file: OwnedFd = match rustix::fs::open(path, flags, MODE) {
            Ok(file) => file,
            Err(Errno::EXIST) => return Ok(None),
            Err(errno) => {
                bail!("the run file {} cannot be made: {}", path.display(), io::Error::from(errno))
            }
        };
        let mut store = Self { file: file.into(), path: path.to_path_buf(), stdout: None };
        let begun = lock(&store.file, path, MOMENT).and_then(|()| store.write(line));
        if let Err(error) = begun {
            // Nothing of ours is left behind; another file may have the name by now.
            let _ = scratch::remove_same(&store.file, path);
            return Err(error);
        }
        reached(RunStep::HeaderWritten);
        Ok(Some(store))
    }

    /// Open and lock a run file to continue it; it does not change before [`RunFile::cut`]. Root
    /// does not continue a file that another user could have written or put there.
    pub fn resume(path: &Path) -> Result<Resumed> {
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            bail!("{} is a link: name the file itself", path.display());
        }
        let file = open(path, options)?;
        let doubt = trusted::check(&file, path).err();
        if let (Some(doubt), true) = (&doubt, rustix::process::geteuid().is_root()) {
            bail!(
                "{} cannot be resumed by root: {doubt}; copy it into a directory that only root can write to, and \
                 resume it there",
                path.display()
            );
        }
        lock(&file, path, ORPHANED)?;
        let run = read(&file, path)?;
        Ok(Resumed { store: Self { file, path: path.to_path_buf(), stdout: None }, run, doubt })
    }

    /// Cut off everything after the intact part: a torn last line.
    pub fn cut(&mut self, intact_bytes: u64) -> Result<()> {
        self.file
            .set_len(intact_bytes)
            .with_context(|| format!("{} cannot be continued", self.path.display()))
    }

    /// Write one record and pass it to the kernel, so that it outlives the process.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        self.write(&record.to_line())
    }

    fn write(&mut self, line: &str) -> Result<()> {
        if let Some(stdout) = &mut self.stdout {
            // A reader that went away had the only copy of the run, so it is lost.
            let written =
                stdout.write_all(line.as_bytes()).context("the run file cannot be written to stdout");
            written.map_err(|error| Exit::FellShort.because(error))?;
        }
        self.file
            .write_all(line.as_bytes())
            .with_context(|| format!("the run file {} cannot be written", self.path.display()))
    }

    /// Path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if it goes to stdout, so that nothing can continue it.
    pub fn is_stdout(&self) -> bool {
        self.stdout.is_some()
    }
}

/// The name of a run file for people: one that went to stdout is where its reader put it.
pub fn name_of(path: &Path) -> &Path {
    if went_to_stdout(path) { Path::new("RUN") } else { path }
}

/// True if a run file went to stdout.
pub fn went_to_stdout(path: &Path) -> bool {
    path.starts_with("/proc/self/fd")
}

/// The right to write a run file, held by the open file.
fn lock(file: &File, path: &Path, within: Duration) -> Result<()> {
    let deadline = Instant::now() + within;
    loop {
        match try_lock(file) {
            Ok(true) => return Ok(()),
            Ok(false) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            Ok(false) => {
                let reason = anyhow!("{} is being written by another process", path.display());
                return Err(Exit::Busy.because(reason));
            }
            Err(error) => bail!(
                "the run file {} cannot be locked: flock: {error}; it must be on a filesystem with locks",
                path.display()
            ),
        }
    }
}

/// The header of a run file alone, as a run without samples.
pub fn load_header(path: &Path) -> Result<Run> {
    let shown = path.display();
    let file = open(path, OpenOptions::new().read(true))?;
    let mut line = beginning(&file, path)?;
    let rest = BufReader::new(file).take(MAX_HEADER_BYTES).read_until(b'\n', &mut line);
    rest.with_context(|| format!("{shown} cannot be read"))?;
    Run::parse(&line).map_err(|error| anyhow!("{shown}, {error}"))
}

/// Read a run from stdin.
fn load_stdin() -> Result<Run> {
    let mut text = Vec::new();
    io::stdin().lock().take(MAX_RUN_BYTES).read_to_end(&mut text).context("stdin cannot be read")?;
    Run::parse(&text).map_err(|error| anyhow!("stdin, {error}"))
}

/// Read a run file, or the one on stdin.
pub fn load(path: &Path) -> Result<Run> {
    if path == Path::new(STANDARD_STREAM) {
        return load_stdin();
    }
    read(&open(path, OpenOptions::new().read(true))?, path)
}

fn open(path: &Path, options: &OpenOptions) -> Result<File> {
    let shown = path.display();
    let cannot = || format!("the run file {shown} cannot be opened");
    // stat(2) first: opening a pipe would wait for its writer.
    let no_file = || anyhow!("{shown} is not a run file: it is not a regular file");
    if !std::fs::metadata(path).with_context(cannot)?.is_file() {
        return Err(no_file());
    }
    let file = options.open(path).with_context(cannot)?;
    if file.metadata().with_context(cannot)?.is_file() { Ok(file) } else { Err(no_file()) }
}

/// The first bytes of a run file, which distinguish it from gigabytes of other data.
fn beginning(mut file: &File, path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    let len = file.metadata().with_context(|| format!("{shown} cannot be read"))?.len();
    if len > MAX_RUN_BYTES {
        bail!("{shown} is not a run file: it has {len} bytes");
    }
    let mut text = vec![0; 10.min(len as usize)];
    file.read_exact(&mut text).with_context(|| format!("{shown} cannot be read"))?;
    if !text.is_empty() && !b"{\"check\":\"".starts_with(&text) {
        bail!("{shown}, line 1: not a header of a pagewise run");
    }
    Ok(text)
}

fn read(mut file: &File, path: &Path) -> Result<Run> {
    let shown = path.display();
    let mut text = beginning(file, path)?;
    file.read_to_end(&mut text).with_context(|| format!("{shown} cannot be read"))?;
    Run::parse(&text).map_err(|error| anyhow!("{shown}, {error}"))
}

/// The run files that are named: a file, those of a directory, or those that a pattern matches.
pub fn run_files(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    Ok(named.iter().map(|named| run_files_of(named)).collect::<Result<Vec<_>>>()?.concat())
}

fn run_files_of(named: &Path) -> Result<Vec<PathBuf>> {
    if named.is_dir() {
        return run_files_in(named);
    }
    let pattern = match named.to_str() {
        Some(text) if !named.exists() && text.contains(['*', '?', '[']) => text.to_string(),
        _ => return Ok(vec![named.to_path_buf()]),
    };
    let found = glob::glob(&pattern).with_context(|| format!("invalid pattern '{}'", named.display()))?;
    let found = found
        .collect::<Result<Vec<PathBuf>, _>>()
        .with_context(|| format!("{} cannot be searched", named.display()))?;
    if found.is_empty() {
        bail!("{}: no file matches the pattern", named.display());
    }
    Ok(found)
}

/// The run files of a directory, whatever their names are made of.
fn run_files_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("{} cannot be searched", directory.display());
    let entries = std::fs::read_dir(directory).with_context(cannot)?;
    let all =
        entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>().with_context(cannot)?;
    let is_hidden = |name: &Path| name.as_os_str().as_encoded_bytes().starts_with(b".");
    let mut found: Vec<PathBuf> = all.into_iter().map(PathBuf::from).collect();
    found.retain(|name| name.extension().is_some_and(|ending| ending == "jsonl") && !is_hidden(name));
    found.sort_unstable();
    if found.is_empty() {
        bail!("{}: the directory has no run files (*.jsonl)", directory.display());
    }
    Ok(found.into_iter().map(|name| directory.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    use pagewise_model::Plan;

    fn header() -> Header {
        Header::of(Plan { seed: 0, sample_ns: 1, retakes: 0, ..Plan::of(Vec::new()) })
    }

    #[test]
    fn a_directory_has_all_its_run_files_in_order() {
        use std::os::unix::ffi::OsStrExt;
        let directory = tempfile::tempdir().expect("directory");
        let strange = std::ffi::OsStr::from_bytes(b"c\xff[1].jsonl");
        for name in ["b.jsonl", "a.jsonl", "a.html", ".hidden.jsonl"].map(std::ffi::OsStr::new) {
            std::fs::write(directory.path().join(name), "").expect("write");
        }
        std::fs::write(directory.path().join(strange), "").expect("write");
        let found = run_files(&[directory.path().to_path_buf()]).expect("three");
        let names: Vec<&std::ffi::OsStr> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, [std::ffi::OsStr::new("a.jsonl"), std::ffi::OsStr::new("b.jsonl"), strange]);
    }

    #[test]
    fn a_torn_line_is_cut_off_and_the_file_goes_on() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("run.jsonl");
        RunFile::create(&path, header()).expect("create");
        let whole = std::fs::read(&path).expect("read");
        std::fs::write(&path, [&whole[..], b"{\"check\":\"12"].concat()).expect("write");
        let Resumed { mut store, run, .. } = RunFile::resume(&path).expect("resume");
        assert!(!run.is_complete());
        store.cut(run.intact_bytes).expect("cut");
        store
            .append(&Record::End { samples: 0, elapsed_ns: 1, supervisor_peak_bytes: None })
            .expect("append");
        assert!(load(&path).expect("load").is_complete());
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let directory = tempfile::tempdir().expect("directory");
        let path = |number: u32| directory.path().join(format!("{number}.jsonl"));
        std::fs::write(path(1), "").expect("write");
        std::os::unix::fs::symlink("nowhere", path(2)).expect("link");
        std::fs::create_dir(path(3)).expect("directory");
        let made = RunFile::create_first((1..9).map(path), header()).expect("made").expect("a free name");
        assert_eq!(made.path(), path(4));
        assert_eq!(std::fs::metadata(path(1)).expect("stat").len(), 0, "an empty file is somebody's too");
        assert!(!directory.path().join("nowhere").exists());
        assert!(RunFile::create_first((1..5).map(path), header()).expect("no error").is_none());
    }

    #[test]
    fn who_writes_a_run_file_is_alone() {
        let directory = tempfile::tempdir().expect("directory");
        type Make = fn(&Path, &str) -> Result<Option<RunFile>>;
        for (name, make) in [("nameless", RunFile::appear as Make), ("named", RunFile::appear_named)] {
            let path = directory.path().join(name);
            let line = Record::Header(Box::new(header())).to_line();
            let mut first = make(&path, &line).expect("made").expect("a free name");
            let refused = RunFile::resume(&path).map(drop).expect_err("locked").to_string();
            assert!(refused.ends_with("is being written by another process"), "{refused}");
            assert!(make(&path, &line).expect("no error").is_none());
            first.append(&Record::Resumed { unix_s: 1 }).expect("append");
            assert_eq!(load(&path).expect("load").resumptions, 1);
            // Whatever its last bytes are, the next record is appended after them.
            OpenOptions::new().append(true).open(&path).and_then(|mut file| file.write_all(b"x")).expect("x");
            first.append(&Record::Resumed { unix_s: 1 }).expect("append");
            assert!(std::fs::read_to_string(&path).expect("read").contains("\nx{\"check\""));
        }
    }

    #[test]
    fn an_existing_file_is_not_overwritten() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("run.jsonl");
        std::fs::write(&path, "precious").expect("write");
        let error = RunFile::create(&path, header()).map(drop).expect_err("it exists");
        assert!(error.to_string().ends_with("exists: continue it with --resume or name another --out"));
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "precious");
        assert!(
            format!("{:#}", load(&path).expect_err("no run"))
                .ends_with("line 1: not a header of a pagewise run")
        );
    }
}
