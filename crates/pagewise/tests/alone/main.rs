//! Tests that measure what any other would disturb. They take turns, and this program runs when no
//! other does.

#[path = "../support/mod.rs"]
mod support;

mod advise;
mod beside;
mod cheated_syncs;
mod cheats;
mod contaminated;
mod known_conditions;
mod once;
mod out_of_clock;
mod published_defects;
mod rates;
mod replay;
mod replayed_cache;
mod replayed_files;
mod replayed_gaps;
mod replayed_threads;
