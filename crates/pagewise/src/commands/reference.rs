//! Documents that the program makes of itself: completions, manual pages, the schema of its JSON.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use pagewise_lab::exit::Exit;
use pagewise_lab::output;
use pagewise_model::misspelt::nearest;
use pagewise_report::json;

use crate::arguments::Arguments;
use crate::schemas;

/// Print the completions of a shell for the current arguments.
pub fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(&Arguments::command()), "pagewise", &mut script);
    output::stdout().write_all(&script)?;
    Ok(Exit::Answered)
}

/// Print the manual page of a command, or write those of all into a directory.
pub fn man(name: Option<&str>, directory: Option<&Path>) -> Result<Exit> {
    let mut command = Arguments::command();
    if let Some(directory) = directory {
        clap_mangen::generate_to(command, directory)
            .with_context(|| format!("manual pages cannot be written into {}", directory.display()))?;
        return Ok(Exit::Answered);
    }
    // Names in the pages are those of the whole command line.
    command.build();
    let page = match name {
        None => command,
        Some(name) => {
            let shown = visible(&command);
            let names = shown.get_subcommands().map(|known| known.get_name());
            let meant =
                nearest(name, names).map_or_else(String::new, |meant| format!(": did you mean '{meant}'?"));
            let unknown = || format!("'{name}' is no command of pagewise{meant}");
            shown
                .find_subcommand(name)
                .and_then(|_| command.find_subcommand(name))
                .cloned()
                .with_context(unknown)?
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    output::stdout().write_all(&text)?;
    Ok(Exit::Answered)
}

/// The command without its hidden parts, which the generators of completions offer like all else.
fn visible(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    // A name lives as long as the program for clap, which parses once.
    let name: &'static str = command.get_name().to_string().leak();
    let mut shown = Command::new(name).args(arguments.cloned()).subcommands(commands.map(visible));
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    shown
}

/// Print the JSON Schema of what a command prints.
pub fn schema(of: &str) -> Result<Exit> {
    let json = schemas::all().find(|json| json.name == of).expect("clap knows the names");
    json::write_one(&mut output::stdout(), &(json.schema)())?;
    Ok(Exit::Answered)
}

#[cfg(test)]
mod document;

#[cfg(test)]
mod tests {
    use super::*;
    use clap_complete::Shell;

    /// Hidden commands and options, by the names that are typed.
    fn hidden(command: &Command) -> Vec<String> {
        let options = command.get_arguments().filter(|argument| argument.is_hide_set());
        let options = options.filter_map(|argument| Some(format!("--{}", argument.get_long()?)));
        let (below, commands): (Vec<&Command>, Vec<&Command>) =
            command.get_subcommands().partition(|command| !command.is_hide_set());
        let commands = commands.into_iter().map(|command| command.get_name().to_string());
        options.chain(commands).chain(below.into_iter().flat_map(hidden)).collect()
    }

    #[test]
    fn nothing_hidden_is_completed() {
        let whole = Arguments::command();
        let names = hidden(&whole);
        for name in ["worker", "warm", "--trial-rounds", "--worker-command"] {
            assert!(names.iter().any(|hidden| hidden == name), "{name} is not hidden");
        }
        assert_eq!(hidden(&visible(&whole)), Vec::<String>::new());
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut visible(&whole), "pagewise", &mut script);
            let script = String::from_utf8(script).expect("text");
            assert!(script.contains("conformance") && script.contains("max-writes"), "{shell}");
            assert!(script.contains("cliff") && !script.contains("trial-rounds"), "{shell}");
        }
    }

    #[test]
    fn what_is_hidden_has_no_manual_page() {
        for name in ["worker", "wrker", "warm"] {
            let text = man(Some(name), None).expect_err("refused").to_string();
            assert_eq!(text, format!("'{name}' is no command of pagewise"));
        }
    }
}
