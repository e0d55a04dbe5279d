//! `pagewise clean`: undoes what a dead run left, never what a live one holds.

use anyhow::Result;

use super::Ending;
use crate::state::{Claim, State};

/// Sweeps.
pub fn clean() -> Result<Ending> {
    match State::claim(&format!("pid {}, cleaning", std::process::id()))? {
        Claim::Refused { holder } => {
            println!("A run is live ({holder}); what it holds is left alone, and there is nothing else.");
        }
        Claim::Granted { swept, .. } => {
            swept.undone.iter().for_each(|undone| println!("{undone}"));
            swept.left.iter().for_each(|left| println!("{left}"));
            match (swept.undone.is_empty(), swept.left.is_empty()) {
                (true, true) => println!("Nothing was left behind."),
                (_, true) => {}
                (_, false) => return Ok(Ending::FellShort),
            }
        }
    }
    Ok(Ending::Done)
}
