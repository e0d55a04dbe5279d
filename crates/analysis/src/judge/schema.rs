//! JSON Schema of the judged JSON, derived from its types: field names, their types, and their
//! descriptions.

use schemars::Schema;
use schemars::generate::SchemaSettings;

use super::judged::Judged;

/// The judged JSON of one run, or of several as a list.
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code)] // Only its shape is used.
enum Runs {
    /// One run.
    One(Box<Judged>),
    /// Several runs.
    Several(Vec<Judged>),
}

/// The schema, in the form of draft 2020-12.
pub fn schema() -> Schema {
    of::<Runs>()
}

/// The schema of any type that is printed.
pub fn of<T: schemars::JsonSchema>() -> Schema {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<T>()
}
