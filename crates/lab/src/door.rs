//! The door of an extra: all that the command knows of it, beside its name.

use anyhow::Result;
use clap::{ArgMatches, Command};
use pagewise_analysis::judge::schema;
use schemars::{JsonSchema, Schema};

use crate::exit::Exit;

/// A command of an extra.
pub struct Door {
    /// Add its arguments.
    pub arguments: fn(Command) -> Command,
    /// Option for which `--` stands, where more options may follow.
    pub dashes: Option<&'static str>,
    /// Run it with what was typed.
    pub run: fn(&ArgMatches) -> Result<Exit>,
    /// The JSON that it prints.
    pub schemas: &'static [PrintedJson],
    /// Lines about it for the examples of `pagewise --help`.
    pub examples: &'static str,
}

/// JSON that a command prints.
#[derive(Clone, Copy)]
pub struct PrintedJson {
    /// Name of the JSON for `pagewise schema`.
    pub name: &'static str,
    /// The commands that print it.
    pub help: &'static str,
    /// Schema of the JSON.
    pub schema: fn() -> Schema,
}

/// JSON of this type.
pub const fn printed<T: JsonSchema>(name: &'static str, help: &'static str) -> PrintedJson {
    PrintedJson { name, help, schema: schema::of::<T> }
}
