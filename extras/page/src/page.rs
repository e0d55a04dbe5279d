//! Judged runs as one HTML file, complete without scripts, network or other files. Scripts that it
//! holds make its plots answer to pointer and keyboard, and sort its tables.
//!
//! The order is that of questions: what to use, what was measured and its warnings, each plot
//! with its table, the verdicts, then details: environment, checks, definitions,
//! the command.

mod document;
pub(crate) mod html;
pub(crate) mod map;
mod scripts;
pub(crate) mod sections;

use std::io::{self, Write};

use pagewise_analysis::Judged;

use crate::markup::escaped;
use crate::plots::colours::Colours;
use crate::svg;
use html::{Html, OnPage};
use pagewise_report::document::{Block, Document};
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::screen;
use scripts::Scripts;
use sections::Shared;

const STYLE: &str = include_str!("page/style.css");
/// Size to which the plots and verdicts of a page are cut: it is sent by mail.
pub const USUAL_BYTES: usize = 250_000;
/// Room of each run of a page that has more than four.
const RUN_BYTES: usize = 60_000;
/// Size beyond which a page is refused.
pub const MOST_BYTES: usize = 1_000_000;
/// Situations of the answer that are listed; the verdicts have more.
const MOST_CHOICES: usize = 200;
/// Of a page: its head, and the lines between its parts.
const FRAME_BYTES: usize = STYLE.len() + svg::STYLE.len() + scripts::BYTES + 2_000;
/// Bytes for the plots of a document, beside its text.
const ROOM: usize = MOST_BYTES - FRAME_BYTES - 80_000;

/// The element by which a page says which runs it is of: it stands in the first bytes.
pub fn mark<'a>(runs: impl IntoIterator<Item = &'a Judged>) -> String {
    let seeds: Vec<String> = runs.into_iter().map(|judged| judged.run.seed.to_string()).collect();
    format!("<meta name=\"generator\" content=\"pagewise, seed {}\"/>", seeds.join(", "))
}

/// Write one page of all runs, a section for each.
pub fn write(out: &mut dyn Write, runs: &[JudgedRun<'_>]) -> io::Result<()> {
    let questions: Vec<&str> = runs.iter().map(|run| run.judged.run.question.as_str()).collect();
    let title = escaped(format!("pagewise: {}", questions.join(", ")));
    let mut page = Html::default();
    answer(&mut page, runs);
    let colours = Colours::of(runs);
    if runs.len() > 1 {
        map::of_runs(&mut page, runs, &colours);
        contents(&mut page, runs);
    }
    let shared = Shared::of(runs);
    let mut below = Html::default();
    if let Some(shared) = &shared {
        shared.add_to(&mut below, runs);
    }
    sections::definitions(&mut below);
    let section = |index: usize, room: usize| {
        let mut section = Html::default();
        sections::run(&mut section, &runs[index], &colours, shared.as_ref(), (index + 1, room));
        section
    };
    let most = (RUN_BYTES * runs.len()).clamp(USUAL_BYTES, MOST_BYTES);
    let mut left = most.saturating_sub(FRAME_BYTES + page.text().len() + below.text().len());
    // A run has room by what it would take alone, and what it leaves is for the next.
    let alone: Vec<usize> = (0..runs.len()).map(|index| section(index, left).text().len()).collect();
    for index in 0..runs.len() {
        let room = left * alone[index] / alone[index..].iter().sum::<usize>();
        let section = section(index, room);
        left = left.saturating_sub(section.text().len());
        page.raw(section.text());
    }
    page.raw(below.text());
    whole(out, &title, &mark(runs.iter().map(|run| run.judged)), &page)
}

/// The document around the body of a page, whose title and mark are already escaped.
fn whole(out: &mut dyn Write, title: &str, mark: &str, page: &Html) -> io::Result<()> {
    let scripts = Scripts::of(page.text().contains("<figure>"));
    let policy = scripts.policy();
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>{mark}<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\"/><title>{title}</title>\n<style>{STYLE}{}</style></head>\n\
         <body><main><h1>{title}</h1>\n{}</main>\n{}</body></html>\n",
        svg::STYLE,
        page.text(),
        scripts.elements()
    );
    if text.len() > MOST_BYTES {
        let megabytes = |bytes: usize| bytes as f64 / 1e6;
        return Err(io::Error::other(format!(
            "the page would have {:.2} MB, and a page has at most {} MB: name fewer runs",
            megabytes(text.len()),
            megabytes(MOST_BYTES)
        )));
    }
    out.write_all(text.as_bytes())
}

/// Write a document as a page with this title.
pub fn write_document(out: &mut dyn Write, title: &str, document: &Document) -> io::Result<()> {
    let mut page = Html::default();
    document.add_to(&mut page, ROOM);
    whole(out, &escaped(title), &mark([]), &page)
}

/// The recommendation for each situation, as on the screen.
fn answer(page: &mut Html, runs: &[JudgedRun<'_>]) {
    let answer = screen::document(runs, MOST_CHOICES);
    let conclusion = runs.iter().flat_map(JudgedRun::conclusions).map(Block::paragraph).collect();
    Document { conclusion, ..answer }.add_to(page, 0);
}

fn contents(page: &mut Html, runs: &[JudgedRun<'_>]) {
    page.open("nav aria-label=\"Runs\"");
    page.open("ul");
    for (index, run) in runs.iter().enumerate() {
        let name = format!("{} ({})", run.judged.run.question, run.path);
        page.raw(&format!("<li><a href=\"#run-{}\">{}</a></li>", index + 1, escaped(name)));
    }
    page.close("ul");
    page.close("nav");
}
