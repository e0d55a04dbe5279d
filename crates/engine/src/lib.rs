//! The measured loops, and the native worker around them.
//!
//! * [`operations`]: the work of a thread, of any kind; a batch is one call;
//! * [`reader`]: reads at the offsets of a table, or of a whole file front to back, one file for
//!   each access;
//! * [`writer`]: records into a ring file;
//! * [`sampling`]: the activity of one thread between `go` and `sample`, with all clock readings;
//! * [`threads`]: the threads of a job;
//! * [`heartbeat`]: the heartbeat next to them, if requested;
//! * [`worker`]: the conversation with the supervisor.
//!
//! Nothing here decides whether a number is valid, and nothing in a timed region allocates, locks,
//! prints, formats or examines options.

pub mod clock;
mod consume;
mod effects;
pub mod failure;
mod file;
mod files;
pub mod heartbeat;
pub mod operations;
pub mod reader;
pub mod sampling;
pub mod threads;
pub mod worker;
pub mod writer;
