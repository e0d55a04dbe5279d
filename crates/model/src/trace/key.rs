//! The name of a trace.

use std::fmt;
use std::str::FromStr;

use crate::words::as_text;

/// A digest of a trace, which names it: 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TraceKey(u64);

impl TraceKey {
    /// The key of this digest.
    pub(super) fn of(digest: u64) -> Self {
        Self(digest)
    }
}

impl fmt::Display for TraceKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl FromStr for TraceKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(TraceKey).ok_or_else(|| format!("'{text}' is no digest: it has 16 hexadecimal digits"))
    }
}

as_text!(TraceKey);
