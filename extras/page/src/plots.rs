//! Plots: each turns a judged run into plain data, and says nothing of its form on a page.

pub mod colours;
mod host;
mod latency;
mod limits;
mod offsets;
mod phases;
mod ratios;
mod rounds;
mod threads;
mod warming;

use crate::svg;
use colours::Colours;
use pagewise_lab::format_door::DrawnPlot;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::Plot;

/// Every kind of plot, in the order in which they are shown.
const ALL: [fn(&JudgedRun<'_>) -> Vec<Plot>; 10] = [
    offsets::plots,
    |run| run.curves().map(|curves| curves.plots()).unwrap_or_default(),
    ratios::plots,
    threads::plots,
    warming::plots,
    phases::plots,
    limits::plots,
    latency::plots,
    rounds::plots,
    host::plots,
];

/// Kinds of plots that a printed page has; they come first.
const PRINTED: [&str; 4] = ["offsets", "crossings", "ratios", "threads"];

/// True if a printed page has the plot; others are on the screen only.
pub(crate) fn is_printed(plot: &Plot) -> bool {
    PRINTED.contains(&plot.id)
}

/// The plots of several runs, each drawn as a file.
pub fn drawn(runs: &[JudgedRun<'_>]) -> Vec<DrawnPlot> {
    let colours = Colours::of(runs);
    let of_run = |run: &JudgedRun<'_>| {
        let question = run.judged.run.question.clone();
        let drawn = move |plot| DrawnPlot { question: question.clone(), svg: svg::file(&plot), plot };
        all(run, &colours).into_iter().map(drawn)
    };
    runs.iter().flat_map(of_run).collect()
}

/// The plots for which a run has values.
pub fn all(run: &JudgedRun<'_>, colours: &Colours) -> Vec<Plot> {
    let plots = ALL.iter().flat_map(|plots| plots(run)).filter(|plot| !plot.series.is_empty());
    let painted = plots.map(|mut plot| {
        colours.paint(&mut plot);
        plot
    });
    painted.collect()
}
