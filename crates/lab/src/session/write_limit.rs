//! Bytes that workloads wrote so far, against those that they may write.
//!
//! The kernel may write later, so what was expected counts, if it is more. Nothing is left of
//! bytes that were all synced in the measured region.

use pagewise_model::{Bytes, Cell, Outcome, Plan, Sample};

/// The limit of a run, and the bytes that its samples wrote.
pub struct WriteLimit {
    limit: Option<Bytes>,
    estimated: u64,
    measured: u64,
}

impl WriteLimit {
    /// The limit of a run that has these samples.
    pub fn of(plan: &Plan, earlier: &[Sample]) -> Self {
        let mut so_far = Self { limit: plan.max_written_bytes, estimated: 0, measured: 0 };
        for cell in plan.writing_cells() {
            let id = cell.id();
            earlier
                .iter()
                .filter(|sample| sample.cell == id)
                .for_each(|sample| so_far.note(plan, cell, sample));
        }
        so_far
    }

    /// Count a sample of a cell: what the device wrote meanwhile, for others too. A method that is
    /// unavailable wrote nothing.
    pub fn note(&mut self, plan: &Plan, cell: &Cell, sample: &Sample) {
        let estimated = plan.sample_writes(cell);
        let measured = match &sample.outcome {
            Outcome::Taken { evidence, .. } => evidence.device_written_bytes.unwrap_or(0),
            Outcome::Broken { .. } => 0,
            Outcome::Unavailable { .. } => return,
        };
        let (estimated, measured) = match measured > 0 && cell.conditions.measures_syncs() {
            true => {
                let all = measured.saturating_add(Plan::prepared_writes(&cell.conditions));
                (estimated.min(all), all)
            }
            false => (estimated, measured),
        };
        if estimated > 0 {
            self.estimated = self.estimated.saturating_add(estimated);
            self.measured = self.measured.saturating_add(measured);
        }
    }

    /// Bytes so far: those that the device wrote, or what was expected, whichever is more. What is
    /// written late, by writeback of the kernel, counts with a later sample.
    pub fn written(&self) -> Bytes {
        Bytes(self.measured.max(self.estimated))
    }

    /// The limit, if another sample of the cell would exceed it.
    pub fn before(&self, plan: &Plan, cell: &Cell) -> Option<Bytes> {
        let next = plan.sample_writes(cell);
        self.limit.filter(|limit| next > 0 && self.written().0.saturating_add(next) > limit.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::sample::Measurement;
    use pagewise_model::work::Update;
    use pagewise_model::{Append, CacheState, Conditions, Evidence, Method, Role, Sync, Work};

    const MIB: u64 = 1 << 20;

    fn appends(method: Method) -> Cell {
        let append = Append { record_bytes: Bytes(4096), passes: 1, sync: Sync::None, sync_call: None };
        Cell {
            role: Role::Measured,
            method,
            conditions: Conditions {
                cache: CacheState::Cold,
                ..Conditions::of(Work::Append(append), Bytes::mib(4))
            },
        }
    }

    fn sample(cell: &Cell, device_written_bytes: Option<u64>) -> Sample {
        let evidence = Box::new(Evidence { device_written_bytes, ..Evidence::default() });
        let measurement = Measurement::default();
        Sample::of(
            cell,
            0,
            Outcome::Taken { measurement: Box::new(measurement), evidence, failures: Vec::new() },
        )
    }

    #[test]
    fn the_device_decides_where_it_wrote_more_than_was_expected() {
        let cell = appends("pwrite".parse().expect("a method"));
        let plan = Plan { max_written_bytes: Some(Bytes(20 * MIB)), ..Plan::of(vec![cell.clone()]) };
        let so_far = |written: &[Option<u64>]| {
            let earlier: Vec<Sample> = written.iter().map(|one| sample(&cell, *one)).collect();
            let writes = WriteLimit::of(&plan, &earlier);
            (writes.written().0 / MIB, writes.before(&plan, &cell).is_some())
        };
        assert_eq!(so_far(&[]), (0, false));
        assert_eq!(so_far(&[None, None]), (8, false));
        assert_eq!(so_far(&[Some(0), Some(9 * MIB)]), (9, false));
        assert_eq!(so_far(&[None; 4]), (16, false));
        assert_eq!(so_far(&[None; 5]), (20, true));
        assert_eq!(so_far(&[Some(16 * MIB + 1)]), (16, true));
    }

    #[test]
    fn what_is_synced_was_written_when_the_sample_ends() {
        let work = Update {
            block_bytes: Bytes::kib(4),
            updates: 256,
            reads_per_update: 0,
            sync: Sync::Every(Bytes::kib(64)),
            sync_call: None,
        };
        let of = |method: &str| Cell {
            role: Role::Measured,
            method: method.parse().expect("a method"),
            conditions: Conditions::of(Work::Update(work), Bytes::mib(4)),
        };
        let after = |cell: &Cell, device| {
            let plan = Plan { max_written_bytes: Some(Bytes(1 << 40)), ..Plan::of(vec![cell.clone()]) };
            WriteLimit::of(&plan, &[sample(cell, device)]).written().0 / MIB
        };
        // The file was made before, and each of 16 syncs may write all of it.
        assert_eq!(after(&of("mmap"), None), 1 + 4 + 64);
        assert_eq!(after(&of("mmap"), Some(7 * MIB)), 4 + 7);
        assert_eq!(after(&of("pwrite"), Some(MIB)), 4 + 1);
    }

    #[test]
    fn what_writes_nothing_has_no_limit() {
        let cell = appends(Method::anonymous());
        let plan = Plan { max_written_bytes: Some(Bytes(0)), ..Plan::of(vec![cell.clone()]) };
        assert!(WriteLimit::of(&plan, &[sample(&cell, Some(MIB))]).before(&plan, &cell).is_none());
    }
}
