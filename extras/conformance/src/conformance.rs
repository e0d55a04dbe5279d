//! `pagewise conformance`: shows the author of a worker its faults, step by step.
//!
//! Jobs are held and judged as samples of a run are. Besides come [`refusals`] and what else no run
//! exercises.
//!
//! * [`reads`], [`passes`], [`records`]: the jobs;
//! * [`trial`]: what is looked at in a job, as steps;
//! * [`mistakes`]: known ones, by the checksums to which they lead;
//! * [`examiner`]: the worker, from its start to its end;
//! * [`test_files`]: small files of known content;
//! * [`steps`]: what is printed of it.
//!
//! Nothing is measured. Files are small and cached, so a fault of a cold file or under memory
//! pressure is left to the checks of a run.

mod arguments;
mod examiner;
mod mistakes;
mod passes;
mod reads;
mod records;
mod refusals;
mod steps;
mod test_files;
mod trial;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow};
use pagewise_host::mounted;
use pagewise_lab::begin::{claim, fresh_seed, stop_flag};
use pagewise_lab::exit::Exit;
use pagewise_model::work::OtherWorkers;
use pagewise_model::{Method, Offer, SyncCall, Worker, Workload, WorkloadKind};
use pagewise_protocol::{Hello, PROTOCOL_VERSION, Wait};

pub use arguments::ConformanceArguments;
use examiner::Examiner;
use steps::Steps;
use test_files::TestFiles;
use trial::Trial;

/// Interval of heartbeats, and time of many.
const HEARTBEAT_NS: u64 = 1_000_000;
const BEATING_NS: u64 = 50_000_000;

/// Examine the worker.
pub fn conformance(arguments: &ConformanceArguments) -> Result<Exit> {
    if let Some(missing) = mounted::proc_missing() {
        let reason =
            anyhow!("{missing}; a trial reaches its files by /proc, and looks there at what a worker does");
        return Err(Exit::NotMeasurable.because(reason));
    }
    let stop = stop_flag()?;
    let state = claim()?;
    let directory = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let files = TestFiles::make(&directory, state, fresh_seed(), &stop)?;
    let steps = Steps::new(!arguments.json);
    let wait = Wait { patience: Duration::from_secs(arguments.patience), stop: &stop };
    let mut examiner = Examiner::begin(&arguments.command, files, steps, wait)?;
    if hello_is_whole(&mut examiner) {
        examine(&mut examiner, &stop);
    }
    end(&mut examiner);
    if stop.load(Ordering::Relaxed) {
        return Err(Exit::Interrupted.because(anyhow!("it was stopped; the steps above are those taken")));
    }
    let Examiner { steps, hello, .. } = examiner;
    match steps.finish(&arguments.command, &hello.worker, &hello.version)? {
        true => Ok(Exit::Answered),
        false => Ok(Exit::FellShort),
    }
}

/// Check the hello; return true if jobs can follow.
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
    let calls = hello.sync_calls.split(',').map(str::trim).filter(|call| !call.is_empty());
    let wrong = calls.filter_map(|call| call.parse::<SyncCall>().err()).next();
    examiner.steps.judge("names its sync calls", wrong.map_or(Ok(()), Err));
    let all: Vec<&str> = Workload::ALL.iter().flat_map(|workload| hello.methods(*workload)).collect();
    let wrong = all.iter().find_map(|text| method_of(&hello, text).err());
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

/// Run all examinations, as far as the worker answers.
fn examine(examiner: &mut Examiner<'_>, stop: &AtomicBool) {
    let hello = examiner.hello.clone();
    let reading = [Workload::RandomRead, Workload::SequentialRead, Workload::Scan];
    let first = reading.iter().find_map(|workload| Some((*workload, *hello.methods(*workload).first()?)));
    for &workload in Workload::ALL {
        let methods = hello.methods(workload);
        if let Offer::Native { others: OtherWorkers::OfUsers, .. } = workload.facts().offer {
            // Few workers offer it.
            if !methods.is_empty() {
                examiner.steps.not_tried(
                    workload.name(),
                    "there is no job for it here: each sample of a run proves it",
                );
            }
            continue;
        }
        // Few workers update.
        if methods.is_empty() && matches!(workload.facts().offer, Offer::Column(_)) {
            examiner.steps.not_tried(workload.name(), "it has no method for it");
        }
        for text in methods {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let method = method_of(&hello, text).expect("they were read before");
            match workload.facts().kind {
                WorkloadKind::Reads => reads::examine(examiner, workload, text, &method),
                WorkloadKind::Scans => passes::examine(examiner, text, &method),
                WorkloadKind::Writes => records::examine(examiner, workload, text, &method),
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
    let plain = || plain(&hello, workload, text);
    let beating = Trial { heartbeat_ns: HEARTBEAT_NS, sample_ns: BEATING_NS, ..plain() };
    examiner.examine("heartbeats", &beating, Some("with heartbeats"));
    if workload != Workload::Scan {
        examiner.unknown_fields = true;
        examiner.examine("ignores fields that it does not know", &plain(), None);
        examiner.unknown_fields = false;
    }
    end_of_stdin(examiner);
    refusals::examine(examiner, &plain);
    for (workload, text) in each_word(&reading, examiner) {
        let plain = self::plain(&hello, workload, &text);
        refusals::examine_short_file(examiner, &format!("{workload} {text}"), plain);
    }
}

/// The simplest job of a method that reads.
fn plain(hello: &Hello, workload: Workload, text: &str) -> Trial {
    let method = method_of(hello, text).expect("they were read before");
    match workload {
        Workload::Scan => passes::plain(&method),
        _ => reads::plain(workload, &method),
    }
}

/// The method as pagewise parses it: a known one of a shipped worker, otherwise a name of the
/// user's own.
fn method_of(hello: &Hello, method: &str) -> Result<Method, String> {
    let shipped = Worker::of_name(&hello.worker).filter(|worker| !matches!(worker, Worker::Other(_)));
    let as_shipped = shipped.and_then(|worker| format!("{worker}/{method}").parse().ok());
    match as_shipped {
        Some(known) => Ok(known),
        None => format!("own/{method}").parse::<Method>().map_err(|error| error.to_string()),
    }
}

/// The first method of each word that reads: options do not change how a file ends.
fn each_word(reading: &[Workload], examiner: &Examiner<'_>) -> Vec<(Workload, String)> {
    let mut seen = BTreeSet::new();
    let all = reading.iter().flat_map(|workload| {
        examiner.hello.methods(*workload).into_iter().map(|text| (*workload, text.to_string()))
    });
    all.filter(|(_, text)| seen.insert(text.split(':').next().unwrap_or_default().to_string())).collect()
}

/// Record whether the worker that did all jobs ends with its stdin.
fn end_of_stdin(examiner: &mut Examiner<'_>) {
    let name = "the end of stdin ends it, with status 0, and leaves no process";
    let outcome = match examiner.worker().map(|_| ()) {
        Ok(()) => examiner.end_worker(),
        Err(error) => Err(examiner.sentence(&error)),
    };
    examiner.steps.judge(name, outcome);
}

/// End the worker, and record whether it printed only messages.
fn end(examiner: &mut Examiner<'_>) {
    examiner.drop_worker();
    let only_messages = match examiner.strays().first() {
        None => Ok(()),
        Some(stray) => {
            Err(format!("'{stray}' was printed too: a run would take it for an answer; log to stderr"))
        }
    };
    examiner.steps.judge("prints nothing but messages to stdout", only_messages);
}
