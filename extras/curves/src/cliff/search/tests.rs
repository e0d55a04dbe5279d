//! The search and the judgement on simulated runs.

mod results;

use pagewise_model::random::Random;
use pagewise_model::run::Run;
use pagewise_model::{Bytes, Cell, Evidence, GroupCounters, HostSettings, Outcome, Plan, Role};

use super::simulation::{
    CurveShape, SearchScenario, SearchTally, conditions, drive, plan, ratio_of, simulate,
};
use super::*;
use crate::cliff::*;
use pagewise_analysis::judge::simulation::{Noise, NoiseSource, Scatter, simulations};

/// Three percent on each sample, and a drift from round to round.
const THREE_PERCENT: Scatter =
    Scatter { sample: 0.03, slowed_share: 0.0, slowed_by: (0.0, 0.0), round: 0.2, invalid_share: 0.0 };
const QUICK: [f64; 4] = [0.5, 0.9, 1.08, 4.0];
const FULL: [f64; 8] = [0.5, 0.75, 0.9, 1.05, 1.25, 1.6, 2.4, 4.0];

fn setting(
    shapes: Vec<CurveShape>,
    ratios: &[f64],
    rounds: u32,
    tolerance_thousandths: u32,
) -> SearchScenario {
    SearchScenario {
        shapes,
        ratios: ratios.to_vec(),
        rounds,
        noise: Noise::Scatter(THREE_PERCENT),
        tolerance_thousandths,
    }
}

/// The first method falls with this power of the ratio and meets the second one at 1.3.
fn falling(exponent: f64) -> Vec<CurveShape> {
    vec![CurveShape::Power { at_one: 1.3f64.powf(-exponent), exponent }, CurveShape::Flat(1.0)]
}

fn assert_nearly_all(tally: SearchTally, within_tolerance: f64) {
    assert!(tally.true_crossings > 0);
    assert!(tally.share(tally.held_within_tolerance) >= within_tolerance, "{tally:?}");
    assert!(tally.share(tally.excluded) <= 0.02, "{tally:?}");
    assert_eq!(tally.false_crossings, 0, "{tally:?}");
}

#[test]
fn a_known_crossing_is_bracketed_to_five_percent() {
    assert_nearly_all(simulate(&setting(falling(10.0), &FULL, 7, 50), simulations(200), 1), 0.97);
}

#[test]
fn a_quick_search_brackets_it_to_ten_percent() {
    let tally = simulate(&setting(falling(10.0), &QUICK, 7, 100), simulations(200), 3);
    assert_nearly_all(tally, 0.97);
    assert!(tally.added_cells_most <= 8, "{tally:?}");
}

/// Steps of unequal sides, slow changes and a range without any difference, under noise of real
/// reads and noise that outlasts rounds.
#[test]
fn intervals_hold_steps_and_slow_changes_whatever_the_noise() {
    let shapes = [
        CurveShape::Through(&[(1.3, 0.66), (1.3, 10.0)]),
        CurveShape::Power { at_one: 1.3f64.powf(-2.0), exponent: 2.0 },
        CurveShape::Through(&[(0.8, 0.5), (0.9, 1.0), (1.6, 1.0), (2.0, 2.0)]),
    ];
    for shape in shapes {
        for noise in [Noise::Real(&["read-cold"]), Noise::Lasting(0.3)] {
            let shapes = vec![shape, CurveShape::Flat(1.0)];
            let count = simulations(120);
            let tally = simulate(&SearchScenario { noise, ..setting(shapes, &QUICK, 7, 100) }, count, 6);
            assert!(2 * tally.held >= count, "{shape:?}: {tally:?}");
            assert!(f64::from(tally.excluded) <= 0.05 * f64::from(tally.held), "{shape:?}: {tally:?}");
        }
    }
}

#[test]
fn curves_that_do_not_cross_have_no_crossing() {
    for shapes in [
        vec![CurveShape::Flat(1.0); 2],
        vec![CurveShape::Flat(1.0); 7],
        vec![CurveShape::Flat(1.0), CurveShape::Flat(1.1)],
    ] {
        let tally = simulate(&setting(shapes, &QUICK, 7, 100), simulations(100), 4);
        assert!(tally.false_searches <= 1, "{tally:?}");
    }
}

/// A run without noise.
fn quiet(plan: Plan, rate: impl Fn(&Cell) -> Option<f64>) -> Run {
    let scatter = Scatter { sample: 0.0, round: 0.0, ..THREE_PERCENT };
    drive(plan, &mut Random::new(1), &NoiseSource::new(&Noise::Scatter(scatter)), rate)
}

fn with_methods(methods: &[&str], ratios: &[f64], windows: &[u32]) -> Plan {
    let mut made = plan(&setting(Vec::new(), &[], 7, 50));
    for ratio in ratios {
        for method in methods.iter().chain(&["pread/control"]) {
            let (method, role) = match method.strip_suffix("/control") {
                Some(method) => (method, Role::Control),
                None => (*method, Role::Measured),
            };
            made.cells.push(Cell {
                role,
                method: method.parse().expect(method),
                conditions: conditions(*ratio),
            });
        }
    }
    made.search.as_mut().expect("a search").prefetch_windows = windows.to_vec();
    made
}

/// `mmap` is best up to 1.2, then `pread`; `mmap:random` closes half of the gap.
fn rate_of(cell: &Cell) -> f64 {
    let behind = ratio_of(cell) > 1.2;
    match cell.method.to_string().as_str() {
        "mmap" => {
            if behind {
                10.0
            } else {
                1000.0
            }
        }
        "mmap:random" => {
            if behind {
                255.0
            } else {
                700.0
            }
        }
        "pread:direct" => 5.0,
        _ => 500.0,
    }
}

#[test]
fn the_middles_are_measured_with_the_two_methods_and_a_control() {
    let made = with_methods(&["mmap", "mmap:random", "pread", "pread:direct"], &[0.5, 1.0, 1.5, 4.0], &[]);
    let grid = made.cells.len();
    let run = quiet(made, |cell| Some(rate_of(cell)));
    let first: Vec<&Cell> = run.header.plan.cells[grid..].iter().collect();
    // pread overtakes mmap and mmap:random at the same ratio, so one middle serves both.
    let at_first: Vec<String> = first
        .iter()
        .filter(|cell| cell.conditions.span_bytes == first[0].conditions.span_bytes)
        .map(|cell| format!("{} {}", cell.role, cell.method))
        .collect();
    assert_eq!(at_first, ["measured mmap", "measured pread", "measured mmap:random", "control mmap"]);
    assert!(first.iter().all(|cell| cell.conditions.span_bytes.0.is_multiple_of(16 << 10)));
    let cliff = crossings(&run);
    let group = &cliff.groups[0];
    let found: Vec<_> =
        group.crossings.iter().map(|crossing| (crossing.before.as_str(), crossing.after.as_str())).collect();
    assert_eq!(found, [("mmap", "pread"), ("mmap", "mmap:random"), ("mmap:random", "pread")]);
    for crossing in &group.crossings {
        assert_eq!(crossing.precision, Precision::Reached, "{crossing:?}");
        assert!(crossing.low < 1.2 && crossing.high > 1.2 && crossing.high <= crossing.low * 1.05);
    }
    let behind = group.crossings[0].behind.as_ref().expect("a ratio behind it");
    let closing = behind.closing.as_ref().expect("another mmap");
    assert_eq!(closing.method, "mmap:random");
    assert!((closing.share - 0.5).abs() < 1e-6);
    assert!((behind.times.expect("known") - 50.0).abs() < 1e-3);
}

#[test]
fn changes_with_the_same_middle_share_a_column_and_an_unclear_ratio_hides_no_gap() {
    let methods = ["mmap", "mmap:random", "pread", "pread:random"];
    let mut made = with_methods(&methods, &[0.5, 0.89, 1.06, 4.0], &[]);
    made.search.as_mut().expect("a search").tolerance_thousandths = 100;
    let grid = made.cells.len();
    // From 1 to 1.5 all are equal: the gap from 1.06 to 4 is the wider one.
    let run = quiet(made, |cell| {
        let method = methods.iter().position(|method| *method == cell.method.to_string()).expect("known");
        let ratio = ratio_of(cell);
        Some(match ratio {
            ratio if ratio < 1.0 => [1000.0, 700.0, 500.0, 495.0][method],
            ratio if ratio < 1.5 => 500.0,
            _ => [10.0, 100.0, 500.0, 495.0][method],
        })
    });
    let added = &run.header.plan.cells[grid..];
    let first: Vec<String> = added
        .iter()
        .filter(|cell| cell.conditions.span_bytes == added[0].conditions.span_bytes)
        .map(|cell| format!("{} {}", cell.role, cell.method))
        .collect();
    assert!((2.0..2.1).contains(&ratio_of(&added[0])), "{}", ratio_of(&added[0]));
    let all = ["control mmap", "measured mmap", "measured mmap:random", "measured pread"];
    assert!(all.iter().all(|cell| first.iter().any(|found| found == cell)), "{first:?}");
    assert_eq!(first.iter().filter(|cell| cell.starts_with("control")).count(), 1, "{first:?}");
    assert!(added.len() <= 12, "{}", added.len());
    // No two spans are so close that one would have sufficed.
    let mut ratios: Vec<f64> = run.header.plan.cells.iter().map(ratio_of).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.dedup();
    assert!(ratios.windows(2).all(|pair| pair[1] > pair[0] * 1.02), "{ratios:?}");
    let crossing = &crossings(&run).groups[0].crossings[0];
    assert!(crossing.high < 2.1, "{crossing:?}");
}

#[test]
fn the_search_is_a_function_of_the_run() {
    let made = plan(&setting(falling(10.0), &FULL, 7, 50));
    let run = quiet(made.clone(), |cell| {
        Some(1.0 / falling(10.0)[usize::from(cell.method.to_string() == "pread")].duration(ratio_of(cell)))
    });
    // Cut at the end of each batch, the same cells come next.
    let grid = made.cells.len();
    let mut cut = run.clone();
    cut.header.plan.cells.truncate(grid);
    cut.samples.truncate(grid * 7);
    let cells = next(&cut);
    assert!(!cells.is_empty());
    assert_eq!(cells, run.header.plan.cells[grid..grid + cells.len()]);
    assert!(cells.iter().all(|cell| cell.role == Role::Measured), "a grid without controls gets none");
    assert_eq!(next(&cut), cells);
    assert_eq!(next(&run), []);
}

#[test]
fn the_best_window_is_measured_everywhere_and_the_others_are_no_curves() {
    let window = |window: u32| format!("mmap:random+prefetch={window}");
    let ratios = [0.5, 1.0, 1.5, 4.0];
    let windows = [4, 8, 16];
    let mut made = with_methods(&["mmap", "pread"], &ratios, &windows);
    for tried in windows {
        let method = window(tried).parse().expect("a window");
        made.cells.push(Cell { role: Role::Measured, method, conditions: conditions(1.5) });
    }
    let grid = made.cells.len();
    // Windows of 8 and 16 are equally good: the smaller one is chosen.
    let run = quiet(made, |cell| {
        Some(match cell.method.to_string().as_str() {
            text if text == window(4) => 300.0,
            text if text == window(8) => 900.0,
            text if text == window(16) => 901.0,
            _ => rate_of(cell),
        })
    });
    let added: Vec<String> = run.header.plan.cells[grid..grid + 6]
        .iter()
        .map(|cell| format!("{} {} {:.1}", cell.role, cell.method, ratio_of(cell)))
        .collect();
    // The plan's controls are of pread; mmap, the other rival, shows what has changed since.
    assert_eq!(
        added,
        [0.5, 1.0, 4.0]
            .iter()
            .flat_map(|ratio| [
                format!("measured {} {ratio:.1}", window(8)),
                format!("control mmap {ratio:.1}")
            ])
            .collect::<Vec<_>>()
    );
    let cliff = crossings(&run);
    let group = &cliff.groups[0];
    assert_eq!(
        group.curves.iter().map(|curve| curve.method.clone()).collect::<Vec<_>>(),
        ["mmap".to_string(), "pread".to_string(), window(8)]
    );
    assert_eq!(group.windows[0].chosen, Some(window(8)));
    assert_eq!(group.windows[0].candidates.len(), 3);
    let last = group.leads.last().expect("leads");
    assert_eq!(last.methods, [window(8)]);
}

#[test]
fn what_is_not_offered_or_cut_short_is_skipped() {
    let methods = ["mmap", "pread", "uring:direct+depth=32"];
    let made = with_methods(&methods, &[0.5, 1.0, 1.5, 4.0], &[]);
    let offered = |cell: &Cell| (cell.method.access().name() != "uring").then(|| rate_of(cell));
    let run = quiet(made.clone(), offered);
    let group = &crossings(&run).groups[0];
    assert_eq!(group.crossings.len(), 1);
    assert!(
        group.curves[2].points.iter().all(|point| point.ops_per_second.is_none() && point.reason.is_some())
    );
    for samples in (0..run.samples.len()).step_by(5) {
        let mut cut = run.clone();
        cut.samples.truncate(samples);
        cut.elapsed_ns = None;
        let cliff = crossings(&cut);
        let _ = next(&cut);
        serde_json::to_string(&cliff).expect("json");
    }
    let mut nothing = run.clone();
    nothing.samples.clear();
    let points = || crossings(&nothing).groups.remove(0).curves.into_iter().flat_map(|curve| curve.points);
    assert!(points().all(|point| point.ops_per_second.is_none()) && points().count() > 0);
    assert_eq!(next(&nothing), []);
}

#[test]
fn a_first_method_that_is_not_offered_does_not_hide_the_grid() {
    let made = with_methods(&["uring:direct+depth=32", "mmap", "pread"], &[0.5, 1.0, 1.5, 4.0], &[]);
    let grid = made.cells.len();
    let run = quiet(made, |cell| (cell.method.access().name() != "uring").then(|| rate_of(cell)));
    let added = &run.header.plan.cells[grid..];
    assert_eq!(added.len(), 12, "four halvings of two methods and a control");
    assert_eq!(crossings(&run).groups[0].crossings[0].precision, Precision::Reached);
}

#[test]
fn without_a_search_or_a_limit_nothing_is_looked_for() {
    let made = with_methods(&["mmap", "pread"], &[0.5, 4.0], &[]);
    let mut without = made.clone();
    without.search = None;
    let run = quiet(without, |cell| Some(rate_of(cell)));
    assert_eq!(next(&run), []);
    let group = &crossings(&run).groups[0];
    let [only] = &group.crossings[..] else { panic!("{:?}", group.crossings) };
    assert_eq!((only.precision, only.reason), (Precision::Stopped, Some(WideCrossing::NoSearch)));
    assert_eq!((only.low, only.high), (group.curves[0].points[0].ratio, group.curves[0].points[1].ratio));
    let mut unlimited = made;
    for cell in &mut unlimited.cells {
        cell.conditions.host_settings = HostSettings::default();
    }
    let mut run = run;
    run.header.plan = unlimited;
    assert_eq!(next(&run), []);
    assert!(crossings(&run).groups.is_empty());
}

#[test]
fn a_group_that_scatters_at_the_crossing_says_that_the_data_do_not_decide() {
    let made = with_methods(&["mmap", "pread"], &[0.5, 4.0], &[]);
    // Between 1 and 2 they are equal.
    let run = quiet(made, |cell| {
        let ratio = ratio_of(cell);
        let mmap = cell.method.to_string() == "mmap";
        Some(if !mmap {
            100.0
        } else if ratio < 1.0 {
            300.0
        } else if ratio > 2.0 {
            20.0
        } else {
            100.0
        })
    });
    let crossing = &crossings(&run).groups[0].crossings[0];
    assert_eq!(crossing.precision, Precision::Undecided);
    assert!(crossing.low <= 1.0 && crossing.high >= 2.0, "{crossing:?}");
    assert_eq!(crossing.reason, Some(WideCrossing::Undecided));
}

fn with_evidence(run: &mut Run, change: impl Fn(&str, &mut Evidence)) {
    for sample in &mut run.samples {
        let cell = sample.cell.clone();
        if let Outcome::Taken { evidence, .. } = &mut sample.outcome {
            change(&cell, evidence);
        }
    }
}

#[test]
fn the_measured_capacity_is_what_ratios_are_ratios_to() {
    let made = with_methods(&["mmap", "pread"], &[0.5, 1.0, 1.5], &[]);
    let mut run = quiet(made, |cell| Some(rate_of(cell)));
    assert_eq!(crossings(&run).groups[0].capacity.source, CapacitySource::Nominal);
    with_evidence(&mut run, |_, evidence| {
        evidence.group = Some(GroupCounters {
            limit_bytes: Some(128 << 20),
            usage_bytes: Some(120 << 20),
            file_bytes: Some(92 << 20),
            ..GroupCounters::default()
        });
    });
    let group = &crossings(&run).groups[0];
    assert_eq!((group.capacity.source, group.capacity.bytes), (CapacitySource::Measured, Bytes::mib(100)));
    let point = &group.curves[0].points[0];
    assert_eq!(point.ratio, point.span_bytes.0 as f64 / (100 << 20) as f64);
    assert_eq!(point.ratio_to_limit, point.span_bytes.0 as f64 / (128 << 20) as f64);
}

#[test]
fn amplification_readahead_and_what_closes_the_gap_are_known() {
    let made = with_methods(&["mmap", "mmap:random", "pread"], &[0.5, 1.0, 1.25, 4.0], &[]);
    let mut run = quiet(made, |cell| Some(rate_of(cell)));
    run.header.environment.readahead_bytes = Some(Bytes::mib(8));
    with_evidence(&mut run, |cell, evidence| {
        evidence.requested_bytes = 1000;
        let amplified = if cell.ends_with("/mmap") { 272_000 } else { 1000 };
        evidence.device_read_bytes = Some(amplified);
    });
    let group = &crossings(&run).groups[0];
    let crossing = &group.crossings[0];
    let ends = [crossing.ratio.expect("an estimate"), crossing.low, crossing.high];
    assert_eq!(ends.map(|ratio| format!("{ratio:.2}")), ["1.19", "1.18", "1.22"]);
    assert_eq!(group.readahead_bytes, Some(Bytes::mib(8)));
    let behind = crossing.behind.as_ref().expect("a ratio above it");
    assert_eq!(format!("{:.2}", behind.ratio), "1.22");
    let read = (behind.before_device_bytes_per_byte, behind.after_device_bytes_per_byte);
    assert_eq!(read, (Some(272.0), Some(1.0)));
    let closing = behind.closing.as_ref().expect("another mmap");
    assert!(closing.method == "mmap:random" && (closing.share - 0.5).abs() < 0.005, "{closing:?}");
    let [.., last] = &group.leads[..] else { panic!("nothing leads") };
    assert!(group.leads.len() > 1 && last.methods == ["pread"], "{:?}", group.leads);
}

#[test]
fn no_crossing_and_a_near_one_at_the_edge_are_found() {
    let made = with_methods(&["mmap", "pread"], &[0.5, 1.0, 4.0], &[]);
    let always =
        quiet(made.clone(), |cell| Some(if cell.method.to_string() == "mmap" { 10.0 } else { 100.0 }));
    let group = &crossings(&always).groups[0];
    assert!(group.crossings.is_empty() && group.leads.len() == 1, "{:?}", group.leads);
    assert_eq!(group.leads[0].methods, ["pread"]);
    let near = quiet(made, |cell| {
        let mmap = cell.method.to_string() == "mmap";
        Some(if mmap && ratio_of(cell) > 2.0 {
            100.0
        } else if mmap {
            10.0
        } else {
            100.0
        })
    });
    let group = &crossings(&near).groups[0];
    let [edge] = &group.edges[..] else { panic!("{:?}", group.edges) };
    assert!(edge.highest && edge.leader == "pread" && edge.rivals == ["mmap"], "{edge:?}");
}
