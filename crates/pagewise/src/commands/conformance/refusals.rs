//! Examination of jobs that cannot be done: unknown methods, missing files, files shorter than claimed.

use std::time::Duration;

use pagewise_model::{Content, Workload};
use pagewise_protocol::{Conversation, ConversationError, Go, Job, Wait, descriptor_path, died_of_sigbus};

use super::examiner::Examiner;
use super::test_files::{SHORT_BYTES, SHORT_CLAIMED_BYTES, TemporaryFile};
use super::{passes, reads};

/// A method that no worker has.
const NO_METHOD: &str = "no-such-method";
/// Time in which a short file must be noticed.
const SAMPLE_NS: u64 = 200_000_000;
const WORK: Duration = Duration::from_secs(5);

/// End of a job that cannot be done.
enum Ended {
    /// `failed`.
    Failed(pagewise_protocol::CallFailure),
    /// SIGBUS.
    Sigbus,
    /// A sample nevertheless, with its operations.
    Sample(u64),
}

/// Examine an unknown method and a missing file; `text` is a method that reads.
pub fn examine(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    unknown_method(examiner, workload);
    missing_file(examiner, workload, text);
}

/// Examine a short file. Each access meets the end of a file in its own way.
pub fn examine_short_file(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    let name = format!("{workload} {text}: a file that is shorter than said is noticed");
    let short = match short_file(examiner) {
        Ok(short) => short,
        Err(error) => return examiner.steps.not_tried(name, format!("{error:#}")),
    };
    let outcome = with_job(examiner, workload, text, |job| {
        job.path = descriptor_path(short.file());
        job.file_bytes = SHORT_CLAIMED_BYTES;
        job.span_bytes = SHORT_CLAIMED_BYTES;
    });
    let outcome = match outcome {
        Ok(Ended::Failed(failure)) if failure.call.is_empty() || failure.detail.is_empty() => {
            Err("failed has no call or no detail: say what failed".to_string())
        }
        Ok(Ended::Failed(_) | Ended::Sigbus) => Ok(()),
        Ok(Ended::Sample(operations)) => Err(format!(
            "it claims {operations} operations on a file of which {SHORT_BYTES} bytes of {SHORT_CLAIMED_BYTES} are there: a short \
             read is failed, with errno 0"
        )),
        Err(error) => Err(format!("{}: answer failed", examiner.sentence(&error))),
    };
    examiner.steps.judge(name, outcome);
    examiner.drop_worker();
}

fn short_file(examiner: &mut Examiner<'_>) -> anyhow::Result<TemporaryFile> {
    use std::os::unix::fs::FileExt;
    let new = examiner.files.new_file(SHORT_BYTES)?;
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
        Err(error) => Err(format!("{}: answer failed with unavailable 1", examiner.sentence(&error))),
    };
    examiner.steps.judge(name, outcome);
    after_failed(examiner, name);
}

fn missing_file(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    let name = "a file that is not there is told with call and errno";
    let path = match examiner.files.missing_path() {
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
        Err(error) => Err(format!("{}: answer failed with call and errno", examiner.sentence(&error))),
    };
    examiner.steps.judge(name, outcome);
    after_failed(examiner, name);
}

/// Record whether the worker ends with its stdin after `failed`.
fn after_failed(examiner: &mut Examiner<'_>, name: &str) {
    if let Some(outcome) = examiner.ends_after_failed() {
        examiner.steps.judge(format!("{name}, and it ends"), outcome);
    }
}

/// Run a job with a change in a fresh worker.
fn with_job(
    examiner: &mut Examiner<'_>,
    workload: Workload,
    text: &str,
    change: impl FnOnce(&mut Job),
) -> Result<Ended, ConversationError> {
    let reading = match workload {
        Workload::Scan => None,
        _ => Some(reads::plain(examiner, workload, text).map_err(|(_, error)| error)?),
    };
    let mut job = match &reading {
        Some(reading) => reading.job.clone(),
        None => passes::plain(examiner, text),
    };
    change(&mut job);
    let wait = examiner.wait().and(WORK);
    let worker = examiner.fresh_worker()?;
    match run(worker, &job, wait) {
        Ok(operations) => Ok(Ended::Sample(operations)),
        Err(ConversationError::Call(failure)) => Ok(Ended::Failed(failure)),
        Err(ConversationError::Broken(failure)) if died_of_sigbus(&failure) => Ok(Ended::Sigbus),
        Err(error) => Err(error),
    }
}

fn run(worker: &mut Conversation, job: &Job, wait: Wait<'_>) -> Result<u64, ConversationError> {
    worker.open(job, wait)?;
    worker.ready(wait)?;
    let go = Go { sample_ns: SAMPLE_NS, ..Go::default() };
    worker.go(go, wait).map(|sample| sample.operations)
}
