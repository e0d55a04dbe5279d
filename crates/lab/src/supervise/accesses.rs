//! The offset table of a cell and its expected checksum.
//!
//! Table and reference depend on the conditions and the round, never on the method: all methods of
//! a comparison follow the same table in a round.

use std::collections::VecDeque;

use anyhow::Result;
use pagewise_host::{OffsetTable, OperationOrder, Reference};
use pagewise_model::pieces::piece_reads;
use pagewise_model::{CacheState, Conditions, Method};
use pagewise_protocol::{SampleReply, Wait};

use super::files::Input;
use super::sample_round::SampleRound;

/// A table with its reference.
pub struct Accesses {
    conditions: Conditions,
    seed: u64,
    /// Offsets for workers.
    pub table: OffsetTable,
    /// Expected checksum.
    pub reference: Reference,
    parts: Parts,
}

/// Parts of a table that an examination draws, for what no table of a run has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// Operations in the part of each thread.
    pub operations: u64,
    /// Entries behind the last part: too few for an operation, so nobody reads them.
    pub behind: u64,
    /// True if each part is one piece.
    pub in_one_piece: bool,
}

/// The tables used last.
#[derive(Default)]
pub struct AccessesCache(VecDeque<Accesses>);

/// Maximum memory of these tables: the supervisor must stay small.
const KEPT_BYTES: u64 = 8 << 20;

impl AccessesCache {
    /// Make the accesses of `conditions` in `round` the [`AccessesCache::current`] ones, from the
    /// cache or new.
    ///
    /// A dataset gets a new table in each round, so that caches below the page cache (of the disk
    /// or the host) do not learn the reads. The user's file has one table, because its checksum
    /// requires reading the file.
    pub fn load(&mut self, conditions: &Conditions, round: SampleRound<'_>, input: &Input) -> Result<()> {
        let plan = round.plan;
        let seed = match input.seed() {
            Some(_) => round.seed(),
            None => plan.seed,
        };
        let kept = self.0.iter().position(|kept| kept.seed == seed && kept.conditions == *conditions);
        if let Some(index) = kept {
            let accesses = self.0.remove(index).expect("its index was just found");
            self.0.push_back(accesses);
            return Ok(());
        }
        let table = OffsetTable::lasting(conditions, seed, plan.longest_reading_ns(conditions))?;
        let kept_bytes = |kept: &VecDeque<Accesses>| {
            kept.iter().map(|accesses| accesses.table.memory_bytes()).sum::<u64>()
        };
        while kept_bytes(&self.0) + table.memory_bytes() > KEPT_BYTES {
            if self.0.pop_front().is_none() {
                break;
            }
        }
        self.0.push_back(Accesses { seed, ..Accesses::of_table(table, conditions, input, round)? });
        Ok(())
    }

    /// The accesses loaded last.
    pub fn current(&self) -> &Accesses {
        self.0.back().expect("loaded before")
    }
}

impl Accesses {
    /// Accesses of `input` by a table that was drawn for `conditions`.
    pub fn of_table(
        mut table: OffsetTable,
        conditions: &Conditions,
        input: &Input,
        round: SampleRound<'_>,
    ) -> Result<Self> {
        let SampleRound { page_bytes, wait: Wait { stop, .. }, .. } = round;
        let reference = match input.seed() {
            Some(seed) => Reference::for_dataset(&table, conditions, seed, page_bytes)?,
            None => Reference::for_file(&table, conditions, input.file(), page_bytes, stop)?,
        };
        // The offsets of dependent reads reach workers only through the data.
        match input.seed() {
            Some(seed) => table.chain_dataset(seed)?,
            None => table.chain_file(input.file(), conditions.span_bytes.0, stop)?,
        }
        let seed = round.seed();
        Ok(Self { conditions: conditions.clone(), seed, table, reference, parts: Parts::default() })
    }

    /// Accesses of a dataset in such parts, which a thread repeats.
    pub fn in_parts(
        conditions: &Conditions,
        (seed, content_seed): (u64, u64),
        parts: Parts,
        page_bytes: u64,
    ) -> Result<Self> {
        let mut table = OffsetTable::with_part(conditions, seed, parts.operations)?;
        let reference = Reference::for_dataset(&table, conditions, content_seed, page_bytes)?;
        table.chain_dataset(content_seed)?;
        Ok(Self { conditions: conditions.clone(), seed, table, reference, parts })
    }

    /// True if they were drawn for these conditions.
    pub fn are_of(&self, conditions: &Conditions) -> bool {
        self.conditions == *conditions
    }

    /// Entries of the table that workers find.
    pub fn entries(&self) -> u64 {
        self.table.reads() + self.parts.behind
    }

    /// Reads of a piece of the table for `method`; 0: the part of each thread is one piece.
    pub fn piece_reads(&self, method: &Method) -> u64 {
        let per_op = u64::from(self.table.shape().reads_per_op);
        match self.parts.in_one_piece {
            true => 0,
            false => piece_reads(method, per_op, self.table.operations_per_thread() * per_op),
        }
    }

    /// Expected checksum of the operations of all threads from `first_operation` on, in this order.
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

    /// Maximum operations of a thread; 0: unbounded. A cold table is used once, and brings in at
    /// most a quarter of the span.
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
