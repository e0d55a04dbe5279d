//! Programs that `pagewise advise` has nothing to say about.

use std::fs;
use std::process::Command;

use crate::support::{Place, advise, expect_message, expect_refused, is_root, sees_calls};

#[test]
fn what_cannot_be_advised_is_reported() {
    let place = Place::on(&std::env::temp_dir());
    let path = place.write_synced("data.bin", vec![7; 8 << 20]);
    place.write("taken.trace", "x");
    place.write("taken.jsonl", "x");
    let refused: [(&[&str], &str); 7] = [
        (&["advise"], "COMMAND"),
        (&["advise", "--", "cat", &path], "allow it with: pagewise advise --evict -- cat "),
        (&["advise", "--evict", "--out=taken.jsonl", "--", "cat"], "taken.jsonl exists: name another file"),
        (&["advise", "--evict", "--out=taken.txt", "--", "cat"], "taken.trace exists: name another file"),
        (&["advise", "--evict", "--out=new.trace", "--", "cat"], "new.trace is the name of the trace"),
        (&["advise", "--evict", "--methods=pwrite", "--", "cat"], "'pwrite' is not a method for replay"),
        (&["advise", "--evict", "--file=gone", "--", "touch", "executed"], "gone: No such file"),
    ];
    for (words, sentence) in refused {
        expect_refused(&place.run(words), sentence);
    }
    if !is_root() || !sees_calls() {
        return;
    }
    expect_message(&place.run(&advise(&[], &["no-such-command"])), 127, "there is no such command");
    expect_message(&place.run(&advise(&[], &[&path])), 126, "cannot be executed");
    let expect_ended = |command: &[&str], code: i32, sentence: &str| {
        // Other locales have files that are read.
        let mut run: Command = place.command(&advise(&["--json"], command));
        let finished = place.finish(run.env("LC_ALL", "C").spawn().expect("start"));
        assert_eq!(finished.status.code(), Some(code), "{}", finished.stderr);
        assert!(finished.stderr.contains(sentence), "{}", finished.stderr);
        assert!(finished.stdout.is_empty(), "{}", finished.stderr);
    };
    expect_ended(&["sh", "-c", "kill -9 $$"], 137, "signal 9 ended the command, so there is no advice");
    expect_ended(&["touch", "executed"], 1, "the command read no file by calls");
    place.write("small", "a line\n");
    // The descriptor is open for long enough to be looked at.
    expect_ended(&["sh", "-c", "exec 3<small; sleep 0.3; cat <&3"], 1, "too little for an advice");
    // Written in small pieces, it lies in small folios, which are mapped 16 pages at a time.
    let words = [&format!("if={path}"), "of=pieces", "bs=4k", "status=none"];
    assert!(Command::new("dd").args(words).current_dir(place.path()).status().expect("dd").success());
    let mapped = "import mmap,sys;f=open(sys.argv[1]);m=mmap.mmap(f.fileno(),0,access=1);sum(m[::4096])";
    expect_ended(&["python3", "-c", mapped, "pieces"], 1, "through a mapping");
    let left = fs::read_dir(place.path()).expect("a directory").flatten();
    let left: Vec<_> = left
        .map(|file| file.file_name())
        .filter(|name| name.to_string_lossy().starts_with("pagewise-"))
        .collect();
    assert!(left.is_empty(), "without an advice, a trace is of no use: {left:?}");
    place.expect_no_trace();
}
