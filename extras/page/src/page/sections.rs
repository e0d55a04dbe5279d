//! The sections of one run, and the definitions of all numbers.

use pagewise_analysis::Judged;
use pagewise_model::FailureKind;
use pagewise_model::format::counted;
use pagewise_model::untrusted::shell_word;

use super::html::{Html, OnPage};
use crate::markup::escaped;
use crate::plots::colours::Colours;
use crate::{plots, svg};
use pagewise_report::csv::cells;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::Plot;
use pagewise_report::table::{heading, rows};
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::{inspect, words};

/// Warnings and failed checks that are listed.
const MOST_DOUBTS: usize = 100;
/// Files and threads of a program that are shown at once.
const FIRST: usize = 2;
/// Share of the room that verdicts may take.
const OF_VERDICTS: f64 = 0.35;

/// All sections of the run with this number, in about `room` bytes: what a page of many cells
/// leaves out is named.
pub(super) fn run(
    page: &mut Html,
    run: &JudgedRun<'_>,
    colours: &Colours,
    shared: Option<&Shared>,
    (number, room): (usize, usize),
) {
    let judged = run.judged;
    let mut above = Html::default();
    above.raw(&format!(
        "<section id=\"run-{number}\"><h2>{}: {}</h2>",
        escaped(&judged.run.question),
        escaped(run.path)
    ));
    above.heading(3, "What was measured");
    heading::described(judged).iter().for_each(|line| above.paragraph(line));
    distrust(&mut above, judged);
    program(&mut above, judged);
    let mut below = Html::default();
    verdicts(&mut below, judged, (room as f64 * OF_VERDICTS) as usize);
    below.heading(3, "Details");
    below.details("Environment", |page| environment(page, judged, shared));
    if shared.is_none() {
        below
            .details("Every check, with how often it failed", |page| checks(page, std::slice::from_ref(run)));
    }
    below.details("The command", |page| command(page, run));
    below.close("section");
    page.raw(above.text());
    draw(
        page,
        &plots::all(run, colours),
        number,
        room.saturating_sub(above.text().len() + below.text().len()),
    );
    page.raw(below.text());
}

/// The files of a recorded program, and the waits of its threads.
fn program(page: &mut Html, judged: &Judged) {
    let Some(inspection) = &judged.inspection else { return };
    let replayed: Vec<&str> = judged.run.source.own_files().map(|(path, _)| path).collect();
    let replayed = replayed.as_slice();
    let first = inspect::Shown { most: FIRST, replayed, is_own: false, others: Some("all are below") };
    inspect::document(inspection, first).add_to(page, 0);
    let all = inspect::Shown { most: usize::MAX, replayed, is_own: false, others: None };
    page.details("All files and threads of the program", |page| {
        inspect::document(inspection, all).add_to(page, 0);
    });
}

/// Warnings, failed checks and missing samples.
fn distrust(page: &mut Html, judged: &Judged) {
    let failed = judged.validity.reasons.iter().map(|reason| {
        let attempts = counted(reason.count as u64, "attempt");
        format!("{attempts} failed the check {}, first: {}", reason.kind.name(), reason.example)
    });
    let short = judged.short_cells().count() as u64;
    let short =
        (short > 0).then(|| format!("{} with fewer valid samples than rounds", counted(short, "cell")));
    let each = !judged.validity.reasons.is_empty();
    let each =
        each.then(|| "pagewise report --csv=samples has each failed attempt with its reason".to_string());
    let all = words::warnings::all(judged).into_iter().chain(failed).chain(each).chain(short);
    let mut all: Vec<String> = all.collect();
    let more = all.len().saturating_sub(MOST_DOUBTS);
    all.truncate(MOST_DOUBTS);
    page.heading(3, "Warnings");
    if all.is_empty() {
        page.paragraph("Nothing that is known: every sample passed every check, and there is no warning.");
    }
    page.list(&all);
    if more > 0 {
        page.left_out(more, "warning");
    }
}

/// Draw the plots in at most `room` bytes: a page of many cells would be too large to open. Each
/// question has the same room, and what one leaves is for the next; its first one that is drawn may
/// have three fifths of all that is left.
pub(crate) fn draw(page: &mut Html, plots: &[Plot], number: usize, room: usize) {
    let questions: Vec<&[Plot]> = plots.chunk_by(|one, next| one.heading == next.heading).collect();
    let (mut left, mut drawn) = (room, 0);
    let screen_only = questions.iter().position(|plots| !plots::is_printed(&plots[0]));
    for (index, plots) in questions.iter().enumerate() {
        if screen_only == Some(index) {
            page.raw("<p class=\"paper\">The other plots are in the page on a screen.</p>");
            page.open("div class=\"screen\"");
        }
        page.heading(3, plots[0].heading);
        let mut own = left / (questions.len() - index);
        let (mut left_out, mut is_first) = (0, true);
        let figures =
            plots.chunk_by(|one, next| (&one.conditions, &one.table) == (&next.conditions, &next.table));
        for plots in figures {
            let mut element = Html::default();
            figure(&mut element, plots, &format!("p{number}-{drawn}"));
            drawn += 1;
            let size = element.text().len();
            if size > own.max(if is_first { left * 3 / 5 } else { 0 }) {
                left_out += plots.len();
                continue;
            }
            is_first = false;
            (left, own) = (left - size, own.saturating_sub(size));
            page.raw(element.text());
        }
        if left_out > 0 {
            let more = counted(left_out as u64, "more plot");
            page.paragraph(format!(
                "There is no room for {more}: pagewise report --svg DIR writes all of them."
            ));
        }
    }
    if screen_only.is_some() {
        page.close("div");
    }
}

/// Plots that have one table.
fn figure(page: &mut Html, plots: &[Plot], id: &str) {
    let Some(first) = plots.first() else { return };
    page.open("figure");
    page.raw(&format!("<figcaption id=\"{id}c\">{}</figcaption>", escaped(&first.conditions)));
    // Question and conditions are the name of drawing and table.
    let name = format!("aria-labelledby=\"{id}-0t {id}c\"");
    for (index, plot) in plots.iter().enumerate() {
        page.legend(svg::keys(plot));
        page.raw(&format!("<div class=\"drawing scroll\" role=\"group\" tabindex=\"0\" {name}>"));
        page.raw(&svg::element(plot, &format!("{id}-{index}")));
        page.close("div");
    }
    page.details("As a table", |page| page.named_table(&first.table, &name));
    page.close("figure");
}

/// The verdict of each situation, in at most `room` bytes.
fn verdicts(page: &mut Html, judged: &Judged, room: usize) {
    if judged.comparisons.is_empty() {
        return;
    }
    page.heading(3, "Verdicts");
    let by_id = judged.by_id();
    let mut left = room;
    for (index, compared) in judged.comparisons.iter().enumerate() {
        let mut own = Html::default();
        rows::section(&by_id, compared, judged.advice.get(index), 4).add_to(&mut own, 0);
        let Some(rest) = left.checked_sub(own.text().len()) else {
            page.left_out(judged.comparisons.len() - index, "verdict");
            return;
        };
        left = rest;
        page.raw(own.text());
    }
}

/// Every field, with its unit in its name, as text.
fn fields(judged: &Judged) -> Vec<(String, String)> {
    let value = serde_json::to_value(&judged.environment).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten();
    let texts = fields.filter(|(name, _)| *name != "warnings").map(|(name, value)| {
        let value = match value {
            serde_json::Value::Null => "unknown".to_string(),
            serde_json::Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        (name.clone(), value)
    });
    texts.collect()
}

/// Fields as terms.
fn texts(fields: Vec<(String, String)>) -> impl Iterator<Item = (String, [String; 1])> {
    fields.into_iter().map(|(name, value)| (name, [value]))
}

/// Details that several runs have in common: they stand once, below all of them.
pub(super) struct Shared {
    /// Fields of the environment.
    fields: Vec<(String, String)>,
}

impl Shared {
    /// `None` if there is one run alone.
    pub(super) fn of(runs: &[JudgedRun<'_>]) -> Option<Self> {
        let (first, others) = runs.split_first().filter(|(_, others)| !others.is_empty())?;
        let mut shared = fields(first.judged);
        for other in others {
            let known = fields(other.judged);
            shared.retain(|field| known.contains(field));
        }
        Some(Self { fields: shared })
    }

    pub(super) fn add_to(&self, page: &mut Html, runs: &[JudgedRun<'_>]) {
        page.heading(2, "All runs");
        page.details("Environment of all runs", |page| page.terms(texts(self.fields.clone())));
        page.details("Every check, with how often it failed", |page| checks(page, runs));
    }
}

fn environment(page: &mut Html, judged: &Judged, shared: Option<&Shared>) {
    let mut own = fields(judged);
    if let Some(Shared { fields }) = shared {
        own.retain(|field| !fields.contains(field));
        page.paragraph("All else is the same in all runs, and stands below them.");
    }
    page.terms(texts(own));
    for worker in &judged.workers {
        page.paragraph(heading::found(worker));
        page.list(&worker.notes);
    }
}

fn checks(page: &mut Html, runs: &[JudgedRun<'_>]) {
    let mut questions: Vec<&str> = runs.iter().map(|run| run.judged.run.question.as_str()).collect();
    questions.sort_unstable();
    let are_different = questions.windows(2).all(|pair| pair[0] != pair[1]);
    let name = |run: &JudgedRun<'_>| match (runs.len(), are_different) {
        (1, _) => None,
        (_, true) => Some(run.judged.run.question.clone()),
        (_, false) => Some(run.path.to_string()),
    };
    for run in runs {
        let valid = heading::validity(run.judged);
        page.paragraph(name(run).map_or(valid.clone(), |name| format!("{name}: {valid}")));
    }
    let attempts = "attempts that failed it";
    let counts = runs.iter().map(|run| match name(run) {
        Some(name) => format!("{attempts}, {name}"),
        None => attempts.to_string(),
    });
    let headings = ["check".to_string()].into_iter().chain(counts);
    let headings = headings.chain(["meaning of a failure".to_string(), "the first".to_string()]);
    let columns = headings.map(Into::into).collect();
    let row = |kind: &FailureKind| {
        let reasons = runs.iter().map(|run| run.judged.validity.reasons.iter().find(|one| one.kind == *kind));
        let reasons: Vec<_> = reasons.collect();
        let counts = reasons.iter().map(|found| TextCell::count(found.map_or(0, |one| one.count)));
        let first = reasons.iter().flatten().next().map_or("", |one| &one.example);
        std::iter::once(kind.to_string().into())
            .chain(counts)
            .chain([kind.meaning().into(), first.into()])
            .collect()
    };
    let table = TextTable { columns, rows: FailureKind::ALL.iter().map(row).collect() };
    page.table(&table, "Every check");
}

/// The command that measured the run, and the one that prints it again.
fn command(page: &mut Html, run: &JudgedRun<'_>) {
    let seed = run.judged.run.seed;
    match run.run.header.typed.as_slice() {
        [] => page.paragraph(format!("The run file does not have the command. Its seed is {seed}.")),
        words => {
            page.paragraph(format!("Measured with the seed {seed} by:"));
            let words = words.iter().map(|word| format!(" {}", shell_word(word)));
            page.command(format!("pagewise{}", words.collect::<String>()));
        }
    }
    page.paragraph("Judged and printed again by:");
    page.command(format!("pagewise report {}", shell_word(run.path)));
}

/// The meaning of each number, and a line for a print, which has nothing of what is closed.
pub(super) fn definitions(page: &mut Html) {
    page.heading(2, "What each number means");
    page.details("Definitions, by the columns of the CSV of cells", |page| {
        page.terms(cells::columns().map(|(name, meaning)| (name, [meaning])))
    });
    page.raw(
        "<p class=\"paper\">Environment, checks, commands, tables of plots and definitions are in the page on a \
         screen, closed at first.</p>",
    );
}
