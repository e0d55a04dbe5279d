//! Named steps of a run, at which a test can end it, or let somebody else act.
//!
//! Builds with debug assertions, which are those of tests, read two variables of the environment.
//! `PAGEWISE_DIE_AT=STEP` ends the process by SIGKILL when it comes to that step;
//! `PAGEWISE_DIE_AT=STEP:3`, when it does so for the third time. `PAGEWISE_PAUSE_AT=STEP` stops it
//! by SIGSTOP each time, until somebody sends SIGCONT. A release build does neither.

#[cfg(debug_assertions)]
mod act;

macro_rules! steps {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// A step, in the order of a run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RunStep {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl RunStep {
            /// Every step.
            pub const ALL: &'static [RunStep] = &[$(RunStep::$variant,)+];

            /// The name in the variables.
            pub const fn name(self) -> &'static str {
                match self { $(RunStep::$variant => $name,)+ }
            }
        }
    };
}

steps! {
    /// The right to run is held, and what dead runs left is undone.
    Claimed = "claimed",
    /// The header of the run file is written; the file has no name yet, where the filesystem has
    /// files without one.
    HeaderWritten = "header-written",
    /// The run file has its name.
    RunFileMade = "run-file-made",
    /// The journal names what is about to be made.
    JournalWritten = "journal-written",
    /// The dataset exists, empty.
    DatasetBegun = "dataset-begun",
    /// Half of the dataset is written.
    DatasetHalfWritten = "dataset-half-written",
    /// The dataset is complete.
    DatasetMade = "dataset-made",
    /// A file to be written exists, empty.
    NewFileMade = "new-file-made",
    /// The value of a setting is recorded; the setting is not changed yet.
    SettingRecorded = "setting-recorded",
    /// A setting is changed.
    SettingChanged = "setting-changed",
    /// One directory of a group exists, without its limit.
    GroupBegun = "group-begun",
    /// The group of a worker is made.
    GroupMade = "group-made",
    /// A process within the group reads the file into the cache.
    Warming = "warming",
    /// The cache is in its state.
    CachePrepared = "cache-prepared",
    /// The worker runs, and nothing was asked of it.
    WorkerStarted = "worker-started",
    /// The worker is ready, and idle.
    WorkerReady = "worker-ready",
    /// The workload warms the cache further.
    Settling = "settling",
    /// An actor beside the worker is at its pace.
    ActorAtPace = "actor-at-pace",
    /// The device is capped.
    DeviceCapped = "device-capped",
    /// The worker has the message `go`.
    GoSent = "go-sent",
    /// The worker has answered.
    Answered = "answered",
    /// The worker has ended; a file that it wrote was not read back yet.
    WorkerEnded = "worker-ended",
    /// The sample is judged; the run file does not have it.
    SampleTaken = "sample-taken",
    /// The run file has the sample.
    SampleRecorded = "sample-recorded",
    /// A setting is restored; its record is still there.
    SettingRestored = "setting-restored",
    /// The run file has its end record; the dataset is gone.
    EndRecorded = "end-recorded",
}

/// Let a test act at this step.
pub fn reached(step: RunStep) {
    #[cfg(debug_assertions)]
    act::at(step);
    #[cfg(not(debug_assertions))]
    let _ = step;
}
