//! The work of an actor, as a cell.

use crate::actor::{Actor, ActorOrder};
use crate::cell::{CacheState, Cell, Conditions, Role};
use crate::ensure::ensure;
use crate::method::{Alignment, Worker};
use crate::sync::Sync;
use crate::units::Bytes;
use crate::work::{Append, Reads, Work};

/// The most reads of a file: as many as a table of offsets has.
const MAX_READS: u64 = 1 << 19;

impl Actor {
    /// Size of its file beside a workload under these conditions.
    pub fn file_bytes(&self, measured: &Conditions) -> Bytes {
        self.own_file_bytes().unwrap_or(measured.file_bytes)
    }

    /// The cell that it does beside a workload under these conditions: one thread, on its file as
    /// it finds it.
    pub fn cell(&self, measured: &Conditions) -> Cell {
        let reads = Reads::of(self.op_bytes);
        let work = match self.order {
            ActorOrder::Scan => Work::SequentialRead(reads),
            ActorOrder::Read => Work::RandomRead(reads),
            ActorOrder::Append => Work::Append(Append {
                record_bytes: self.op_bytes,
                passes: 1,
                sync: Sync::Commit,
                sync_call: None,
            }),
        };
        let mut conditions =
            Conditions { rate: self.rate, ..Conditions::of(work, self.file_bytes(measured)) };
        if self.reads_same_file() {
            conditions.content = measured.content;
        }
        Cell { role: Role::Measured, method: self.method.clone(), conditions }
    }

    /// Check that it can be done beside a workload under these conditions, on a machine that
    /// requires this alignment.
    pub fn check(&self, measured: &Conditions, alignment: Alignment) -> Result<(), String> {
        let Self { order, method, op_bytes, .. } = self;
        let (verb, operation) = (order.verb(), order.operation());
        let cell = self.cell(measured);
        if *method.worker() != Worker::Native {
            return Err(format!(
                "the actor '{self}' {verb} its file by the native worker: write a method of it"
            ));
        }
        if method.reads_all_in_setup() {
            return Err(format!("the actor '{self}' would read its whole file before it begins"));
        }
        if let Some(reason) = method.excluded_from(&cell.conditions, alignment) {
            return Err(format!("the actor '{self}': {reason}"));
        }
        let file_bytes = self.file_bytes(measured);
        if *op_bytes > file_bytes {
            return Err(format!("the actor '{self}' {verb} {op_bytes} of a file of {file_bytes}"));
        }
        let count = file_bytes.0 / op_bytes.0.max(1);
        if count > MAX_READS {
            return Err(format!(
                "the actor '{self}' has {count} {operation}s in its file, at most {MAX_READS} are possible: write a larger size= or a smaller file="
            ));
        }
        if self.reads_same_file() {
            self.check_same(&cell, measured)?;
        }
        cell.conditions.check_limits()
    }

    /// Check that the measured file may be read by `cell` of this actor too.
    fn check_same(&self, cell: &Cell, measured: &Conditions) -> Result<(), String> {
        let workload = measured.workload();
        ensure(workload.is_reading(), || {
            format!("the actor '{self}' would read a file that {workload} writes: leave file=same out")
        })?;
        // It would bring in what is to be read from the device, or change what was found.
        ensure(measured.cache == CacheState::Warm || !cell.depends_on_cache(), || {
            format!(
                "the actor '{self}' reads the measured file into the page cache, which keeps no state there but warm: write --cache warm, or a direct method of the actor"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;

    #[test]
    fn a_plan_from_a_run_file_is_held_to_it() {
        let with = |text: &str| {
            let beside = Some(text.parse().expect("an actor"));
            let work = Work::RandomRead(Reads::of(crate::Bytes::kib(4)));
            Conditions { beside, ..Conditions::of(work, crate::Bytes::mib(1)) }.check_limits()
        };
        assert_eq!(with("scan:pread,rate=max,file=1GiB"), Ok(()));
        let error = with("read:pread,rate=max,size=1B,file=1024TiB").expect_err("a table of 2^50 reads");
        assert!(error.contains("at most 524288"), "{error}");
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let work = Work::RandomRead(Reads::of(crate::Bytes::kib(4)));
        let measured = Conditions::of(work, crate::Bytes::mib(64));
        let check = |text: &str| text.parse::<Actor>().expect("an actor").check(&measured, Alignment::ANY);
        for text in [
            "scan:pread,rate=max",
            "read:mmap:random,rate=5k",
            "scan:uring:direct+depth=4,rate=max",
            "append:pwrite,rate=20MiB/s",
            "append:mmap,rate=5k,size=4KiB",
            "append:pwrite:direct+buffer=1MiB,rate=max,file=16MiB",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for (text, reason) in [
            ("scan:jvm/pread,rate=max", "native worker"),
            ("scan:pwrite,rate=max", "not a method"),
            ("append:pread,rate=max", "not a method"),
            ("append:pwrite:buffer=1MiB,rate=max", "does not commit"),
            ("append:pwrite,rate=max,size=128MiB", "too large"),
            ("append:pwrite:direct,rate=5k,size=4KiB", "write pwrite:direct+buffer=4KiB"),
            ("append:uring:direct+depth=1,rate=10", "nothing but one record would be in flight"),
            ("append:go/pwrite,rate=max", "native worker"),
            ("scan:mmap:populate,rate=max", "before it begins"),
            ("read:uring:depth=8,rate=5k", "depth"),
            ("scan:pread,rate=max,file=512KiB", "of a file"),
            ("read:pread,rate=max,size=1KiB,file=4GiB", "at most"),
        ] {
            let error = check(text).expect_err("refused");
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn the_measured_file_is_read_by_both_where_it_stays_warm() {
        let read = Work::RandomRead(Reads::of(crate::Bytes::kib(4)));
        let warm = Conditions {
            cache: CacheState::Warm,
            content: Content::Text,
            span_bytes: crate::Bytes::mib(1),
            ..Conditions::of(read, crate::Bytes::mib(64))
        };
        let actor: Actor = "scan:pread,rate=max,file=same".parse().expect("an actor");
        assert_eq!(actor.check(&warm, Alignment::ANY), Ok(()));
        let of_actor = actor.cell(&warm).conditions;
        assert_eq!(
            (of_actor.file_bytes, of_actor.span_bytes),
            (warm.file_bytes, warm.file_bytes),
            "all of it"
        );
        assert_eq!(of_actor.content, warm.content);
        assert_eq!(actor.file_bytes(&warm), warm.file_bytes);
        for cache in [CacheState::Cold, CacheState::AsIs, CacheState::ReadOnce] {
            let error =
                actor.check(&Conditions { cache, ..warm.clone() }, Alignment::ANY).expect_err("refused");
            assert!(error.contains("write --cache warm"), "{cache}: {error}");
        }
        let beside = |text: &str, memory_limit_bytes| {
            let mut both = Conditions { beside: text.parse().ok(), ..warm.clone() };
            both.host_settings.memory_limit_bytes = memory_limit_bytes;
            both.drops_file_of_actor()
        };
        let limit = Some(crate::Bytes::mib(8));
        let own = "scan:pread,rate=max";
        let both = "scan:pread,rate=max,file=same";
        assert_eq!([beside(own, None), beside(own, limit)], [true; 2]);
        assert_eq!([beside(both, None), beside(both, limit)], [false, true], "it is warm as it is");
        assert!(!warm.drops_file_of_actor());
        let direct: Actor = "scan:pread:direct,rate=max,file=same".parse().expect("an actor");
        let cold = Conditions { cache: CacheState::Cold, ..warm.clone() };
        assert_eq!(direct.check(&cold, Alignment::ANY), Ok(()), "it leaves the cache as it is");
        let append =
            Append { record_bytes: crate::Bytes::kib(4), passes: 1, sync: Sync::Commit, sync_call: None };
        let written = Conditions {
            cache: CacheState::Warm,
            ..Conditions::of(Work::Append(append), crate::Bytes::mib(64))
        };
        let error = actor.check(&written, Alignment::ANY).expect_err("refused");
        assert!(error.contains("a file that append writes"), "{error}");
        let small = Conditions { file_bytes: crate::Bytes::kib(512), ..warm.clone() };
        let error = actor.check(&small, Alignment::ANY).expect_err("refused");
        assert!(error.contains("reads 1MiB of a file of 512KiB"), "{error}");
    }
}
