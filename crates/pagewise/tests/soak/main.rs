//! Rates that are known beforehand. They need minutes and a quiet machine: `./check --soak` runs them.

#[path = "../support/mod.rs"]
mod support;

mod known_answers;
mod known_caps;
