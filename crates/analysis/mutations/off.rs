//! The check that is turned off while the unit tests run, as `bench/mutations.py` asks: one of them
//! must fail then.

use std::sync::LazyLock;

/// Whether the check at this position of both lists is turned off.
pub fn is_off(position: usize) -> bool {
    static OFF: LazyLock<Option<usize>> =
        LazyLock::new(|| std::env::var("PAGEWISE_CHECK_OFF").ok()?.parse().ok());
    *OFF == Some(position)
}
