//! The machine's setting of readahead below a place, and what dead runs left there.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use pagewise_host::Readahead;
use pagewise_host::cgroup::Control;

use super::{OWN_FILESYSTEM, Place, in_own_mounts, skipped};

/// Why groups cannot limit memory and cap devices here.
pub fn without_limits() -> Option<String> {
    let control = Control::detect();
    control.memory().err().or(control.device().err()).map(ToString::to_string)
}

/// Whether a test of limits and settings goes on, on a filesystem of its own in mounts of its own.
#[track_caller]
pub fn in_own_mounts_with_limits(test: &str) -> bool {
    match without_limits() {
        Some(reason) => {
            skipped("cgroup", &reason);
            false
        }
        None => in_own_mounts(test, OWN_FILESYSTEM),
    }
}

/// The setting of readahead that decides for a place.
pub struct Setting {
    pub path: PathBuf,
    pub original: u64,
}

impl Setting {
    pub fn of(place: &Place) -> Self {
        let readahead = Readahead::of(&place.path()).expect("a setting of readahead");
        let path = readahead.path().to_path_buf();
        // Never the disk of the machine: other tests look at it.
        let device = pagewise_host::BlockDevice::behind(&place.path()).expect("a device");
        assert!(device.name.starts_with("loop"), "{device:?}");
        // What it is by itself may be what a run asks for, which would change nothing.
        let setting = Self { original: 512 << 10, path };
        setting.set(setting.original);
        setting
    }

    pub fn bytes(&self) -> u64 {
        let text = fs::read_to_string(&self.path).expect("the setting");
        text.trim().parse::<u64>().expect("a number") * 1024
    }

    pub fn set(&self, bytes: u64) {
        fs::write(&self.path, (bytes / 1024).to_string()).expect("write");
    }

    #[track_caller]
    pub fn expect_restored(&self) {
        assert_eq!(self.bytes(), self.original, "readahead stays changed");
    }

    pub fn is_changed(&self) -> bool {
        self.bytes() != self.original
    }
}

/// What dead runs left, until a start has undone it.
#[derive(Default)]
pub struct Left {
    paths: BTreeSet<PathBuf>,
}

impl Left {
    /// What the journal of a place names.
    pub fn of(place: &Place) -> Self {
        Self { paths: place.journaled("group").into_iter().chain(place.journaled("file")).collect() }
    }

    /// Leaves out what is still announced: it may be there.
    pub fn keep_what_is_not_in(&mut self, other: &Self) {
        self.paths.retain(|path| !other.paths.contains(path));
    }

    pub fn append(&mut self, other: &mut Self) {
        self.paths.append(&mut other.paths);
    }

    /// `clean` undoes all of it, and what the run at `place` has left.
    #[track_caller]
    pub fn expect_cleaned(&mut self, place: &Place) {
        self.append(&mut Self::of(place));
        let cleaned = place.run(&["clean"]);
        assert_eq!((cleaned.code(), &*cleaned.stderr), (0, ""), "{cleaned:?}");
        self.expect_undone();
        assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
        place.expect_no_trace();
    }

    #[track_caller]
    pub fn expect_undone(&mut self) {
        for path in &self.paths {
            assert!(!path.exists(), "{} is left", path.display());
        }
        self.paths.clear();
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        // Of a test that failed; its journal vanishes with its mounts.
        for path in &self.paths {
            let _ = pagewise_host::cgroup::sweep(path);
        }
    }
}
