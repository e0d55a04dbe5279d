//! Built workers in the user's cache folder: `pagewise/workers/LANGUAGE-HASH/`.
//!
//! The hash covers everything that the product depends on, so an existing complete folder is used
//! as it is. A folder is complete if its stamp, which is written last, names every file with its
//! hash. Building happens in a temporary folder next to it that is renamed into place. The building
//! process holds a lock, and so does the compiler (it is its stdin): a temporary folder found while
//! holding the lock is abandoned and is removed. That also applies to other hosts and other pid
//! namespaces with the same cache folder, where a process id means nothing.
//!
//! The files are executed, so no other user may be able to write or exchange any step of the path
//! to them. The folder is opened once and used by descriptor; compilers receive its path, which no
//! other user can redirect.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{self, DirBuilder, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pagewise_host::file_lock::try_lock;
use pagewise_host::trusted::{Directory, Refusal};
use rustix::fs::{Access, OFlags};

use super::SourceFile;
use super::variables::ToolchainVariables;

/// Lists every product of its folder.
const STAMP: &str = "complete";
const LOCK: &str = ".lock";
const TEMPORARY: &str = ".tmp-";
/// Time for a compiler that dies with its build to end.
const DYING: Duration = Duration::from_secs(5);
/// Time between a fork and its exec, beyond which the lock belongs to a live build.
const EXECUTED: Duration = Duration::from_millis(500);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The folder of built workers.
pub(super) struct WorkerStore {
    workers: PathBuf,
    /// Time limit of waiting for another build.
    wait: Duration,
}

/// A temporary folder for a build, removed when this is dropped.
pub(super) struct Workshop {
    /// The folder that contains it.
    workers: Directory,
    name: String,
    lock: File,
}

impl WorkerStore {
    pub fn of(variables: &ToolchainVariables) -> Result<Self, String> {
        Ok(Self { workers: variables.cache()?.join("pagewise/workers"), wait: variables.built_within })
    }

    /// Folder of a built worker, which depends on what is hashed.
    pub fn folder(&self, language: &str, release: &str, flags: &[&str], sources: &[SourceFile]) -> PathBuf {
        let hash = hash_of((release, flags, sources, std::env::consts::ARCH));
        self.workers.join(format!("{language}-{hash:016x}"))
    }

    /// The worker in `folder`, if it was built before.
    fn built(&self, folder: &Path) -> Result<Option<Directory>, String> {
        match Directory::open(&self.workers) {
            Ok(workers) => Ok(complete(&workers, &name(folder))),
            Err(refusal) if refusal.is_missing() => Ok(None),
            Err(refusal) => Err(of_storage(refusal)),
        }
    }

    /// Check that a worker exists or could be built, without building it.
    pub fn check(&self, folder: &Path) -> Result<(), String> {
        let nearest = nearest(&self.workers);
        if self.built(folder)?.is_some() {
            return Ok(());
        }
        rustix::fs::access(nearest, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|errno| call("access", nearest, &errno.into()))
    }

    /// The worker in `folder`, made by `make` unless it is complete. `make` puts the products into
    /// [`Workshop::product`].
    pub fn worker(
        &self,
        folder: &Path,
        stop: &AtomicBool,
        make: impl FnOnce(&Workshop) -> Result<(), String>,
    ) -> Result<Directory, String> {
        if let Some(built) = self.built(folder)? {
            return Ok(built);
        }
        let workers = Directory::make(&self.workers).map_err(of_storage)?;
        let lock = lock(&workers, self.wait, stop)?;
        if let Some(built) = complete(&workers, &name(folder)) {
            return Ok(built);
        }
        sweep(&workers);
        let workshop = Workshop::new(workers, lock)?;
        make(&workshop)?;
        workshop.finish(folder)
    }

    /// Remove the remains of killed builds, unless a build is in progress; return their paths.
    pub fn sweep_dead(&self) -> Vec<PathBuf> {
        let Ok(workers) = Directory::open(&self.workers) else { return Vec::new() };
        if !workers.names().unwrap_or_default().iter().any(|name| begins(name, TEMPORARY)) {
            return Vec::new();
        }
        // The child of a killed build holds the lock until it is executed, or killed too.
        lock(&workers, EXECUTED, &AtomicBool::new(false)).map_or(Vec::new(), |_lock| sweep(&workers))
    }
}

impl Workshop {
    fn new(workers: Directory, lock: File) -> Result<Self, String> {
        let workshop = Self { workers, name: format!("{TEMPORARY}{}", std::process::id()), lock };
        for folder in [workshop.folder(), workshop.product(), workshop.work()] {
            let made = DirBuilder::new().mode(0o700).create(workshop.reach(&folder));
            made.map_err(|error| call("mkdir", &folder, &error))?;
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

    /// A path of the store by the descriptor of its directory.
    fn reach(&self, path: &Path) -> PathBuf {
        self.workers.through(path.strip_prefix(self.workers.path()).unwrap_or(path))
    }

    /// Write a file in it.
    pub fn write(&self, path: &Path, text: &str) -> Result<(), String> {
        fs::write(self.reach(path), text).map_err(|error| call("write", path, &error))
    }

    /// The lock for a compiler's stdin: no other build starts while it lives, even if pagewise was
    /// killed.
    pub fn lock(&self) -> Result<File, String> {
        self.lock.try_clone().map_err(|error| format!("the lock cannot be duplicated: {error}"))
    }

    /// Stamp the product and move it into place.
    fn finish(&self, folder: &Path) -> Result<Directory, String> {
        let product = self.product();
        close_to_others(&self.reach(&product)).map_err(|error| call("read", &product, &error))?;
        let below = self.workers.below(&self.name).and_then(|workshop| workshop.below("product"));
        let stamp = below.and_then(|product| stamp_of(&product)).map_err(of_storage)?;
        if stamp.is_empty() {
            return Err("the compiler succeeded but made no file".to_string());
        }
        self.write(&product.join(STAMP), &stamp)?;
        let rename = |from: &Path, to: &Path| {
            fs::rename(self.reach(from), self.reach(to)).map_err(|error| call("rename", folder, &error))
        };
        if fs::symlink_metadata(self.reach(folder)).is_ok() {
            // An incomplete one, since a complete one would have been used; a rename does not
            // replace a folder.
            rename(folder, &self.folder().join("old"))?;
        }
        rename(&product, folder)?;
        self.workers.below(&name(folder)).map_err(of_storage)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // Remains are swept by the next start.
        let _ = fs::remove_dir_all(self.workers.through(&self.name));
    }
}

/// A sentence about a folder that is full, cannot be written, or is not ours.
fn of_storage(fault: impl Display) -> String {
    format!("{fault}; set XDG_CACHE_HOME to a writable folder of yours with free space")
}

/// A sentence about a call that failed for lack of storage.
fn call(call: &str, path: &Path, error: &io::Error) -> String {
    of_storage(format!("{call} {}: {error}", path.display()))
}

/// The sentence of a compiler, with advice if it lacks storage. Compilers do not report an errno;
/// these are the C library's words for EROFS, ENOSPC and EDQUOT.
pub(super) fn of_compiler(sentence: String) -> String {
    let lower = sentence.to_lowercase();
    let of_disk = ["read-only file system", "no space left on device", "disk quota exceeded"];
    if of_disk.iter().any(|words| lower.contains(words)) { of_storage(sentence) } else { sentence }
}

/// The longest existing part of a path.
pub(super) fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"))
}

/// Wait for another pagewise that builds, and lock.
fn lock(workers: &Directory, wait: Duration, stop: &AtomicBool) -> Result<File, String> {
    let path = workers.path().join(LOCK);
    let file = workers.file(LOCK, OFlags::RDWR | OFlags::CREATE).map_err(of_storage)?;
    let deadline = Instant::now() + wait;
    loop {
        if try_lock(&file).map_err(|error| call("flock", &path, &error))? {
            return Ok(file);
        }
        if stop.load(Ordering::Relaxed) {
            return Err("it was stopped".to_string());
        }
        if Instant::now() >= deadline {
            let (shown, waited) = (path.display(), wait.as_secs_f64());
            return Err(format!("another process has held {shown} for {waited:.0} s"));
        }
        thread::sleep(LOCK_PAUSE);
    }
}

/// Remove the remains of killed builds; those that cannot be removed do no harm.
fn sweep(workers: &Directory) -> Vec<PathBuf> {
    let names = workers.names().unwrap_or_default().into_iter().filter(|name| begins(name, TEMPORARY));
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

/// The folder of a worker, if it contains everything that its stamp names and belongs to the user.
fn complete(workers: &Directory, name: &str) -> Option<Directory> {
    let folder = workers.below(name).ok()?;
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

/// A line for each file except the stamp: path and hash.
pub(super) fn stamp_of(folder: &Directory) -> Result<String, Refusal> {
    let mut stamp = String::new();
    for name in folder.names()? {
        let name = name.to_string_lossy();
        if fs::symlink_metadata(folder.through(&*name)).is_ok_and(|found| found.is_dir()) {
            let below = stamp_of(&folder.below(&name)?)?;
            below.lines().for_each(|line| stamp.push_str(&format!("{name}/{line}\n")));
        } else if name != STAMP {
            let mut bytes = Vec::new();
            let read = folder.file(&name, OFlags::RDONLY)?.read_to_end(&mut bytes);
            let path = folder.path().join(&*name);
            read.map_err(|source| Refusal::Call { call: "read", path, source })?;
            stamp.push_str(&format!("{name} {:016x}\n", hash_of(bytes)));
        }
    }
    Ok(stamp)
}

/// Detects accidents, not attacks. Another version of Rust may hash otherwise: then a worker is
/// built anew.
fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn begins(name: &OsStr, with: &str) -> bool {
    name.to_string_lossy().starts_with(with)
}
