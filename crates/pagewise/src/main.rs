//! pagewise: the fastest way to read and write files on this machine, measured and verified.
//!
//! This file is the table of contents, and the only place where the end of a command becomes an
//! exit status ([`exit`]).

mod arguments;
mod commands;
mod extras;
#[cfg(test)]
mod fuzz;
mod schemas;
mod usage;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use pagewise_lab::exit::{self, Exit};
use pagewise_lab::{command_lines, format_door, output, supervise, worker_door};
use pagewise_report::curves_door;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    output::outlive_size_limits();
    worker_door::offer(extras::WORKERS);
    format_door::offer(extras::FORMATS);
    curves_door::offer(extras::CURVES);
    let arguments = match Arguments::try_parse_from(arguments::words()) {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error),
    };
    let ending = match &arguments.command {
        None => commands::run::overview(&arguments.overview),
        Some(Command::Measure(question)) => commands::run::run(question.what(), question.arguments()),
        Some(Command::Report(report)) => commands::report::report(report),
        Some(Command::OfRuns(extra)) => extra.run(),
        Some(Command::Methods(methods)) => commands::methods::methods(methods),
        Some(Command::Doctor(doctor)) => commands::doctor::doctor(doctor),
        Some(Command::OfMachine(extra)) => extra.run(),
        Some(Command::Clean(clean)) => commands::clean::clean(clean),
        Some(Command::Completions { shell }) => commands::reference::completions(*shell),
        Some(Command::Man { command, dir }) => commands::reference::man(command.as_deref(), dir.as_deref()),
        Some(Command::Schema { of }) => commands::reference::schema(of),
        Some(Command::Worker) => worker(),
        Some(Command::Warm { fill, files }) => {
            supervise::warming::read_into_cache(files, fill).map(|()| Exit::Answered)
        }
    };
    if let Some(code) = lost_output() {
        return code;
    }
    let exit = ending.unwrap_or_else(|error| {
        output::say(format_args!("pagewise: {}", exit::sentence(&error)));
        Exit::of(&error)
    });
    ExitCode::from(exit.code())
}

/// Exit status of a command whose output was lost; no other message is useful then.
fn lost_output() -> Option<ExitCode> {
    let error = output::lost()?;
    // The reader of the output has closed it, like `head`, and wants no more of it.
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return Some(ExitCode::SUCCESS);
    }
    output::say(format_args!("pagewise: stdout cannot be written: {error}"));
    Some(ExitCode::from(Exit::FellShort.code()))
}

/// Print help on stdout; of an error one sentence.
fn explain(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        output::help(error);
        return lost_output().unwrap_or(ExitCode::SUCCESS);
    }
    let sentence = usage::sentence(error, &Arguments::command(), &command_lines::typed());
    output::say(format_args!("pagewise: {sentence}"));
    ExitCode::from(Exit::WrongUse.code())
}

fn worker() -> anyhow::Result<Exit> {
    let (stdin, stdout) = output::conversation();
    pagewise_engine::worker::converse(stdin, stdout).map_err(|error| Exit::FellShort.because(error))?;
    Ok(Exit::Answered)
}
