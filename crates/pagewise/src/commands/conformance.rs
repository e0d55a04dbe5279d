//! `pagewise conformance`: tells the author of a worker what is wrong with it, step by step.
//!
//! * [`ground`]: the files and the memory that it is tried on;
//! * [`examiner`]: leads jobs from open to closed;
//! * [`table`]: reads by a table and what they come to;
//! * [`meaning`]: whether a method does what its name says;
//! * [`reads`], [`passes`], [`records`], [`heart`], [`refusals`]: the trials;
//! * [`steps`]: how each went.
//!
//! Nothing is measured here. Files are small and cached, so what only shows on a cold file or under memory pressure stays
//! for the checks of a run.

mod arguments;
mod examiner;
mod ground;
mod heart;
mod meaning;
mod passes;
mod reads;
mod records;
mod refusals;
mod steps;
mod table;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use pagewise_host::mounted;
use pagewise_model::Workload;
use pagewise_protocol::{PROTOCOL_VERSION, Wait};

use super::begin::{claim, fresh_seed, stop_flag};
use super::{CommandEnd, CommandError};
pub use arguments::ConformanceArguments;
use examiner::Examiner;
use ground::Ground;
use steps::Steps;

/// Tries the worker.
pub fn conformance(arguments: &ConformanceArguments) -> Result<CommandEnd> {
    if let Some(missing) = mounted::proc_missing() {
        bail!("{missing}; a trial reaches its files by /proc, and looks there at what a worker does");
    }
    let stop = stop_flag()?;
    let state = claim()?.0;
    let directory = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let ground = Ground::make(&directory, state, fresh_seed(), &stop)?;
    let steps = Steps::new(!arguments.json);
    let wait = Wait { patience: Duration::from_secs(arguments.patience), stop: &stop };
    let mut examiner = Examiner::begin(&arguments.command, ground, steps, wait)?;
    if hello_is_whole(&mut examiner) {
        examine(&mut examiner, &stop);
    }
    end(&mut examiner);
    if stop.load(Ordering::Relaxed) {
        return Err(CommandError(anyhow!("it was stopped; the steps above are those taken")).into());
    }
    let Examiner { steps, hello, .. } = examiner;
    match steps.finish(&arguments.command, &hello.worker, &hello.version)? {
        true => Ok(CommandEnd::Done),
        false => Ok(CommandEnd::FellShort),
    }
}

/// Whether the hello is one that a conversation can follow.
fn hello_is_whole(examiner: &mut Examiner<'_>) -> bool {
    let hello = examiner.hello.clone();
    if hello.protocol != PROTOCOL_VERSION {
        let seen = format!("protocol is {}, pagewise speaks {PROTOCOL_VERSION}", hello.protocol);
        examiner.steps.wrong("the protocol", seen);
        examiner.steps.not_tried("everything else", "another protocol has other rules");
        return false;
    }
    let named = match (hello.worker.is_empty(), hello.version.is_empty()) {
        (true, _) => Err("worker is empty: say who you are".to_string()),
        (_, true) => Err("version is empty: it is recorded with each run".to_string()),
        _ => Ok(()),
    };
    examiner.steps.judge("names itself", named);
    let worker_warmup = match hello.worker_warmup {
        0 | 1 => Ok(()),
        other => Err(format!("worker_warmup is {other}: 0 or 1 is expected")),
    };
    examiner.steps.judge("says whether it needs warm-up", worker_warmup);
    let all: Vec<&str> = Workload::ALL.iter().flat_map(|workload| hello.methods(*workload)).collect();
    let wrong = all.iter().find_map(|text| meaning::of(&hello, text).err());
    let methods = match (all.is_empty(), wrong) {
        (true, _) => Err(
            "it has no method: name one under random-read, sequential-read, scan, append or fill in hello"
                .to_string(),
        ),
        (_, Some(wrong)) => Err(wrong),
        _ => Ok(()),
    };
    let whole = methods.is_ok();
    examiner.steps.judge("names its methods", methods);
    whole
}

/// All trials, as far as the worker can be talked to.
fn examine(examiner: &mut Examiner<'_>, stop: &AtomicBool) {
    let hello = examiner.hello.clone();
    let reading = [Workload::RandomRead, Workload::SequentialRead, Workload::Scan];
    let first = reading.iter().find_map(|workload| Some((*workload, *hello.methods(*workload).first()?)));
    for &workload in Workload::ALL {
        let methods = hello.methods(workload);
        if methods.is_empty() {
            examiner.steps.not_tried(workload.name(), "it has no method for it");
        }
        for text in methods {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let method = meaning::of(&hello, text).expect("they were read before");
            match workload {
                Workload::RandomRead | Workload::SequentialRead => {
                    reads::examine(examiner, workload, text, &method);
                }
                Workload::Scan => passes::examine(examiner, text, &method),
                Workload::Append | Workload::Fill => records::examine(examiner, workload, text, &method),
            }
        }
    }
    let Some((workload, text)) = first else {
        examiner.steps.not_tried("heartbeats, refusals", "it has no method that reads");
        return;
    };
    if stop.load(Ordering::Relaxed) {
        return;
    }
    heart::examine(examiner, workload, text);
    if workload != Workload::Scan {
        reads::examine_unknown_fields(examiner, workload, text);
    }
    end_of_stdin(examiner);
    refusals::examine(examiner, workload, text);
    for (workload, text) in each_word(&reading, examiner) {
        refusals::examine_short_file(examiner, workload, &text);
    }
}

/// The first method of each word that reads, since options change nothing of how a file ends.
fn each_word(reading: &[Workload], examiner: &Examiner<'_>) -> Vec<(Workload, String)> {
    let mut seen = BTreeSet::new();
    let all = reading.iter().flat_map(|workload| {
        examiner.hello.methods(*workload).into_iter().map(|text| (*workload, text.to_string()))
    });
    all.filter(|(_, text)| seen.insert(text.split(':').next().unwrap_or_default().to_string())).collect()
}

/// The worker that served all those jobs ends when stdin does.
fn end_of_stdin(examiner: &mut Examiner<'_>) {
    let name = "the end of stdin ends it, with status 0, and leaves no process";
    let outcome = match examiner.worker().map(|_| ()) {
        Ok(()) => examiner.end_worker(),
        Err(trouble) => Err(examiner.sentence(&trouble)),
    };
    examiner.steps.judge(name, outcome);
}

/// What is known only when all is done.
fn end(examiner: &mut Examiner<'_>) {
    examiner.let_go();
    let only_messages = match examiner.strays().first() {
        None => Ok(()),
        Some(stray) => {
            Err(format!("'{stray}' was printed too: a run would take it for an answer; log to stderr"))
        }
    };
    examiner.steps.judge("prints nothing but messages to stdout", only_messages);
}
