//! One sample: conditions, a worker, evidence around the measured region, checks.
//!
//! * [`program`], [`programs`]: the program of each worker;
//! * [`worker_warmup`]: warm-up of a worker whose code is compiled as it runs;
//! * [`files`]: input files and the state of their page cache;
//! * [`accesses`]: the offset table of a cell, and the checksum of its reads;
//! * [`actor`]: another worker, at work beside the measured one, and its task;
//! * [`records`]: records of a writer, with their content;
//! * [`task`]: the task of a worker: that table, a whole pass, or records;
//! * [`conditions`]: limits, caps and placement, in force for one sample;
//! * [`kernel_settings`]: settings of the kernel, in force for a run;
//! * [`warming`]: the state of the page cache that the cell needs;
//! * [`memory_speed`]: bandwidth of the memory, as an upper bound of rates;
//! * [`evidence`]: counters around the measured region;
//! * [`answer_time`]: time that an honest worker takes to answer;
//! * [`worker_session`]: the conversation with one worker;
//! * [`follower`]: what an examination asks for and looks at besides;
//! * [`sample`]: one sample, from start to end.

pub mod accesses;
pub mod actor;
mod actor_task;
pub mod answer_time;
pub mod conditions;
mod dirty_polls;
pub mod evidence;
pub mod files;
pub mod follower;
pub mod kernel_settings;
pub mod memory_speed;
pub mod program;
pub mod programs;
pub mod records;
mod replays;
pub mod sample;
pub mod sample_round;
pub mod task;
pub mod warming;
pub mod worker_session;
pub mod worker_warmup;
