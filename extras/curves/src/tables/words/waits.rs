//! Causes of waiting of the threads of a cell, as the rest of a sentence.

use crate::tables::{Cause, ThreadWaits};
use pagewise_model::format::{percent, times};

/// `both CPUs are busy (60 % of it in the kernel): nothing left to gain`.
pub fn waits(found: &ThreadWaits) -> String {
    let in_kernel = found
        .kernel_share
        .map_or_else(String::new, |share| format!(" ({} of it in the kernel)", percent(share)));
    let busy = found.cpu_share.map_or("an unknown share".to_string(), percent);
    match found.cause {
        Cause::CpusBusy if found.threads < found.cpus => {
            let run = if found.threads == 1 { "its thread runs" } else { "its threads run" };
            format!("{run} all the time{in_kernel}: the CPU limits it")
        }
        Cause::CpusBusy => {
            let all = match found.cpus {
                1 => "the CPU is".to_string(),
                2 => "both CPUs are".to_string(),
                cpus => format!("all {cpus} CPUs are"),
            };
            format!("{all} busy{in_kernel}: nothing left to gain")
        }
        Cause::Device => format!("it waits for the device ({busy} of the CPU time is used)"),
        Cause::OtherProcesses => format!(
            "its threads are runnable without a CPU for {} of the time while they use {busy} of the CPUs: other processes have them",
            percent(found.run_queue_share.unwrap_or(0.0))
        ),
        Cause::AnotherThread => format!(
            "it switches {} times per operation and neither CPU ({busy}) nor device is busy: it waits for another thread (a \
             lock), which counters do not identify",
            times(found.voluntary_switches_per_op.unwrap_or(0.0))
        ),
        Cause::Unknown => "its counters do not show what it waits for".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_comes_with_the_figures_that_show_it() {
        let of = |cause, threads, cpus| {
            waits(&ThreadWaits {
                cpus,
                cpu_share: Some(0.5),
                kernel_share: Some(0.6),
                run_queue_share: Some(0.3),
                wait_share: Some(0.2),
                voluntary_switches_per_op: Some(2.3),
                involuntary_switches_per_op: None,
                device_share: Some(0.0),
                cause,
                threads,
            })
        };
        let all = [
            (Cause::CpusBusy, 8, 1, "the CPU is busy (60 % of it in the kernel): nothing left to gain"),
            (Cause::CpusBusy, 8, 2, "both CPUs are busy (60 % of it in the kernel): nothing left to gain"),
            (Cause::CpusBusy, 8, 4, "all 4 CPUs are busy (60 % of it in the kernel): nothing left to gain"),
            (
                Cause::CpusBusy,
                1,
                2,
                "its thread runs all the time (60 % of it in the kernel): the CPU limits it",
            ),
            (
                Cause::CpusBusy,
                2,
                4,
                "its threads run all the time (60 % of it in the kernel): the CPU limits it",
            ),
            (Cause::Device, 8, 2, "it waits for the device (50 % of the CPU time is used)"),
            (
                Cause::OtherProcesses,
                8,
                2,
                "its threads are runnable without a CPU for 30 % of the time while they use 50 % of the CPUs: other processes have them",
            ),
            (
                Cause::AnotherThread,
                8,
                2,
                "it switches 2.30 times per operation and neither CPU (50 %) nor device is busy: it waits for another thread (a \
                 lock), which counters do not identify",
            ),
            (Cause::Unknown, 8, 2, "its counters do not show what it waits for"),
        ];
        for (cause, threads, cpus, text) in all {
            assert_eq!(of(cause, threads, cpus), text);
        }
    }
}
