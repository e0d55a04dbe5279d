//! Command lines to type: the one that continues a run, and a typed one with more arguments; as
//! words that a shell reads back and a terminal shows as they are.

use std::path::{Path, PathBuf};

use pagewise_model::Source;
use pagewise_model::run::Header;
use pagewise_model::untrusted::shell_word;

use crate::plan::axes::Axes;

/// The words that were typed after the name of the program.
pub fn typed() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The command line that continues a run described by the user's own file.
pub fn line_of(path: &Path, header: &Header) -> String {
    line(path, header, false)
}

/// The command line that continues a run: its programs, and with `touched` its changes to the
/// machine.
pub fn line(path: &Path, header: &Header, touched: bool) -> String {
    let plan = &header.plan;
    let mut words: Vec<String> = ["pagewise", "run", "--resume", "--out"].map(str::to_string).to_vec();
    words.push(shell_word(&path.to_string_lossy()));
    let mut add = |option: &str, value: &str| words.extend([option.to_string(), shell_word(value)]);
    for (name, command) in &plan.workers.commands {
        add("--worker", &format!("{name}={command}"));
    }
    for (name, value) in &plan.workers.options {
        add(&shell_word(&format!("--{}", name.replace('_', "-"))), value);
    }
    header.worker_command.iter().for_each(|command| add("--worker-command", command));
    if touched {
        if let Some(directory) = plan.source.directory() {
            add("--dir", directory);
        }
        let evict = match &plan.source {
            Source::Dataset { .. } => false,
            Source::File { evict, .. } => {
                plan.source.own_files().for_each(|(path, _)| add("--file", path));
                *evict
            }
        };
        for setting in Axes::default().settings(plan) {
            setting.of_plan.iter().for_each(|value| add(&setting.argument, value));
        }
        words.extend(evict.then(|| "--evict".to_string()));
        words.extend(plan.drop_caches.then(|| "--drop-caches".to_string()));
    }
    words.join(" ")
}

/// The command line that prints the answer of run files.
pub fn answer_of(paths: &[PathBuf]) -> String {
    format!("pagewise report --answer {}", words_of(paths))
}

/// Paths as words of a command line.
pub fn words_of(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| shell_word(&path.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// The command line of this process with more arguments.
pub fn typed_with(more: &[&str]) -> String {
    let typed = typed();
    line_of_words(typed.iter().map(String::as_str).chain(more.iter().copied()))
}

/// The command line of this process with more arguments behind the name of its command.
pub fn typed_first(more: &[&str]) -> String {
    let typed = typed();
    let (command, rest) = typed.split_at(typed.len().min(1));
    let words = command.iter().map(String::as_str).chain(more.iter().copied());
    line_of_words(words.chain(rest.iter().map(String::as_str)))
}

fn line_of_words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    std::iter::once("pagewise".to_string()).chain(words.map(shell_word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_reads_back_what_is_quoted() {
        let texts = ["it's\\ \u{1b}[31m\n\u{202e}x", "$(id) `id` \"q\"", "", "\u{85}\u{7f}-"];
        for text in texts {
            let script = format!("printf %s {}", shell_word(text));
            let output = match std::process::Command::new("bash")
                .args(["-c", &script])
                .env("LC_ALL", "C.UTF-8")
                .output()
            {
                Ok(output) => output,
                Err(error) => return println!("skipped: bash: {error}"),
            };
            assert_eq!(String::from_utf8_lossy(&output.stdout), text, "{script}");
        }
    }
}
