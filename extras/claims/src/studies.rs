//! The published studies.

/// The published studies by name: their claims, and the plans that measure them again.
pub const STUDIES: &[(&str, &str)] = &[
    ("append", include_str!("../studies/append.toml")),
    ("scan", include_str!("../studies/scan.toml")),
    ("lucene", include_str!("../studies/lucene.toml")),
    ("fill", include_str!("../studies/fill.toml")),
];
