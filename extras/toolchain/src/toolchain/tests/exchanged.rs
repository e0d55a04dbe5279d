//! A cache folder that another user could write or exchange: nothing in it is run, and nothing is
//! made there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;
use crate::toolchain::store::stamp_of;
use pagewise_host::trusted::Directory;

const NOBODY: u32 = 65_534;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

/// Python, its worker as another user would prepare it, and its path below the cache folder.
fn prepared(fakes: &mut Fakes) -> (Found, PathBuf) {
    fakes.python("bin/python3", "3.11.7", "without numpy");
    let found = fakes.found(&python::RECIPE);
    fakes.set("XDG_CACHE_HOME", fakes.path("attack"));
    let folder = folder_of(&fakes.build(&found).expect("built"));
    fs::write(folder.join("worker.py"), "evil\n").expect("write");
    let stamp = stamp_of(&Directory::open(&folder).expect("open")).expect("a stamp");
    fs::write(folder.join("complete"), stamp).expect("write");
    let taken = folder_of(&fakes.build(&found).expect("taken"));
    assert_eq!(fs::read_to_string(taken.join("worker.py")).expect("read"), "evil\n", "it is complete");
    (found, fakes.path("attack/pagewise"))
}

/// Give everything below a path to another user.
fn give(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).expect("chown");
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        fs::read_dir(path).expect("list").flatten().for_each(|entry| give(&entry.path()));
    }
}

#[test]
fn what_another_user_prepared_is_not_run() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: root: only root can give files to another user");
    }
    let mut fakes = Fakes::new();
    let (found, attack) = prepared(&mut fakes);
    let shared = fakes.path("shared");
    fs::create_dir(&shared).expect("folder");
    mode(&shared, 0o1777);
    fakes.set("XDG_CACHE_HOME", &shared);
    let step = shared.join("pagewise");
    // A link to the user's own folder, made by another user: it may lead elsewhere a moment later.
    symlink(&attack, &step).expect("link");
    give(&step);
    assert_says(&fakes.unbuilt(&found), &["shared/pagewise belongs to user 65534, not to user 0"]);
    fs::remove_file(&step).expect("remove");
    // A folder of the other user with a link to one of ours.
    fs::create_dir(&step).expect("folder");
    symlink(attack.join("workers"), step.join("workers")).expect("link");
    give(&step);
    assert_says(&fakes.unbuilt(&found), &["shared/pagewise belongs to user 65534, not to user 0"]);
    fs::remove_dir_all(&step).expect("remove");
    // All theirs.
    fs::rename(&attack, &step).expect("rename");
    give(&step);
    assert_says(&fakes.unbuilt(&found), &["shared/pagewise belongs to user 65534, not to user 0"]);
    // The steps above are ours, and the content of the last one theirs: it is built anew.
    for path in [&step, &step.join("workers")] {
        chown(path, Some(0), Some(0)).expect("chown");
    }
    let _ = fs::remove_file(step.join("workers/.lock"));
    let built = fakes.build(&found).expect("built");
    assert_eq!(fs::read_to_string(folder_of(&built).join("worker.py")).expect("read"), SOURCE);
    // Only a file theirs.
    chown(folder_of(&built).join("worker.py"), Some(NOBODY), None).expect("chown");
    let built = fakes.build(&found).expect("built");
    let metadata = fs::metadata(folder_of(&built).join("worker.py")).expect("stat");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&metadata), 0);
}

#[test]
fn a_cache_folder_that_others_write_is_refused_and_nothing_is_made() {
    let mut fakes = Fakes::new();
    fakes.python("bin/python3", "3.11.7", "without numpy");
    let found = fakes.found(&python::RECIPE);
    let shared = fakes.path("shared");
    fs::create_dir(&shared).expect("folder");
    mode(&shared, 0o777);
    fakes.set("XDG_CACHE_HOME", &shared);
    assert_says(&fakes.unbuilt(&found), &["shared can be written by others; set XDG_CACHE_HOME"]);
    let line = fakes.toolchain_variables.capability(&python::RECIPE, &WorkerChoices::default());
    assert!(line.reason().is_some_and(|reason| reason.contains("shared can be written by others")), "{line}");
    assert_eq!(names(&shared), Vec::<String>::new());
    // The sticky bit keeps others from exchanging what is made there.
    mode(&shared, 0o1777);
    fakes.build(&found).expect("built");
}

#[test]
fn a_worker_is_reached_by_the_folder_that_was_looked_at() {
    let fakes = Fakes::new();
    fakes.python("bin/python3", "3.11.7", "without numpy");
    let built = fakes.build(&fakes.found(&python::RECIPE)).expect("built");
    assert_eq!(built.program.arguments[..2], built.program.command()[1..3]);
    let script = &built.program.arguments[2];
    assert!(script.starts_with("/proc/") && script.ends_with("/worker.py"), "{script}");
    // Whatever has its name by now.
    let folder = folder_of(&built);
    fs::rename(&folder, folder.with_extension("old")).expect("rename");
    fs::create_dir(&folder).expect("folder");
    fs::write(folder.join("worker.py"), "evil\n").expect("write");
    assert_eq!(fs::read_to_string(script).expect("read"), SOURCE);
}

#[test]
fn whatever_the_umask_others_cannot_write_what_is_run() {
    let fakes = Fakes::new();
    let umask = r#"umask 0
while [ $# -gt 0 ]; do [ "$1" = -d ] && out=$2; shift; done
echo built >> "$HOME/built"; /bin/mkdir "$out/pagewise"; echo class > "$out/pagewise/Worker.class""#;
    fakes.jdk_with("system/usr/lib/jvm/jdk-25", "25.0.1", umask);
    let found = fakes.found(&jvm::RECIPE);
    let built = fakes.build(&found).expect("built");
    let class = fs::metadata(folder_of(&built).join("pagewise/Worker.class")).expect("stat");
    assert_eq!(class.permissions().mode() & 0o022, 0);
    fakes.build(&found).expect("built before");
    assert_eq!(fakes.builds(), 1);
}
