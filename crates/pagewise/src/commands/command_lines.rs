//! Command lines to type: the one that continues a run, and a typed one with more arguments; as words that a shell reads
//! back and a terminal shows as they are.

use std::path::Path;

use pagewise_model::Source;
use pagewise_model::run::Header;

use crate::plan::axes::Axes;

/// The command line that continues a run described by the user's own file.
pub fn line_of(path: &Path, header: &Header) -> String {
    line(path, header, false)
}

/// The command line that continues a run: its programs, and with `touched` its changes to the machine.
pub(super) fn line(path: &Path, header: &Header, touched: bool) -> String {
    let plan = &header.plan;
    let mut words: Vec<String> = ["pagewise", "run", "--resume", "--out"].map(str::to_string).to_vec();
    words.push(quoted(&path.to_string_lossy()));
    let mut add = |option: &str, value: &str| words.extend([option.to_string(), quoted(value)]);
    for (name, command) in &plan.workers.commands {
        add("--worker", &format!("{name}={command}"));
    }
    plan.workers.jdk.iter().for_each(|jdk| add("--jdk", jdk));
    plan.workers.jvm_args.iter().for_each(|arguments| add("--jvm-args", arguments));
    header.worker_command.iter().for_each(|command| add("--worker-command", command));
    if touched {
        let evict = match &plan.source {
            Source::Dataset { directory } => {
                add("--dir", directory);
                false
            }
            Source::File { path, evict, .. } => {
                add("--file", path);
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

/// The command line of this process with more arguments.
pub(super) fn typed_with(more: &[&str]) -> String {
    let typed = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    let more = more.iter().map(|word| quoted(word));
    std::iter::once("pagewise".to_string()).chain(typed).chain(more).collect::<Vec<_>>().join(" ")
}

/// One word of a shell, on one line: plain, in quotes, or with escapes for characters that a terminal obeys or does not
/// show.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:=,@%+-".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_string();
    }
    if !text.chars().any(is_hidden) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = String::from("$'");
    for letter in text.chars() {
        match letter {
            '\'' | '\\' => word.extend(['\\', letter]),
            letter if is_hidden(letter) => word.push_str(&format!("\\U{:08x}", u32::from(letter))),
            letter => word.push(letter),
        }
    }
    word + "'"
}

/// True for characters that a terminal obeys or does not show: control characters, and those that change the direction
/// of text.
fn is_hidden(letter: char) -> bool {
    let formats = ['\u{ad}', '\u{61c}', '\u{180e}', '\u{feff}'];
    letter.is_control()
        || formats.contains(&letter)
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(letter, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_shell_is_one_word_and_harmless() {
        for (text, word) in [
            ("run.jsonl", "run.jsonl"),
            ("", "''"),
            ("mine=./reader --fast", "'mine=./reader --fast'"),
            ("it's", r"'it'\''s'"),
            ("$(id)`id`;*", "'$(id)`id`;*'"),
            ("a\u{1b}]0;x\u{7}b\n", r"$'a\U0000001b]0;x\U00000007b\U0000000a'"),
            ("it's \\ \u{202e}", r"$'it\'s \\ \U0000202e'"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(quoted(text), word);
        }
    }

    #[test]
    fn bash_reads_back_what_is_quoted() {
        let texts = ["it's\\ \u{1b}[31m\n\u{202e}x", "$(id) `id` \"q\"", "", "\u{85}\u{7f}-"];
        for text in texts {
            let script = format!("printf %s {}", quoted(text));
            let output = match std::process::Command::new("bash")
                .args(["-c", &script])
                .env("LC_ALL", "C.UTF-8")
                .output()
            {
                Ok(output) => output,
                Err(error) => return println!("skipped: bash_reads_back_what_is_quoted: {error}"),
            };
            assert_eq!(String::from_utf8_lossy(&output.stdout), text, "{script}");
        }
    }
}
