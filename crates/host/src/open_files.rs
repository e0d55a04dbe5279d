//! The number of files that this process, and those that it starts, may have open.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Reason that no more files can be open.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum NoRoom {
    #[error("the limit is {0} (ulimit -Hn)")]
    Limit(u64),
    #[error("setrlimit: {0}")]
    Call(io::Error),
}

/// The soft limit before it was raised.
static USUAL: OnceLock<u64> = OnceLock::new();

/// The soft limit before it was raised, which programs of the user are to have: some have as many
/// files open as they may. `None`: it was not raised.
pub fn usual() -> Option<u64> {
    USUAL.get().copied()
}

/// Room for so many open files: the soft limit is raised, up to the hard one.
pub fn room_for(needed: u64) -> Result<(), NoRoom> {
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|current| *current < needed) else { return Ok(()) };
    if let Some(maximum) = limit.maximum.filter(|maximum| *maximum < needed) {
        return Err(NoRoom::Limit(maximum));
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|errno| NoRoom::Call(errno.into()))?;
    USUAL.get_or_init(|| current);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_hard_limit_can_be_open() {
        room_for(1).expect("some are open already");
        if let Some(maximum) = getrlimit(Resource::Nofile).maximum {
            let refused = room_for(maximum + 1).expect_err("beyond it").to_string();
            assert_eq!(refused, format!("the limit is {maximum} (ulimit -Hn)"));
        }
    }
}
