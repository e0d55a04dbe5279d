//! What is undone, and what is left alone.

use super::*;

fn granted(directory: &Path) -> (State, Swept) {
    match State::claim_in(directory, "pid 1").expect("claim") {
        Claim::Granted { state, swept } => (state, swept),
        Claim::Refused { holder } => panic!("refused by {holder}"),
    }
}

/// What the next start makes of a journal with these lines.
fn swept(directory: &Path, lines: &str) -> Swept {
    std::fs::write(directory.join("journal"), lines).expect("write");
    granted(directory).1
}

fn line(entry: &Entry) -> String {
    serde_json::to_string(entry).expect("json") + "\n"
}

fn journal(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("journal")).expect("read")
}

#[test]
fn a_second_run_is_refused_and_told_of_the_first() {
    let directory = tempfile::tempdir().expect("directory");
    let (_state, _) = granted(directory.path());
    match State::claim_in(directory.path(), "pid 2").expect("claim") {
        Claim::Refused { holder } => assert_eq!(holder, "pid 1"),
        Claim::Granted { .. } => panic!("two runs at once"),
    }
}

#[test]
fn what_a_dead_run_left_is_removed_by_the_next() {
    let directory = tempfile::tempdir().expect("directory");
    let (mut state, _) = granted(directory.path());
    let left = state.reserve(directory.path(), 7).expect("reserve");
    let never_made = state.reserve(directory.path(), 8).expect("reserve");
    std::fs::write(&left, "data").expect("write");
    drop(state);
    let (mut state, swept) = granted(directory.path());
    assert_eq!(swept, Swept { undone: vec![Undone::Removed(left.clone())], left: Vec::new() });
    assert!(!left.exists() && !never_made.exists());
    assert_eq!(state.sweep().expect("sweep"), Swept::default());
}

#[test]
fn a_journal_is_not_followed_to_files_of_others() {
    let directory = tempfile::tempdir().expect("directory");
    let precious = directory.path().join("precious");
    std::fs::write(&precious, "data").expect("write");
    let line = line(&Entry::File { path: precious.clone() });
    let swept = swept(directory.path(), &format!("{line}nonsense\n{{\"made\":"));
    assert_eq!(swept, Swept::default());
    assert!(precious.exists());
    assert_eq!(journal(directory.path()), "");
}

#[test]
fn a_journal_is_not_followed_to_groups_of_others() {
    let directory = tempfile::tempdir().expect("directory");
    // By its name it could be ours, but it is no cgroup.
    let by_name = directory.path().join("pagewise-0123456789abcdef");
    std::fs::create_dir(&by_name).expect("directory");
    let link = directory.path().join("pagewise-0123456789abcdee");
    std::os::unix::fs::symlink("/sys/fs/cgroup", &link).expect("link");
    let mut paths = vec![by_name.clone(), link.clone(), "/sys/fs/cgroup".into(), "/".into(), "".into()];
    // Groups of the machine: a name of ours is nowhere below them.
    let machine = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    paths.extend(machine.map(|entry| entry.path()).filter(|path| path.is_dir()));
    let lines: String = paths.iter().map(|path| line(&Entry::Group { path: path.clone() })).collect();
    assert_eq!(swept(directory.path(), &lines), Swept::default());
    assert!(paths.iter().all(|path| path.as_os_str().is_empty() || path.exists()));
    assert_eq!(journal(directory.path()), "");
}

#[test]
fn a_journal_is_not_followed_to_settings_of_others() {
    let directory = tempfile::tempdir().expect("directory");
    let setting = directory.path().join("read_ahead_kb");
    std::fs::write(&setting, "128\n").expect("write");
    let other = Path::new("/proc/sys/vm/swappiness");
    let before = std::fs::read_to_string(other).unwrap_or_default();
    let set = before.trim().parse::<u64>().map_or(0, |value| value << 10);
    let lines = line(&Entry::Setting { path: setting.clone(), before: 8 << 20, set: 128 << 10 })
        + &line(&Entry::Setting { path: other.into(), before: 1 << 10, set });
    assert_eq!(swept(directory.path(), &lines), Swept::default());
    assert_eq!(std::fs::read_to_string(&setting).expect("read"), "128\n");
    assert_eq!(std::fs::read_to_string(other).unwrap_or_default(), before);
    assert_eq!(journal(directory.path()), "");
}

#[test]
fn what_cannot_be_undone_is_told_and_tried_again() {
    let directory = tempfile::tempdir().expect("directory");
    // A directory is removed by no unlink(2).
    let stuck = directory.path().join(format!("{DATASET_PREFIX}7.dataset"));
    std::fs::create_dir(&stuck).expect("directory");
    let lines = line(&Entry::File { path: stuck.clone() });
    let first = swept(directory.path(), &lines);
    assert_eq!(first.undone, []);
    assert_eq!(first.left.len(), 1);
    assert!(first.left[0].starts_with(&format!("{} cannot be undone: ", stuck.display())), "{first:?}");
    assert_eq!(journal(directory.path()), lines);
    std::fs::remove_dir(&stuck).expect("remove");
    std::fs::write(&stuck, "").expect("write");
    let (_, second) = granted(directory.path());
    assert_eq!(second.undone, [Undone::Removed(stuck)]);
}
