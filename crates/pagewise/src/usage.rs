//! One sentence for a command line that makes no sense, with what was probably meant.
//!
//! Every suggested word is visible in help and harms nothing: clap's own suggestions ensure
//! neither.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use pagewise_model::misspelt::nearest;

/// Words that take away, evict or override something. Nobody is led to them by a typing error.
const HARMFUL: [&str; 6] = ["clean", "--drop-caches", "--evict", "--forget", "--max-writes", "--yes"];

/// Words of other tools, or of speech, for commands: what to write instead.
const OTHER_COMMANDS: [(&str, &str); 2] =
    [("replay", "write pagewise run replay --trace FILE"), ("version", "write pagewise --version")];
/// Words of other tools for options, each with that of pagewise.
const OTHER_OPTIONS: [(&str, &str); 8] = [
    ("--size", "--file-size"),
    ("--filesize", "--file-size"),
    ("--numjobs", "--threads"),
    ("--jobs", "--threads"),
    ("--runtime", "--budget"),
    ("--time", "--budget"),
    ("--filename", "--file"),
    ("--ioengine", "--methods"),
];
/// Words for what is always measured, so that no option asks for it.
const ALWAYS: [&str; 4] = ["--latency", "--latencies", "--percentiles", "--p99"];
/// The size of one operation, in other tools.
const BLOCK_SIZES: [&str; 2] = ["--bs", "--blocksize"];

/// The sentence for `error` of `command`, when `typed` was typed after its name.
pub fn sentence(error: &Error, command: &Command, typed: &[String]) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let phrase =
        lines.filter(|line| !line.starts_with("tip: ")).fold(String::new(), |phrase, line| match &phrase {
            phrase if phrase.is_empty() => line.to_string(),
            // clap puts a list below its heading.
            phrase if phrase.ends_with(':') => format!("{phrase} {line}"),
            phrase => format!("{phrase}; {line}"),
        });
    let phrase = phrase.strip_prefix("error: ").unwrap_or(&phrase);
    match meant(error, command, typed) {
        Some(meant) => format!("{phrase}: {meant}"),
        None => phrase.to_string(),
    }
}

/// The word that was probably meant.
fn meant(error: &Error, command: &Command, typed: &[String]) -> Option<String> {
    let wrong = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = wrong(ContextKind::InvalidSubcommand)?;
            let other = OTHER_COMMANDS.iter().find(|(other, _)| *other == word);
            other.map(|(_, write)| write.to_string()).or_else(|| of_path(&word)).or_else(|| {
                let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
                let names = visible.map(Command::get_name);
                did_you_mean(&word, names.chain(["help"]).map(str::to_string))
            })
        }
        ErrorKind::UnknownArgument => {
            let word = wrong(ContextKind::InvalidArg)?;
            let used = typed.iter().find_map(|typed| command.find_subcommand(typed));
            of_option(&word, command, used)
        }
        _ => None,
    }
}

/// An unknown option of `used`, or of the overview.
fn of_option(word: &str, command: &Command, used: Option<&Command>) -> Option<String> {
    let Some(used) = used else {
        let read = command.find_subcommand("read")?;
        return did_you_mean(word, options(command)).or_else(|| {
            options(read).any(|option| option == word).then(|| {
                format!("the overview has no {word}: ask one question, as in pagewise read {word} …")
            })
        });
    };
    if !word.starts_with('-') && used.get_arguments().any(|argument| argument.is_last_set()) {
        return Some(format!("write -- before the command, as in pagewise {} -- {word}", used.get_name()));
    }
    if (used.get_name(), word) == ("inspect", "--pid") {
        return Some("write the number alone, as in pagewise inspect 4321".to_string());
    }
    if ALWAYS.contains(&word) && options(used).any(|option| option == "--rate") {
        return Some(
            "latencies are always measured: the tables of pagewise report have them; --rate counts from when each is due"
                .to_string(),
        );
    }
    let other = match used.get_name() {
        _ if !BLOCK_SIZES.contains(&word) => {
            OTHER_OPTIONS.iter().find(|(other, _)| *other == word).map(|(_, ours)| *ours)
        }
        "append" => Some("--record-size"),
        "fill" | "update" => Some("--block-size"),
        _ => Some("--read-size"),
    };
    let meant = other.filter(|other| options(used).any(|option| option == *other));
    meant.map(|option| format!("did you mean '{option}'?")).or_else(|| did_you_mean(word, options(used)))
}

/// The visible options of a command.
fn options(command: &Command) -> impl Iterator<Item = String> + '_ {
    let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
    visible.filter_map(|argument| argument.get_long()).map(|name| format!("--{name}"))
}

/// A path where a command was expected.
fn of_path(word: &str) -> Option<String> {
    let path = Path::new(word);
    if path.is_dir() {
        return Some(format!(
            "write pagewise --dir {word} for the overview, or a question, as in pagewise read {word}"
        ));
    }
    if word.ends_with(".toml") && path.is_file() {
        return Some(format!("write pagewise run {word}"));
    }
    if word.ends_with(".jsonl") && path.is_file() {
        return Some(format!("write pagewise report {word}"));
    }
    path.is_file()
        .then(|| format!("write a question before it, as in pagewise read {word} or pagewise scan {word}"))
}

/// The question after what was probably meant, if a harmless word is like the typed one.
fn did_you_mean(typed: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let known: Vec<String> = known.filter(|word| !HARMFUL.contains(&word.as_str())).collect();
    // The hyphens that all options share are no likeness.
    let hyphens = if typed.starts_with("--") { "--" } else { "" };
    let names = known.iter().map(|word| word.trim_start_matches(hyphens));
    nearest(typed.trim_start_matches(hyphens), names).map(|word| format!("did you mean '{hyphens}{word}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::{CommandFactory, Parser};

    fn text(line: &str) -> String {
        let typed: Vec<String> = line.split(' ').map(str::to_string).collect();
        let words = std::iter::once("pagewise".to_string()).chain(typed.iter().cloned());
        let error = Arguments::try_parse_from(words).expect_err("refused");
        sentence(&error, &Arguments::command(), &typed)
    }

    #[test]
    fn a_typing_error_is_answered_with_what_is_visible_and_harmless() {
        for (line, wanted) in [
            ("raed", "unrecognized subcommand 'raed': did you mean 'read'?"),
            ("read --metods mmap", "unexpected argument '--metods' found: did you mean '--methods'?"),
            ("run read --thread 1", "unexpected argument '--thread' found: did you mean '--threads'?"),
            ("hlep", "unrecognized subcommand 'hlep': did you mean 'help'?"),
            ("version", "unrecognized subcommand 'version': write pagewise --version"),
            ("replay x.trace", "unrecognized subcommand 'replay': write pagewise run replay --trace FILE"),
            ("read --size 1GiB", "unexpected argument '--size' found: did you mean '--file-size'?"),
            ("read --bs 4KiB", "unexpected argument '--bs' found: did you mean '--read-size'?"),
            ("append --bs 4KiB", "unexpected argument '--bs' found: did you mean '--record-size'?"),
            (
                "read --latency",
                "unexpected argument '--latency' found: latencies are always measured: the tables of pagewise report have \
                 them; --rate counts from when each is due",
            ),
            ("compare a --latency x", "unexpected argument '--latency' found"),
            (
                "inspect --pid 1",
                "unexpected argument '--pid' found: write the number alone, as in pagewise inspect 4321",
            ),
            (
                "record sqlite3 my.db",
                "unexpected argument 'sqlite3' found: write -- before the command, as in pagewise record -- sqlite3",
            ),
            (
                "inspect sqlite3",
                "invalid value 'sqlite3' for '[PID]': write the number of a process, or -- before a command, as in \
                 pagewise inspect -- sqlite3",
            ),
            (
                "--threads 4",
                "unexpected argument '--threads' found: the overview has no --threads: ask one question, as in pagewise \
                 read --threads …",
            ),
        ] {
            assert_eq!(text(line), wanted, "{line}");
        }
        // Of hidden and of harmful words nothing is said.
        for line in [
            "claen",
            "wrker",
            "read --patienc 3",
            "read --trial-round 3",
            "read --drop-cache",
            "clean --forge",
        ] {
            let text = text(line);
            let hidden = ["clean", "worker", "--patience", "--trial-rounds", "--drop-caches", "--forget"];
            let named = hidden.iter().find(|word| text.contains(&format!("did you mean '{word}'")));
            assert_eq!(named, None, "{line}: {text}");
        }
    }

    #[test]
    fn a_path_is_not_taken_for_a_misspelt_command() {
        let directory = tempfile::tempdir().expect("directory");
        let file = directory.path().join("clen");
        std::fs::write(&file, "").expect("write");
        for (path, wanted) in [(file.as_path(), "pagewise scan"), (directory.path(), "pagewise --dir")] {
            let text = text(&path.display().to_string());
            assert!(text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn a_list_stands_behind_its_heading() {
        assert_eq!(text("report"), "the following required arguments were not provided: <RUN>...");
    }
}
