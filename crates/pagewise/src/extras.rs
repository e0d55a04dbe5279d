//! The extras: commands, workers and formats whose folder, line and feature can be deleted, and
//! everything else works.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, value_parser};
use pagewise_lab::door::Door;
use pagewise_lab::exit::Exit;
use pagewise_lab::format_door::FormatDoor;
use pagewise_lab::worker_door::{WorkerDoor, WorkerOption};
use pagewise_report::curves_door::CurvesDoor;

/// The place in lists behind `report`.
pub const OF_RUNS: usize = 0;
/// The place behind `doctor`.
pub const OF_MACHINE: usize = 1;

/// A command of an extra.
pub struct Extra {
    /// Name.
    pub name: &'static str,
    /// Place in lists.
    place: usize,
    /// Effect, for help.
    help: &'static str,
    /// All else.
    pub door: Door,
}

/// Every extra of this build.
pub const EXTRAS: &[Extra] = &[
    #[cfg(feature = "compare")]
    Extra {
        name: "compare",
        place: OF_RUNS,
        help: "Compare runs before and after a change, or many runs by a fact of their machines",
        door: pagewise_compare::COMPARE,
    },
    #[cfg(feature = "claims")]
    Extra {
        name: "reproduce",
        place: OF_RUNS,
        help: "Measure published studies again, and judge which of their claims hold here",
        door: pagewise_claims::REPRODUCE,
    },
    #[cfg(feature = "watch")]
    Extra {
        name: "advise",
        place: OF_RUNS,
        help: "Advise which method a program of yours should read its file by: watch, record and replay it",
        door: pagewise_watch::ADVISE,
    },
    #[cfg(feature = "watch")]
    Extra {
        name: "inspect",
        place: OF_RUNS,
        help: "Watch a program: what it does to its files, and what its threads wait for",
        door: pagewise_watch::INSPECT,
    },
    #[cfg(feature = "watch")]
    Extra {
        name: "record",
        place: OF_RUNS,
        help: "Record which bytes of its files a program reads, by calls or through mappings",
        door: pagewise_watch::RECORD,
    },
    #[cfg(feature = "conformance")]
    Extra {
        name: "conformance",
        place: OF_MACHINE,
        help: "Check a worker of your own, step by step, and explain its faults",
        door: pagewise_conformance::CONFORMANCE,
    },
];

/// Workers that the extras of this build offer.
pub const WORKERS: &[WorkerDoor] = &[
    #[cfg(feature = "toolchain")]
    pagewise_toolchain::WORKERS,
];

/// Formats that the extras of this build offer.
pub const FORMATS: &[FormatDoor] = &[
    #[cfg(feature = "page")]
    pagewise_page::PAGE,
];

/// Answers to runs as a whole that the extras of this build offer.
pub const CURVES: &[CurvesDoor] = &[
    #[cfg(feature = "curves")]
    pagewise_curves::CURVES,
];

/// Names of the workers, each with its door.
pub fn offered() -> impl Iterator<Item = (&'static str, &'static WorkerDoor)> {
    WORKERS.iter().flat_map(|door| door.names.iter().map(move |name| (*name, door)))
}

/// The options of these workers.
pub fn worker_options() -> impl Iterator<Item = &'static WorkerOption> {
    WORKERS.iter().flat_map(|door| door.options)
}

/// Heading of options about workers in help.
pub const OF_WORKERS: &str = "Workers in other languages";

/// The options of workers as they were typed, by their names.
#[derive(Clone, Debug)]
pub struct TypedOptions<const IN_DOCTOR: bool>(pub BTreeMap<String, String>);

impl<const IN_DOCTOR: bool> TypedOptions<IN_DOCTOR> {
    fn argument(option: &'static WorkerOption) -> Option<Arg> {
        let argument = Arg::new(option.name).long(option.typed()).value_name(option.value);
        let argument = match option.is_path {
            true => argument.value_parser(value_parser!(PathBuf)),
            false => argument.allow_hyphen_values(true),
        };
        match IN_DOCTOR {
            true => option.help_of_doctor.map(|help| argument.help(help)),
            false => Some(argument.help(option.help).help_heading(OF_WORKERS)),
        }
    }
}

impl<const IN_DOCTOR: bool> Args for TypedOptions<IN_DOCTOR> {
    fn augment_args(command: Command) -> Command {
        command.args(worker_options().filter_map(Self::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const IN_DOCTOR: bool> FromArgMatches for TypedOptions<IN_DOCTOR> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let typed = worker_options().filter_map(|option| {
            let value = matches.try_get_raw(option.name).ok()??.next()?;
            Some((option.name.to_string(), value.to_string_lossy().into_owned()))
        });
        Ok(Self(typed.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A command of an extra at a place, as it was typed.
pub struct ExtraCommand<const PLACE: usize> {
    extra: &'static Extra,
    typed: ArgMatches,
}

/// The extras at a place.
fn at(place: usize) -> impl Iterator<Item = &'static Extra> {
    EXTRAS.iter().filter(move |extra| extra.place == place)
}

impl<const PLACE: usize> ExtraCommand<PLACE> {
    /// Run it.
    pub fn run(&self) -> Result<Exit> {
        (self.extra.door.run)(&self.typed)
    }
}

impl<const PLACE: usize> fmt::Debug for ExtraCommand<PLACE> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple(self.extra.name).field(&self.typed).finish()
    }
}

impl<const PLACE: usize> Subcommand for ExtraCommand<PLACE> {
    fn augment_subcommands(command: Command) -> Command {
        at(PLACE).fold(command, |command, extra| {
            let arguments = (extra.door.arguments)(Command::new(extra.name));
            command.subcommand(arguments.about(extra.help).long_about(None))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        at(PLACE).any(|extra| extra.name == name)
    }
}

impl<const PLACE: usize> FromArgMatches for ExtraCommand<PLACE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, typed) = matches.subcommand().ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        let extra = at(PLACE).find(|extra| extra.name == name);
        let extra = extra.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        Ok(Self { extra, typed: typed.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::arguments::Arguments;

    /// The commands of extras, and whether they are built in.
    const NAMES: [(&str, bool); 6] = [
        ("compare", cfg!(feature = "compare")),
        ("reproduce", cfg!(feature = "claims")),
        ("advise", cfg!(feature = "watch")),
        ("inspect", cfg!(feature = "watch")),
        ("record", cfg!(feature = "watch")),
        ("conformance", cfg!(feature = "conformance")),
    ];

    #[test]
    fn workers_and_their_options_are_known_if_an_extra_offers_them() {
        let is_built_in = cfg!(feature = "toolchain");
        let names: Vec<&str> = offered().map(|(name, _)| name).collect();
        assert_eq!(names, if is_built_in { &["jvm", "go", "python"][..] } else { &[] });
        for line in ["read --jdk /jdk", "read --jvm-args -Xmx1g", "doctor --jdk /jdk"] {
            let parsed = Arguments::try_parse_from(["pagewise"].into_iter().chain(line.split(' ')));
            assert_eq!(parsed.is_ok(), is_built_in, "{line}");
        }
        let mut command = Arguments::command();
        let read = command.find_subcommand_mut("read").expect("a question");
        let help = read.render_long_help().to_string();
        assert_eq!(help.contains("jvm"), is_built_in, "{help}");
    }

    #[test]
    fn a_format_is_known_if_an_extra_offers_it() {
        let names: Vec<&str> = FORMATS.iter().map(|door| door.name).collect();
        assert_eq!(names, if cfg!(feature = "page") { &["html"][..] } else { &[] });
    }

    #[test]
    fn a_command_is_known_if_its_extra_is_built_in() {
        let help = Arguments::command().render_long_help().to_string();
        for (name, is_built_in) in NAMES {
            assert_eq!(EXTRAS.iter().any(|extra| extra.name == name), is_built_in, "{name}");
            let is_listed = help.lines().any(|line| line.trim_start().starts_with(&format!("{name} ")));
            let is_shown = help.contains(&format!("pagewise {name} "));
            assert_eq!(is_listed, is_built_in, "{name}: {help}");
            assert!(is_built_in || !is_shown, "{name}: {help}");
            let parsed = Arguments::try_parse_from(["pagewise", name]).map(|_| ());
            let unknown = parsed.err().filter(|error| error.kind() == ErrorKind::InvalidSubcommand);
            assert_eq!(unknown.is_none(), is_built_in, "{name}");
        }
    }
}
