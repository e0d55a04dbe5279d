//! Simulated curves with a known crossing, searched and judged by the real code, to measure how
//! often the interval contains it.
//!
//! Noise is that of [`pagewise_analysis::judge::simulation`], drawn anew for each batch over all of
//! its cells, so batches drift apart. The grids are those of `questions/cliff.toml`.
//! `cargo test --release -p pagewise-curves results -- --nocapture` prints the tables of
//! bench/RESULTS.md. A change that is not found under much noise is reported as unclear, and so is
//! one whose interval is wider than the tolerance.

use pagewise_model::plan::CliffSearch;
use pagewise_model::random::Random;
use pagewise_model::run::{Header, Run};
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Bytes, CacheState, Cell, Conditions, Environment, Evidence, HostSettings, Method, Outcome, Plan, Reads,
    Role, Sample, Work,
};

use super::next;
use crate::cliff::{Cliff, Precision, crossings};
use pagewise_analysis::judge::simulation::{Noise, NoiseSource};

/// Names of simulated methods, in this order.
const METHODS: [&str; 7] = [
    "mmap",
    "pread",
    "mmap:random",
    "pread:random",
    "pread:direct",
    "uring:direct+depth=32",
    "uring:depth=32",
];
/// More batches than any search takes.
const MOST_BATCHES: usize = 100;

/// Duration of an operation over the ratio of data to cache, in arbitrary units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CurveShape {
    /// Constant: a method that bypasses the cache.
    Flat(f64),
    /// A hit and, for the share of reads that miss a full cache under uniform reads, a miss in
    /// addition.
    Missing {
        /// Duration with all data in the cache.
        hit: f64,
        /// Additional duration of a miss.
        miss: f64,
    },
    /// Proportional to a power of the ratio.
    Power {
        /// Duration at a ratio of 1.
        at_one: f64,
        /// Exponent.
        exponent: f64,
    },
    /// Through these pairs of ratio and duration, by ascending ratio, straight between them in
    /// logarithms, constant beyond them. Two of one ratio are a step.
    Through(&'static [(f64, f64)]),
}

impl CurveShape {
    /// Duration of an operation at a ratio.
    pub fn duration(self, ratio: f64) -> f64 {
        match self {
            CurveShape::Flat(duration) => duration,
            CurveShape::Missing { hit, miss } => hit + miss * (1.0 - 1.0 / ratio).max(0.0),
            CurveShape::Power { at_one, exponent } => at_one * ratio.powf(exponent),
            CurveShape::Through(points) => {
                let above = points.partition_point(|(at, _)| *at <= ratio);
                let (below, above) = (points[above.saturating_sub(1)], points[above.min(points.len() - 1)]);
                let width = (above.0 / below.0).ln();
                let share = if width > 0.0 { (ratio / below.0).ln() / width } else { 0.0 };
                below.1 * (above.1 / below.1).powf(share.clamp(0.0, 1.0))
            }
        }
    }
}

/// A kind of search.
#[derive(Clone, Debug)]
pub struct SearchScenario {
    /// One for each method, at most seven.
    pub shapes: Vec<CurveShape>,
    /// The grid, ascending.
    pub ratios: Vec<f64>,
    /// Rounds of each batch.
    pub rounds: u32,
    /// Noise.
    pub noise: Noise,
    /// The search's tolerance.
    pub tolerance_thousandths: u32,
}

/// Results of the searches of a setting. A crossing counts for a pair of methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchTally {
    /// Searches made.
    pub searches: u32,
    /// True crossings, over all searches.
    pub true_crossings: u32,
    /// True crossings that were found and whose interval contains them.
    pub held: u32,
    /// Of those, the ones whose interval is also within the tolerance.
    pub held_within_tolerance: u32,
    /// True crossings that were found with an interval that does not contain them.
    pub excluded: u32,
    /// False crossings that were named.
    pub false_crossings: u32,
    /// Searches with at least one of these.
    pub false_searches: u32,
    /// Cells measured beyond the grid, over all searches.
    pub added_cells: u64,
    /// The most in one search.
    pub added_cells_most: u64,
    /// Samples taken, over all searches.
    pub samples: u64,
}

impl SearchTally {
    /// `count` as a share of the true crossings.
    pub fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.true_crossings.max(1))
    }
}

/// Run `searches` searches of one setting. The same seed gives the same tally.
pub fn simulate(setting: &SearchScenario, searches: u32, seed: u64) -> SearchTally {
    let mut tally = SearchTally { searches, ..SearchTally::default() };
    let plan = plan(setting);
    let source = NoiseSource::new(&setting.noise);
    for search in 0..searches {
        let mut random = Random::for_purpose(seed.wrapping_add(u64::from(search)), "cliff");
        let run = drive(plan.clone(), &mut random, &source, |cell| Some(rate(setting, cell)));
        let added = (run.header.plan.cells.len() - plan.cells.len()) as u64;
        tally.added_cells += added;
        tally.added_cells_most = tally.added_cells_most.max(added);
        tally.samples += run.samples.len() as u64;
        count(&mut tally, setting, &crossings(&run));
    }
    tally
}

/// Sample a plan and all cells that its search adds. `rate` returns the true rate of a cell, `None`
/// if the machine does not support it.
///
/// # Panics
/// If the search does not end, or adds a cell that exists already.
pub fn drive(
    plan: Plan,
    random: &mut Random,
    noise: &NoiseSource,
    rate: impl Fn(&Cell) -> Option<f64>,
) -> Run {
    let mut batch = plan.cells.clone();
    let environment = Environment { page_bytes: 4096, ..Environment::default() };
    let header = Header { environment, ..Header::of(plan) };
    let mut run = Run::of(header, Vec::new());
    for _ in 0..MOST_BATCHES {
        let logs = noise.draw(batch.len(), run.header.plan.rounds as usize, random);
        for round in 0..run.header.plan.rounds {
            for (cell, logs) in batch.iter().zip(&logs) {
                let log = logs[round as usize];
                let outcome = outcome(rate(cell).map(|rate| Some(rate * log?.exp())));
                run.samples.push(Sample::of(cell, round, outcome));
            }
        }
        batch = next(&run);
        if batch.is_empty() {
            run.elapsed_ns = Some(1);
            return run;
        }
        let known: Vec<String> = run.header.plan.cells.iter().map(Cell::id).collect();
        assert!(batch.iter().all(|cell| !known.contains(&cell.id())), "a cell is measured twice");
        run.header.plan.cells.extend(batch.iter().cloned());
    }
    panic!("the search does not end");
}

/// A sample at this rate; `Some(None)` if it is invalid, `None` if the method is unavailable.
fn outcome(rate: Option<Option<f64>>) -> Outcome {
    match rate {
        None => Outcome::Unavailable { reason: "not offered here".to_string() },
        Some(None) => Outcome::Broken { failures: Vec::new(), stderr_tail: String::new() },
        Some(Some(rate)) => Outcome::Taken {
            measurement: Box::new(Measurement {
                operations: 1_000_000,
                measured_ns: (1e15 / rate).round() as u64,
                ..Measurement::default()
            }),
            evidence: Box::new(Evidence::default()),
            failures: Vec::new(),
        },
    }
}

/// The grid of a setting as a plan.
pub fn plan(setting: &SearchScenario) -> Plan {
    let mut cells = Vec::new();
    for ratio in &setting.ratios {
        let conditions = conditions(*ratio);
        let cell = |method: &&str| Cell {
            role: Role::Measured,
            method: method.parse::<Method>().expect("a constant method"),
            conditions: conditions.clone(),
        };
        cells.extend(METHODS[..setting.shapes.len()].iter().map(cell));
    }
    Plan {
        question: "cliff".to_string(),
        rounds: setting.rounds,
        retakes: 0,
        search: Some(CliffSearch {
            tolerance_thousandths: setting.tolerance_thousandths,
            prefetch_windows: Vec::new(),
        }),
        ..Plan::of(cells)
    }
}

/// Conditions at a ratio of data to cache under 128 MiB.
pub fn conditions(ratio: f64) -> Conditions {
    let read_bytes = Bytes::kib(16);
    let mut conditions = Conditions {
        span_bytes: read_bytes,
        cache: CacheState::Warm,
        host_settings: HostSettings { memory_limit_bytes: Some(Bytes::mib(128)), ..HostSettings::default() },
        ..Conditions::of(
            Work::RandomRead(Reads { reads_per_op: 16, ..Reads::of(read_bytes) }),
            Bytes::mib(512),
        )
    };
    let capacity = conditions.cache_capacity().expect("there is a limit").0 as f64;
    conditions.span_bytes = Bytes((ratio * capacity) as u64 / read_bytes.0 * read_bytes.0);
    conditions
}

/// The ratio of data to cache of a cell.
pub fn ratio_of(cell: &Cell) -> f64 {
    let capacity = cell.conditions.cache_capacity().expect("there is a limit").0;
    cell.conditions.span_bytes.0 as f64 / capacity as f64
}

fn rate(setting: &SearchScenario, cell: &Cell) -> f64 {
    let method = cell.method.to_string();
    let index = METHODS.iter().position(|name| *name == method).expect("a known method");
    1e6 / setting.shapes[index].duration(ratio_of(cell))
}

/// The ratios between the ends of the grid at which two shapes are equal, if their order changes
/// there: the first and the last.
fn true_crossing(setting: &SearchScenario, before: usize, after: usize) -> Option<(f64, f64)> {
    let [before, after] = [before, after].map(|method| setting.shapes[method]);
    let is_ahead = |first: CurveShape, second: CurveShape, ratio: f64| {
        first.duration(ratio) < second.duration(ratio) * (1.0 - 1e-9)
    };
    let ends = (setting.ratios[0], setting.ratios[setting.ratios.len() - 1]);
    if !is_ahead(before, after, ends.0) || !is_ahead(after, before, ends.1) {
        return None;
    }
    let last = |is_below: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = ends;
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if is_below(middle) { low = middle } else { high = middle }
        }
        (low * high).sqrt()
    };
    Some((last(&|ratio| is_ahead(before, after, ratio)), last(&|ratio| !is_ahead(after, before, ratio))))
}

fn count(tally: &mut SearchTally, setting: &SearchScenario, cliff: &Cliff) {
    let methods = setting.shapes.len();
    let index = |name: &str| METHODS.iter().position(|method| *method == name).expect("a known method");
    let pairs = (0..methods).flat_map(|before| (0..methods).map(move |after| (before, after)));
    tally.true_crossings +=
        pairs.filter(|(before, after)| true_crossing(setting, *before, *after).is_some()).count() as u32;
    let mut false_crossings = 0;
    for found in cliff.groups.iter().flat_map(|group| &group.crossings) {
        match true_crossing(setting, index(&found.before), index(&found.after)) {
            None => false_crossings += 1,
            Some((first, last)) if found.low <= last && found.high >= first => {
                tally.held += 1;
                tally.held_within_tolerance += u32::from(found.precision == Precision::Reached);
            }
            Some(_) => tally.excluded += 1,
        }
    }
    tally.false_crossings += false_crossings;
    tally.false_searches += u32::from(false_crossings > 0);
}
