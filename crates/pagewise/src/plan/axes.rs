//! Which axes have a meaning for which workload: one that nobody uses is a mistake, and is not left out silently.

use anyhow::{Result, bail};
use pagewise_model::Workload;

use super::{Axes, Layer};

type IsChosen = fn(&Axes) -> bool;

const READS: &[Workload] = &[Workload::RandomRead, Workload::SequentialRead];
const WRITES: &[Workload] = &[Workload::Append, Workload::Fill];

/// Axes that only some workloads have, with whether one is chosen.
const SPECIAL: &[(&str, &[Workload], IsChosen)] = &[
    ("read_size", READS, |axes| axes.read_size.is_some()),
    ("reads_per_op", READS, |axes| axes.reads_per_op.is_some()),
    ("align", READS, |axes| axes.align.is_some()),
    ("skew", READS, |axes| axes.skew.is_some()),
    ("dependent", READS, |axes| axes.dependent.is_some()),
    ("descriptor", READS, |axes| axes.descriptor.is_some()),
    ("consume", &[Workload::RandomRead, Workload::SequentialRead, Workload::Scan], |axes| {
        axes.consume.is_some()
    }),
    ("span", &[Workload::RandomRead, Workload::SequentialRead, Workload::Scan], |axes| axes.span.is_some()),
    ("record_size", &[Workload::Append], |axes| axes.record_size.is_some()),
    ("laps", &[Workload::Append], |axes| axes.laps.is_some()),
    ("block_size", &[Workload::Fill], |axes| axes.block_size.is_some()),
    ("sync", WRITES, |axes| axes.sync.is_some()),
];

/// Refuses an axis in `layer` that none of the plan's workloads has.
pub fn ensure_all_used(layer: &Layer, workloads: &[Workload]) -> Result<()> {
    for (name, of, is_chosen) in SPECIAL {
        let used = workloads.iter().any(|workload| of.contains(workload));
        if is_chosen(&layer.axes) && !used {
            let have = if workloads.len() == 1 { "has" } else { "have" };
            bail!("'{name}' is for {}; {} {have} none", words(of), words(workloads));
        }
        for (workload, axes) in &layer.by_workload {
            if is_chosen(axes) && !of.contains(workload) {
                bail!("in [{workload}]: '{name}' is for {}", words(of));
            }
        }
    }
    Ok(())
}

fn words(workloads: &[Workload]) -> String {
    workloads.iter().map(|workload| workload.name()).collect::<Vec<_>>().join(", ")
}
