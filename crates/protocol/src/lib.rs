//! What supervisor and worker say to each other. `workers/PROTOCOL.md` says it in full, for those who write a worker.
//!
//! * [`messages`]: each line, and what it holds;
//! * [`conversation`]: a worker process, its lines, and how it ended;
//! * [`claims`]: what a sample claims, and by which tolerances it is held to that.
//!
//! The engine answers with these messages, `run` and `conformance` ask with them, and a run file is judged by the same claims:
//! so they are a room of their own, above the words of the model and below all who speak.

pub mod claims;
pub mod conversation;
mod ending;
mod family;
pub mod messages;

pub use conversation::{Conversation, ConversationError, EXIT_PATIENCE, Wait};
pub use ending::died_of_sigbus;
pub use messages::{
    Beats, CallFailure, Go, Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply, Understood, Verify,
    inherited_path,
};
