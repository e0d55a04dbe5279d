//! Several files of the user: each of them counts.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;

use super::*;

/// Three files with their paths.
fn input(directory: &Path, sizes: [usize; 3]) -> (Vec<PathBuf>, Input) {
    let made = |(number, size): (usize, usize)| {
        let path = directory.join(format!("file{number}"));
        let mut file = File::create_new(&path).expect("a new file");
        file.write_all(&vec![7; size]).expect("write");
        file.sync_all().expect("sync");
        let (file, identity) = files::identify(&path).expect("a file");
        (path, file, identity)
    };
    let mut all: Vec<_> = sizes.into_iter().enumerate().map(made).collect();
    let paths = all.iter().map(|(path, ..)| path.clone()).collect();
    let others = all.split_off(1);
    let (path, file, identity) = all.pop().expect("the first one");
    let input = Input::of_user(path, file, identity).expect("an input");
    (paths, input.with_others(others).expect("with others"))
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

#[test]
fn a_change_of_any_file_is_noticed_by_its_name() {
    for changed in 0..3 {
        let directory = directory();
        let (paths, input) = input(directory.path(), [5000, 5000, 5000]);
        input.check_unchanged().expect("as it was");
        let file = File::options().write(true).open(&paths[changed]).expect("open");
        let later = std::time::SystemTime::now() + Duration::from_secs(5);
        file.set_modified(later).expect("touch");
        let written = input.check_unchanged().expect_err("written");
        assert_eq!(written.detail, format!("{} was written to during the run", paths[changed].display()));
        file.set_len(5001).expect("grow");
        let grown = input.check_unchanged().expect_err("grown").detail;
        let size = format!("{} changed its size from 5000 to 5001 bytes", paths[changed].display());
        assert!(grown.starts_with(&size), "{grown}");
    }
}

#[test]
fn all_files_have_the_state_of_the_cache() {
    let directory = directory();
    let (_, input) = input(directory.path(), [100_000, 1, 9000]);
    if input.in_memory().is_some() {
        println!("skipped: disk: {} keeps its files in memory", directory.path().display());
        return;
    }
    assert_eq!((input.file_bytes, input.parts(0).count()), (109_001, 3));
    let go = AtomicBool::new(false);
    let stays = |_: NoState| panic!("a state that was not reached");
    let resident = || input.residency(input.file_bytes).resident_bytes;
    input.make_warm(input.file_bytes, &go).unwrap_or_else(stays);
    assert_eq!(resident(), Some(109_001));
    input.make_cold(input.file_bytes, false).unwrap_or_else(stays);
    assert_eq!(resident(), Some(0));
    // Whatever is read ahead of one page is added to the pages that are there.
    let recorded: [ResidentPages; 3] = [(2..4).collect(), ResidentPages::default(), (0..3).collect()];
    input.make_as_recorded(input.file_bytes, &recorded, false, &go).unwrap_or_else(stays);
    assert_eq!(input.unlike_recorded(input.file_bytes, &recorded), Ok((0, 0)));
    let page = rustix::param::page_size() as u64;
    let other: [ResidentPages; 3] = [(2..4).collect(), (0..1).collect(), (0..2).collect()];
    assert_eq!(input.unlike_recorded(input.file_bytes, &other), Ok((page, page)), "of two of the files");
}

#[test]
fn what_a_worker_shows_is_shown_by_its_name() {
    let directory = directory();
    let (paths, input) = input(directory.path(), [10, 10, 10]);
    for ((file, _), path) in input.parts(10).zip(&paths) {
        let shown = format!("pread at offset 5 of {} returned 0", descriptor_path(file));
        assert_eq!(input.named(shown), format!("pread at offset 5 of {} returned 0", path.display()));
    }
    let (first, _) = input.parts(10).next().expect("a file");
    let longer = format!("/proc/{}/fd/{}0000000", std::process::id(), first.as_raw_fd());
    assert_eq!(input.named(longer.clone()), longer, "another descriptor");
}
