//! A search for the size of the data from which on another method is faster.

use crate::cliff::search::simulation::{CurveShape, SearchScenario, drive, plan};
use pagewise_analysis::judge::simulation::{Noise, NoiseSource, Scatter};
use pagewise_model::random::Random;
use pagewise_model::run::Run;
use pagewise_model::{Bytes, Cell, GroupCounters, Outcome};

/// No chance at all.
const QUIET: Noise = Noise::Scatter(Scatter {
    sample: 0.0,
    slowed_share: 0.0,
    slowed_by: (0.0, 0.0),
    round: 0.0,
    invalid_share: 0.0,
});

/// How long an operation takes in microseconds: `mmap` falls off where the cache ends, the others
/// bend.
fn shape(method: &str) -> CurveShape {
    match method {
        "mmap" => CurveShape::Missing { hit: 28.0, miss: 20_000.0 },
        "mmap:random" => CurveShape::Missing { hit: 28.0, miss: 1_600.0 },
        "pread" => CurveShape::Missing { hit: 41.0, miss: 600.0 },
        _ => CurveShape::Missing { hit: 42.0, miss: 560.0 },
    }
}

/// Bytes from the device for each requested byte where everything misses.
fn amplification(method: &str) -> f64 {
    if method == "mmap" { 360.0 } else { 1.0 }
}

/// What the made-up samples leave for the file under a limit of 128 MiB.
const CAPACITY: Bytes = Bytes::mib(126);
/// The grid: 0.5, 0.9, 1.08 and 4 times that.
const SPANS: [Bytes; 4] = [Bytes::mib(63), Bytes::kib(116_112), Bytes::kib(139_344), Bytes::mib(504)];

fn ratio(cell: &Cell) -> f64 {
    cell.conditions.span_bytes.0 as f64 / CAPACITY.0 as f64
}

/// A search that found crossings.
pub fn cliff() -> Run {
    let setting = SearchScenario {
        shapes: vec![CurveShape::Flat(1.0); 4],
        ratios: vec![0.5, 0.9, 1.08, 4.0],
        rounds: 7,
        noise: QUIET,
        tolerance_thousandths: 100,
    };
    let rate = |cell: &Cell| {
        let method = cell.method.to_string();
        let offered = method != "pread:random" || ratio(cell) < 2.0;
        offered.then(|| 1e6 / shape(&method).duration(ratio(cell)))
    };
    let mut plan = plan(&setting);
    let cells_of_ratio = plan.cells.len() / SPANS.len();
    for (index, cell) in plan.cells.iter_mut().enumerate() {
        cell.conditions.span_bytes = SPANS[index / cells_of_ratio];
    }
    let mut run = drive(plan, &mut Random::new(1), &NoiseSource::new(&QUIET), rate);
    run.header.environment.readahead_bytes = Some(Bytes::mib(8));
    let cells = run.header.plan.cells.clone();
    for sample in &mut run.samples {
        let cell = cells.iter().find(|cell| cell.id() == sample.cell).expect("a cell of the plan");
        let Outcome::Taken { evidence, .. } = &mut sample.outcome else { continue };
        let missed = (1.0 - 1.0 / ratio(cell)).max(0.0);
        evidence.requested_bytes = 1 << 30;
        let amplified = missed * amplification(&cell.method.to_string());
        evidence.device_read_bytes = Some((amplified * f64::from(1 << 30)).round() as u64);
        evidence.group = Some(GroupCounters {
            limit_bytes: Some(128 << 20),
            usage_bytes: Some(127 << 20),
            file_bytes: Some(CAPACITY.0 - (1 << 20)),
            ..GroupCounters::default()
        });
    }
    run
}
