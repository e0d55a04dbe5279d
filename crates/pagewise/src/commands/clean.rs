//! `pagewise clean`: removes what a dead run left, never what a live one holds.

use anyhow::Result;

use super::Ending;
use crate::state::{Claim, State};

/// Sweeps.
pub fn clean() -> Result<Ending> {
    match State::claim(&format!("pid {}, cleaning", std::process::id()))? {
        Claim::Refused { holder } => {
            println!("A run is live ({holder}); what it holds is left alone, and there is nothing else.");
        }
        Claim::Granted { swept, .. } if swept.is_empty() => println!("Nothing was left behind."),
        Claim::Granted { swept, .. } => {
            for path in swept {
                println!("removed {}", path.display());
            }
        }
    }
    Ok(Ending::Done)
}
