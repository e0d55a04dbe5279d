//! The table of a job in words of 8 bytes: its entries, the gaps before them, and requests to read
//! ahead.

use crate::messages::Job;

/// Words of a request to read ahead, behind the entries of a table.
pub const READ_AHEAD_WORDS: usize = 4;

impl Job {
    /// Requests to read ahead, of all threads.
    pub fn read_ahead(&self) -> u64 {
        self.thread_read_ahead.iter().fold(0, |all, requests| all.saturating_add(*requests))
    }

    /// Words of its table before the requests to read ahead: entries, and their gaps.
    pub const fn words_of_entries(&self) -> u64 {
        self.table_reads.saturating_mul(if self.gaps == 1 { 2 } else { 1 })
    }

    /// Words of its table.
    pub fn table_words(&self) -> u64 {
        let of_requests = self.read_ahead().saturating_mul(READ_AHEAD_WORDS as u64);
        self.words_of_entries().saturating_add(of_requests)
    }
}
