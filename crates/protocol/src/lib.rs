//! The protocol between supervisor and worker. `workers/PROTOCOL.md` describes it in full, for
//! authors of workers.
//!
//! * [`messages`]: the lines and their fields;
//! * [`conversation`]: a worker, its lines, and its end;
//! * [`SamplingPolicy`] and [`PhaseBounds`]: the numbers by which samples are taken;
//! * [`claims`]: the claims of a sample and their tolerances.
//!
//! The engine answers with these messages, `run` and `conformance` send them, and a run file is
//! judged by the same claims. So they are a room of their own, above the model and below everything
//! that speaks.

pub mod claims;
pub mod conversation;
mod ending;
mod family;
pub mod messages;
mod peer;
mod sampling;
mod table_words;

pub use conversation::{
    Conversation, ConversationError, EXIT_PATIENCE, Wait, descriptor_path, inherited_path,
};
pub use ending::died_of_sigbus;
pub use family::without_adopting;
pub use messages::{
    CallFailure, Go, Heartbeats, Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply, Understood,
    Verify,
};
pub use sampling::{PhaseBounds, SamplingPolicy};
pub use table_words::READ_AHEAD_WORDS;
