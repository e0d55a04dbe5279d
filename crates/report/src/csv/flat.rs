//! Conversion of a structure to the fields of a row. Fields of a part have the part's name as a prefix
//! (`group_peak_bytes`), and those of a list of parts hold one value for each member, separated by spaces. A list of plain values has no column: it may be long.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// A field of a row, not yet quoted.
pub(super) type CsvField = String;

/// An unknown number among several in one field.
pub(super) const UNKNOWN: &str = "?";

/// The columns of a structure, in the order of their names.
pub(super) struct Columns {
    names: Vec<String>,
    /// Fields without a column here.
    left_out: &'static [&'static str],
}

impl Columns {
    /// Columns of `whole`, a value with all optional parts present, except for these fields.
    pub(super) fn of(whole: &impl Serialize, left_out: &'static [&'static str]) -> Self {
        Self { names: fields_of(whole, left_out).into_keys().collect(), left_out }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The fields of a value, one for each column.
    pub(super) fn fields(&self, value: &impl Serialize) -> Vec<CsvField> {
        let mut found = fields_of(value, self.left_out);
        let fields = self.names.iter().map(|name| found.remove(name).unwrap_or_default()).collect();
        debug_assert!(found.is_empty(), "without a column: {found:?}");
        fields
    }
}

/// The fields of a structure of numbers and texts, by their names.
fn fields_of(value: &impl Serialize, left_out: &[&str]) -> BTreeMap<String, CsvField> {
    let value = serde_json::to_value(value).expect("a structure of numbers and texts");
    let mut fields = BTreeMap::new();
    for (key, value) in value.as_object().expect("a structure") {
        if !left_out.contains(&key.as_str()) {
            put(&mut fields, "", key, value, false);
        }
    }
    fields
}

/// Put a value, or those of a part of a structure, into their fields; behind others if it belongs to a member of a list.
fn put(fields: &mut BTreeMap<String, CsvField>, prefix: &str, key: &str, value: &Value, is_listed: bool) {
    match value {
        Value::Object(part) => {
            let prefix = format!("{key}_");
            part.iter().for_each(|(key, value)| put(fields, &prefix, key, value, is_listed));
        }
        Value::Array(members) => {
            let key = key.trim_end_matches('s');
            members
                .iter()
                .filter(|one| one.is_object())
                .for_each(|part| put(fields, prefix, key, part, true));
        }
        plain => {
            let field = fields.entry(format!("{prefix}{key}")).or_default();
            if is_listed && !field.is_empty() {
                field.push(' ');
            }
            match plain {
                Value::Null if is_listed => field.push_str(UNKNOWN),
                Value::Null => {}
                Value::String(text) => field.push_str(text),
                plain => field.push_str(&plain.to_string()),
            }
        }
    }
}
