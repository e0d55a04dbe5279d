//! Rates that are known beforehand, and kills at random moments. They take minutes:
//! `./check --soak` runs them.

#[path = "../support/mod.rs"]
mod support;

mod killed;
mod killed_conditions;
mod known_answers;
mod known_caps;
mod known_crossing;
