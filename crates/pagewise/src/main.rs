//! pagewise: the fastest way to read and write files on this machine, measured and verified.
//!
//! This file is the table of contents, and the only place where errors become an exit status: 0 done, 1 done but
//! something is invalid or missing, 2 wrong use.

mod arguments;
mod commands;
#[cfg(test)]
mod fuzz;
mod output;
mod plan;
mod series;
mod session;
mod state;
mod store;
mod supervise;

use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command};
use commands::{CommandEnd, CommandError};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error),
    };
    let ending = match &arguments.command {
        None => commands::run::overview(arguments.json),
        Some(Command::Run(run)) => commands::run::run(run),
        Some(Command::Report(report)) => commands::report::report(report),
        Some(Command::Doctor(doctor)) => commands::doctor::doctor(doctor),
        Some(Command::Conformance(conformance)) => commands::conformance::conformance(conformance),
        Some(Command::Clean(clean)) => commands::clean::clean(clean),
        Some(Command::Completions { shell }) => completions(*shell),
        Some(Command::Worker) => worker(),
        Some(Command::Warm { file, bytes }) => {
            supervise::warming::read_into_cache(file, *bytes).map(|()| CommandEnd::Done)
        }
    };
    if let Some(code) = lost_output() {
        return code;
    }
    match ending {
        Ok(CommandEnd::Done) => ExitCode::SUCCESS,
        Ok(CommandEnd::FellShort) => ExitCode::from(1),
        Err(error) => {
            output::say(format_args!("pagewise: {}", sentence(&error)));
            ExitCode::from(if error.is::<CommandError>() { 1 } else { 2 })
        }
    }
}

/// Exit status of a command whose output was lost; no other message is useful then.
fn lost_output() -> Option<ExitCode> {
    let error = output::lost()?;
    // The reader of the output has closed it, like `head`, and wants no more of it.
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return Some(ExitCode::SUCCESS);
    }
    output::say(format_args!("pagewise: stdout cannot be written: {error}"));
    Some(ExitCode::from(1))
}

/// The error and its causes; a cause whose text is part of the sentence before it is left out.
fn sentence(error: &anyhow::Error) -> String {
    let error = error.downcast_ref::<CommandError>().map_or(error, |trouble| &trouble.0);
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.is_empty() {
        true => cause,
        false if told.contains(&cause) => told,
        false => format!("{told}: {cause}"),
    })
}

/// Print help on stdout; of an error one sentence, with clap's tip if it has one.
fn explain(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        output::help(error);
        return lost_output().unwrap_or(ExitCode::SUCCESS);
    }
    let text = error.render().to_string();
    let sentence: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .collect();
    let sentence = sentence.join("; ");
    output::say(format_args!("pagewise: {}", sentence.strip_prefix("error: ").unwrap_or(&sentence)));
    ExitCode::from(2)
}

/// Print the completions of a shell for the current arguments.
fn completions(shell: clap_complete::Shell) -> anyhow::Result<CommandEnd> {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "pagewise", &mut script);
    output::stdout().write_all(&script)?;
    Ok(CommandEnd::Done)
}

fn worker() -> anyhow::Result<CommandEnd> {
    let (stdin, stdout) = output::conversation();
    pagewise_engine::worker::converse(stdin, stdout).map_err(|error| CommandError(error.into()))?;
    Ok(CommandEnd::Done)
}
