//! One sample: conditions on, a worker, evidence around the measured region, checks.
//!
//! * [`program`], [`programs`]: which program each worker is;
//! * [`worker_warmup`]: a worker whose code is compiled as it runs is made ready;
//! * [`files`]: what is read, and the state of its page cache;
//! * [`accesses`]: the offset table of a cell and what its bytes must add up to;
//! * [`task`]: what a worker is given to do: that table, a whole pass, or records;
//! * [`setting`]: limits, caps and placement, held for a sample and undone;
//! * [`settings`]: settings of the kernel, set and put back;
//! * [`warming`]: the page cache as the cell asks for it;
//! * [`evidence`]: what is seen around the measured region;
//! * [`answer`]: what an honest worker takes to answer;
//! * [`visit`]: one worker's conversation;
//! * [`sample`]: the course of one sample.

pub mod accesses;
pub mod answer_time;
pub mod conditions;
pub mod evidence;
pub mod files;
pub mod kernel_settings;
pub mod memory_speed;
pub mod program;
pub mod programs;
pub mod sample;
pub mod task;
pub mod warming;
pub mod worker_session;
pub mod worker_warmup;
