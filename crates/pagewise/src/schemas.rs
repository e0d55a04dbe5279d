//! The JSON that commands print.

use clap::builder::{PossibleValue, PossibleValuesParser};
use pagewise_lab::door::PrintedJson;
use pagewise_report::json;

use crate::extras::EXTRAS;

/// All JSON that is printed.
pub fn all() -> impl Iterator<Item = PrintedJson> {
    let report = PrintedJson { name: "report", help: "`report`, and every question", schema: json::schema };
    let of_extras = EXTRAS.iter().flat_map(|extra| extra.door.schemas).copied();
    std::iter::once(report).chain(of_extras)
}

/// The names of all JSON that has a schema.
pub fn names() -> PossibleValuesParser {
    all().map(|json| PossibleValue::new(json.name).help(json.help)).collect::<Vec<_>>().into()
}
