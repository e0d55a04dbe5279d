//! Whether the numbers of a sample agree with each other, with the job and with the clock outside.

use pagewise_protocol::{BUCKET_SLACK, SampleReply};

/// What a sample must agree with.
pub struct Asked {
    /// Threads of the job.
    pub threads: u32,
    /// Bytes of one operation.
    pub op_bytes: u64,
    /// How many operations there are to do; `None`: as many as the time allows.
    pub operations: Option<u64>,
    /// What passed between `go` and `sample` outside.
    pub wall_ns: u64,
}

/// The first of the sample's numbers that is wrong.
pub fn check(sample: &SampleReply, asked: &Asked) -> Result<(), String> {
    operations(sample, asked)?;
    time(sample, asked)?;
    latencies(sample)?;
    stalls(sample)
}

fn operations(sample: &SampleReply, asked: &Asked) -> Result<(), String> {
    let SampleReply { operations, latency_operations, thread_operations, bytes, .. } = sample;
    if *operations == 0 {
        return Err("operations is 0: do at least one".to_string());
    }
    let all = operations.saturating_add(*latency_operations);
    if thread_operations.len() as u64 != u64::from(asked.threads) {
        return Err(format!(
            "thread_operations has {} entries, threads is {}: one entry for each thread",
            thread_operations.len(),
            asked.threads
        ));
    }
    let by_thread = thread_operations.iter().fold(0u64, |total, of_thread| total.saturating_add(*of_thread));
    if by_thread != all {
        return Err(format!(
            "thread_operations {thread_operations:?} add up to {by_thread}, operations and latency_operations to {all}: \
             count both phases by thread"
        ));
    }
    if let Some(work) = asked.operations.filter(|work| *work != all) {
        return Err(format!("{all} operations were done, the job has {work}: do all of it, once"));
    }
    let asked_bytes = all.saturating_mul(asked.op_bytes);
    if *bytes != asked_bytes {
        return Err(format!(
            "bytes is {bytes}, {all} operations of {} bytes make {asked_bytes}: count both phases",
            asked.op_bytes
        ));
    }
    Ok(())
}

fn time(sample: &SampleReply, asked: &Asked) -> Result<(), String> {
    let SampleReply { operations, elapsed_ns, latency_operations, latency_elapsed_ns, .. } = sample;
    if *elapsed_ns == 0 {
        return Err(format!("elapsed_ns is 0, and {operations} operations were done"));
    }
    if (*latency_operations == 0) != (*latency_elapsed_ns == 0) {
        return Err(format!(
            "latency_operations is {latency_operations}, latency_elapsed_ns {latency_elapsed_ns}: both are 0 without a \
             latency phase, and neither with one"
        ));
    }
    let claimed = elapsed_ns.saturating_add(*latency_elapsed_ns);
    if claimed > asked.wall_ns {
        return Err(format!(
            "elapsed_ns and latency_elapsed_ns are {claimed} ns, only {} ns passed between go and sample: use a monotonic \
             clock, in nanoseconds",
            asked.wall_ns
        ));
    }
    Ok(())
}

fn latencies(sample: &SampleReply) -> Result<(), String> {
    let SampleReply { operations, latency_operations, latency_ns, latency_counts, .. } = sample;
    if latency_ns.len() != latency_counts.len() {
        return Err(format!(
            "latency_ns has {} entries, latency_counts {}: one count for each bucket",
            latency_ns.len(),
            latency_counts.len()
        ));
    }
    if !latency_ns.is_sorted_by(|left, right| left < right) {
        return Err("latency_ns is not ascending".to_string());
    }
    let timed = latency_counts.iter().fold(0u64, |total, count| total.saturating_add(*count));
    let (of, must_be_all) = match latency_operations {
        0 => (*operations, false),
        of_phase => (*of_phase, true),
    };
    if timed > of || (must_be_all && timed != of) {
        return Err(format!(
            "latency_counts add up to {timed}, {of} operations were timed one by one: count each once"
        ));
    }
    let phase_ns = if must_be_all { sample.latency_elapsed_ns } else { sample.elapsed_ns };
    let slowest = latency_ns.iter().zip(latency_counts).filter(|(_, count)| **count > 0).map(|(ns, _)| *ns);
    match slowest.max() {
        Some(slowest) if slowest as f64 > phase_ns as f64 * BUCKET_SLACK => Err(format!(
            "an operation took {slowest} ns of a phase of {phase_ns} ns: buckets are not wider than 1 %, and in nanoseconds"
        )),
        _ => Ok(()),
    }
}

fn stalls(sample: &SampleReply) -> Result<(), String> {
    let SampleReply { stalls, stall_longest_ns, elapsed_ns, .. } = sample;
    if (*stalls == 0) != (*stall_longest_ns == 0) {
        return Err(format!(
            "stalls is {stalls}, stall_longest_ns {stall_longest_ns}: both are 0 or neither is"
        ));
    }
    if stall_longest_ns > elapsed_ns {
        return Err(format!("stall_longest_ns is {stall_longest_ns}, longer than elapsed_ns {elapsed_ns}"));
    }
    Ok(())
}

/// Whether latencies were taken, of reads by a table that go on for as long as they are told.
pub fn timed_one_by_one(sample: &SampleReply) -> Result<(), String> {
    let timed: u64 = sample.latency_counts.iter().sum();
    if sample.latency_operations == 0 && timed != sample.operations {
        return Err(format!(
            "there was no latency phase, and {timed} latencies of {} operations: time all in the throughput phase if its \
             batches are of one operation, else go on for latency_ns with a clock around each",
            sample.operations
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn honest() -> (SampleReply, Asked) {
        let sample = SampleReply {
            operations: 10,
            elapsed_ns: 1000,
            latency_operations: 5,
            latency_elapsed_ns: 500,
            thread_operations: vec![8, 7],
            bytes: 150,
            latency_ns: vec![90, 110],
            latency_counts: vec![4, 1],
            ..SampleReply::default()
        };
        (sample, Asked { threads: 2, op_bytes: 10, operations: None, wall_ns: 2000 })
    }

    #[track_caller]
    fn told(change: impl FnOnce(&mut SampleReply), what: &str) {
        let (mut sample, asked) = honest();
        change(&mut sample);
        let seen = check(&sample, &asked).expect_err(what);
        assert!(seen.starts_with(what), "'{what}' is not told: {seen}");
    }

    #[test]
    fn each_number_that_is_wrong_is_told() {
        let (sample, asked) = honest();
        assert_eq!(check(&sample, &asked), Ok(()));
        assert_eq!(timed_one_by_one(&sample), Ok(()));
        told(|sample| sample.operations = 0, "operations is 0");
        told(|sample| sample.thread_operations = vec![15], "thread_operations has 1 entries");
        told(|sample| sample.thread_operations[0] += 1, "thread_operations [9, 7]");
        told(|sample| sample.bytes += 1, "bytes is 151");
        told(|sample| sample.elapsed_ns = 0, "elapsed_ns is 0");
        told(|sample| sample.elapsed_ns = 3000, "elapsed_ns and latency_elapsed_ns are 3500 ns");
        told(|sample| sample.latency_elapsed_ns = 0, "latency_operations is 5");
        told(|sample| sample.latency_counts.push(0), "latency_ns has 2");
        told(|sample| sample.latency_ns.reverse(), "latency_ns is not ascending");
        told(|sample| sample.latency_counts[0] += 1, "latency_counts add up to 6");
        told(|sample| sample.latency_ns[1] = 600, "an operation took 600 ns");
        told(|sample| sample.stalls = 1, "stalls is 1");
        told(|sample| (sample.stalls, sample.stall_longest_ns) = (1, 1001), "stall_longest_ns is 1001");
        let (sample, asked) = honest();
        let asked = Asked { operations: Some(16), ..asked };
        assert!(check(&sample, &asked).is_err_and(|seen| seen.contains("the job has 16")));
    }

    #[test]
    fn latencies_that_were_not_taken_are_told() {
        let (mut sample, _) = honest();
        (sample.latency_operations, sample.latency_elapsed_ns) = (0, 0);
        assert!(timed_one_by_one(&sample).is_err());
        sample.latency_counts = vec![9, 1];
        assert_eq!(timed_one_by_one(&sample), Ok(()));
    }
}
