//! Gaps between the reads of a file: the time from the end of one to the beginning of the next, in
//! which the program did something else. It computed, waited, wrote, or read another file.

use std::fmt;

use super::{DURATIONS, LONGEST_ENTRY, Trace};

/// Reason that the gaps between the reads of a file are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGaps {
    /// The trace has an earlier format.
    Format,
    /// The file was recorded in windows.
    Windows,
    /// A read has no duration.
    Unseen,
}

/// Gaps, in ns: from the latest end of what came before to its beginning, and 0 if that is not
/// later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Before each entry of the table.
    pub before_reads: Vec<u64>,
    /// Before each request to read ahead.
    pub before_read_ahead: Vec<u64>,
}

impl Gaps {
    /// All of them.
    pub fn each(&self) -> impl Iterator<Item = &u64> {
        self.before_reads.iter().chain(&self.before_read_ahead)
    }
}

impl fmt::Display for NoGaps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            NoGaps::Format => "the trace has an earlier format, without the durations of reads",
            NoGaps::Windows => {
                "the program was recorded in windows, which stop it, so its times are not its own"
            }
            NoGaps::Unseen => "the trace does not say how long each read took",
        })
    }
}

impl Trace {
    /// The gaps of the table of a file ([`Trace::table`]) that one thread walks. Nothing precedes
    /// the first read, and no gap is between the pieces of a long one.
    pub fn gaps(&self, file: u32) -> Result<Gaps, NoGaps> {
        if self.header.pagewise_trace < DURATIONS {
            return Err(NoGaps::Format);
        }
        if self.trailer.windows.is_some() {
            return Err(NoGaps::Windows);
        }
        let (mut gaps, mut ended_ns) = (Gaps::default(), None::<u64>);
        for access in self.in_order(file) {
            let took_ns = access.took_ns.ok_or(NoGaps::Unseen)?;
            let gap_ns = ended_ns.map_or(0, |ended_ns| access.time_ns.saturating_sub(ended_ns));
            if access.kind.is_ahead() {
                gaps.before_read_ahead.push(gap_ns);
            } else {
                let reads = &mut gaps.before_reads;
                reads.push(gap_ns);
                reads.resize(reads.len() + access.len.div_ceil(LONGEST_ENTRY) as usize - 1, 0);
            }
            ended_ns = ended_ns.max(Some(access.time_ns.saturating_add(took_ns)));
        }
        Ok(gaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::table::tests::trace;
    use crate::trace::{AccessKind, TraceAccess, WindowTally};

    /// A trace of reads of one file: when, for how long, by which thread.
    fn timed(reads: &[(u64, u64, u32)]) -> Trace {
        let untimed: Vec<_> = reads.iter().map(|(time_ns, _, thread)| (*time_ns, *thread, 0, 0)).collect();
        let mut trace = trace(&untimed);
        for (access, (_, took_ns, _)) in trace.accesses.iter_mut().zip(reads) {
            access.took_ns = Some(*took_ns);
        }
        trace
    }

    impl Trace {
        fn before_reads(&self) -> Result<Vec<u64>, NoGaps> {
            self.gaps(0).map(|gaps| gaps.before_reads)
        }
    }

    /// A request to read ahead is neither a gap nor a read.
    #[test]
    fn gaps_are_before_requests_too() {
        let mut trace = timed(&[(500, 100, 0), (1000, 1, 0), (2000, 1, 0)]);
        let request = |time_ns, took_ns| TraceAccess {
            time_ns,
            took_ns: Some(took_ns),
            kind: AccessKind::ReadAhead { mapped: false },
            ..trace.accesses[0]
        };
        trace.read_ahead = vec![request(700, 200), request(950, 10), request(3000, 5)];
        let gaps = trace.gaps(0).expect("gaps");
        assert_eq!(gaps.before_reads, [0, 40, 999]);
        assert_eq!(gaps.before_read_ahead, [100, 50, 999]);
        assert_eq!(gaps.each().sum::<u64>(), 40 + 999 + 100 + 50 + 999);
        trace.read_ahead[0].took_ns = None;
        assert_eq!(trace.gaps(0), Err(NoGaps::Unseen));
    }

    #[test]
    fn a_gap_is_from_the_end_of_a_read_to_the_next() {
        assert_eq!(
            timed(&[(500, 100, 0), (640, 7, 0), (647, 3, 0), (1000, 1, 0)]).before_reads(),
            Ok(vec![0, 40, 0, 350])
        );
        // One thread does the reads of two in the order of time: while one of them reads is no gap.
        assert_eq!(
            timed(&[(0, 100, 0), (10, 20, 1), (40, 5, 1), (130, 1, 0)]).before_reads(),
            Ok(vec![0, 0, 0, 30])
        );
        assert_eq!(timed(&[]).before_reads(), Ok(vec![]));
        assert_eq!(timed(&[(500, 100, 0)]).gaps(1), Ok(Gaps::default()), "of another file");
    }

    /// Durations that reach over the next read, or to the last moment, leave no gap.
    #[test]
    fn absurd_durations_leave_no_gap() {
        assert_eq!(
            timed(&[(5, 10_u64.pow(18), 0), (100, 1, 0), (200, 1, 0)]).before_reads(),
            Ok(vec![0, 0, 0])
        );
        assert_eq!(timed(&[(5, u64::MAX, 0), (u64::MAX, 1, 0)]).before_reads(), Ok(vec![0, 0]));
        assert_eq!(
            timed(&[(5, 1, 0), (10_u64.pow(18), 1, 0)]).before_reads(),
            Ok(vec![0, 10_u64.pow(18) - 6])
        );
    }

    #[test]
    fn a_long_read_has_no_gaps_within() {
        let mut trace = timed(&[(0, 10, 0), (30, 10, 0), (45, 1, 0)]);
        trace.accesses[1].len = 2 * LONGEST_ENTRY + 1;
        assert_eq!(trace.before_reads(), Ok(vec![0, 20, 0, 0, 5]));
        assert_eq!(trace.before_reads().map(|gaps| gaps.len() as u64), Ok(trace.entry_count(0)));
    }

    #[test]
    fn where_gaps_are_not_known_there_is_a_reason() {
        let known = timed(&[(0, 10, 0), (30, 10, 0)]);
        let mut unseen = known.clone();
        unseen.accesses[1].took_ns = None;
        assert_eq!(unseen.gaps(0), Err(NoGaps::Unseen));
        let mut touch = TraceAccess { file: 1, ..known.accesses[1] };
        touch.took_ns = None;
        let mut of_other = known.clone();
        of_other.accesses.push(touch);
        assert_eq!(of_other.before_reads(), Ok(vec![0, 20]), "another file has a touch");
        let mut windows = known.clone();
        windows.trailer.windows = Some(WindowTally::default());
        assert_eq!(windows.gaps(0), Err(NoGaps::Windows));
        let mut earlier = known;
        earlier.header.pagewise_trace = DURATIONS - 1;
        assert_eq!(earlier.gaps(0), Err(NoGaps::Format));
    }
}
