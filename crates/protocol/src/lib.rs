//! What supervisor and worker say to each other. `workers/PROTOCOL.md` says it in full, for those who write a worker.
//!
//! * [`messages`]: each line, and what it holds.
//!
//! The engine answers with these messages, `run` and `conformance` ask with them, and a run file is judged by the same claims:
//! so they are a room of their own, above the words of the model and below all who speak.

pub mod messages;

pub use messages::{
    BUCKET_SLACK, Beats, CallFailure, Go, Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply, Verify,
};
