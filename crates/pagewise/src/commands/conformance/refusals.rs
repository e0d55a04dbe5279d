//! Trials of what a worker cannot do: unknown methods, files that are missing or shorter than said; and of its end.

use std::time::Duration;

use pagewise_model::{Content, Workload};
use pagewise_protocol::{Conversation, ConversationError, Go, Job, Wait, died_of_sigbus};

use super::examiner::Examiner;
use super::ground::{Removed, SHORT_BYTES, SHORT_SAID_BYTES, descriptor_path};
use super::{passes, reads};

/// No worker has it.
const NO_METHOD: &str = "no-such-method";
/// Until a short file is noticed.
const SAMPLE_NS: u64 = 200_000_000;
const WORK: Duration = Duration::from_secs(5);

/// How a job ended that cannot be done.
enum Ended {
    /// With `failed`.
    Failed(pagewise_protocol::CallFailure),
    /// By a SIGBUS.
    Sigbus,
    /// With a sample all the same.
    Sample(u64),
}

/// Tries them with a method that reads: `read` is the first one.
pub fn examine(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    unknown_method(examiner, workload);
    missing_file(examiner, workload, text);
}

/// Of every word that it has for reading, since each meets the end of a file in its own way.
pub fn examine_short_file(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    let name = format!("{workload} {text}: a file that is shorter than said is noticed");
    let short = match short_file(examiner) {
        Ok(short) => short,
        Err(error) => return examiner.steps.not_tried(name, format!("{error:#}")),
    };
    let outcome = with_job(examiner, workload, text, |job| {
        job.path = descriptor_path(short.file());
        job.file_bytes = SHORT_SAID_BYTES;
        job.span_bytes = SHORT_SAID_BYTES;
    });
    let outcome = match outcome {
        Ok(Ended::Failed(failure)) if failure.call.is_empty() || failure.detail.is_empty() => {
            Err("failed has no call or no detail: say what failed".to_string())
        }
        Ok(Ended::Failed(_) | Ended::Sigbus) => Ok(()),
        Ok(Ended::Sample(operations)) => Err(format!(
            "it claims {operations} operations on a file of which {SHORT_BYTES} bytes of {SHORT_SAID_BYTES} are there: a short \
             read is failed, with errno 0"
        )),
        Err(trouble) => Err(format!("{}: answer failed", examiner.sentence(&trouble))),
    };
    examiner.steps.judge(name, outcome);
    examiner.let_go();
}

fn short_file(examiner: &mut Examiner<'_>) -> anyhow::Result<Removed> {
    use std::os::unix::fs::FileExt;
    let new = Removed(examiner.ground.new_file(SHORT_BYTES)?);
    let mut bytes = vec![0; SHORT_BYTES as usize];
    Content::Text.fill(1, 0, &mut bytes);
    new.file().write_all_at(&bytes, 0)?;
    Ok(new)
}

fn unknown_method(examiner: &mut Examiner<'_>, workload: Workload) {
    let name = "an unknown method is refused";
    let outcome = match with_job(examiner, workload, NO_METHOD, |_| {}) {
        Ok(Ended::Failed(failure)) if failure.unavailable == 1 => Ok(()),
        Ok(Ended::Failed(failure)) => Err(format!(
            "failed has unavailable {}: of a method that it has not, it is 1",
            failure.unavailable
        )),
        Ok(Ended::Sigbus) => Err("it was killed by SIGBUS: answer failed with unavailable 1".to_string()),
        Ok(Ended::Sample(_)) => {
            Err(format!("it took the method '{NO_METHOD}': answer failed with unavailable 1"))
        }
        Err(trouble) => Err(format!("{}: answer failed with unavailable 1", examiner.sentence(&trouble))),
    };
    examiner.steps.judge(name, outcome);
    after_failed(examiner, name);
}

fn missing_file(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    let name = "a file that is not there is told with call and errno";
    let path = match examiner.ground.missing_path() {
        Ok(path) => path,
        Err(error) => return examiner.steps.not_tried(name, format!("{error:#}")),
    };
    let missing = rustix::io::Errno::NOENT.raw_os_error();
    let outcome = match with_job(examiner, workload, text, |job| job.path = path) {
        Ok(Ended::Failed(failure)) => match () {
            () if failure.errno != missing => {
                Err(format!("errno is {}, open(2) gives {missing} (ENOENT)", failure.errno))
            }
            () if failure.call.is_empty() => Err("failed has no call: name it as in the manual".to_string()),
            () if failure.detail.is_empty() => Err("failed has no detail: write one sentence".to_string()),
            () if failure.unavailable != 0 => {
                Err(format!("unavailable is {}: it should have worked, so it is 0", failure.unavailable))
            }
            () => Ok(()),
        },
        Ok(Ended::Sigbus) => Err("it was killed by SIGBUS: answer failed".to_string()),
        Ok(Ended::Sample(_)) => Err("it claims to have read it: answer failed".to_string()),
        Err(trouble) => Err(format!("{}: answer failed with call and errno", examiner.sentence(&trouble))),
    };
    examiner.steps.judge(name, outcome);
    after_failed(examiner, name);
}

/// After `failed`, the worker ends once stdin does.
fn after_failed(examiner: &mut Examiner<'_>, name: &str) {
    if let Some(outcome) = examiner.ends_after_failed() {
        examiner.steps.judge(format!("{name}, and it ends"), outcome);
    }
}

/// A job with something changed, in a worker of its own, as far as it goes.
fn with_job(
    examiner: &mut Examiner<'_>,
    workload: Workload,
    text: &str,
    change: impl FnOnce(&mut Job),
) -> Result<Ended, ConversationError> {
    let reading = match workload {
        Workload::Scan => None,
        _ => Some(reads::plain(examiner, workload, text).map_err(|(_, trouble)| trouble)?),
    };
    let mut job = match &reading {
        Some(reading) => reading.job.clone(),
        None => passes::plain(examiner, text),
    };
    change(&mut job);
    let wait = examiner.wait().and(WORK);
    let worker = examiner.fresh_worker()?;
    match lead(worker, &job, wait) {
        Ok(operations) => Ok(Ended::Sample(operations)),
        Err(ConversationError::Call(failure)) => Ok(Ended::Failed(failure)),
        Err(ConversationError::Broken(failure)) if died_of_sigbus(&failure) => Ok(Ended::Sigbus),
        Err(trouble) => Err(trouble),
    }
}

fn lead(worker: &mut Conversation, job: &Job, wait: Wait<'_>) -> Result<u64, ConversationError> {
    worker.open(job, wait)?;
    worker.ready(wait)?;
    let go = Go { first_operation: 0, sample_ns: SAMPLE_NS, latency_ns: 0 };
    worker.go(go, wait).map(|sample| sample.operations)
}
