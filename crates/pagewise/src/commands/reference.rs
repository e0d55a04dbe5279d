//! Documents that the program makes of itself: completions, manual pages, the schema of its JSON.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use pagewise_analysis::judge::schema;
use pagewise_model::misspelt::nearest;
use pagewise_report::json;

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::output;

/// Print the completions of a shell for the current arguments.
pub fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "pagewise", &mut script);
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
            let names = command.get_subcommands().map(|known| known.get_name());
            let meant =
                nearest(name, names).map_or_else(String::new, |meant| format!(": did you mean '{meant}'?"));
            let unknown = || format!("'{name}' is no command of pagewise{meant}");
            command.find_subcommand(name).cloned().with_context(unknown)?
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    output::stdout().write_all(&text)?;
    Ok(Exit::Answered)
}

/// Print the JSON Schema of the judged JSON.
pub fn schema() -> Result<Exit> {
    json::write_one(&mut output::stdout(), &schema::schema())?;
    Ok(Exit::Answered)
}

#[cfg(test)]
mod tests;
