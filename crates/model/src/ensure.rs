//! Conditions whose absence is a sentence.

/// Require a condition.
pub(crate) fn ensure(holds: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(reason()) }
}
