//! The measured loops, and the native worker around them.
//!
//! * [`operations`]: what a thread does, whatever it is; a batch is one call;
//! * [`reader`]: reads at the offsets of a table, one file for each way to move bytes;
//! * [`scanner`]: a whole file, front to back;
//! * [`writer`]: records into a ring file;
//! * [`sampling`]: what one thread does between `go` and `sample`: where the clocks are read;
//! * [`crew`]: the threads of a job;
//! * [`heartbeat`]: what beats beside them, where that is asked for;
//! * [`worker`]: the conversation with the supervisor.
//!
//! Nothing here decides whether a number is believable, and nothing in a timed region allocates, locks,
//! prints, formats or asks which options were chosen.

pub mod clock;
mod consume;
pub mod crew;
mod effects;
pub mod failure;
mod file;
pub mod heartbeat;
pub mod operations;
pub mod reader;
pub mod sampling;
pub mod scanner;
pub mod worker;
pub mod writer;
