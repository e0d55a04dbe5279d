//! `pagewise methods`: every method and option, from the registries, and whether it is available
//! here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use pagewise_host::files;
use pagewise_host::probe::{self, Capability};
use pagewise_lab::exit::Exit;
use pagewise_lab::output;
use pagewise_lab::plan::{question, question_names};
use pagewise_model::method::options::OptionEntry;
use pagewise_model::method::{ListedMethod, listed, names};
use pagewise_model::{Method, MethodOption, Worker, WorkerChoices, Workload};
use pagewise_report::document::{Block, Document};
use pagewise_report::json;
use serde::Serialize;

use crate::arguments::MethodsArguments;
use crate::extras::offered;

#[derive(Serialize)]
struct Registry {
    schema: u32,
    methods: Vec<Entry>,
    options: Vec<Entry>,
    names: Vec<Name>,
}

/// A method or an option.
#[derive(Serialize)]
struct Entry {
    name: String,
    meaning: String,
    /// The system calls behind a method.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<String>,
    /// The options of a method, or the methods of an option.
    with: Vec<String>,
    /// The first Linux that has it, if not all have it.
    since: Option<&'static str>,
    available: bool,
    reason: Option<String>,
}

/// A name from elsewhere.
#[derive(Serialize)]
struct Name {
    name: &'static str,
    methods: &'static [&'static str],
}

/// Print the registry.
pub fn methods(arguments: &MethodsArguments) -> Result<Exit> {
    let directory = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    files::check_directory(&directory)?;
    let directory = directory.canonicalize().with_context(|| format!("{}", directory.display()))?;
    let workloads = match &arguments.question {
        None => Workload::ALL.to_vec(),
        Some(question) => workloads_of(question)?,
    };
    let choices = WorkerChoices::default();
    let workers: BTreeMap<&str, Capability> =
        offered().map(|(name, door)| (name, (door.capability)(name, &choices))).collect();
    let is_known = |worker: &Worker| *worker == Worker::Native || workers.contains_key(worker.name());
    let mut all = listed(&workloads);
    all.retain(|method| is_known(&method.worker));
    let shown = all.iter().map(|method| {
        let state = match workers.get(method.worker.name()) {
            Some(of_worker) => of_worker.clone(),
            None => probe::probe_access(method.access, &directory),
        };
        Entry {
            name: name(method),
            meaning: method.meaning.clone(),
            calls: Some(method.calls.clone()),
            with: method.options.iter().map(|option| option.usage()).collect(),
            since: method.access.since().version(),
            available: state.is_available(),
            reason: state.reason().map(str::to_string),
        }
    });
    let methods = shown.collect();
    let entries = MethodOption::TABLE.iter().filter_map(|entry| {
        let takes = |method: &&ListedMethod| method.options.iter().any(|option| is_of(*option, entry));
        let with: Vec<String> = all.iter().filter(takes).map(name).collect();
        (!with.is_empty()).then(|| {
            let state = probe::probe_option(entry, &directory);
            Entry {
                name: entry.option.usage(),
                meaning: entry.meaning.replace('`', ""),
                calls: None,
                with,
                since: entry.since.version(),
                available: state.as_ref().is_none_or(Capability::is_available),
                reason: state.as_ref().and_then(Capability::reason).map(str::to_string),
            }
        })
    });
    let options = entries.collect();
    let has_methods = |methods: &[&str]| {
        methods.iter().all(|method| method.parse().is_ok_and(|method: Method| is_known(method.worker())))
    };
    let names = names::BROUGHT.iter().filter(|(_, methods)| has_methods(methods));
    let names = names.map(|(name, methods)| Name { name, methods }).collect();
    let registry = Registry { schema: 1, methods, options, names };
    let document = || document(&registry, arguments.question.as_deref());
    match arguments {
        MethodsArguments { json: true, .. } => json::write_one(&mut output::stdout(), &registry)?,
        MethodsArguments { markdown: true, .. } => document().markdown(&mut output::stdout())?,
        _ => output::lines(&document().lines(output::width()))?,
    }
    Ok(Exit::Answered)
}

fn name(method: &ListedMethod) -> String {
    match &method.worker {
        Worker::Native => method.word.to_string(),
        worker => format!("{worker}/{}", method.word),
    }
}

/// `prefetch` and `prefetch=N` share a name.
fn is_of(option: MethodOption, entry: &OptionEntry) -> bool {
    option.usage() == entry.option.usage()
}

/// The workloads of a question or of its own name.
fn workloads_of(name: &str) -> Result<Vec<Workload>> {
    if let Ok(workload) = name.parse() {
        return Ok(vec![workload]);
    }
    match question(name) {
        Some(text) => Ok(text?.workloads()),
        None => {
            let workloads: Vec<&str> = Workload::ALL.iter().map(|workload| workload.name()).collect();
            bail!(
                "'{name}' is neither a question ({}) nor a workload ({})",
                question_names(),
                workloads.join(", ")
            )
        }
    }
}

fn document(registry: &Registry, question: Option<&str>) -> Document {
    let of = question.map_or_else(String::new, |question| format!(" of {question}"));
    let usage = "METHOD[:OPTION[+OPTION...]], several with commas between them. All are available here unless a line says otherwise.";
    let facts = |entries: &[Entry]| Block::Facts(entries.iter().map(fact).collect());
    let mut body = vec![
        Block::heading(2, format!("Methods{of}")),
        Block::paragraph(usage),
        facts(&registry.methods),
        Block::heading(2, "Options"),
        facts(&registry.options),
    ];
    if question.is_none() {
        let names = registry.names.iter().map(|name| (name.name.to_string(), name.methods.join(", ")));
        body.extend([Block::heading(2, "Names from elsewhere"), Block::facts(names)]);
    }
    Document { body, ..Document::default() }
}

/// Meaning of an entry with what is behind it; the reason if it cannot be had; what it goes with.
fn fact(entry: &Entry) -> (String, Vec<String>) {
    let calls = entry.calls.iter().filter(|calls| !entry.meaning.contains(calls.as_str())).cloned();
    let behind: Vec<String> = calls.chain(entry.since.map(|version| format!("Linux {version}"))).collect();
    let behind = if behind.is_empty() { String::new() } else { format!(" [{}]", behind.join("; ")) };
    let mut lines = vec![format!("{}{behind}", entry.meaning)];
    lines.extend(entry.reason.iter().map(|reason| format!("not available here: {reason}")));
    if !entry.with.is_empty() {
        let relation = if entry.calls.is_some() { "takes" } else { "of" };
        lines.push(format!("{relation} {}", entry.with.join(" ")));
    }
    (entry.name.clone(), lines)
}
