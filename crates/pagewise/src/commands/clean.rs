//! `pagewise clean`: undoes what dead runs left, in every place where one could have left it, and never what a live
//! one holds.

use anyhow::Result;

use super::Ending;
use crate::arguments::CleanArguments;
use crate::state::{Claim, OutOfReach, State, Swept, sweep_machine};

/// Sweeps.
pub fn clean(arguments: &CleanArguments) -> Result<Ending> {
    let out_of_reach = if arguments.forget { OutOfReach::Forgotten } else { OutOfReach::Kept };
    let description = format!("pid {}, cleaning", std::process::id());
    let (mut swept, mut live) = (Swept::default(), false);
    // The rights are held until all is done: who starts meanwhile would find half of it.
    let claims = State::claim_all(&description, out_of_reach)?;
    for claim in &claims {
        if let Claim::Refused { holder } = claim {
            live = true;
            println!("A run is live ({holder}); what it holds is left alone.");
        }
    }
    for claim in claims {
        if let Claim::Granted { swept: more, .. } = claim {
            swept = swept.and(more);
        }
    }
    swept = swept.and(sweep_machine());
    swept.undone.iter().for_each(|undone| println!("{undone}"));
    swept.notes.iter().for_each(|note| println!("{note}"));
    swept.left.iter().for_each(|left| println!("{left}"));
    if !swept.left.is_empty() {
        return Ok(Ending::FellShort);
    }
    if swept == Swept::default() && !live {
        println!("Nothing was left behind.");
    }
    Ok(Ending::Done)
}
