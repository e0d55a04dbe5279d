//! Changes that are undone, and files that are left alone.

use super::journal::ASIDE;
use super::*;

/// A directory that only this user may enter, with space for more than the state.
pub(crate) fn place() -> tempfile::TempDir {
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    tempfile::Builder::new().permissions(closed).tempdir().expect("directory")
}

fn claimed(directory: &Path, out_of_reach: OutOfReach) -> RunClaim {
    let directory = Directory::open(directory).expect("a directory of our own");
    State::claim_in(directory, "pid 1", out_of_reach).expect("claim")
}

/// The right to run with the state in `directory`, and what a dead run had left there.
pub(crate) fn granted(directory: &Path) -> (State, Swept) {
    match claimed(directory, OutOfReach::Kept) {
        RunClaim::Granted { state, swept } => (state, swept),
        RunClaim::Refused { holder } => panic!("refused by {holder}"),
    }
}

/// Result of the next start with a journal of these lines.
fn swept(directory: &Path, lines: &str) -> Swept {
    std::fs::write(directory.join("journal"), lines).expect("write");
    granted(directory).1
}

fn file(path: &Path) -> JournalEntry {
    JournalEntry::File { path: path.to_path_buf(), parent: None }
}

fn line(entry: &JournalEntry) -> String {
    serde_json::to_string(entry).expect("json") + "\n"
}

fn journal(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("journal")).expect("read")
}

#[test]
fn a_second_run_is_refused_and_the_first_is_named() {
    let directory = place();
    let (_state, _) = granted(directory.path());
    match claimed(directory.path(), OutOfReach::Kept) {
        RunClaim::Refused { holder } => assert_eq!(holder, "pid 1"),
        RunClaim::Granted { .. } => panic!("two runs at once"),
    }
}

#[test]
fn a_claim_waits_for_one_that_only_sweeps() {
    let directory = place();
    let claim = |description| {
        let directory = Directory::open(directory.path()).expect("a directory of our own");
        State::claim_in(directory, description, OutOfReach::Kept).expect("claim")
    };
    let cleaning = claim("pid 1, cleaning");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| claim("pid 2"));
        drop(cleaning);
        assert!(matches!(second.join().expect("join"), RunClaim::Granted { .. }));
    });
}

#[test]
fn what_a_dead_run_left_is_removed_by_the_next() {
    let directory = place();
    let (mut state, _) = granted(directory.path());
    let left = state.reserve(directory.path(), 7).expect("reserve");
    let never_made = state.reserve(directory.path(), 8).expect("reserve");
    std::fs::write(&left, "data").expect("write");
    drop(state);
    let (mut state, swept) = granted(directory.path());
    assert_eq!(swept, Swept { undone: vec![Undone::Removed(left.clone())], ..Swept::default() });
    assert!(!left.exists() && !never_made.exists());
    assert_eq!(state.sweep().expect("sweep"), Swept::default());
}

#[test]
fn a_journal_is_not_followed_to_files_of_others() {
    let directory = place();
    let precious = directory.path().join("precious");
    std::fs::write(&precious, "data").expect("write");
    let line = line(&file(&precious));
    let swept = swept(directory.path(), &format!("{line}{{\"made\":"));
    assert_eq!(swept, Swept::default());
    assert!(precious.exists());
    assert_eq!(journal(directory.path()), "");
}

#[test]
fn a_journal_is_not_followed_to_groups_of_others() {
    let directory = place();
    // Its name could be ours, but it is not a cgroup.
    let by_name = directory.path().join("pagewise-0123456789abcdef");
    std::fs::create_dir(&by_name).expect("directory");
    let link = directory.path().join("pagewise-0123456789abcdee");
    std::os::unix::fs::symlink("/sys/fs/cgroup", &link).expect("link");
    let mut paths = vec![by_name.clone(), link.clone(), "/sys/fs/cgroup".into(), "/".into(), "".into()];
    // Groups of the machine: none below them has a name of ours.
    let machine = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    paths.extend(machine.map(|entry| entry.path()).filter(|path| path.is_dir()));
    let lines: String = paths.iter().map(|path| line(&JournalEntry::Group { path: path.clone() })).collect();
    assert_eq!(swept(directory.path(), &lines), Swept::default());
    assert!(paths.iter().all(|path| path.as_os_str().is_empty() || path.exists()));
    assert_eq!(journal(directory.path()), "");
}

#[test]
fn a_journal_is_not_followed_to_settings() {
    let directory = place();
    let other = Path::new("/proc/sys/vm/swappiness");
    let before = std::fs::read_to_string(other).unwrap_or_default();
    let text =
        format!("{{\"made\":\"setting\",\"path\":\"{}\",\"before\":1024,\"set\":0}}\n", other.display());
    let swept = swept(directory.path(), &text);
    assert_eq!((swept.undone, swept.left, swept.notes.len()), (vec![], vec![], 1));
    assert_eq!(std::fs::read_to_string(other).unwrap_or_default(), before);
}

#[test]
fn what_is_no_line_is_set_aside() {
    let directory = place();
    let left = directory.path().join(format!("{DATASET_PREFIX}7.dataset"));
    let broken: [&[u8]; 3] = [b"\xff\xfe{\"made\"\n", b"\0\0\0\n", b"nonsense\n"];
    for (index, lines) in [broken[0].to_vec(), broken[1..].concat()].into_iter().enumerate() {
        std::fs::write(&left, "data").expect("write");
        let bytes = [&lines, line(&file(&left)).as_bytes()].concat();
        std::fs::write(directory.path().join("journal"), bytes).expect("write");
        let (_, swept) = granted(directory.path());
        assert_eq!((swept.undone, swept.left), (vec![Undone::Removed(left.clone())], vec![]));
        let said =
            ["1 broken line of the journal of earlier runs moved to ", "2 broken lines of the journal"];
        assert!(swept.notes[0].starts_with(said[index]), "{:?}", swept.notes);
        assert_eq!(journal(directory.path()), "");
    }
    let aside = std::fs::read(directory.path().join(ASIDE)).expect("read");
    assert_eq!(aside, broken.concat());
    assert_eq!(granted(directory.path()).1, Swept::default());
}

#[test]
fn a_file_in_a_directory_that_is_not_there_is_kept_and_reported_until_it_is_forgotten() {
    let directory = place();
    let data = directory.path().join("data");
    let away = directory.path().join("away");
    std::fs::create_dir(&data).expect("directory");
    let (mut state, _) = granted(directory.path());
    let left: Vec<PathBuf> = (7..9).map(|number| state.reserve(&data, number).expect("reserve")).collect();
    let never_made = state.reserve(&data, 9).expect("reserve");
    left.iter().for_each(|path| std::fs::write(path, "data").expect("write"));
    drop(state);
    std::fs::rename(&data, &away).expect("rename");
    for _ in 0..2 {
        let (_, swept) = granted(directory.path());
        assert_eq!((swept.undone, swept.left.len()), (vec![], 1));
        assert!(swept.left[0].starts_with("3 files in a directory that was moved or removed remain: "));
        // Another file with its name is not it.
        let _ = std::fs::create_dir(&data);
    }
    std::fs::remove_dir(&data).expect("remove");
    std::fs::rename(&away, &data).expect("rename");
    let (_, swept) = granted(directory.path());
    assert_eq!(swept.undone.len(), 2);
    assert_eq!(
        swept.left,
        Vec::<String>::new(),
        "{} was never made, in this very directory",
        never_made.display()
    );
    assert!(left.iter().all(|path| !path.exists()));

    let (mut state, _) = granted(directory.path());
    state.reserve(&data, 10).expect("reserve");
    drop(state);
    std::fs::remove_dir(&data).expect("remove");
    assert_eq!(granted(directory.path()).1.left.len(), 1);
    match claimed(directory.path(), OutOfReach::Forgotten) {
        RunClaim::Granted { swept, .. } => assert!(swept.notes[0].starts_with("forgot "), "{swept:?}"),
        RunClaim::Refused { holder } => panic!("refused by {holder}"),
    }
    assert_eq!(granted(directory.path()).1, Swept::default());
}

#[test]
fn what_another_machine_or_boot_made_is_distinguished() {
    let directory = place();
    let path = directory.path().join(format!("{DATASET_PREFIX}7.dataset"));
    std::fs::write(&path, "data").expect("write");
    let (mut state, _) = granted(directory.path());
    state.reserve(directory.path(), 7).expect("reserve");
    state.announce_groups(&["/sys/fs/cgroup/pagewise-0123456789abcdef".into()]).expect("announce");
    drop(state);
    let text = journal(directory.path());
    assert!(
        text.contains("\"host\":\"") && text.contains("\"boot\":\"") && text.contains("\"inode\":"),
        "{text}"
    );
    // On another machine the same path is another file.
    let elsewhere = text.replace(&pagewise_host::boot::machine(), "elsewhere");
    let swept = swept(directory.path(), &elsewhere);
    assert_eq!(swept.left.len(), 1);
    assert!(swept.left[0].starts_with("2 traces on another machine (elsewhere) remain: "), "{swept:?}");
    assert!(path.exists());
    assert_eq!(journal(directory.path()), elsewhere);
}

#[test]
fn a_group_in_a_hierarchy_that_is_not_mounted_is_kept() {
    let directory = place();
    let (mut state, _) = granted(directory.path());
    let group = directory.path().join("memory/pagewise-0123456789abcdef");
    state.announce_groups(std::slice::from_ref(&group)).expect("announce");
    drop(state);
    let swept = granted(directory.path()).1;
    let said = format!("1 cgroup of a hierarchy that is not mounted remains: {} (", group.display());
    assert!(swept.left.len() == 1 && swept.left[0].starts_with(&said), "{swept:?}");
    // After a boot it does not exist.
    let boot = pagewise_host::boot::boot().expect("a boot");
    let text = journal(directory.path()).replace(&boot, "another");
    assert_eq!(self::swept(directory.path(), &text), Swept::default());
}

#[test]
fn what_cannot_be_announced_is_not_made() {
    let directory = place();
    let (mut state, _) = granted(directory.path());
    state.reserve(directory.path(), 7).expect("reserve");
    let error = state.reserve(Path::new("/nowhere"), 8).expect_err("no such directory");
    assert!(error.to_string().contains("/nowhere cannot be examined"), "{error:#}");
    assert_eq!(journal(directory.path()).lines().count(), 1);
}

#[test]
fn lock_and_journal_are_no_links() {
    for name in [LOCK, journal::NAME] {
        let directory = place();
        let victim = directory.path().join("victim");
        std::fs::write(&victim, "precious").expect("write");
        std::os::unix::fs::symlink("victim", directory.path().join(name)).expect("link");
        let state = Directory::open(directory.path()).expect("open");
        let refused = State::claim_in(state, "pid 1", OutOfReach::Kept).map(drop).expect_err("a link");
        assert!(format!("{refused:#}").ends_with(&format!("{name} is a link")), "{refused:#}");
        assert_eq!(std::fs::read_to_string(&victim).expect("read"), "precious");
    }
}

#[test]
fn what_cannot_be_undone_is_reported_and_tried_again() {
    let directory = place();
    // unlink(2) does not remove a directory.
    let stuck = directory.path().join(format!("{DATASET_PREFIX}7.dataset"));
    std::fs::create_dir(&stuck).expect("directory");
    let lines = line(&file(&stuck));
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
