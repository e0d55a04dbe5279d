//! `docs/reference.md`, made from the registries and the command line. `PAGEWISE_BLESS=1` writes it
//! anew.

use std::fmt::Write as _;

use clap::{Arg, Command};
use pagewise_model::groups;
use pagewise_model::method::{ListedMethod, listed, names, options};
use pagewise_model::{Worker, Workload};

use super::*;

const HEAD: &str = "# Reference

Made from the command line and the registries of methods and options; a test holds it.
`pagewise methods` says in addition what is available here.
";

#[test]
fn the_reference_is_that_of_this_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let made = reference();
    if std::env::var_os("PAGEWISE_BLESS").is_some() {
        std::fs::write(&path, &made).expect("write");
    }
    let kept = std::fs::read_to_string(&path).expect("read");
    let differs = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
    assert!(
        made == kept,
        "docs/reference.md is not of this program (PAGEWISE_BLESS=1 writes it): {differs:?}"
    );
}

/// A paragraph is one line, which the width of a terminal breaks.
#[test]
fn no_help_breaks_a_sentence() {
    for command in Arguments::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2) {
            let is_prose = pair.iter().all(|line| !line.is_empty() && !line.starts_with(' '));
            assert!(!is_prose || pair[0].ends_with('.'), "{}: {}", command.get_name(), pair[0]);
        }
    }
}

fn reference() -> String {
    let mut text = HEAD.to_string();
    let mut command = visible(&Arguments::command());
    command.build();
    text += "\n## Commands\n\n| command | effect |\n| --- | --- |\n";
    row(&mut text, "pagewise", &about(&command));
    let commands: Vec<&Command> =
        command.get_subcommands().filter(|command| command.get_name() != "help").collect();
    for command in &commands {
        row(&mut text, &format!("pagewise {}", command.get_name()), &about(command));
    }
    text += &options_of_commands(&command, &commands);
    text += "\n## Exit statuses\n\n| exit status | meaning |\n| --- | --- |\n";
    for exit in Exit::ALL {
        let _ = writeln!(text, "| {} | {} |", exit.code(), exit.meaning());
    }
    text += "\n## Methods\n\n`access[:option[+option…]]`; options act in the order written. The default buffer of `read` is\n64 KiB, and `uring` has 32 reads in flight by default. \
             `prefetch=N` takes 1 to 4096; `direct` needs\na buffer in append and fill.\n\n";
    text += &methods();
    text += "\n## Options of native methods\n\n";
    text += &options::markdown_table();
    text += "\n## Names from elsewhere\n\nA message that refuses one of these names the method.\n\n| name | method |\n| --- | --- |\n";
    for (name, methods) in names::BROUGHT {
        let methods: Vec<String> = methods.iter().map(|method| format!("`{method}`")).collect();
        row(&mut text, name, &methods.join(", "));
    }
    text
}

/// Every option once, with the commands that take it.
fn options_of_commands(overview: &Command, commands: &[&Command]) -> String {
    let mut known: Vec<((String, String), Vec<&str>)> = Vec::new();
    let all = std::iter::once(("the overview", overview))
        .chain(commands.iter().map(|command| (command.get_name(), *command)));
    for (name, command) in all {
        let shown = command.get_arguments().filter(|argument| argument.get_id() != "help");
        for argument in shown {
            groups::add(&mut known, (usage(argument), help(argument)), name);
        }
    }
    let takers_of =
        |usage: &str| known.iter().find(|((known, _), _)| known == usage).map(|(_, takers)| takers.clone());
    let questions = takers_of("--file <FILE>").expect("questions read files");
    let mut text =
        "\n## Arguments and options\n\n| option | of | meaning |\n| --- | --- | --- |\n".to_string();
    for ((usage, help), takers) in &known {
        let others: Vec<&str> = takers.iter().filter(|taker| !questions.contains(taker)).copied().collect();
        let of = match takers.len() - others.len() == questions.len() {
            true => [others, vec!["every question"]].concat(),
            false => takers.clone(),
        };
        let (usage, help) = (usage.replace('|', "\\|"), help.replace('|', "\\|"));
        let _ = writeln!(text, "| `{usage}` | {} | {help} |", of.join(", "));
    }
    text
}

fn usage(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>"));
    let values = values.collect::<Vec<_>>().join(" ");
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => format!("--{long} {values}"),
        Some(long) => format!("--{long}"),
        None => values,
    }
}

fn help(argument: &Arg) -> String {
    argument.get_help().map(ToString::to_string).unwrap_or_default()
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn row(text: &mut String, name: &str, meaning: &str) {
    let _ = writeln!(text, "| `{name}` | {meaning} |");
}

/// Every method with the options that it takes in each workload.
fn methods() -> String {
    let columns = [Workload::RandomRead, Workload::Scan, Workload::Append, Workload::Fill];
    let of = columns.map(|workload| listed(&[workload]));
    let mut text =
        "| method | effect | reads | scan | append | fill |\n| --- | --- | --- | --- | --- | --- |\n"
            .to_string();
    for method in listed(Workload::ALL) {
        let name = match &method.worker {
            Worker::Native => method.word.to_string(),
            worker => format!("{worker}/{}", method.word),
        };
        let is_it = |other: &&ListedMethod| (&other.worker, other.word) == (&method.worker, method.word);
        let cells = of.each_ref().map(|methods| match methods.iter().find(is_it) {
            None => "–".to_string(),
            Some(taken) if taken.options.is_empty() => "yes".to_string(),
            Some(taken) => taken
                .options
                .iter()
                .map(|option| format!("`{}`", option.usage()))
                .collect::<Vec<_>>()
                .join(" "),
        });
        let _ = writeln!(text, "| `{name}` | {} | {} |", method.meaning, cells.join(" | "));
    }
    text
}
