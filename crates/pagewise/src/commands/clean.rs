//! `pagewise clean`: undoes the changes of dead runs in every state directory, and never those of a
//! live one.

use std::io::Write;

use anyhow::Result;
use pagewise_lab::exit::Exit;
use pagewise_lab::output;
use pagewise_lab::state::{CLEANING, OutOfReach, RunClaim, State, Swept, sweep_machine};
use pagewise_model::Untrusted;

use crate::arguments::CleanArguments;

/// Sweep.
pub fn clean(arguments: &CleanArguments) -> Result<Exit> {
    let out_of_reach = if arguments.forget { OutOfReach::Forgotten } else { OutOfReach::Kept };
    let description = format!("pid {}, {CLEANING}", std::process::id());
    let (mut out, mut swept, mut live) = (output::stdout(), Swept::default(), false);
    // The rights are held until everything is done: a run started meanwhile would find half of it.
    let claims = State::claim_all(&description, out_of_reach)?;
    for claim in &claims {
        if let RunClaim::Refused { holder } = claim {
            live = true;
            writeln!(out, "A run is live ({}): its files and settings are left alone.", Untrusted(holder))?;
        }
    }
    for claim in claims {
        if let RunClaim::Granted { swept: more, .. } = claim {
            swept = swept.and(more);
        }
    }
    swept = swept.and(sweep_machine());
    for undone in &swept.undone {
        writeln!(out, "{}", Untrusted(undone))?;
    }
    for line in swept.notes.iter().chain(&swept.left) {
        writeln!(out, "{}", Untrusted(line))?;
    }
    if !swept.left.is_empty() {
        return Ok(Exit::FellShort);
    }
    if swept == Swept::default() && !live {
        writeln!(out, "Nothing was left to clean.")?;
    }
    Ok(Exit::Answered)
}
