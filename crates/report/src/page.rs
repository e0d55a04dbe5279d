//! Judged runs as one HTML file, complete without scripts, network or other files. Scripts that it
//! holds make its plots answer to pointer and keyboard, and sort its tables.
//!
//! The order is that of questions: what to use, what was measured and its warnings, each plot
//! with its table, the verdicts, then details: environment, checks, definitions,
//! the command.

pub(crate) mod html;
pub(crate) mod map;
mod scripts;
pub(crate) mod sections;

use std::io::{self, Write};

use pagewise_analysis::Judged;

use crate::document::{Block, Document};
use crate::judged_run::JudgedRun;
use crate::markup::escaped;
use crate::plots::colours::Colours;
use crate::{screen, svg};
use html::Html;
use scripts::Scripts;
use sections::Shared;

const STYLE: &str = include_str!("page/style.css");
/// Size of a page: it is sent by mail.
pub const MOST_BYTES: usize = 1_000_000;
/// Situations of the answer that are listed; the verdicts have more.
const MOST_CHOICES: usize = 200;
/// Of a page: its head, its answer and its definitions.
const FRAME_BYTES: usize = 90_000;
/// Bytes that are left for runs.
const ROOM: usize = MOST_BYTES - scripts::BYTES - FRAME_BYTES;

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
    for (index, run) in runs.iter().enumerate() {
        sections::run(&mut page, run, &colours, shared.as_ref(), (index + 1, ROOM / runs.len()));
    }
    if let Some(shared) = shared {
        shared.add_to(&mut page, runs);
    }
    sections::definitions(&mut page);
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
    let judged: Vec<&Judged> = runs.iter().map(|run| run.judged).collect();
    let answer = screen::document(&judged, MOST_CHOICES);
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
