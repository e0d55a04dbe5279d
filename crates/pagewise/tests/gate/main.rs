//! Tests that start the command and measure nothing: refusals, the schema, links. They need no
//! machine.

#[path = "../support/mod.rs"]
mod support;

mod glossary;
mod links;
mod refused;
mod refused_conditions;
mod refused_once;
mod schema;
