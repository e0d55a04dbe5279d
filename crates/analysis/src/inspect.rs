//! Conclusions from an inspection: files that threads waited for, never how much another method
//! would gain.

use schemars::JsonSchema;
use serde::Serialize;

use pagewise_model::inspection::{By, Inspection};

/// Waits are worth a sentence from this share of a thread's time on.
pub const LEAST_SHARE: f64 = 0.1;

/// Threads that waited for a file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WaitFinding {
    /// Index of the file in [`Inspection::files`].
    pub file: usize,
    /// The kind of wait.
    pub by: By,
    /// Indices of the threads in [`Inspection::threads`], the one that waited for the largest share
    /// of its time first.
    pub threads: Vec<usize>,
    /// The largest share of a thread's time.
    pub most: f64,
    /// The smallest one of these threads.
    pub least: f64,
}

/// The findings, the largest share first. Of a watch that lost records there are none.
pub fn findings(inspection: &Inspection) -> Vec<WaitFinding> {
    let mut found: Vec<WaitFinding> = Vec::new();
    if !inspection.complete {
        return found;
    }
    let waits =
        inspection.threads.iter().enumerate().flat_map(|(index, thread)| {
            thread.waits.iter().map(move |wait| (index, wait, thread.share(wait)))
        });
    let mut waits: Vec<_> = waits.filter(|(_, _, share)| *share >= LEAST_SHARE).collect();
    waits.sort_by(|(_, _, one), (_, _, other)| other.total_cmp(one));
    for (index, wait, share) in waits {
        match found.iter_mut().find(|finding| (finding.file, finding.by) == (wait.file, wait.by)) {
            Some(finding) => {
                finding.threads.push(index);
                finding.least = share;
            }
            None => {
                let (file, by) = (wait.file, wait.by);
                found.push(WaitFinding { file, by, threads: vec![index], most: share, least: share });
            }
        }
    }
    found
}
