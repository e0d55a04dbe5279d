//! The task of an actor: reads by a table, or records that it writes over the content of its file.
//!
//! Reads are compared by their checksum with each answer, records when all is over: the whole file
//! is read back.

use std::cell::RefCell;
use std::fs::File;
use std::sync::Arc;

use pagewise_analysis::statistics::total;
use pagewise_host::{OffsetTable, OperationOrder, ReadBack, TableError, TableMemory, cache, missing_records};
use pagewise_model::random::mix;
use pagewise_model::{Actor, ActorOrder, ActorWrites, Cell, Conditions, Failure, FailureKind, RecordRing};
use pagewise_protocol::{Job, SampleReply, descriptor_path};

use super::accesses::Accesses;
use super::files::Input;
use super::records::RecordTask;
use super::sample_round::SampleRound;
use super::task::Task;

/// Operations of an actor.
pub(super) enum ActorTask {
    /// Reads by a table.
    Reads {
        /// Inherited by the worker.
        _memory: TableMemory,
        accesses: Arc<Accesses>,
        order: OperationOrder,
    },
    /// Records over the content of a file.
    Records(Box<ActorRecords>),
}

/// Accesses of actors to the user's file, whose checksums require reading it: once, and not for
/// each sample.
#[derive(Default)]
pub struct KeptAccesses(RefCell<Vec<Arc<Accesses>>>);

/// The records that an actor writes, and where they are to be found.
pub struct ActorRecords {
    file: File,
    records: RecordTask,
    read_back: ReadBack,
    writes: ActorWrites,
}

impl ActorTask {
    /// Reads of the actor in this round, in the order of the file or drawn; or its records.
    pub(super) fn of(
        actor: &Actor,
        cell: &Cell,
        input: &Input,
        round: SampleRound<'_>,
        kept: &KeptAccesses,
    ) -> anyhow::Result<Self> {
        let conditions = &cell.conditions;
        let draw: fn(&Conditions, u64) -> Result<OffsetTable, TableError> = match actor.order {
            ActorOrder::Scan => OffsetTable::in_order,
            ActorOrder::Read => OffsetTable::new,
            ActorOrder::Append => {
                // As many passes as it has time for. What another actor left is of another seed, so
                // that a record which is not written is missing.
                let seed = mix(!round.seed() ^ mix(input.rewrite()));
                let ring = RecordRing::new(input.file_bytes, actor.op_bytes.0, u64::MAX);
                return Ok(Self::Records(Box::new(ActorRecords {
                    file: input.file().try_clone()?,
                    records: RecordTask::new(ring, seed, round.page_bytes)?,
                    read_back: ReadBack::other_than(cell.access()),
                    writes: ActorWrites::default(),
                })));
            }
        };
        let new = |seed| Ok(Arc::new(Accesses::of_table(draw(conditions, seed)?, conditions, input, round)?));
        let accesses = match input.seed() {
            Some(_) => new(round.seed())?,
            None => kept.of(conditions, || new(round.plan.seed))?,
        };
        let mut memory = TableMemory::new(accesses.entries())?;
        // It is not measured, so its table is in place from the start, and in one piece: there is
        // little to do between two requests.
        memory.put_plain(accesses.table.offsets());
        let order = accesses.table.as_drawn();
        Ok(Self::Reads { _memory: memory, accesses, order })
    }

    /// Complete the job.
    pub(super) fn describe(&self, job: &mut Job) {
        match self {
            Self::Reads { _memory: memory, accesses, .. } => {
                job.table_path = descriptor_path(memory.file());
                job.table_reads = accesses.entries();
            }
            Self::Records(of_file) => {
                job.source_path = of_file.records.source_path();
                job.records = of_file.records.ring.records();
            }
        }
    }

    /// The same as a task of the measured worker, and the order of its table.
    fn as_task(&self) -> (Task<'_>, Option<&OperationOrder>) {
        match self {
            Self::Reads { accesses, order, .. } => (Task::Reads(accesses), Some(order)),
            Self::Records(of_file) => (Task::Records(&of_file.records), None),
        }
    }

    /// Position in a page of the word that its reads touch.
    pub(super) fn touch_at(&self) -> u64 {
        self.as_task().0.touch_at()
    }

    /// Records of the actor, if it writes.
    pub(super) fn into_records(self) -> Option<ActorRecords> {
        match self {
            Self::Reads { .. } => None,
            Self::Records(records) => Some(*records),
        }
    }

    /// Note an answer; true if it is right as far as that can be seen now.
    pub(super) fn note(&mut self, reply: &SampleReply, first_operation: u64) -> bool {
        let one_thread = reply.thread_operations == [reply.operations];
        let (task, order) = self.as_task();
        let expected = task.expected_checksum(order, reply, first_operation);
        if let Self::Records(of_file) = self {
            let writes = &mut of_file.writes;
            writes.records = writes.records.saturating_add(reply.operations);
            writes.syncs = writes.syncs.saturating_add(total(&reply.sync_duration_counts));
            writes.dirty_most_bytes = writes.dirty_most_bytes.max(cache::dirty_bytes(&of_file.file));
        }
        one_thread && u64::from_str_radix(&reply.checksum, 16).ok() == expected
    }
}

impl KeptAccesses {
    fn of(
        &self,
        conditions: &Conditions,
        new: impl FnOnce() -> anyhow::Result<Arc<Accesses>>,
    ) -> anyhow::Result<Arc<Accesses>> {
        let mut all = self.0.borrow_mut();
        if let Some(kept) = all.iter().find(|kept| kept.are_of(conditions)) {
            return Ok(kept.clone());
        }
        all.push(new()?);
        Ok(all[all.len() - 1].clone())
    }
}

impl ActorRecords {
    /// Read them back.
    ///
    /// # Errors
    /// An actor whose file cannot be read.
    pub fn read_back(self) -> Result<ActorWrites, Failure> {
        let Self { file, records, read_back, writes } = self;
        let (missing_bytes, first_missing_at) =
            missing_records(&file, records.first(writes.records), read_back)
                .map_err(|error| absent(format!("its file cannot be read back: {error}")))?;
        Ok(ActorWrites { missing_bytes, first_missing_at, ..writes })
    }
}

/// The failure of an actor.
pub(super) fn absent(detail: impl std::fmt::Display) -> Failure {
    Failure { kind: FailureKind::ActorAbsent, detail: format!("the actor: {detail}") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use pagewise_host::Dataset;
    use pagewise_model::{Bytes, Content, Plan, Reads, Work};
    use pagewise_protocol::Wait;

    use super::*;

    #[test]
    fn records_of_an_actor_before_are_not_those_of_this_one() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("written");
        let dataset = Dataset::create(&path, 1 << 20, Content::Random, 3, &mut |_| (), &STOP).expect("made");
        let input = Input::dataset(dataset).expect("an input");
        let actor: Actor = "append:pwrite,rate=max,size=64KiB,file=1MiB".parse().expect("an actor");
        let measured = Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(4))), Bytes::mib(1));
        let (cell, plan) = (actor.cell(&measured), Plan::of(Vec::new()));
        let wait = Wait { patience: Duration::from_secs(1), stop: &STOP };
        let round = SampleRound { plan: &plan, number: 0, page_bytes: 4096, wait };
        let writer = |writes: u64| {
            let task = ActorTask::of(&actor, &cell, &input, round, &KeptAccesses::default()).expect("a task");
            let mut of_file = task.into_records().expect("it writes");
            of_file.writes.records = writes;
            of_file
        };
        // It writes its records, and a second one of the same round says so and does not.
        let first = writer(5);
        for index in 0..5 {
            let record = &first.records.source()[first.records.ring.source_range(index)];
            input.file().write_all_at(record, index * (64 << 10)).expect("written");
        }
        assert_eq!(first.read_back().expect("read").missing_bytes, 0);
        let second = writer(4).read_back().expect("read");
        assert_eq!((second.missing_bytes, second.first_missing_at), (4 * (64 << 10), Some(0)));
    }
}
