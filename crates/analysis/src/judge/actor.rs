//! Figures of an actor: what it did in the measured region, and what it left of the file.

use pagewise_model::Evidence;
use serde::Serialize;

use super::collected::{CellSamples, SamplesById};
use super::figure::MedianInterval;
use super::verdict::FEWEST_ROUNDS;
use crate::statistics::{median, paired_log_ratios};

/// Medians over valid samples of an actor's activity in the measured region.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ActorFigures {
    /// Bytes per second that it read or wrote.
    pub bytes_per_second: f64,
    /// Share of them that came from the device; `None` if unknown, and of one that writes.
    pub from_device: Option<f64>,
    /// Share of the measured span that was in the page cache afterwards; `None` if unknown, and of
    /// a method that does not use it.
    pub left_in_cache: Option<f64>,
    /// The figure by which methods are ranked as a share of the same without the actor, in pairs of
    /// rounds: 0.5 is half as fast; `None` with fewer rounds than a verdict needs.
    pub of_alone: Option<MedianInterval>,
}

impl ActorFigures {
    /// `None` without an actor, or a valid sample.
    pub(super) fn of(samples: &CellSamples<'_>, all: &SamplesById<'_>) -> Option<Self> {
        let cell = samples.cell;
        let actor = cell.conditions.beside.as_ref()?;
        let bytes = |seen: &Evidence| Some(seen.actor.as_ref()?.bytes_within(0.0, seen.wall_ns as f64));
        let of = |figure: &dyn Fn(&Evidence) -> Option<f64>| median(&samples.known(|_, seen| figure(seen)));
        let span = cell.conditions.span_bytes.0.max(1) as f64;
        let reads_cache = cell.depends_on_cache() && cell.conditions.workload().is_reading();
        Some(Self {
            bytes_per_second: of(&|seen| Some(bytes(seen)? * 1e9 / seen.wall_ns.max(1) as f64))?,
            from_device: of(&|seen| {
                let read = bytes(seen).filter(|bytes| *bytes > 0.0)?;
                // Readahead at the edges of the region may exceed what was read in it.
                Some((seen.actor.as_ref()?.device_read_bytes? as f64 / read).min(1.0))
            })
            .filter(|_| !actor.is_writing()),
            left_in_cache: of(&|seen| Some(seen.resident_after_bytes? as f64 / span)).filter(|_| reads_cache),
            of_alone: all.get(cell.without_actor().id().as_str()).and_then(|alone| of_alone(samples, alone)),
        })
    }
}

fn of_alone(beside: &CellSamples<'_>, alone: &CellSamples<'_>) -> Option<MedianInterval> {
    let ratios = paired_log_ratios(&beside.rates(), &alone.rates());
    (ratios.len() >= FEWEST_ROUNDS).then_some(())?;
    MedianInterval::of(&ratios.into_iter().map(f64::exp).collect::<Vec<_>>())
}
