//! Durability of written bytes: when they must be on the device, and the call that puts them there.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;
use crate::words::{as_text, words};

/// The largest folio of the page cache: a store to one byte makes all of it dirty.
pub const FOLIO_BYTES: u64 = 2 << 20;

/// Time by which written bytes must be on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sync {
    /// Left to the kernel.
    #[default]
    None,
    /// At the end, as a part of tear-down.
    End,
    /// Whenever this many more bytes have been written, and at the end; within the measured region.
    Every(Bytes),
    /// Each record before its thread writes the next one; within the measured region. Records of
    /// several threads share a sync (group commit).
    Commit,
}

words! {
    /// The kernel call by which written bytes are made durable.
    SyncCall, "sync call" {
        /// fdatasync(2): the data, and the metadata needed to read them.
        Fdatasync = "fdatasync",
        /// fsync(2): the data and all metadata.
        Fsync = "fsync",
        /// msync(2) with MS_SYNC, of a mapping.
        Msync = "msync",
        /// sync_file_range(2) that waits: the data reach the device, but neither metadata nor a
        /// flush of its cache follow. The bytes are not durable.
        SyncFileRange = "sync_file_range",
        /// pwritev2(2) with RWF_DSYNC (Linux 4.7): the write is the sync.
        RwfDsync = "RWF_DSYNC",
        /// A descriptor with O_DSYNC: each write is a sync.
        ODsync = "O_DSYNC",
    }
}

impl Sync {
    /// True if syncs are a part of the measured region.
    pub const fn is_measured(self) -> bool {
        matches!(self, Sync::Every(_) | Sync::Commit)
    }
}

impl SyncCall {
    /// The call of a writer that was asked for none in particular.
    pub const fn usual(is_mapping: bool) -> Self {
        if is_mapping { SyncCall::Msync } else { SyncCall::Fdatasync }
    }

    /// True if the write is the sync, so that no other call follows.
    pub const fn is_write(self) -> bool {
        matches!(self, SyncCall::RwfDsync | SyncCall::ODsync)
    }

    /// True if synced bytes survive a loss of power.
    pub const fn is_durable(self) -> bool {
        !matches!(self, SyncCall::SyncFileRange)
    }
}

impl fmt::Display for Sync {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sync::None => formatter.pad("none"),
            Sync::End => formatter.pad("end"),
            Sync::Every(bytes) => formatter.pad(&format!("every:{bytes}")),
            Sync::Commit => formatter.pad("commit"),
        }
    }
}

impl FromStr for Sync {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("every:")) {
            ("none", _) => Ok(Sync::None),
            ("end", _) => Ok(Sync::End),
            ("commit", _) => Ok(Sync::Commit),
            (_, Some(size)) => match size.parse::<Bytes>() {
                Ok(Bytes(0)) => {
                    Err("invalid sync 'every:0B': write the bytes between two syncs, as in every:1MiB".into())
                }
                Ok(bytes) => Ok(Sync::Every(bytes)),
                Err(error) => Err(error.to_string()),
            },
            _ if text.parse::<SyncCall>().is_ok() => Err(format!(
                "'{text}' is a call: write end, every:SIZE or commit, and the call as --sync-call {text}"
            )),
            _ => Err(format!("unknown sync '{text}': write one of none, end, every:SIZE, commit")),
        }
    }
}

as_text!(Sync);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sync_is_written_as_typed() {
        for text in ["none", "end", "every:1MiB", "every:100B", "commit"] {
            assert_eq!(text.parse::<Sync>().expect(text).to_string(), text);
        }
        for nonsense in ["", "always", "every", "every:", "every:0B", "every:4096", "end:1MiB", "commit:2"] {
            assert!(nonsense.parse::<Sync>().is_err(), "{nonsense:?} was taken");
        }
    }

    #[test]
    fn calls_have_the_names_of_the_manual() {
        for call in SyncCall::ALL {
            assert_eq!(call.name().parse::<SyncCall>().as_ref(), Ok(call));
        }
        assert!("sync".parse::<SyncCall>().expect_err("no call").ends_with("RWF_DSYNC, O_DSYNC"));
    }

    proptest! {
        #[test]
        fn a_sync_of_any_size_parses_back(bytes in 1..=i64::MAX as u64) {
            let sync = Sync::Every(Bytes(bytes));
            prop_assert_eq!(sync.to_string().parse(), Ok(sync));
        }
    }
}
