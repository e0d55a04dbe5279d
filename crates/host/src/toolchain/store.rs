//! Built workers in the user's cache folder: `pagewise/workers/LANGUAGE-HASH/`.
//!
//! The hash is over all that the product depends on, so a folder that is there and complete is used as it is. A
//! folder is complete if its stamp, which is written last, names every file with length and hash. Building happens in a
//! temporary folder beside it that is renamed into place. Whoever builds holds a lock, and so does the compiler
//! (it is its stdin): a temporary folder that is found under the lock belongs to nobody and is removed. That
//! holds for other hosts and other pid namespaces with the same cache folder too, where an id of a process tells nothing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Access, FlockOperation, StatVfsMountFlags};
use rustix::io::Errno;

use super::surroundings::{Surroundings, entries};
use super::{Found, Language, Missing};

/// Names every product of its folder.
const STAMP: &str = "complete";
const LOCK: &str = ".lock";
const TEMPORARY: &str = ".tmp-";
/// How many folders of one language stay: the newest.
const KEPT: usize = 4;
const LOCK_PAUSE: Duration = Duration::from_millis(20);
const REMEDY: &str = "set XDG_CACHE_HOME to a folder of yours that can be written and has room";

/// Where built workers are.
pub(super) struct Store {
    workers: PathBuf,
    wait: Duration,
    /// A XDG_CACHE_HOME that was passed over.
    pub notes: Vec<String>,
}

/// Where one is built.
pub(super) struct Workshop {
    /// The temporary folder; gone when this is dropped.
    folder: PathBuf,
    lock: File,
}

/// Why a build failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The folder is full, cannot be written, is not ours.
    Storage(String),
    /// Something else.
    Other(String),
}

impl Trouble {
    /// A call that failed on a file of the store.
    pub fn call(call: &str, path: &Path, error: &io::Error) -> Self {
        Trouble::Storage(format!("{call} {}: {error}", path.display()))
    }

    /// What a compiler complained of. Compilers have no errno to tell; these are the C library's words for EROFS, ENOSPC and EDQUOT.
    pub fn said(sentence: String) -> Self {
        let lower = sentence.to_lowercase();
        let of_storage = ["read-only file system", "no space left on device", "disk quota exceeded"]
            .map(|text| lower.contains(text));
        if of_storage.contains(&true) { Trouble::Storage(sentence) } else { Trouble::Other(sentence) }
    }

    fn of(self, language: Language) -> Missing {
        let what = format!("the {language} worker cannot be built");
        Missing(match self {
            Trouble::Storage(sentence) => format!("{what}: {sentence}; {REMEDY}"),
            Trouble::Other(sentence) => format!("{what}: {sentence}"),
        })
    }
}

impl Store {
    /// `$XDG_CACHE_HOME`, which must be absolute by its specification, else `~/.cache`.
    pub fn of(surroundings: &Surroundings) -> Result<Self, Missing> {
        let mut notes = Vec::new();
        let chosen = surroundings.variable("XDG_CACHE_HOME").map(Path::new);
        let cache = match (chosen, surroundings.home()) {
            (Some(chosen), _) if chosen.is_absolute() => chosen.to_path_buf(),
            (relative, Some(home)) => {
                notes.extend(relative.map(|path| {
                    format!(
                        "XDG_CACHE_HOME is {}, which is not absolute, and was passed over",
                        path.display()
                    )
                }));
                home.join(".cache")
            }
            (_, None) => {
                return Err(Missing(
                    "there is no folder to build the worker in: neither XDG_CACHE_HOME nor HOME is set to an absolute \
                     path; set XDG_CACHE_HOME"
                        .to_string(),
                ));
            }
        };
        if cache.to_str().is_none() {
            let shown = cache.display();
            return Err(Missing(format!(
                "the cache folder {shown} has a name that is not UTF-8; set XDG_CACHE_HOME"
            )));
        }
        Ok(Self { workers: cache.join("pagewise/workers"), wait: surroundings.built_within, notes })
    }

    /// Where the worker of a toolchain lies, once built.
    pub fn folder(&self, found: &Found, build_flags: &str, source: &str) -> PathBuf {
        let hash = [source, &found.release, build_flags, std::env::consts::ARCH]
            .iter()
            .fold(FNV_BASIS, |hash, part| fnv(fnv(hash, &part.len().to_le_bytes()), part.as_bytes()));
        self.workers.join(format!("{}-{hash:016x}", found.language))
    }

    /// Whether a worker is there or could be built, without building it.
    pub fn check(&self, folder: &Path) -> Result<(), Missing> {
        if is_complete(folder) {
            return Ok(());
        }
        let nearest = self.nearest();
        rustix::fs::access(nearest, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
            let error = io::Error::from(errno);
            Missing(format!("its worker cannot be built: access {}: {error}; {REMEDY}", nearest.display()))
        })
    }

    /// What exists of the path.
    fn nearest(&self) -> &Path {
        self.workers.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"))
    }

    /// Whether what lies there may be executed.
    pub fn check_executable(&self, language: Language) -> Result<(), Missing> {
        match rustix::fs::statvfs(self.nearest()) {
            Ok(stat) if stat.f_flag.contains(StatVfsMountFlags::NOEXEC) => Err(Missing(format!(
                "the {language} worker cannot be run from {}: it is mounted noexec; set XDG_CACHE_HOME to a folder elsewhere",
                self.workers.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The folder of a worker, made by `make` unless it is complete. `make` puts the products into
    /// [`Workshop::product`], and an error of its says in a sentence what failed.
    pub fn worker(
        &self,
        language: Language,
        folder: PathBuf,
        stop: &AtomicBool,
        make: impl FnOnce(&Workshop) -> Result<(), Trouble>,
    ) -> Result<PathBuf, Missing> {
        let refused = |trouble: Trouble| trouble.of(language);
        if self.workers.is_dir() {
            self.check_owner().map_err(refused)?;
            if is_complete(&folder) {
                return Ok(folder);
            }
        }
        self.build(language, &folder, stop, make).map_err(refused)?;
        Ok(folder)
    }

    fn build(
        &self,
        language: Language,
        folder: &Path,
        stop: &AtomicBool,
        make: impl FnOnce(&Workshop) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.workers)
            .map_err(|error| Trouble::call("mkdir", &self.workers, &error))?;
        self.check_owner()?;
        let lock = self.lock(stop)?;
        if is_complete(folder) {
            return Ok(());
        }
        self.sweep();
        let workshop = Workshop::new(&self.workers, lock)?;
        make(&workshop)?;
        workshop.finish(folder)?;
        self.keep_newest(language, folder);
        Ok(())
    }

    /// What lies in the folder is executed: nobody else may write there.
    fn check_owner(&self) -> Result<(), Trouble> {
        let metadata =
            fs::metadata(&self.workers).map_err(|error| Trouble::call("stat", &self.workers, &error))?;
        let own = rustix::process::geteuid().as_raw();
        let shown = self.workers.display();
        if metadata.uid() != own {
            let owner = metadata.uid();
            return Err(Trouble::Storage(format!("{shown} belongs to user {owner}, not to user {own}")));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(Trouble::Storage(format!(
                "{shown} can be written by others, and what is in it is run"
            )));
        }
        Ok(())
    }

    /// Waits for another pagewise that builds.
    fn lock(&self, stop: &AtomicBool) -> Result<File, Trouble> {
        let path = self.workers.join(LOCK);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| Trouble::call("open", &path, &error))?;
        let deadline = Instant::now() + self.wait;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(Trouble::call("flock", &path, &errno.into())),
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Trouble::Other("it was stopped".to_string()));
            }
            if Instant::now() >= deadline {
                let waited = self.wait.as_secs_f64();
                let shown = path.display();
                return Err(Trouble::Other(format!("another process has held {shown} for {waited:.0} s")));
            }
            thread::sleep(LOCK_PAUSE);
        }
    }

    /// Removes what killed builds left; what cannot be removed is in nobody's way.
    fn sweep(&self) {
        for path in entries(&self.workers) {
            if name(&path).starts_with(TEMPORARY) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }

    /// Of each language a few folders stay, for other versions of pagewise or of the toolchain.
    fn keep_newest(&self, language: Language, newest: &Path) {
        let prefix = format!("{language}-");
        let mut folders: Vec<_> = entries(&self.workers)
            .into_iter()
            .filter(|path| name(path).starts_with(&prefix) && path != newest)
            .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
            .collect();
        folders.sort();
        for (_, path) in folders.iter().rev().skip(KEPT - 1) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

impl Workshop {
    fn new(workers: &Path, lock: File) -> Result<Self, Trouble> {
        let workshop = Self { folder: workers.join(format!("{TEMPORARY}{}", std::process::id())), lock };
        for folder in [&workshop.folder, &workshop.product(), &workshop.work()] {
            DirBuilder::new()
                .mode(0o700)
                .create(folder)
                .map_err(|error| Trouble::call("mkdir", folder, &error))?;
        }
        Ok(workshop)
    }

    /// What becomes the worker's folder.
    pub fn product(&self) -> PathBuf {
        self.folder.join("product")
    }

    /// For sources and temporary files.
    pub fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Writes a file in it.
    pub fn write(&self, path: &Path, text: &str) -> Result<(), Trouble> {
        fs::write(path, text).map_err(|error| Trouble::call("write", path, &error))
    }

    /// The lock as a compiler's stdin: while it lives, also after pagewise was killed, nobody else builds.
    pub fn lock_as_stdin(&self) -> Result<Stdio, Trouble> {
        let lock = self.lock.try_clone();
        Ok(lock.map_err(|error| Trouble::Other(format!("the lock cannot be duplicated: {error}")))?.into())
    }

    /// Stamps the product and puts it into its place.
    fn finish(&self, folder: &Path) -> Result<(), Trouble> {
        let product = self.product();
        let stamp = stamp_of(&product).map_err(|error| Trouble::call("read", &product, &error))?;
        if stamp.is_empty() {
            return Err(Trouble::Other("the compiler ended well and made nothing".to_string()));
        }
        self.write(&product.join(STAMP), &stamp)?;
        if fs::symlink_metadata(folder).is_ok() {
            // Incomplete, or it would have been used; a folder is not replaced by a rename.
            fs::rename(folder, self.folder.join("old"))
                .map_err(|error| Trouble::call("rename", folder, &error))?;
        }
        fs::rename(&product, folder).map_err(|error| Trouble::call("rename", folder, &error))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What stays is swept by the next build.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn is_complete(folder: &Path) -> bool {
    let Ok(stamp) = fs::read_to_string(folder.join(STAMP)) else { return false };
    !stamp.is_empty() && stamp_of(folder).is_ok_and(|found| found == stamp)
}

/// A line for each file but the stamp: name, length, hash.
fn stamp_of(folder: &Path) -> io::Result<String> {
    let mut stamp = String::new();
    for path in entries(folder) {
        let name = name(&path);
        if name != STAMP {
            let bytes = fs::read(&path)?;
            stamp.push_str(&format!("{name} {} {:016x}\n", bytes.len(), fnv(FNV_BASIS, &bytes)));
        }
    }
    Ok(stamp)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// FNV-1a: against accidents, not against attacks.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}
