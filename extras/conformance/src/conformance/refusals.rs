//! Examination of jobs that cannot be done: unknown methods, missing files, files shorter than
//! claimed.

use std::os::unix::fs::FileExt;

use pagewise_lab::supervise::files::Input;
use pagewise_model::Content;
use pagewise_protocol::{ConversationError, Job, died_of_sigbus};

use super::examiner::Examiner;
use super::trial::Trial;

/// A method that no worker has.
const NO_METHOD: &str = "no-such-method";
/// Time in which a short file must be noticed.
const SAMPLE_NS: u64 = 200_000_000;
/// Actual and claimed size of a short file.
const SHORT_BYTES: u64 = 64 << 10;
const SHORT_CLAIMED_BYTES: u64 = 4 << 20;

/// End of a job that cannot be done.
enum Ended {
    /// `failed`.
    Failed(pagewise_protocol::CallFailure),
    /// SIGBUS.
    Sigbus,
    /// A sample nevertheless, with its operations.
    Sample(u64),
}

/// Examine an unknown method and a missing file; `plain` makes a job that reads.
pub fn examine(examiner: &mut Examiner<'_>, plain: &dyn Fn() -> Trial) {
    unknown_method(examiner, plain());
    missing_file(examiner, plain());
}

/// Examine a short file. Each access meets the end of a file in its own way.
pub fn examine_short_file(examiner: &mut Examiner<'_>, subject: &str, plain: Trial) {
    let name = format!("{subject}: a file that is shorter than said is noticed");
    let short = match short_file(examiner) {
        Ok(short) => short,
        Err(error) => return examiner.steps.not_tried(name, format!("{error:#}")),
    };
    let path = short.worker_path();
    let outcome = with_job(examiner, plain, move |job| {
        job.path = path.clone();
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

fn short_file(examiner: &mut Examiner<'_>) -> anyhow::Result<Input> {
    let new = examiner.files.sparse_file(SHORT_BYTES)?;
    let mut bytes = vec![0; SHORT_BYTES as usize];
    Content::Text.fill(1, 0, &mut bytes);
    new.file().write_all_at(&bytes, 0)?;
    Ok(new)
}

fn unknown_method(examiner: &mut Examiner<'_>, plain: Trial) {
    let name = "an unknown method is refused";
    let outcome = match with_job(examiner, plain, |job| job.method = NO_METHOD.to_string()) {
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

fn missing_file(examiner: &mut Examiner<'_>, plain: Trial) {
    let name = "a file that is not there is reported with call and errno";
    let path = match examiner.files.new_path() {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(error) => return examiner.steps.not_tried(name, format!("{error:#}")),
    };
    let missing = rustix::io::Errno::NOENT.raw_os_error();
    let outcome = match with_job(examiner, plain, move |job| job.path.clone_from(&path)) {
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
    plain: Trial,
    change: impl Fn(&mut Job) + 'static,
) -> Result<Ended, ConversationError> {
    examiner.drop_worker();
    let tried = examiner.converse(&Trial { sample_ns: SAMPLE_NS, change: Box::new(change), ..plain });
    match (tried.operations, tried.error) {
        (Some(operations), _) => Ok(Ended::Sample(operations)),
        (None, Some(ConversationError::Call(failure))) => Ok(Ended::Failed(failure)),
        (None, Some(ConversationError::Broken(failure))) if died_of_sigbus(&failure) => Ok(Ended::Sigbus),
        (None, Some(error)) => Err(error),
        (None, None) => unreachable!("a conversation that comes to its end has a sample"),
    }
}
