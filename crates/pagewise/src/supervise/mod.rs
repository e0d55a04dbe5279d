//! One sample: conditions on, a worker, evidence around the measured region, checks.
//!
//! * [`worker`]: the process and its lines, with time-outs;
//! * [`files`]: what is read, and the state of its page cache;
//! * [`accesses`]: the offset table of a cell and what its bytes must add up to;
//! * [`answer`]: what an honest worker takes to answer;
//! * [`sample`]: the course of one sample.

pub mod accesses;
pub mod answer;
pub mod files;
pub mod sample;
pub mod worker;
