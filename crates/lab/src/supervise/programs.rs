//! The programs of a run's workers: pagewise itself, one that an extra offers, or a command of the
//! user.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pagewise_model::shell_words::split_words;
use pagewise_model::{Plan, Worker, WorkerChoices, WorkerFound};
use pagewise_protocol::Wait;
use pagewise_sys::child;

use super::program::{Program, Stated};
use crate::worker_door;

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
            _ => offered(&name, typed, stop)?,
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
    let Some(command) = choices.commands.get(name) else {
        bail!("{}", worker_door::unknown(name, worker_door::offered()))
    };
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

fn offered(
    name: &str,
    choices: &WorkerChoices,
    stop: &AtomicBool,
) -> Result<(Result<Program, String>, WorkerFound)> {
    let doors = worker_door::offered();
    let Some(door) = worker_door::of(name, doors) else { bail!("{}", worker_door::unknown(name, doors)) };
    let mut found = WorkerFound { name: name.to_string(), ..WorkerFound::default() };
    let ready = match (door.ready)(name, choices, stop) {
        Ok(ready) => ready,
        Err(reason) => {
            found.unavailable = Some(reason.clone());
            return Ok((Err(reason), found));
        }
    };
    found.version = ready.version;
    found.notes = ready.notes;
    found.command = ready.program.command();
    Ok((Ok(Program::stated(ready.program)), found))
}
