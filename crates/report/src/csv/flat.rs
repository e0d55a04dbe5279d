//! Conversion of a structure to the fields of a row. Fields of a part have the part's name as a
//! prefix (`group_peak_bytes`), and those of a list of parts hold one value for each member,
//! separated by spaces. A list of plain values has no column: it may be long.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

/// A field of a row, not yet quoted.
pub(super) type CsvField = String;

/// An unknown number among several in one field.
pub(super) const UNKNOWN: &str = "?";

/// The columns of a structure, in the order of their names.
pub(super) struct Columns {
    names: Vec<String>,
    /// The keys that lead to the value of each column, through parts and lists.
    paths: Vec<Vec<String>>,
    left_out: &'static [&'static str],
}

impl Columns {
    /// Columns of `whole`, a value with all optional parts present, except for the fields that are
    /// left out.
    pub(super) fn of(whole: &impl Serialize, left_out: &'static [&'static str]) -> Self {
        let mut columns = Vec::new();
        collect(&mut columns, &json(whole), "", &[], left_out);
        columns.sort();
        columns.dedup();
        let (names, paths) = columns.into_iter().unzip();
        Self { names, paths, left_out }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The fields of a value, one for each column.
    pub(super) fn fields(&self, value: &impl Serialize) -> Vec<CsvField> {
        let missing = || {
            let names = Self::of(value, self.left_out).names;
            names.into_iter().filter(|name| !self.names.contains(name)).collect::<Vec<_>>()
        };
        debug_assert_eq!(missing(), [""; 0], "values without a column");
        let value = json(value);
        let field = |path: &Vec<String>| {
            let mut field = CsvField::new();
            put(&mut field, &value, path, false);
            field
        };
        self.paths.iter().map(field).collect()
    }
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("a structure of numbers and texts")
}

/// Collect the names and paths of the columns of a structure, or of a part of it at `path`.
fn collect(
    columns: &mut Vec<(String, Vec<String>)>,
    value: &Value,
    prefix: &str,
    path: &[String],
    left_out: &[&str],
) {
    for (key, value) in value.as_object().into_iter().flatten() {
        if left_out.contains(&key.as_str()) {
            continue;
        }
        let path = [path, std::slice::from_ref(key)].concat();
        match value {
            Value::Object(_) => collect(columns, value, &format!("{prefix}{key}_"), &path, left_out),
            Value::Array(members) if members.iter().any(Value::is_object) => {
                let prefix = format!("{prefix}{}_", key.trim_end_matches('s'));
                members.iter().for_each(|member| collect(columns, member, &prefix, &path, left_out));
            }
            Value::Array(members) if members.is_empty() => {}
            _ => columns.push((format!("{prefix}{key}"), path)),
        }
    }
}

/// Append what is at the end of a path; of a list what each member has there.
fn put(field: &mut CsvField, value: &Value, path: &[String], is_listed: bool) {
    match (value, path) {
        (Value::Object(part), [key, rest @ ..]) => {
            part.get(key).into_iter().for_each(|value| put(field, value, rest, is_listed));
        }
        (Value::Array(members), path) => members.iter().for_each(|member| put(field, member, path, true)),
        (plain, []) => {
            if is_listed && !field.is_empty() {
                field.push(' ');
            }
            match plain {
                Value::Null if is_listed => field.push_str(UNKNOWN),
                Value::Null => {}
                Value::String(text) => field.push_str(text),
                plain => write!(field, "{plain}").expect("a string takes all"),
            }
        }
        // A part that is not there.
        _ => {}
    }
}
