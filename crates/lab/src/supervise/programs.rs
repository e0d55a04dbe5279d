//! The programs of a run's workers: pagewise itself, one built with the user's toolchain, or a
//! command of the user.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pagewise_host::toolchain::{self, Language};
use pagewise_model::method::names;
use pagewise_model::shell_words::split_words;
use pagewise_model::{Plan, Worker, WorkerChoices, WorkerFound};
use pagewise_protocol::Wait;
use pagewise_sys::child;
use rustix::fs::{MemfdFlags, memfd_create};

use super::program::{Program, Stated};

/// Time limit of a worker's hello before the run.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);

/// The programs of a run.
pub struct Programs {
    own: Program,
    others: BTreeMap<String, Result<Program, String>>,
}

impl Programs {
    /// Programs of a plan with native methods only; tests replace pagewise itself by another `own`.
    pub fn only(own: Program) -> Self {
        Self { own, others: BTreeMap::new() }
    }

    /// True if nothing but pagewise and what it ships works for a plan.
    pub fn are_shipped(&self, plan: &Plan) -> bool {
        let mut workers = plan.cells.iter().map(|cell| cell.method.worker());
        matches!(self.own, Program::Own) && workers.all(|worker| Worker::SHIPPED.contains(worker))
    }

    /// The program of `worker`, or the reason that there is none.
    pub fn of(&self, worker: &Worker) -> Result<&Program, &str> {
        match (worker, self.others.get(worker.name())) {
            (Worker::Native, _) => Ok(&self.own),
            // A plan with a worker that nobody named is refused.
            (_, None) => Err("it was not looked for"),
            (_, Some(found)) => found.as_ref().map_err(String::as_str),
        }
    }
}

/// Find and build the workers of the plan's methods, and describe each. Only commands that the user
/// typed are executed: the choices in a plan may come from a run file, and are ignored.
pub fn find(
    plan: &Plan,
    typed: &WorkerChoices,
    own: Program,
    stop: &AtomicBool,
) -> Result<(Programs, Vec<WorkerFound>)> {
    let mut programs = Programs::only(own);
    let mut all_found = Vec::new();
    for worker in plan.workers() {
        let name = worker.name().to_string();
        let (program, found) = match worker {
            Worker::Native => continue,
            Worker::Other(_) => named(&name, typed, stop)?,
            _ => shipped(&name, typed, stop)?,
        };
        all_found.push(found);
        programs.others.insert(name, program);
    }
    Ok((programs, all_found))
}

fn named(
    name: &str,
    choices: &WorkerChoices,
    stop: &AtomicBool,
) -> Result<(Result<Program, String>, WorkerFound)> {
    let Some(command) = choices.commands.get(name) else { bail!("{}", unnamed(name)) };
    let command = split_words(command).with_context(|| format!("the command of the worker {name}"))?;
    let Some((program, arguments)) = command.split_first() else {
        bail!("the worker {name} has no command; write --worker {name}=COMMAND");
    };
    let program = Program::stated(Stated::new(program, arguments));
    let version = name_and_version(&program, stop);
    Ok((Ok(program), WorkerFound { name: name.to_string(), version, command, ..WorkerFound::default() }))
}

/// Name and version of a worker; empty if it does not answer, which its samples will explain.
fn name_and_version(program: &Program, stop: &AtomicBool) -> String {
    let started = program.start(|command| Ok(child::die_with_parent(command)));
    let greeted = started.and_then(|mut worker| worker.greet(Wait { patience: HELLO_PATIENCE, stop }));
    greeted.map_or(String::new(), |hello| format!("{} {}", hello.worker, hello.version).trim().to_string())
}

/// Message about a worker of a plan that the command line does not name.
pub fn unnamed(name: &str) -> String {
    if let Some(worker) = names::worker_of(name) {
        let instead =
            if worker.has_runtime() { format!("{worker}/METHOD") } else { "METHOD alone".to_string() };
        return format!(
            "no worker is called '{name}': write {instead}; a command of your own is named with --worker {name}=COMMAND"
        );
    }
    format!(
        "no worker is called '{name}': there are native, jvm, go and python; name the command of your own with \
         --worker {name}=COMMAND"
    )
}

fn shipped(
    name: &str,
    choices: &WorkerChoices,
    stop: &AtomicBool,
) -> Result<(Result<Program, String>, WorkerFound)> {
    let language = Language::of_name(name).context("a worker that is shipped has a language")?;
    let built = toolchain::find(language, choices).and_then(|found| toolchain::build(&found, choices, stop));
    let mut found = WorkerFound { name: name.to_string(), ..WorkerFound::default() };
    let built = match built {
        Ok(built) => built,
        Err(missing) => {
            found.unavailable = Some(missing.to_string());
            return Ok((Err(missing.to_string()), found));
        }
    };
    let mut stated = Stated::built(&built);
    if language == Language::Jvm && choices.heartbeat_ns > 0 {
        let memory = memfd_create("pagewise-safepoints", MemfdFlags::empty());
        stated.log_safepoints(memory.context("memory for the log of safepoints cannot be had")?);
    }
    found.version = built.version;
    found.notes = built.notes;
    found.command = stated.command();
    Ok((Ok(Program::stated(stated)), found))
}
