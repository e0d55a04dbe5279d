//! Tests that hold beside each other: what they start is small, or waits.

#[path = "../support/mod.rs"]
mod support;

mod advise;
mod at_one_time;
mod bad_conditions;
mod bad_input;
mod bad_once;
mod bad_workers;
mod command_line;
mod compare;
mod compare_by;
mod conformance;
mod disturbed_writes;
mod doctor;
mod documented;
mod documents;
mod filesystems;
mod fleet;
mod full;
mod inspect;
mod interrupted;
mod killed_at_steps;
mod killed_conditions;
mod made_up;
mod protocol;
mod record;
mod reproduce;
mod trust_kills;
mod trust_mounts;
mod trust_numbers;
mod trust_output;
mod trust_run_files;
mod trust_state;
mod trust_words;
mod trust_workers;
mod vectors;
mod vmstat;
mod windows;
mod worker_faults;
