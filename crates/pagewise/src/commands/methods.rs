//! `pagewise methods`: every method and option, from the registries, and whether it is available
//! here.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use pagewise_host::files;
use pagewise_host::probe::{self, Capability};
use pagewise_host::toolchain;
use pagewise_model::method::options::{OptionEntry, Since};
use pagewise_model::method::{ListedMethod, listed, names};
use pagewise_model::{MethodOption, Untrusted, Worker, WorkerChoices, Workload};
use pagewise_report::json;
use pagewise_report::paragraph::paragraph;
use serde::Serialize;

use super::run;
use crate::arguments::MethodsArguments;
use crate::exit::Exit;
use crate::output;

/// Columns of a text that is read.
const WIDTH: usize = 100;

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
    let workers = toolchain::capabilities(&WorkerChoices::default());
    let all = listed(&workloads);
    let shown = all.iter().map(|method| {
        let state = match &method.worker {
            Worker::Native => probe::probe_access(method.access, &directory),
            worker => of_worker(&workers, worker),
        };
        let with = method.options.iter().map(|option| option.usage()).collect();
        let (meaning, calls) = (method.meaning.clone(), Some(method.calls.clone()));
        Entry::new(name(method), meaning, calls, with, method.access.since(), Some(&state))
    });
    let methods = shown.collect();
    let entries = MethodOption::TABLE.iter().filter_map(|entry| {
        let takes = |method: &&ListedMethod| method.options.iter().any(|option| is_of(*option, entry));
        let with: Vec<String> = all.iter().filter(takes).map(name).collect();
        (!with.is_empty()).then(|| {
            let state = probe::probe_option(entry, &directory);
            let meaning = entry.meaning.replace('`', "");
            Entry::new(entry.option.usage(), meaning, None, with, entry.since, state.as_ref())
        })
    });
    let options = entries.collect();
    let names = names::BROUGHT.iter().map(|(name, methods)| Name { name, methods }).collect();
    let registry = Registry { schema: 1, methods, options, names };
    let mut out = output::stdout();
    match arguments.json {
        true => json::write_one(&mut out, &registry)?,
        false => print(&registry, arguments.question.as_deref(), &mut out)?,
    }
    Ok(Exit::Answered)
}

impl Entry {
    fn new(
        name: String,
        meaning: String,
        calls: Option<String>,
        with: Vec<String>,
        since: Since,
        state: Option<&Capability>,
    ) -> Self {
        let available = state.is_none_or(Capability::is_available);
        let reason = state.and_then(Capability::reason).map(str::to_string);
        Self { name, meaning, calls, with, since: since.version(), available, reason }
    }
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

fn of_worker(workers: &[Capability], worker: &Worker) -> Capability {
    let name = format!("worker {worker}");
    workers.iter().find(|known| known.name == name).expect("doctor lists every shipped worker").clone()
}

/// The workloads of a question or of its own name.
fn workloads_of(name: &str) -> Result<Vec<Workload>> {
    if let Ok(workload) = name.parse() {
        return Ok(vec![workload]);
    }
    match run::question(name) {
        Some(text) => Ok(text?.workloads()),
        None => {
            let workloads: Vec<&str> = Workload::ALL.iter().map(|workload| workload.name()).collect();
            bail!(
                "'{name}' is neither a question ({}) nor a workload ({})",
                run::question_names(),
                workloads.join(", ")
            )
        }
    }
}

fn print(registry: &Registry, question: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    let of = question.map_or_else(String::new, |question| format!(" of {}", Untrusted(question)));
    writeln!(
        out,
        "Methods{of}: METHOD[:OPTION[+OPTION...]], several with commas between them.\nAll are available here unless a line says otherwise.\n"
    )?;
    let all = || registry.methods.iter().chain(&registry.options);
    let width = all().map(|shown| shown.name.len()).max().unwrap_or(0);
    for (heading, list) in [(None, &registry.methods), (Some("\nOptions\n"), &registry.options)] {
        heading.map_or(Ok(()), |heading| writeln!(out, "{heading}"))?;
        for shown in list {
            let calls = shown.calls.iter().filter(|calls| !shown.meaning.contains(calls.as_str())).cloned();
            let facts: Vec<String> =
                calls.chain(shown.since.map(|version| format!("Linux {version}"))).collect();
            let facts = if facts.is_empty() { String::new() } else { format!(" [{}]", facts.join("; ")) };
            writeln!(out, "  {:width$}  {}{facts}", shown.name, shown.meaning)?;
            let indent = " ".repeat(width + 4);
            if let Some(reason) = &shown.reason {
                paragraph(out, &indent, &format!("not available here: {reason}"), WIDTH)?;
            }
            if !shown.with.is_empty() {
                let relation = if shown.calls.is_some() { "takes" } else { "of" };
                paragraph(out, &indent, &format!("{relation} {}", shown.with.join(" ")), WIDTH)?;
            }
        }
    }
    if question.is_some() {
        return Ok(());
    }
    writeln!(out, "\nNames from elsewhere\n")?;
    for name in &registry.names {
        writeln!(out, "  {:width$}  {}", name.name, name.methods.join(", "))?;
    }
    Ok(())
}
