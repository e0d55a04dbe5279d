//! Every command of README and docs that is one of `pagewise` is run as it stands there; what would
//! measure, with `--dry-run`.

use std::path::PathBuf;
use std::process::Command;

use super::made_up::began_together;
use crate::support::documents::{documents, repository};
use crate::support::{PAGEWISE, Place, skipped};

/// What a reader has typed before: a shell in which commands that measure only say what they would
/// do, and those that watch a program watch another.
const SHELL: &str = r#"
set -u
# The programs of readers are not here: cat reads a file in their place. Of what an advice would measure, nothing is read.
watch() {
    local words=() program=(cat my.db) none=0
    while (($# > 0)) && [[ $1 != -- ]]; do words+=("$1"); shift; done
    case "${words[0]}" in advise) program=(true); none=1 ;; esac
    "$PAGEWISE" "${words[@]}" -- "${program[@]}" >/dev/null
    local status=$?
    ((status == none)) || return "$status"
}
pagewise() {
    case "${1-}" in
    report | compare | methods | doctor | clean | schema | completions | man | conformance) "$PAGEWISE" "$@" ;;
    inspect | record | advise) watch "$@" ;;
    *) case " $* " in *" --dry-run "*) ;; *) set -- "$@" --dry-run ;; esac; "$PAGEWISE" "$@" ;;
    esac
    local status=$?
    if ((status != 0)); then echo "ended with $status: pagewise $*"; fi
}
"#;

/// The blocks of shell commands of a document.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match (&mut block, line) {
            (None, "```sh") => block = Some(String::new()),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some(commands), line) => commands.extend([line, "\n"]),
            (None, _) => {}
        }
    }
    blocks
}

/// Number of lines of a block that are commands of `pagewise`.
fn commands_in(block: &str) -> usize {
    block.lines().filter(|line| line.split(' ').next() == Some("pagewise")).count()
}

/// A place with everything that the documents name.
fn place() -> Place {
    let place = Place::new();
    place.write("index.bin", vec![1; 64 << 20]);
    place.write("my.db", vec![1; 1 << 20]);
    place.write("app.log", b"line\n".repeat(200_000));
    std::fs::create_dir(place.file("data")).expect("directory");
    std::fs::copy(repository().join("questions/read.toml"), place.file("plan.toml")).expect("copy");
    std::os::unix::fs::symlink(repository().join("workers"), place.file("workers")).expect("link");
    let tiny = [
        "read",
        "--workload=random-read",
        "--methods=pread",
        "--file-size=4MiB",
        "--cache=warm",
        "--threads=1",
        "--trial-rounds=1",
        "--no-ceilings",
        "--sample=1200ms",
    ];
    for (seed, name) in [("--seed=1", "big.jsonl"), ("--seed=2", "new.jsonl")] {
        let out = format!("--out={name}");
        let finished = place.run(&tiny.iter().copied().chain([seed, &out]).collect::<Vec<_>>());
        assert!(place.file(name).exists(), "{finished:?}");
    }
    for name in ["base.jsonl", "pagewise-20260101-120000-host-read.jsonl"] {
        std::fs::copy(place.file("big.jsonl"), place.file(name)).expect("copy");
    }
    std::fs::create_dir(place.file("runs")).expect("directory");
    for host in ["a4", "b4"] {
        place.write(&format!("runs/{host}.jsonl"), began_together(host, 0).file());
    }
    // A run that was stopped early.
    let run = std::fs::read_to_string(place.file("big.jsonl")).expect("read");
    let beginning: Vec<&str> = run.split_inclusive('\n').take(3).collect();
    place.write("big.jsonl", beginning.concat());
    place
}

#[test]
fn every_documented_command_runs() {
    let place = place();
    let mut commands = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("read");
        for block in blocks(&text).iter().filter(|block| commands_in(block) > 0) {
            let typed = block.replace(" /data", " ./data");
            let mut shell = Command::new("bash");
            shell.arg("-c").arg(format!("{SHELL}\n{typed}"));
            place.settle(&mut shell);
            shell.env("PAGEWISE", PAGEWISE);
            let finished = place.finish(shell.spawn().expect("bash"));
            let name = document.file_name().expect("a name").to_string_lossy();
            for failed in finished.stdout.lines().filter(|line| line.starts_with("ended with ")) {
                assert!(failed.starts_with("ended with 3:"), "{name}: {failed}\n{}", finished.stderr);
                skipped("what-a-document-needs", &format!("{name}: {failed}"));
            }
            assert!(!finished.stderr.contains("command not found"), "{name}: {}", finished.stderr);
            commands += commands_in(block);
        }
    }
    assert!(commands > 40, "{commands} commands were found");
    assert_eq!(place.traces(), Vec::<PathBuf>::new());
}
