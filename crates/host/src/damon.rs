//! Detection of DAMON actions that reclaim idle memory (Documentation/admin-guide/mm/damon). With such an action, pages
//! that a run has warmed may be evicted without memory pressure.

use std::fs;
use std::path::Path;

use crate::kernel_files;

/// Actions that evict pages or make them the first to be evicted.
const RECLAIMING: [&str; 3] = ["pageout", "cold", "lru_deprio"];

/// The reclaiming action in force, by the kernel's name; `None` if none is visible.
pub(crate) fn reclaiming_action(sys: &Path) -> Option<String> {
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
fn numbered(parent: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
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
        assert_eq!(reclaiming_action(scheme("on", "pageout").path()).as_deref(), Some("pageout"));
        assert_eq!(reclaiming_action(scheme("off", "pageout").path()), None);
        assert_eq!(reclaiming_action(scheme("on", "stat").path()), None);
        assert_eq!(reclaiming_action(Path::new("/nowhere/at/all")), None);
    }

    #[test]
    fn the_module_that_reclaims_is_named() {
        let sys = tempfile::tempdir().expect("directory");
        let parameters = sys.path().join("module/damon_reclaim/parameters");
        fs::create_dir_all(&parameters).expect("directories");
        fs::write(parameters.join("enabled"), "Y\n").expect("enabled");
        assert_eq!(reclaiming_action(sys.path()).as_deref(), Some("pageout"));
    }
}
