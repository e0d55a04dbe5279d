//! Plots of constructed runs, as data and as SVG.

use std::collections::{HashMap, HashSet};

use crate::plots::colours::Colours;
use crate::{plots, svg};
use pagewise_analysis::{Judged, judge};
use pagewise_model::run::Run;
use pagewise_model::sample::Outcome;
use pagewise_model::{HostCounters, HostSecond};
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{MarkText, Plot, Scale};

use super::well_formed::elements;
use super::{all, constructed, hostile};

pub fn plots_of(run: &Run, judged: &Judged) -> Vec<Plot> {
    let run = JudgedRun::of("run.jsonl", run, judged);
    let colours = Colours::of(std::slice::from_ref(&run));
    plots::all(&run, &colours)
}

fn of(run: &Run) -> Vec<Plot> {
    plots_of(run, &judge(run))
}

/// A host that was read each second.
pub fn seconds(count: u64) -> Vec<HostSecond> {
    let host = |step: u64| HostCounters {
        running: Some(step % 3),
        free_bytes: Some(1 << 30),
        block_in_bytes: Some(step << 20),
        interrupts: Some(step * 1000),
        user_ns: Some(step * 600_000_000),
        system_ns: Some(step * 100_000_000),
        idle_ns: Some(step * 200_000_000),
        wait_ns: Some(step * 100_000_000),
        ..HostCounters::default()
    };
    (0..count)
        .map(|step| HostSecond { at_ns: step * 1_000_000_000, begins: step == 0, host: host(step) })
        .collect()
}

/// Numbers of marks of an SVG: valid, invalid.
fn drawn(text: &str) -> (usize, usize) {
    // The circles of a legend have no text of their own.
    let marks = ["r=\"3.5\"><title>", "height=\"14\"><title>"].map(|mark| text.matches(mark).count());
    let invalid = text.matches("<circle class=\"invalid\"").count();
    (marks.iter().sum::<usize>() - invalid, invalid)
}

#[test]
fn every_plot_has_its_marks() {
    for (name, mut run) in all() {
        run.seconds = seconds(4);
        for plot in of(&run) {
            let what = format!("{name}, {}", plot.id);
            let text = svg::file(&plot);
            elements(&text);
            let marks = || plot.series.iter().flat_map(|series| &series.marks);
            let is_placed = |mark: &&pagewise_report::plot::Mark| {
                (plot.x.scale != Scale::Log || mark.x > 0.0) && (plot.y.scale != Scale::Log || mark.y > 0.0)
            };
            let invalid = marks().filter(is_placed).filter(|mark| mark.invalid).count();
            let all = marks().filter(is_placed).count();
            assert!(all > 0, "{what}");
            assert_eq!(drawn(&text), (all - invalid, invalid), "{what}: {text}");
            assert!(!text.contains("NaN") && !text.contains("inf"), "{what}: {text}");
            assert!(!plot.table.rows.is_empty(), "{what}");
            for row in &plot.table.rows {
                assert_eq!(row.len(), plot.table.columns.len(), "{what}");
            }
        }
    }
}

#[test]
fn every_kind_of_plot_has_a_run() {
    let mut found: Vec<&str> = Vec::new();
    for (_, mut run) in all() {
        run.seconds = seconds(3);
        found.extend(of(&run).iter().map(|plot| plot.id));
    }
    found.sort_unstable();
    found.dedup();
    let kinds =
        ["crossings", "host", "latency", "limits", "phases", "ratios", "rounds", "threads", "warming"];
    assert_eq!(found, kinds);
}

#[test]
fn a_method_has_one_colour_in_all_plots_and_none_of_its_neighbours_has_it() {
    for (name, run) in all() {
        let mut colours: HashMap<String, usize> = HashMap::new();
        let judged = judge(&run);
        let methods: HashSet<&str> = judged.cells.iter().map(|cell| cell.method.as_str()).collect();
        for plot in plots_of(&run, &judged) {
            let of_methods: Vec<_> =
                plot.series.iter().filter(|series| methods.contains(series.name.as_str())).collect();
            let mut seen = HashSet::new();
            for series in of_methods {
                let what = format!("{name}, {}, {}", plot.id, series.name);
                let colour = series.colour.unwrap_or_else(|| panic!("{what}: a colour"));
                assert!(seen.insert(colour), "{what}: two methods have colour {colour}");
                assert_eq!(*colours.entry(series.name.clone()).or_insert(colour), colour, "{what}");
            }
        }
    }
}

#[test]
fn an_invalid_sample_is_hollow_and_says_why() {
    let plots = of(&constructed::complete());
    let rounds: Vec<&Plot> = plots.iter().filter(|plot| plot.id == "rounds").collect();
    assert_eq!(rounds.len(), 2);
    // Five methods with seven rounds, one without figures; then four with seven, and an invalid
    // attempt.
    let texts: Vec<String> = rounds.iter().map(|plot| svg::file(plot)).collect();
    assert_eq!((drawn(&texts[0]), drawn(&texts[1])), ((35, 0), (28, 1)));
    assert!(texts[1].contains("(invalid: contaminated)"), "{}", texts[1]);
}

#[test]
fn ratios_are_those_of_the_verdict() {
    let run = constructed::complete();
    let judged = judge(&run);
    let plots = plots_of(&run, &judged);
    for (plot, comparison) in plots.iter().filter(|plot| plot.id == "ratios").zip(&judged.comparisons) {
        let marks: Vec<f64> =
            plot.series.iter().flat_map(|series| &series.marks).map(|mark| mark.x).collect();
        let ratios: Vec<f64> = comparison.ratios.iter().map(|ratio| ratio.ratio).collect();
        assert_eq!(marks, [&[1.0][..], &ratios].concat());
    }
}

#[test]
fn many_threads_of_a_usual_run_are_a_plot() {
    let mut run = constructed::complete();
    for cell in run.header.plan.cells.iter_mut().filter(|cell| cell.method.to_string() == "pread") {
        let old = cell.id();
        cell.conditions.threads = 4;
        let new = cell.id();
        run.samples
            .iter_mut()
            .filter(|sample| sample.cell == old)
            .for_each(|sample| sample.cell = new.clone());
    }
    let plots = of(&run);
    let threads: Vec<&Plot> = plots.iter().filter(|plot| plot.id == "threads").collect();
    assert_eq!(threads.len(), 2, "cached and cold");
    assert!(threads[0].series.iter().any(|series| series.name == "pread"));
}

#[test]
fn hostile_names_stay_text() {
    for plot in of(&hostile()) {
        let text = svg::file(&plot);
        let names = elements(&text);
        assert!(!names.iter().any(|name| name == "script"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    let mut run = constructed::complete();
    run.header.plan.question = "</svg><script>".to_string();
    let mut plot = of(&run).remove(0);
    plot.conditions = "</desc><script>\"".to_string();
    plot.series[0].name = "<script>&".to_string();
    plot.series[0].marks[0].text = MarkText::Own("]]></title>".to_string());
    plot.y.scale = Scale::Categories(vec!["<b>\u{7}".repeat(40); 9]);
    let names = elements(&svg::file(&plot));
    assert!(!names.iter().any(|name| name == "script" || name == "b"), "{names:?}");
}

#[test]
fn numbers_without_a_place_are_left_out() {
    let extremes = [
        0.0,
        -1.0,
        1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        1e29,
        -1e29,
    ];
    let mut seen = HashSet::new();
    for (_, mut run) in all() {
        run.seconds = seconds(2);
        // Plots of the same kind, form and axes differ in their marks only, which are replaced.
        let is_new = |plot: &Plot| {
            let axes = format!("{:?} {:?}", plot.x, plot.y);
            seen.insert(format!("{} {:?} {axes} {}", plot.id, plot.form, plot.series.len()))
        };
        for plot in of(&run).into_iter().filter(is_new) {
            for first in extremes {
                for second in extremes {
                    let mut plot = plot.clone();
                    for mark in plot.series.iter_mut().flat_map(|series| &mut series.marks) {
                        let is_row = matches!(plot.y.scale, Scale::Categories(_));
                        (mark.x, mark.y) = (first, if is_row { mark.y } else { second });
                        (mark.low, mark.high) = (Some(second), Some(first));
                    }
                    let text = svg::file(&plot);
                    assert!(!text.contains("NaN") && !text.contains("inf"), "{first} {second}: {text}");
                }
            }
            let mut none = plot.clone();
            none.series.clear();
            assert_eq!(drawn(&svg::file(&none)), (0, 0));
        }
    }
}

#[test]
fn a_long_run_is_thinned_out() {
    let mut run = constructed::complete();
    run.seconds = seconds(5000);
    let plots = of(&run);
    let host: Vec<&Plot> = plots.iter().filter(|plot| plot.id == "host").collect();
    assert!(host.len() >= 4 && host.iter().all(|plot| plot.table.rows.len() <= 60));
    assert!(host[0].conditions.contains("one second of 84"), "{}", host[0].conditions);
}

#[test]
fn no_number_of_a_sample_ends_a_plot() {
    for value in [0, 1, u64::MAX] {
        let mut run = constructed::complete();
        for sample in &mut run.samples {
            if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
                (measurement.measured_ns, measurement.operations) = (value, u64::MAX - value);
                measurement.latency_ns = vec![value; 2];
            }
        }
        for plot in of(&run) {
            let text = svg::file(&plot);
            assert!(!text.contains("NaN"), "{text}");
        }
    }
}
