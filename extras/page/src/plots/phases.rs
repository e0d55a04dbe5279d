//! Time of one-shot work by phase: set-up, measured region and tear-down, one after the other.

use pagewise_analysis::judge::{CellJudgement, Comparison};
use pagewise_model::format::time;

use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::table::positions::Positions;
use pagewise_report::table::rows::sorted;
use pagewise_report::text_table::{TextCell, TextTable};

/// Name and duration.
type Phase = (&'static str, fn(&CellJudgement) -> Option<u64>);

const PHASES: [Phase; 4] = [
    ("set-up", |cell| cell.setup_ns),
    ("warming", |cell| cell.warmup_ns),
    ("measured", |cell| cell.measured_ns),
    ("tear-down", |cell| cell.teardown_ns),
];

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    let by_id = run.judged.by_id();
    let one_shot = run.judged.comparisons.iter().filter(|one| one.conditions.conditions.is_one_shot());
    let of = |comparison: &Comparison| {
        let cells = sorted(&by_id, comparison, &Positions::of(comparison));
        let cells: Vec<_> = cells.into_iter().filter(|cell| cell.total_ns.is_some()).collect();
        let names = PHASES.map(|(name, _)| name);
        let mut series: Vec<Series> = Vec::new();
        for (column, (name, phase)) in PHASES.into_iter().enumerate() {
            let mark = |(index, cell): (usize, &&CellJudgement)| {
                let x = phase(cell).filter(|value| *value > 0)? as f64;
                Some(Mark { x, y: index as f64, text: MarkText::Cell(index, column + 1), ..Mark::default() })
            };
            let marks: Vec<Mark> = cells.iter().enumerate().filter_map(mark).collect();
            if !marks.is_empty() {
                series.push(Series { name: name.to_string(), marks, ..Series::default() });
            }
        }
        let row = |cell: &&CellJudgement| {
            let text = |value: Option<u64>| TextCell::number(value.map(|value| value as f64), time);
            let phases = PHASES.map(|(_, phase)| text(phase(cell)));
            [
                vec![TextCell::from(&cell.method)],
                phases.to_vec(),
                vec![text(cell.sync_ns), text(cell.total_ns)],
            ]
            .concat()
        };
        Plot {
            id: "phases",
            heading: "Where does the time go?",
            conditions: comparison.conditions.label.clone(),
            form: Form::Bars,
            x: Axis::of("time", Scale::Linear, AxisQuantity::TIME),
            y: Axis::names("method", cells.iter().map(|cell| cell.method.clone()).collect()),
            series,
            bands: Vec::new(),
            table: TextTable {
                rows: cells.iter().map(row).collect(),
                ..TextTable::of(&[&["method"][..], &names, &["sync in tear-down", "total"]].concat())
            },
        }
    };
    one_shot.map(of).collect()
}
