//! Built workers in the user's cache folder: `pagewise/workers/LANGUAGE-HASH/`.
//!
//! The hash covers everything that the product depends on, so an existing complete folder is used as it is. A folder is
//! complete if its stamp, which is written last, names every file with length and hash. Building happens in a temporary
//! folder next to it that is renamed into place. The building process holds a lock, and so does the compiler (it is its
//! stdin): a temporary folder found while holding the lock is abandoned and is removed. That also applies to other hosts
//! and other pid namespaces with the same cache folder, where a process id means nothing.
//!
//! The files are executed, so no other user may be able to write or exchange any step of the path to them. The folder is
//! opened once and used by descriptor; compilers receive its path, which no other user can redirect.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Access, FlockOperation, OFlags, StatVfsMountFlags};
use rustix::io::Errno;

use super::variables::ToolchainVariables;
use super::{Found, Language, SourceFile, ToolchainError};
use crate::trusted::{Directory, Refusal};

/// Lists every product of its folder.
const STAMP: &str = "complete";
const LOCK: &str = ".lock";
const TEMPORARY: &str = ".tmp-";
/// Number of folders of one language that are kept: the newest.
const KEPT: usize = 4;
/// Time for a compiler that dies with its build to end.
const DYING: Duration = Duration::from_secs(5);
/// Time between a fork and its exec, beyond which the lock belongs to a live build.
const EXECUTED: Duration = Duration::from_millis(500);
const LOCK_PAUSE: Duration = Duration::from_millis(20);
const REMEDY: &str = "set XDG_CACHE_HOME to a writable folder of yours with free space";

/// The folder of built workers.
pub(super) struct WorkerStore {
    workers: PathBuf,
    wait: Duration,
    /// A note about a XDG_CACHE_HOME that was skipped.
    pub notes: Vec<String>,
}

/// A temporary folder for a build.
pub(super) struct Workshop {
    /// The folder that contains the temporary one, which is removed when this is dropped.
    workers: Arc<Directory>,
    /// Its name.
    name: String,
    lock: File,
}

/// Reason that a build failed.
#[derive(Debug)]
pub(super) enum BuildError {
    /// The folder is full, cannot be written, or is not ours.
    Storage(String),
    /// Another reason.
    Other(String),
}

impl BuildError {
    /// A failed call on a file of the store.
    pub fn call(call: &str, path: &Path, error: &io::Error) -> Self {
        BuildError::Storage(format!("{call} {}: {error}", path.display()))
    }

    /// An error message of a compiler. Compilers do not report an errno; these are the C library's words for EROFS,
    /// ENOSPC and EDQUOT.
    pub fn said(sentence: String) -> Self {
        let lower = sentence.to_lowercase();
        let of_storage = ["read-only file system", "no space left on device", "disk quota exceeded"]
            .map(|text| lower.contains(text));
        if of_storage.contains(&true) { BuildError::Storage(sentence) } else { BuildError::Other(sentence) }
    }

    fn of(self, language: Language) -> ToolchainError {
        let what = format!("the {language} worker cannot be built");
        ToolchainError(match self {
            BuildError::Storage(sentence) => format!("{what}: {sentence}; {REMEDY}"),
            BuildError::Other(sentence) => format!("{what}: {sentence}"),
        })
    }
}

impl WorkerStore {
    /// `$XDG_CACHE_HOME`, which must be absolute by its specification, else `~/.cache`.
    pub fn of(toolchain_variables: &ToolchainVariables) -> Result<Self, ToolchainError> {
        let mut notes: Vec<String> =
            toolchain_variables.another_home.iter().map(|home| home_note(home)).collect();
        let chosen = toolchain_variables.variable("XDG_CACHE_HOME").map(Path::new);
        let cache = match (chosen, toolchain_variables.home()) {
            (Some(chosen), _) if chosen.is_absolute() => chosen.to_path_buf(),
            (relative, Some(home)) => {
                notes.extend(relative.map(|path| {
                    format!("XDG_CACHE_HOME is {}, which is not absolute, and was skipped", path.display())
                }));
                home.join(".cache")
            }
            (_, None) => {
                return Err(ToolchainError(
                    "no folder was found to build the worker in: neither XDG_CACHE_HOME nor HOME is set to an absolute \
                     path; set XDG_CACHE_HOME"
                        .to_string(),
                ));
            }
        };
        if cache.to_str().is_none() {
            let shown = cache.display();
            return Err(ToolchainError(format!(
                "the cache folder {shown} has a name that is not UTF-8; set XDG_CACHE_HOME"
            )));
        }
        Ok(Self { workers: cache.join("pagewise/workers"), wait: toolchain_variables.built_within, notes })
    }

    /// Folder of a toolchain's built worker.
    pub fn folder(&self, found: &Found, build_flags: &str, sources: &[SourceFile]) -> PathBuf {
        let sources = sources.iter().flat_map(|source| [source.name, source.text]);
        let hash = sources
            .chain([&*found.release, build_flags, std::env::consts::ARCH])
            .fold(FNV_BASIS, |hash, part| fnv(fnv(hash, &part.len().to_le_bytes()), part.as_bytes()));
        self.workers.join(format!("{}-{hash:016x}", found.language))
    }

    /// Check that a worker exists or could be built, without building it.
    pub fn check(&self, folder: &Path) -> Result<(), ToolchainError> {
        match Directory::open(&self.workers) {
            Ok(workers) if complete(&workers, folder).is_some() => return Ok(()),
            Err(refusal) if !refusal.is_missing() => {
                return Err(ToolchainError(format!("its worker cannot be built: {refusal}; {REMEDY}")));
            }
            Ok(_) | Err(_) => {}
        }
        let nearest = self.nearest();
        rustix::fs::access(nearest, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
            let error = io::Error::from(errno);
            ToolchainError(format!(
                "its worker cannot be built: access {}: {error}; {REMEDY}",
                nearest.display()
            ))
        })
    }

    /// The longest existing part of the path.
    fn nearest(&self) -> &Path {
        self.workers.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"))
    }

    /// Check that files there may be executed.
    pub fn check_executable(&self, language: Language) -> Result<(), ToolchainError> {
        match rustix::fs::statvfs(self.nearest()) {
            Ok(stat) if stat.f_flag.contains(StatVfsMountFlags::NOEXEC) => Err(ToolchainError(format!(
                "the {language} worker cannot be run from {}: it is mounted noexec; set XDG_CACHE_HOME to a folder elsewhere",
                self.workers.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Return the folder of a worker, made by `make` unless it is complete. `make` puts the products into
    /// [`Workshop::product`], and its error is a sentence about the failure.
    pub fn worker(
        &self,
        language: Language,
        folder: PathBuf,
        stop: &AtomicBool,
        make: impl FnOnce(&Workshop) -> Result<(), BuildError>,
    ) -> Result<Directory, ToolchainError> {
        let refused = |trouble: BuildError| trouble.of(language);
        match Directory::open(&self.workers) {
            Ok(workers) => {
                if let Some(folder) = complete(&workers, &folder) {
                    return Ok(folder);
                }
            }
            Err(refusal) if refusal.is_missing() => {}
            Err(refusal) => return Err(refused(refusal.into())),
        }
        self.build(language, &folder, stop, make).map_err(refused)
    }

    fn build(
        &self,
        language: Language,
        folder: &Path,
        stop: &AtomicBool,
        make: impl FnOnce(&Workshop) -> Result<(), BuildError>,
    ) -> Result<Directory, BuildError> {
        let workers = Arc::new(Directory::make(&self.workers)?);
        let lock = self.lock(&workers, stop)?;
        if let Some(folder) = complete(&workers, folder) {
            return Ok(folder);
        }
        sweep(&workers);
        let workshop = Workshop::new(workers.clone(), lock)?;
        make(&workshop)?;
        workshop.finish(folder)?;
        keep_newest(&workers, language, folder);
        Ok(workers.below(&name(folder))?)
    }

    /// Remove the remains of killed builds, unless a build is in progress; return their paths.
    pub fn sweep_dead(&self) -> Vec<PathBuf> {
        let Ok(workers) = Directory::open(&self.workers) else { return Vec::new() };
        if !workers.names().unwrap_or_default().iter().any(|name| is_temporary(name)) {
            return Vec::new();
        }
        let Ok(lock) = workers.file(LOCK, OFlags::RDWR | OFlags::CREATE) else { return Vec::new() };
        // The child of a killed build holds the lock until it is executed, or killed too.
        let deadline = Instant::now() + EXECUTED;
        while rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() >= deadline {
                return Vec::new();
            }
            thread::sleep(LOCK_PAUSE);
        }
        sweep(&workers)
    }

    /// Wait for another pagewise that builds, and lock.
    fn lock(&self, workers: &Directory, stop: &AtomicBool) -> Result<File, BuildError> {
        let path = workers.path().join(LOCK);
        let file = workers.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let deadline = Instant::now() + self.wait;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(BuildError::call("flock", &path, &errno.into())),
            }
            if stop.load(Ordering::Relaxed) {
                return Err(BuildError::Other("it was stopped".to_string()));
            }
            if Instant::now() >= deadline {
                let waited = self.wait.as_secs_f64();
                let shown = path.display();
                return Err(BuildError::Other(format!("another process has held {shown} for {waited:.0} s")));
            }
            thread::sleep(LOCK_PAUSE);
        }
    }
}

impl From<Refusal> for BuildError {
    fn from(refusal: Refusal) -> Self {
        BuildError::Storage(refusal.to_string())
    }
}

fn home_note(home: &Path) -> String {
    format!("HOME is {}, which is another user's: root's own was used instead", home.display())
}

fn is_temporary(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(TEMPORARY)
}

/// Remove the remains of killed builds; those that cannot be removed do no harm.
fn sweep(workers: &Directory) -> Vec<PathBuf> {
    let names = workers.names().unwrap_or_default().into_iter().filter(|name| is_temporary(name));
    let gone = names.filter(|name| is_removed(&workers.through(name)));
    gone.map(|name| workers.path().join(name)).collect()
}

/// Remove a folder. A compiler that is being killed with its build may still write into it.
fn is_removed(folder: &Path) -> bool {
    let deadline = Instant::now() + DYING;
    loop {
        match fs::remove_dir_all(folder) {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && Instant::now() < deadline => {
                thread::sleep(LOCK_PAUSE);
            }
            Err(_) => return false,
        }
    }
}

/// Keep a few folders of each language, for other versions of pagewise or of the toolchain.
fn keep_newest(workers: &Directory, language: Language, newest: &Path) {
    let prefix = format!("{language}-");
    let names = workers.names().unwrap_or_default();
    let mut folders: Vec<_> = names
        .into_iter()
        .filter(|name| name.to_string_lossy().starts_with(&prefix) && Some(&**name) != newest.file_name())
        .filter_map(|name| Some((fs::metadata(workers.through(&name)).ok()?.modified().ok()?, name)))
        .collect();
    folders.sort();
    for (_, name) in folders.iter().rev().skip(KEPT - 1) {
        let _ = fs::remove_dir_all(workers.through(name));
    }
}

impl Workshop {
    fn new(workers: Arc<Directory>, lock: File) -> Result<Self, BuildError> {
        let workshop = Self { workers, name: format!("{TEMPORARY}{}", std::process::id()), lock };
        for folder in [workshop.folder(), workshop.product(), workshop.work()] {
            DirBuilder::new()
                .mode(0o700)
                .create(workshop.reach(&folder))
                .map_err(|error| BuildError::call("mkdir", &folder, &error))?;
        }
        Ok(workshop)
    }

    fn folder(&self) -> PathBuf {
        self.workers.path().join(&self.name)
    }

    /// The folder that becomes the worker's.
    pub fn product(&self) -> PathBuf {
        self.folder().join("product")
    }

    /// The folder for sources and temporary files.
    pub fn work(&self) -> PathBuf {
        self.folder().join("work")
    }

    /// The same path by the descriptor.
    pub fn reach(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(self.workers.path()) {
            Ok(below) => self.workers.through(below),
            Err(_) => path.to_path_buf(),
        }
    }

    /// Write sources to a folder of it; return their paths.
    pub fn write_all(&self, folder: &Path, sources: &[SourceFile]) -> Result<Vec<PathBuf>, BuildError> {
        let write = |source: &SourceFile| {
            let path = folder.join(source.name);
            self.write(&path, source.text).map(|()| path)
        };
        sources.iter().map(write).collect()
    }

    /// Write a file in it.
    pub fn write(&self, path: &Path, text: &str) -> Result<(), BuildError> {
        fs::write(self.reach(path), text).map_err(|error| BuildError::call("write", path, &error))
    }

    /// The lock as a compiler's stdin: no other build starts while it lives, even if pagewise was killed.
    pub fn lock_as_stdin(&self) -> Result<Stdio, BuildError> {
        let lock = self.lock.try_clone();
        Ok(lock.map_err(|error| BuildError::Other(format!("the lock cannot be duplicated: {error}")))?.into())
    }

    /// Stamp the product and move it into place.
    fn finish(&self, folder: &Path) -> Result<(), BuildError> {
        let product = self.product();
        let failed = |error| BuildError::call("read", &product, &error);
        close_to_others(&self.reach(&product)).map_err(failed)?;
        let stamp = self.workers.below(&self.name)?.below("product").map_err(BuildError::from);
        let stamp = stamp.and_then(|product| Ok(stamp_of(&product)?))?;
        if stamp.is_empty() {
            return Err(BuildError::Other("the compiler succeeded but made no file".to_string()));
        }
        self.write(&product.join(STAMP), &stamp)?;
        let rename = |from: &Path, to: &Path| {
            fs::rename(self.reach(from), self.reach(to))
                .map_err(|error| BuildError::call("rename", folder, &error))
        };
        if fs::symlink_metadata(self.reach(folder)).is_ok() {
            // An incomplete one, since a complete one would have been used; a rename does not replace a folder.
            rename(folder, &self.folder().join("old"))?;
        }
        rename(&product, folder)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // Remains are swept by the next start.
        let _ = fs::remove_dir_all(self.workers.through(&self.name));
    }
}

/// The folder of a worker, if it contains everything that its stamp names and belongs to the user.
fn complete(workers: &Directory, folder: &Path) -> Option<Directory> {
    let folder = workers.below(&name(folder)).ok()?;
    let mut stamp = String::new();
    folder.file(STAMP, OFlags::RDONLY).ok()?.read_to_string(&mut stamp).ok()?;
    (!stamp.is_empty() && stamp_of(&folder).is_ok_and(|found| found == stamp)).then_some(folder)
}

/// Whatever the umask, no other user may write executed files.
fn close_to_others(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(metadata.permissions().mode() & !0o022))?;
        if metadata.is_dir() {
            close_to_others(&path)?;
        }
    }
    Ok(())
}

/// A line for each file except the stamp: path, length, hash.
fn stamp_of(folder: &Directory) -> Result<String, Refusal> {
    let mut stamp = String::new();
    for name in folder.names()? {
        let name = name.to_string_lossy();
        if fs::symlink_metadata(folder.through(&*name)).is_ok_and(|found| found.is_dir()) {
            let below = stamp_of(&folder.below(&name)?)?;
            below.lines().for_each(|line| stamp.push_str(&format!("{name}/{line}\n")));
        } else if name != STAMP {
            let mut bytes = Vec::new();
            let mut file = folder.file(&name, OFlags::RDONLY)?;
            file.read_to_end(&mut bytes).map_err(|source| Refusal::Call {
                call: "read",
                path: folder.path().join(&*name),
                source,
            })?;
            stamp.push_str(&format!("{name} {} {:016x}\n", bytes.len(), fnv(FNV_BASIS, &bytes)));
        }
    }
    Ok(stamp)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// FNV-1a: detects accidents, not attacks.
pub(super) const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

pub(super) fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}
