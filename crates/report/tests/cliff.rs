//! What is shown of a search for crossings, byte for byte.

use std::path::PathBuf;

use pagewise_analysis::judge::cliff::{Cliff, crossings};
use pagewise_analysis::judge::judge;
use pagewise_analysis::judge::simulation::{Noise, Scatter, Source};
use pagewise_analysis::search::crossing::simulation::{CurveShape, SearchScenario, drive, plan};
use pagewise_model::random::Random;
use pagewise_model::run::Run;
use pagewise_model::{Bytes, Cell, GroupCounters, Outcome};
use pagewise_report::{cliff, screen};

/// No chance at all.
const QUIET: Noise = Noise::Scatter(Scatter {
    sample: 0.0,
    slowed_share: 0.0,
    slowed_by: (0.0, 0.0),
    round: 0.0,
    invalid_share: 0.0,
});

/// How long an operation takes in microseconds: `mmap` falls off where the cache ends, the others bend.
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

fn run() -> Run {
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
    let mut run = drive(plan, &mut Random::new(1), &Source::new(&QUIET), rate);
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

fn text(cliff: &Cliff, width: usize) -> String {
    let mut out = Vec::new();
    cliff::write(&mut out, cliff, width).expect("memory");
    String::from_utf8(out).expect("text")
}

fn assert_golden(name: &str, found: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("PAGEWISE_BLESS").is_some() {
        std::fs::write(&path, found).expect("golden file is writable");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "{name} differs; PAGEWISE_BLESS=1 writes it anew. Found:\n{found}");
}

#[test]
fn a_wider_terminal_has_all_ratios_in_one_table() {
    let (narrow, wide) = (text(&crossings(&run()), 60), text(&crossings(&run()), 100));
    assert!(narrow.matches("data / memory limit").count() >= wide.matches("data / memory limit").count());
    assert_eq!(wide.matches("data / memory limit").count(), 1, "{wide}");
    assert!(wide.lines().any(|line| line.chars().count() > 80), "{wide}");
}

#[test]
fn the_cliff_at_60_columns() {
    assert_golden("cliff-60.txt", &text(&crossings(&run()), 60));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let cliff = crossings(&run());
    for width in [0, 40, 41, 60, 80, 120, 200, 1000] {
        for line in text(&cliff, width).lines() {
            assert!(line.chars().count() <= width.clamp(cliff::NARROWEST, 200), "{width}: {line}");
        }
    }
}

#[test]
fn a_run_cut_short_is_shown_as_far_as_it_goes() {
    let whole = run();
    for samples in [0, 1, 5, 20, 60, 130, 141, 150] {
        let mut cut = whole.clone();
        cut.samples.truncate(samples);
        cut.elapsed_ns = None;
        let text = text(&crossings(&cut), 80);
        assert!(text.contains("memory 128 MiB"), "{samples}: {text}");
        assert!(samples > 0 || text.contains("nothing to draw: no sample is valid"), "{text}");
    }
}

#[test]
fn a_crossing_that_is_not_known_closely_is_not_marked() {
    let mut cliff = crossings(&run());
    assert!(text(&cliff, 80).contains('┆'));
    for crossing in &mut cliff.groups[0].crossings {
        crossing.high = crossing.low * 1.21;
    }
    assert!(!text(&cliff, 80).contains('┆'), "more than twice the tolerance of 10 %");
    cliff.tolerance = None;
    assert!(text(&cliff, 80).contains('┆'));
}

#[test]
fn rates_of_too_few_samples_are_marked() {
    let mut cliff = crossings(&run());
    assert!(!text(&cliff, 100).contains('~'));
    let point = &mut cliff.groups[0].curves[0].points[0];
    point.samples = 4;
    let text = text(&cliff, 100);
    assert!(text.contains(" ~571k"), "{text}");
    assert!(text.contains("~: fewer than 5 valid samples, too few for a verdict"), "{text}");
    assert_eq!(text.matches('~').count(), 2, "{text}");
}

#[test]
fn a_run_without_a_limit_has_no_ratio() {
    let nothing = Cliff { tolerance: None, groups: Vec::new() };
    assert_eq!(text(&nothing, 80), "no cell has a memory limit, so there is no ratio of data to cache\n");
}

#[test]
fn the_json_has_units_in_its_keys() {
    let value = serde_json::to_value(crossings(&run())).expect("json");
    let group = &value["groups"][0];
    assert_eq!(group["capacity"]["source"], "measured");
    assert_eq!(group["capacity"]["bytes"], 126 << 20);
    let point = &group["curves"][3]["points"].as_array().expect("points").last().expect("4x").clone();
    assert_eq!(
        (point["ops_per_second"].is_null(), point["reason"].as_str()),
        (true, Some("not offered here"))
    );
    assert_eq!(group["crossings"][0]["precision"], "reached");
    assert!(group["crossings"][0]["low_span_bytes"].is_u64());
}

#[test]
fn the_screen_has_the_first_conclusion_and_the_chart() {
    let judged = judge(&run());
    let lines = screen::lines(&[(&judged, "run.jsonl".to_string())], 80);
    let text: Vec<String> = lines.iter().map(pagewise_report::line::Line::text).collect();
    assert!(lines.len() <= screen::MOST_LINES, "{text:#?}");
    let cliff = judged.cliff.as_ref().expect("a search");
    let first = cliff.groups[0].sentences[0].split(' ').next().expect("a word").to_lowercase();
    assert!(text.iter().any(|line| line.to_lowercase().contains(&first)), "{text:#?}");
    assert!(text.iter().any(|line| line.contains("reads/s over data / cache")), "{text:#?}");
    assert!(text.iter().any(|line| line.starts_with("  A ")), "{text:#?}");
}
