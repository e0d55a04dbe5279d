//! The estimates of a run, printed by `--dry-run` for people or as JSON.

mod cells;
mod missing;

use std::io::{self, Write};

use pagewise_model::format::{bytes, counted, duration, time};
use pagewise_model::groups::by_key;
use pagewise_model::{Bytes, CacheState, Plan, Role, Source};
use pagewise_report::document::{Block, Document};
use pagewise_report::json;
use serde::Serialize;

use crate::begin::Options;
use crate::exit::Exit;
use crate::output;
use crate::plan::estimate;
pub use missing::MissingMethod;

/// A plan as JSON.
#[derive(Serialize)]
struct Planned<'a> {
    schema: u32,
    /// Estimated duration of the run.
    duration_ns: u64,
    /// Bytes of the dataset, and those that workloads write in the rounds that every method has.
    written_bytes: u64,
    /// Written bytes with later rounds, at most and approximately.
    most_written_bytes: u64,
    /// Methods of which it is known beforehand that they are unavailable here.
    unavailable: Vec<MissingMethod>,
    plan: &'a Plan,
}

impl<'a> Planned<'a> {
    fn of(plan: &'a Plan, options: &Options) -> Self {
        Self {
            schema: 1,
            duration_ns: estimate::duration_ns(plan),
            written_bytes: estimate::first_written_bytes(plan),
            most_written_bytes: estimate::most_written_bytes(plan),
            // Of another program in place of the own worker nothing is known.
            unavailable: match options.worker_command {
                Some(_) => Vec::new(),
                None => missing::all(plan, &options.workers),
            },
            plan,
        }
    }
}

/// `--dry-run`: print plans; as JSON one object, or a list of several.
pub fn dry_run(plans: &[&Plan], options: &Options) -> io::Result<Exit> {
    let mut out = output::stdout();
    let json = options.all.print.json;
    let planned: Vec<Planned<'_>> = plans.iter().map(|plan| Planned::of(plan, options)).collect();
    match planned.as_slice() {
        [one] if json => json::write_one(&mut out, one)?,
        several if json => json::write_one(&mut out, &several)?,
        several => {
            for (index, one) in several.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                let lines = document(one.plan, &one.unavailable).lines(output::width());
                out.lines(&lines, output::is_coloured())?;
            }
        }
    }
    Ok(Exit::Answered)
}

/// Print a line about each plan.
pub fn summary(plans: &[&Plan], out: &mut impl Write) -> io::Result<()> {
    for plan in plans {
        let (cells, rounds) = (plan.cells.len(), plan.rounds);
        let (takes, written) = (estimate::duration_ns(plan), estimate::most_written_bytes(plan));
        writeln!(
            out,
            "{:20} {cells:3} cells x {rounds:2} rounds, about {:>6}, writes about {}",
            plan.question,
            duration(takes),
            bytes(Bytes(written))
        )?;
    }
    Ok(())
}

/// A summary of a resolved plan: its sampling, the bytes it will write, the time it will take, and
/// its cells, with the methods that are known to be unavailable apart.
pub fn document(plan: &Plan, unavailable: &[MissingMethod]) -> Document {
    let mut measured = plan.cells.iter().filter(|cell| cell.role != Role::Ceiling);
    let sample = match measured.all(|cell| cell.conditions.is_one_shot()) {
        true => "each sample is the whole work once".to_string(),
        false => format!(
            "a sample lasts {}{}, single latencies up to {} more",
            time(plan.sample_ns),
            plan.memory_sample_ns.map_or_else(String::new, |ns| format!(", or {} in memory", time(ns))),
            time(plan.latency_ns())
        ),
    };
    let cells = plan.cells.len();
    let sampling = match estimate::budget_ns(plan) {
        None => format!("{} rounds of {cells} cells", plan.rounds),
        Some(budget) => format!(
            "{} rounds of {cells} cells, then rounds of what is undecided, about {} in all at most",
            plan.first_rounds(),
            duration(budget)
        ),
    };
    let (source, of_source) = source(plan);
    let mut facts = vec![
        ("question", plan.question.clone()),
        (source, of_source),
        ("seed", plan.seed.to_string()),
        ("sampling", format!("{sampling}; {sample}")),
        ("writes", written(plan)),
        ("takes", format!("about {}", duration(estimate::duration_ns(plan)))),
    ];
    let common = cells::common(plan);
    facts.extend((!common.is_empty()).then(|| ("all cells", common.join(" · "))));
    facts.extend(cells::beside(plan, Role::Control).map(|text| ("controls", text)));
    facts.extend(cells::beside(plan, Role::Ceiling).map(|text| ("ceilings", text)));
    let by_reason = by_key(unavailable.iter().map(|missing| (&missing.reason, missing.method.as_str())));
    facts.extend(by_reason.into_iter().map(|(reason, methods)| {
        let cells = plan.cells.iter().filter(|cell| methods.contains(&cell.method.to_string().as_str()));
        let cells = counted(cells.count() as u64, "cell");
        ("unavailable", format!("{} ({cells}): {reason}", methods.join(", ")))
    }));
    let facts = Block::facts(facts.into_iter().map(|(name, text)| (name.to_string(), text)));
    let body = std::iter::once(facts).chain(cells::measured(plan, &common)).collect();
    Document { body, ..Document::default() }
}

/// The data that a plan reads or writes, and what becomes of them.
fn source(plan: &Plan) -> (&'static str, String) {
    match &plan.source {
        Source::Dataset { directory } if plan.datasets().is_empty() => {
            ("files", format!("made in {directory}, removed afterwards"))
        }
        Source::Dataset { directory } => ("dataset", format!("made in {directory}, removed afterwards")),
        Source::File { evict, others, directory, .. } => {
            let warm = plan.cells.iter().any(|cell| cell.conditions.cache == CacheState::Warm);
            let cache = match (*evict, warm) {
                (true, _) => "it may be dropped from the page cache",
                (false, true) => "it is read into the page cache",
                (false, false) => "the page cache is left as the samples change it",
            };
            let of_actors = directory.as_ref().map_or_else(String::new, |directory| {
                format!("; the files of actors are made in {directory}, and removed afterwards")
            });
            let name = if others.is_empty() { "file" } else { "files" };
            (name, format!("{}, only read; {cache}{of_actors}", plan.source.shown()))
        }
    }
}

/// Bytes written in the whole run, because flash wears.
fn written(plan: &Plan) -> String {
    let dataset = plan.all_dataset_bytes();
    let by_actors = match plan.written_bytes() {
        Bytes(0) => String::new(),
        written => format!(", and about {} by actors", bytes(written)),
    };
    match plan.largest_written() {
        None if plan.blocks > 1 => {
            format!("{} in {} datasets, one at a time{by_actors}", bytes(dataset), plan.blocks)
        }
        None => format!("{}{by_actors}", bytes(dataset)),
        Some(largest) => format!(
            "{} in {} samples{}, at most {} at a time, each file removed after its sample{}",
            bytes(plan.written_bytes()),
            u64::from(plan.first_rounds()) * plan.writing_cells().count() as u64,
            match plan.budget {
                None => String::new(),
                Some(_) => format!(
                    ", with later rounds at most about {}",
                    bytes(Bytes(estimate::most_written_bytes(plan)))
                ),
            },
            bytes(largest),
            if dataset.0 > 0 { format!("; {} beside them meanwhile", bytes(dataset)) } else { String::new() }
        ),
    }
}
