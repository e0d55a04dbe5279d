//! Detection of DAMON actions that reclaim idle memory (Documentation/admin-guide/mm/damon). With
//! such an action, pages that a run has warmed may be evicted without memory pressure.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::kernel_files;

/// Actions that evict pages or make them the first to be evicted.
const RECLAIMING: [&str; 3] = ["pageout", "cold", "lru_deprio"];

/// The reclaiming action in force, for a sentence, by the files below `sys` and the threads below
/// `proc`; `None` without one. Only root can read it: for others, a thread of DAMON may have one.
pub(crate) fn reclaiming_action(sys: &Path, proc: &Path) -> Option<String> {
    let hidden = || is_hidden(sys) && has_thread(proc);
    let known = readable_action(sys).map(|action| format!("'{action}'"));
    known.or_else(|| hidden().then(|| "only root can read its action".to_string()))
}

/// True if a state of DAMON is there, and cannot be read.
fn is_hidden(sys: &Path) -> bool {
    let states =
        numbered(&sys.join("kernel/mm/damon/admin/kdamonds")).into_iter().map(|one| one.join("state"));
    let mut files = states.chain([sys.join("module/damon_reclaim/parameters/enabled")]);
    files.any(|file| fs::read(file).is_err_and(|error| error.kind() != ErrorKind::NotFound))
}

/// True if a thread of DAMON runs.
fn has_thread(proc: &Path) -> bool {
    let name = |process: &PathBuf| kernel_files::text(process.join("comm"));
    numbered(proc).iter().filter_map(name).any(|name| name.starts_with("kdamond"))
}

/// The reclaiming action, by the kernel's name.
fn readable_action(sys: &Path) -> Option<String> {
    let module = sys.join("module/damon_reclaim/parameters/enabled");
    if kernel_files::text(module).is_some_and(|enabled| enabled == "Y") {
        return Some("pageout".to_string());
    }
    numbered(&sys.join("kernel/mm/damon/admin/kdamonds"))
        .into_iter()
        .filter(|kdamond| kernel_files::text(kdamond.join("state")).as_deref() == Some("on"))
        .flat_map(|kdamond| numbered(&kdamond.join("contexts")))
        .flat_map(|context| numbered(&context.join("schemes")))
        .filter_map(|scheme| kernel_files::text(scheme.join("action")))
        .find(|action| RECLAIMING.contains(&action.as_str()))
}

/// The directories 0, 1, … below `parent`.
fn numbered(parent: &Path) -> Vec<PathBuf> {
    kernel_files::numbered(parent).map(|number: u32| parent.join(number.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(state: &str, action: &str) -> tempfile::TempDir {
        let sys = tempfile::tempdir().expect("directory");
        let kdamond = sys.path().join("kernel/mm/damon/admin/kdamonds/0");
        let scheme = kdamond.join("contexts/0/schemes/0");
        fs::create_dir_all(&scheme).expect("directories");
        fs::write(kdamond.join("state"), format!("{state}\n")).expect("state");
        fs::write(scheme.join("action"), format!("{action}\n")).expect("action");
        sys
    }

    #[test]
    fn only_a_running_scheme_that_reclaims_is_named() {
        let action = |sys: &Path| reclaiming_action(sys, Path::new("/nowhere"));
        assert_eq!(action(scheme("on", "pageout").path()).as_deref(), Some("'pageout'"));
        assert_eq!(action(scheme("off", "pageout").path()), None);
        assert_eq!(action(scheme("on", "stat").path()), None);
        assert_eq!(action(Path::new("/nowhere/at/all")), None);
    }

    #[test]
    fn an_action_that_cannot_be_read_is_reported_if_a_thread_runs() {
        let (sys, proc) = (scheme("on", "pageout"), tempfile::tempdir().expect("directory"));
        let state = sys.path().join("kernel/mm/damon/admin/kdamonds/0/state");
        fs::remove_file(&state).expect("state");
        // For root, every file can be read; a directory cannot, for anybody.
        fs::create_dir(&state).expect("state");
        fs::create_dir(proc.path().join("7")).expect("process");
        let action_beside = |thread: &str| {
            fs::write(proc.path().join("7/comm"), thread).expect("comm");
            reclaiming_action(sys.path(), proc.path())
        };
        assert_eq!(action_beside("kswapd0\n"), None);
        assert_eq!(action_beside("kdamond.0\n").as_deref(), Some("only root can read its action"));
    }

    #[test]
    fn the_module_that_reclaims_is_named() {
        let sys = tempfile::tempdir().expect("directory");
        let parameters = sys.path().join("module/damon_reclaim/parameters");
        fs::create_dir_all(&parameters).expect("directories");
        fs::write(parameters.join("enabled"), "Y\n").expect("enabled");
        assert_eq!(reclaiming_action(sys.path(), Path::new("/nowhere")).as_deref(), Some("'pageout'"));
    }
}
