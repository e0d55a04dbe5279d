//! The sections of one run, and the definitions of all numbers.

use pagewise_analysis::Judged;
use pagewise_analysis::judge::Status;
use pagewise_model::format::counted;
use pagewise_model::untrusted::shell_word;
use pagewise_model::{FailureKind, Role};

use super::html::Html;
use crate::comparison::ComparisonText;
use crate::csv::cells;
use crate::judged_run::JudgedRun;
use crate::markup::escaped;
use crate::plots::plot::Plot;
use crate::table::{heading, verdict};
use crate::text_table::{TextCell, TextTable};
use crate::{plots, svg};

/// All sections of the run with this number, with plots in at most `room` bytes.
pub(super) fn run(page: &mut Html, run: &JudgedRun<'_>, number: usize, room: usize) {
    let judged = run.judged;
    page.raw(&format!(
        "<section id=\"run-{number}\"><h2>{}: {}</h2>",
        escaped(&judged.run.question),
        escaped(run.path)
    ));
    page.heading(3, "What was measured");
    heading::described(judged).iter().for_each(|line| page.paragraph(line));
    distrust(page, judged);
    draw(page, &plots::all(run), number, room);
    verdicts(page, judged);
    page.heading(3, "For a second look");
    page.details("Environment", |page| environment(page, judged));
    page.details("Every check, with how often it failed", |page| checks(page, judged));
    page.details("The command", |page| command(page, run));
    page.close("section");
}

/// Warnings, failed checks and missing samples.
fn distrust(page: &mut Html, judged: &Judged) {
    let failed = judged.validity.reasons.iter().map(|reason| {
        let attempts = counted(reason.count as u64, "attempt");
        format!("{attempts} failed the check {}, first: {}", reason.kind.name(), reason.example)
    });
    let measured = || judged.cells.iter().filter(|cell| cell.role == Role::Measured);
    let short =
        measured().filter(|cell| cell.status == Status::Ok && cell.samples < cell.rounds_asked).count();
    let short = (short > 0)
        .then(|| format!("{} have fewer valid samples than rounds", counted(short as u64, "method")));
    let all: Vec<String> = judged.warnings.iter().cloned().chain(failed).chain(short).collect();
    page.heading(3, "What to distrust");
    if all.is_empty() {
        page.paragraph("Nothing that is known: every sample passed every check, and there is no warning.");
    }
    page.list(&all);
}

/// Draw the plots in at most `room` bytes: a page of many cells would be too large to open. Each question has the same
/// room, and what one leaves is for the next.
pub(super) fn draw(page: &mut Html, plots: &[Plot], number: usize, room: usize) {
    let questions: Vec<&[Plot]> = plots.chunk_by(|one, next| one.heading == next.heading).collect();
    let (mut left, mut drawn) = (room, 0);
    for (index, plots) in questions.iter().enumerate() {
        page.heading(3, plots[0].heading);
        let mut own = left / (questions.len() - index);
        let mut left_out = 0;
        for plot in *plots {
            let mut element = Html::default();
            drawn += 1;
            figure(&mut element, plot, &format!("plot-{number}-{drawn}"));
            match own.checked_sub(element.text().len()) {
                Some(rest) => {
                    (left, own) = (left - element.text().len(), rest);
                    page.raw(element.text());
                }
                None => left_out += 1,
            }
        }
        if left_out > 0 {
            let more = counted(left_out, "more plot");
            page.paragraph(format!(
                "There is no room for {more}: pagewise report --svg DIR writes all of them."
            ));
        }
    }
}

fn figure(page: &mut Html, plot: &Plot, id: &str) {
    let label = format!("{} {}", plot.heading, plot.conditions);
    page.open("figure");
    page.raw(&format!("<figcaption>{}</figcaption>", escaped(&plot.conditions)));
    page.raw(&format!(
        "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{}\">",
        escaped(&label)
    ));
    page.raw(&svg::element(plot, id));
    page.close("div");
    page.details("As a table", |page| page.table(&plot.table, &label));
    page.close("figure");
}

fn verdicts(page: &mut Html, judged: &Judged) {
    if judged.comparisons.is_empty() {
        return;
    }
    page.heading(3, "Verdicts");
    let by_id = judged.by_id();
    for (index, comparison) in judged.comparisons.iter().enumerate() {
        let ComparisonText { table, notes } = ComparisonText::of(&by_id, comparison);
        page.heading(4, &comparison.conditions.label);
        page.paragraph(verdict(comparison));
        if let Some(advice) = judged.advice.get(index) {
            let sentences = advice.notes.iter().chain(&advice.stalls).chain([&advice.sentence]);
            sentences.for_each(|sentence| page.paragraph(sentence));
        }
        page.table(&table, &comparison.conditions.label);
        page.list(&notes);
    }
}

/// Every field, with its unit in its name.
fn environment(page: &mut Html, judged: &Judged) {
    let value = serde_json::to_value(&judged.environment).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten();
    let told = fields.filter(|(name, _)| *name != "warnings").map(|(name, value)| {
        let told = match value {
            serde_json::Value::Null => "unknown".to_string(),
            serde_json::Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        (name.clone(), told)
    });
    page.terms(told);
    for worker in &judged.workers {
        page.paragraph(heading::found(worker));
        page.list(&worker.notes);
    }
}

fn checks(page: &mut Html, judged: &Judged) {
    let validity = &judged.validity;
    page.paragraph(heading::validity(judged));
    let row = |kind: &FailureKind| {
        let found = validity.reasons.iter().find(|reason| reason.kind == *kind);
        let (count, example) = found.map_or((0, ""), |reason| (reason.count, &reason.example));
        vec![kind.to_string().into(), TextCell::count(count), kind.meaning().into(), example.into()]
    };
    let names = ["check", "attempts that failed it", "meaning of a failure", "the first"];
    let table = TextTable { rows: FailureKind::ALL.iter().map(row).collect(), ..TextTable::of(&names) };
    page.table(&table, "Every check");
}

/// How it was measured, and how it is printed again.
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

/// The meaning of each number.
pub(super) fn definitions(page: &mut Html) {
    page.heading(2, "What each number means");
    page.details("Definitions, by the columns of the CSV of cells", |page| page.terms(cells::columns()));
}
