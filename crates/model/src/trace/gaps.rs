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
    /// The gap before each entry of the table of a file ([`Trace::table`]) that one thread walks,
    /// in ns: from the latest end of the reads before it to its beginning, and 0 if that is not
    /// later. Nothing precedes the first, and none is between the pieces of a long one.
    pub fn gaps(&self, file: u32) -> Result<Vec<u64>, NoGaps> {
        if self.header.pagewise_trace < DURATIONS {
            return Err(NoGaps::Format);
        }
        if self.trailer.windows.is_some() {
            return Err(NoGaps::Windows);
        }
        let (mut gaps, mut ended_ns) = (Vec::new(), None::<u64>);
        for access in self.reads_of(file) {
            let took_ns = access.took_ns.ok_or(NoGaps::Unseen)?;
            gaps.push(ended_ns.map_or(0, |ended_ns| access.time_ns.saturating_sub(ended_ns)));
            gaps.resize(gaps.len() + access.len.div_ceil(LONGEST_ENTRY) as usize - 1, 0);
            ended_ns = ended_ns.max(Some(access.time_ns.saturating_add(took_ns)));
        }
        Ok(gaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::table::tests::trace;
    use crate::trace::{FORMAT, TraceAccess, WindowTally};

    /// A trace of reads of one file: when, for how long, by which thread.
    fn timed(reads: &[(u64, u64, u32)]) -> Trace {
        let untimed: Vec<_> = reads.iter().map(|(time_ns, _, thread)| (*time_ns, *thread, 0, 0)).collect();
        let mut trace = trace(&untimed);
        for (access, (_, took_ns, _)) in trace.accesses.iter_mut().zip(reads) {
            access.took_ns = Some(*took_ns);
        }
        trace
    }

    #[test]
    fn a_gap_is_from_the_end_of_a_read_to_the_next() {
        assert_eq!(
            timed(&[(500, 100, 0), (640, 7, 0), (647, 3, 0), (1000, 1, 0)]).gaps(0),
            Ok(vec![0, 40, 0, 350])
        );
        // One thread does the reads of two in the order of time: while one of them reads is no gap.
        assert_eq!(
            timed(&[(0, 100, 0), (10, 20, 1), (40, 5, 1), (130, 1, 0)]).gaps(0),
            Ok(vec![0, 0, 0, 30])
        );
        assert_eq!(timed(&[]).gaps(0), Ok(vec![]));
        assert_eq!(timed(&[(500, 100, 0)]).gaps(1), Ok(vec![]), "of another file");
    }

    /// Durations that reach over the next read, or to the last moment, leave no gap.
    #[test]
    fn absurd_durations_leave_no_gap() {
        assert_eq!(timed(&[(5, 10_u64.pow(18), 0), (100, 1, 0), (200, 1, 0)]).gaps(0), Ok(vec![0, 0, 0]));
        assert_eq!(timed(&[(5, u64::MAX, 0), (u64::MAX, 1, 0)]).gaps(0), Ok(vec![0, 0]));
        assert_eq!(timed(&[(5, 1, 0), (10_u64.pow(18), 1, 0)]).gaps(0), Ok(vec![0, 10_u64.pow(18) - 6]));
    }

    #[test]
    fn a_long_read_has_no_gaps_within() {
        let mut trace = timed(&[(0, 10, 0), (30, 10, 0), (45, 1, 0)]);
        trace.accesses[1].len = 2 * LONGEST_ENTRY + 1;
        assert_eq!(trace.gaps(0), Ok(vec![0, 20, 0, 0, 5]));
        assert_eq!(trace.gaps(0).map(|gaps| gaps.len() as u64), Ok(trace.entry_count(0)));
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
        assert_eq!(of_other.gaps(0), Ok(vec![0, 20]), "another file has a touch");
        let mut windows = known.clone();
        windows.trailer.windows = Some(WindowTally::default());
        assert_eq!(windows.gaps(0), Err(NoGaps::Windows));
        let mut earlier = known;
        earlier.header.pagewise_trace = FORMAT - 1;
        assert_eq!(earlier.gaps(0), Err(NoGaps::Format));
    }
}
