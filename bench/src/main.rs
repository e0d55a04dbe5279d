//! pagewise against bare loops, against fio, and against itself. Prints ratios, each beside a
//! control; nothing here passes or fails by a time.

mod advice;
mod bare;
mod bare_rates;
mod bare_workers;
mod cell;
mod dataset;
mod end_to_end;
mod fio;
mod limits;
mod memory;
mod offsets;
mod once;
mod operations;
mod options;
mod pagewise;
mod pieces;
mod ratio;
mod reports;
mod slices;
mod stepwise;
mod transparency;
mod verdicts;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Comparisons of pagewise with bare loops, with fio and with itself.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Transparency(transparency::Options),
    EndToEnd(end_to_end::Options),
    Fio(fio::Options),
    Limits(limits::Options),
    Verdicts(verdicts::Options),
    Scan(once::scan::Options),
    Append(once::append::Options),
    Fill(once::fill::Options),
    Memory(memory::Options),
    Advice(advice::Options),
    BareWorkers(bare_workers::Options),
    Pieces(pieces::Options),
    Reports(reports::Options),
    #[command(hide = true)]
    BareLoop(bare_rates::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = std::io::stdout().lock();
    let outcome = match &arguments.command {
        Command::Transparency(options) => transparency::run(options, &mut out),
        Command::EndToEnd(options) => end_to_end::run(options, &mut out),
        Command::Fio(options) => fio::run(options, &mut out),
        Command::Limits(options) => limits::run(options, &mut out),
        Command::Verdicts(options) => verdicts::run(options, &mut out),
        Command::Scan(options) => once::scan::run(options, &mut out),
        Command::Append(options) => once::append::run(options, &mut out),
        Command::Fill(options) => once::fill::run(options, &mut out),
        Command::Memory(options) => memory::run(options, &mut out),
        Command::Advice(options) => advice::run(options, &mut out),
        Command::BareWorkers(options) => bare_workers::run(options, &mut out),
        Command::Pieces(options) => pieces::run(options, &mut out),
        Command::Reports(options) => reports::run(options, &mut out),
        Command::BareLoop(options) => bare_rates::run(options, &mut out),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has gone away, as `head` does: nothing is left to be said.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pagewise-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[test]
fn the_options_of_every_command_fit_together() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}
