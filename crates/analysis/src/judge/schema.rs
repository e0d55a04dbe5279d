//! JSON Schema of what is printed, derived from its types.

use schemars::Schema;
use schemars::generate::SchemaSettings;

/// The schema of any type that is printed, in the form of draft 2020-12.
pub fn of<T: schemars::JsonSchema>() -> Schema {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<T>()
}
