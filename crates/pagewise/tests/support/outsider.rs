//! Somebody else on the machine, who does something to a run from outside while it measures.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pagewise_host::Control;

use super::Place;

/// Acts beside a run until it is dropped.
pub struct Outsider {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Outsider {
    /// Calls `act` again and again, at most every millisecond.
    pub fn acting(mut act: impl FnMut() + Send + 'static) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while !theirs.load(Ordering::Relaxed) {
                act();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { ended, thread: Some(thread) }
    }

    /// Calls `act` once with the id of each process of the run at `place` whose first argument is `word`: `worker`, or
    /// `warm` for what warms the cache from inside a group.
    pub fn meeting(place: &Place, word: &'static str, mut act: impl FnMut(u32) + Send + 'static) -> Self {
        let state = place.state();
        let mut met = Vec::new();
        Self::acting(move || {
            for pid in processes(&state, word) {
                if !met.contains(&pid) {
                    met.push(pid);
                    act(pid);
                }
            }
        })
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Processes with this state directory and first argument.
fn processes(state: &Path, word: &str) -> Vec<u32> {
    let mark = format!("PAGEWISE_STATE_DIR={}", state.display());
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let is_wanted = |pid: &u32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let environment = || fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).nth(1) == Some(word.as_bytes())
            && environment().split(|byte| *byte == 0).any(|line| line == mark.as_bytes())
    };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(is_wanted)
        .collect()
}

/// The dataset that a run at this place has made; `None` before and after it.
pub fn dataset(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let mut datasets = entries.filter(|entry| {
        entry.file_name().to_string_lossy().starts_with(".pagewise-")
            && entry.metadata().is_ok_and(|metadata| metadata.len() >= 1 << 20)
    });
    datasets.next().map(|entry| entry.path())
}

/// Sets the memory limit of the group that process `pid` is in; `None` if it is in none of pagewise's.
pub fn set_limit(pid: u32, bytes: u64) -> Option<()> {
    let membership = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let name = membership.lines().find_map(|line| {
        let name = line.rsplit('/').next()?;
        name.starts_with("pagewise-").then_some(name)
    })?;
    let control = Control::detect();
    let group = control.memory().ok()?.parent().join(name);
    let write = |file: &str| fs::write(group.join(file), bytes.to_string());
    if group.join("memory.max").exists() {
        return write("memory.max").ok();
    }
    // Memory with swap cannot be below memory, so which comes first depends on the direction: either way one holds.
    let _ = write("memory.memsw.limit_in_bytes");
    let set = write("memory.limit_in_bytes").ok();
    let _ = write("memory.memsw.limit_in_bytes");
    set
}
