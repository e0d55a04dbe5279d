//! Who follows the conversation about a sample: an examination of a worker asks for more than a
//! run, and looks at more.

use pagewise_host::OperationOrder;
use pagewise_protocol::{Conversation, Job, SampleReply};

/// Called at the steps of a conversation. By default it changes nothing, as in a run.
pub trait Follower {
    /// Complete the job.
    fn job(&self, _job: &mut Job) {}

    /// First operation and duration in ns of a `go` before the measured one; `None`: as the plan
    /// says.
    fn lead_in(&self) -> Option<(u64, u64)> {
        None
    }

    /// The worker is ready and waits.
    fn ready(&mut self, _worker: &Conversation) {}

    /// The worker has answered, and waits again. The `go` was from operation `first_operation` of
    /// this order on.
    fn sampled(&mut self, _reply: &SampleReply, _order: Option<&OperationOrder>, _first_operation: u64) {}

    /// The worker says that it did so many of these reads once more, and handed their bytes over.
    fn verified(&mut self, _reads: u64, _offsets: &[u64], _handed: &[u8]) {}
}

/// Follows nothing.
pub struct Unfollowed;

impl Follower for Unfollowed {}
