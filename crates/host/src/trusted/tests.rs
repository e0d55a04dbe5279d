//! Refusals at each step of a path. As root the other user is `nobody`; otherwise tests that need
//! one are skipped.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

const NOBODY: u32 = 65_534;

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

#[track_caller]
fn refused(result: Result<impl Sized, Refusal>) -> String {
    result.map(drop).expect_err("refused").to_string()
}

#[test]
fn what_is_missing_is_made_for_the_user_alone() {
    let place = place();
    let path = place.path().join("one/two");
    assert!(Directory::open(&path).expect_err("missing").is_missing());
    let made = Directory::make(&path).expect("made");
    assert_eq!(made.path(), path);
    for path in [path.clone(), place.path().join("one")] {
        assert_eq!(fs::metadata(path).expect("stat").permissions().mode() & 0o777, 0o700);
    }
    let again = Directory::open(&path).expect("open");
    assert_eq!(again.key().expect("key"), made.key().expect("key"));
    fs::write(again.through("file"), "x").expect("write");
    assert_eq!(made.names().expect("names"), ["file"]);
    made.sync().expect("fsync");
}

#[test]
fn a_directory_that_others_can_write_is_refused_on_the_way_and_at_the_end() {
    let place = place();
    let shared = place.path().join("shared");
    fs::create_dir(&shared).expect("directory");
    for bits in [0o777, 0o2775, 0o757] {
        mode(&shared, bits);
        if bits == 0o2775 && geteuid().is_root() {
            chown(&shared, None, Some(NOBODY)).expect("chgrp");
            mode(&shared, bits);
        } else if bits == 0o2775 {
            continue;
        }
        let said = format!("{} can be written by others", shared.display());
        assert_eq!(refused(Directory::make(&shared)), said);
        assert_eq!(refused(Directory::make(&shared.join("below"))), said);
        assert!(!shared.join("below").exists(), "nothing is made below a step that is refused");
    }
    // With the sticky bit its content cannot be exchanged, though it does not belong to the user.
    mode(&shared, 0o1777);
    assert!(refused(Directory::make(&shared)).ends_with("can be written by others"));
    Directory::make(&shared.join("below")).expect("made");
}

#[test]
fn what_belongs_to_another_user_is_refused_on_the_way_and_at_the_end() {
    if !geteuid().is_root() {
        return println!("skipped: root: only root can give a directory away");
    }
    let place = place();
    let theirs = place.path().join("theirs");
    fs::create_dir(&theirs).expect("directory");
    chown(&theirs, Some(NOBODY), Some(NOBODY)).expect("chown");
    let said = format!("{} belongs to user {NOBODY}, not to user 0", theirs.display());
    assert_eq!(refused(Directory::make(&theirs)), said);
    assert_eq!(refused(Directory::make(&theirs.join("a/b"))), said);
    assert!(!theirs.join("a").exists());
    // A link of theirs, even if only the sticky bit lets them make one.
    let own = place.path().join("own");
    fs::create_dir_all(own.join("below")).expect("directory");
    let link = place.path().join("link");
    symlink(&own, &link).expect("link");
    Directory::open(&link.join("below")).expect("the user's own link is followed");
    std::os::unix::fs::lchown(&link, Some(NOBODY), None).expect("chown");
    assert_eq!(
        refused(Directory::open(&link.join("below"))),
        format!("{} belongs to user {NOBODY}, not to user 0", link.display())
    );
}

#[test]
fn links_are_followed_on_the_way_only() {
    let place = place();
    fs::create_dir_all(place.path().join("real/below")).expect("directory");
    symlink("real", place.path().join("relative")).expect("link");
    symlink(place.path().join("relative"), place.path().join("absolute")).expect("link");
    symlink("loop", place.path().join("loop")).expect("link");
    for name in ["relative/below", "absolute/below", "real/../absolute/below"] {
        Directory::open(&place.path().join(name)).expect(name);
    }
    let link = place.path().join("relative");
    assert_eq!(refused(Directory::make(&link)), format!("{} is a link", link.display()));
    assert!(refused(Directory::make(&place.path().join("loop/x"))).ends_with("is a link"));
    fs::write(place.path().join("file"), "").expect("write");
    let said = refused(Directory::make(&place.path().join("file/x")));
    assert!(said.starts_with("open ") && said.contains("file: Not a directory"), "{said}");
}

#[test]
fn a_file_is_the_users_own_and_has_one_name() {
    let place = place();
    let directory = Directory::open(place.path()).expect("open");
    let make = OFlags::RDWR | OFlags::CREATE;
    drop(directory.file("lock", make).expect("made"));
    assert_eq!(fs::metadata(place.path().join("lock")).expect("stat").permissions().mode() & 0o777, 0o600);
    fs::hard_link(place.path().join("lock"), place.path().join("second")).expect("link");
    assert!(refused(directory.file("lock", make)).contains("lock has 2 names"));
    symlink("second", place.path().join("link")).expect("link");
    assert!(refused(directory.file("link", make)).ends_with("link is a link"));
    symlink("nowhere", place.path().join("dangling")).expect("link");
    assert!(refused(directory.file("dangling", make)).ends_with("dangling is a link"));
    assert!(!place.path().join("nowhere").exists());
    rustix::fs::mknodat(&directory, "pipe", rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .expect("fifo");
    assert!(refused(directory.file("pipe", OFlags::RDWR)).ends_with("pipe is not a regular file"));
    fs::write(place.path().join("open"), "").expect("write");
    mode(&place.path().join("open"), 0o666);
    assert!(refused(directory.file("open", make)).ends_with("open can be written by others"));
}

#[test]
fn a_directory_with_other_things_keeps_its_mode() {
    let place = place();
    let path = place.path().join("state");
    fs::create_dir(&path).expect("directory");
    mode(&path, 0o755);
    let directory = Directory::open(&path).expect("open");
    fs::write(path.join("letters"), "").expect("write");
    assert!(
        refused(directory.close_to_others(&["lock"])).contains("is open to others and contains other files")
    );
    assert_eq!(fs::metadata(&path).expect("stat").permissions().mode() & 0o777, 0o755);
    fs::rename(path.join("letters"), path.join("lock")).expect("rename");
    directory.close_to_others(&["lock"]).expect("closed");
    assert_eq!(fs::metadata(&path).expect("stat").permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_file_that_could_be_exchanged_is_reported() {
    let place = place();
    let path = place.path().join("run.jsonl");
    fs::write(&path, "").expect("write");
    let open = || File::open(&path).expect("open");
    check(&open(), &path).expect("nobody else");
    symlink(place.path(), place.path().join("way")).expect("link");
    check(&open(), &place.path().join("way/run.jsonl")).expect("the user's own link on the way");
    symlink("run.jsonl", place.path().join("name")).expect("link");
    assert!(refused(check(&open(), &place.path().join("name"))).contains("was exchanged"));
    let held = open();
    fs::rename(&path, place.path().join("other")).expect("rename");
    fs::write(&path, "").expect("write");
    assert!(refused(check(&held, &path)).contains("was exchanged"));
    mode(place.path(), 0o777);
    assert!(refused(check(&open(), &path)).ends_with("can be written by others"));
    mode(place.path(), 0o1777);
    check(&open(), &path).expect("sticky");
    mode(&path, 0o662);
    assert!(refused(check(&open(), &path)).ends_with("run.jsonl can be written by others"));
    if geteuid().is_root() {
        mode(&path, 0o644);
        chown(&path, Some(NOBODY), None).expect("chown");
        assert!(refused(check(&open(), &path)).ends_with("belongs to user 65534, not to user 0"));
    }
}
