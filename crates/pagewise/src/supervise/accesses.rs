//! The offset table of a cell and what its bytes must add up to.
//!
//! Table and reference depend on the conditions and the round, never on the method: all methods of a comparison
//! follow the same table in a round.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use pagewise_host::{OffsetTable, OperationOrder, Reference};
use pagewise_model::random::mix;
use pagewise_model::{CacheState, Conditions, Plan};
use pagewise_protocol::SampleReply;

use super::files::Input;

/// A table with its reference.
pub struct Accesses {
    conditions: Conditions,
    seed: u64,
    /// What workers follow.
    pub table: OffsetTable,
    /// What must come of it.
    pub reference: Reference,
}

/// Keeps the tables used last.
#[derive(Default)]
pub struct AccessesCache(VecDeque<Accesses>);

/// Offsets of all tables that are kept, since the supervisor is to stay small beside what it measures.
const KEPT_BYTES: u64 = 8 << 20;

impl AccessesCache {
    /// Makes the accesses of `conditions` in `round` unless they are kept; they are [`AccessesCache::current`] then.
    ///
    /// A dataset gets a fresh table each round, so that what lies behind the page cache (a disk's own cache, a
    /// host's) does not learn the reads. The user's file keeps one, because what its bytes add up to must
    /// be learned by reading it.
    pub fn load(
        &mut self,
        conditions: &Conditions,
        round: u32,
        plan: &Plan,
        page_bytes: u64,
        input: &Input,
        stop: &AtomicBool,
    ) -> Result<()> {
        let seed = match input.seed() {
            Some(_) => mix(plan.seed ^ u64::from(round)),
            None => plan.seed,
        };
        let kept = self.0.iter().position(|kept| kept.seed == seed && kept.conditions == *conditions);
        if let Some(index) = kept {
            let accesses = self.0.remove(index).expect("its index was just found");
            self.0.push_back(accesses);
            return Ok(());
        }
        let mut table = OffsetTable::new(conditions, seed)?;
        let kept_bytes = |kept: &VecDeque<Accesses>| {
            kept.iter().map(|accesses| accesses.table.memory_bytes()).sum::<u64>()
        };
        while kept_bytes(&self.0) + table.memory_bytes() > KEPT_BYTES {
            if self.0.pop_front().is_none() {
                break;
            }
        }
        let reference = match input.seed() {
            Some(seed) => Reference::for_dataset(&table, conditions, seed, page_bytes)?,
            None => Reference::for_file(&table, conditions, input.file(), page_bytes, stop)?,
        };
        // Of dependent reads, workers get the offsets only through the data.
        match input.seed() {
            Some(seed) => table.chain_dataset(seed)?,
            None => table.chain_file(input.file(), conditions.span_bytes.0, stop)?,
        }
        self.0.push_back(Accesses { conditions: conditions.clone(), seed, table, reference });
        Ok(())
    }

    /// The accesses that were loaded last.
    pub fn current(&self) -> &Accesses {
        self.0.back().expect("loaded before")
    }
}

impl Accesses {
    /// What the accesses that all threads did from `first_operation` on, in this order, must add up to.
    pub fn expected_checksum(
        &self,
        order: &OperationOrder,
        reply: &SampleReply,
        first_operation: u64,
    ) -> Option<u64> {
        reply.thread_operations.iter().enumerate().try_fold(0u64, |total, (thread, operations)| {
            let expected = self.reference.expected(order, thread as u32, first_operation, *operations)?;
            Some(total.wrapping_add(expected))
        })
    }

    /// The most operations that a thread may do: a cold table is gone through once, and brings in a quarter of
    /// the span at most.
    pub fn max_thread_operations(&self) -> u64 {
        if self.conditions.cache != CacheState::Cold {
            return 0;
        }
        let budget = self.conditions.cold_budget_bytes()
            / self.conditions.op_bytes()
            / u64::from(self.conditions.threads);
        budget.clamp(1, self.table.operations_per_thread())
    }
}
