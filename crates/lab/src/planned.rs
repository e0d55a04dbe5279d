//! The estimates of a run, printed by `--dry-run` for people or as JSON.

use std::io::{self, Write};

use pagewise_analysis::judge::label::{shared, texts};
use pagewise_model::format::{bytes, counted, duration, time};
use pagewise_model::{Bytes, CacheState, Conditions, Plan, Role, Source};
use pagewise_report::document::{Block, Document};
use pagewise_report::json;
use serde::Serialize;

use crate::exit::Exit;
use crate::output;
use crate::plan::estimate;

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
    plan: &'a Plan,
}

impl<'a> Planned<'a> {
    fn of(plan: &'a Plan) -> Self {
        Self {
            schema: 1,
            duration_ns: estimate::duration_ns(plan),
            written_bytes: estimate::first_written_bytes(plan),
            most_written_bytes: estimate::most_written_bytes(plan),
            plan,
        }
    }
}

/// `--dry-run`: print plans; as JSON one object, or a list of several.
pub fn dry_run(plans: &[&Plan], json: bool) -> io::Result<Exit> {
    let mut out = output::stdout();
    let planned: Vec<Planned<'_>> = plans.iter().map(|plan| Planned::of(plan)).collect();
    match planned.as_slice() {
        [one] if json => json::write_one(&mut out, one)?,
        several if json => json::write_one(&mut out, &several)?,
        _ => {
            for (index, plan) in plans.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                out.lines(&document(plan).lines(output::width()), output::is_coloured())?;
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

/// A resolved plan, the bytes it will write and the time it will take.
pub fn document(plan: &Plan) -> Document {
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
            time(budget)
        ),
    };
    let (source, of_source) = source(plan);
    let facts = [
        ("question", plan.question.clone()),
        (source, of_source),
        ("seed", plan.seed.to_string()),
        ("sampling", format!("{sampling}; {sample}")),
        ("writes", written(plan)),
        ("takes", format!("about {}", duration(estimate::duration_ns(plan)))),
    ];
    let groups = [Role::Measured, Role::Control, Role::Ceiling]
        .into_iter()
        .flat_map(|role| groups(plan, role).into_iter().flat_map(move |group| group.blocks(role)));
    let facts = Block::facts(facts.map(|(name, text)| (name.to_string(), text)));
    Document { body: std::iter::once(facts).chain(groups).collect(), ..Document::default() }
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

/// Conditions under which the same methods are measured.
struct Group<'a> {
    methods: Vec<String>,
    conditions: Vec<&'a Conditions>,
}

/// The cells of a role, by their methods.
fn groups(plan: &Plan, role: Role) -> Vec<Group<'_>> {
    let mut by_conditions: Vec<Group<'_>> = Vec::new();
    for cell in plan.cells.iter().filter(|cell| cell.role == role) {
        let method = cell.method.to_string();
        match by_conditions.iter_mut().find(|group| group.conditions == [&cell.conditions]) {
            Some(group) => group.methods.push(method),
            None => by_conditions.push(Group { methods: vec![method], conditions: vec![&cell.conditions] }),
        }
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for one in by_conditions {
        match groups.iter_mut().find(|group| group.methods == one.methods) {
            Some(group) => group.conditions.extend(one.conditions),
            None => groups.push(one),
        }
    }
    groups
}

impl Group<'_> {
    /// Methods, what all conditions share, and the rest of each.
    fn blocks(&self, role: Role) -> Vec<Block> {
        let (methods, conditions) = (self.methods.len() as u64, self.conditions.len() as u64);
        let (of, cells) = (counted(methods, "method"), counted(methods * conditions, "cell"));
        let shared = shared(self.conditions.iter().copied());
        let all = (conditions > 1 && !shared.is_empty()).then(|| format!("all: {}", shared.join(" · ")));
        let own = |one: &&Conditions| {
            let own = texts(one, &[]).into_iter().filter(|part| conditions == 1 || !shared.contains(part));
            let own = own.collect::<Vec<_>>().join(" · ");
            if own.is_empty() { "no further condition".to_string() } else { own }
        };
        let own = self.conditions.iter().map(own).collect();
        let head = [
            Block::heading(3, format!("{}: {of}, {cells}", role.name())),
            Block::paragraph(self.methods.join(", ")),
        ];
        head.into_iter().chain(all.map(Block::paragraph)).chain([Block::List(own)]).collect()
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
