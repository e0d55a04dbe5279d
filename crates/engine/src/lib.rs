//! The measured loops, and the native worker around them.
//!
//! * [`reader`]: one file for each way to move bytes; a batch of reads is one call;
//! * [`sampling`]: what one thread does between `go` and `sample`: where the clocks are read;
//! * [`crew`]: the threads of a job;
//! * [`worker`]: the conversation with the supervisor.
//!
//! Nothing here decides whether a number is believable, and nothing in a timed region allocates, locks,
//! prints, formats or asks which options were chosen.

pub mod clock;
pub mod crew;
pub mod failure;
pub mod reader;
pub mod sampling;
pub mod worker;
