//! Overlap of the samples of several machines in time.

use super::timeline::SampleSpan;

/// Least part of a sample that lies within samples of the same method on every other machine, for
/// its rate to be in a sum. A rate is a mean over the sample, so otherwise it is mostly of a time
/// at which others did something else.
const LEAST_PART: f64 = 0.5;

/// An access beside what other machines measured at the same time. Times are of pairs of machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BesideTimes {
    /// Time at which every machine measured it.
    pub at_once_ns: u64,
    /// By the access of the other machine, in the same order.
    pub measured_ns: Vec<u64>,
    /// Time at which the other machine measured nothing: it prepared a sample.
    pub nothing_ns: u64,
}

/// The rates of an access on all machines at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SummedRates {
    /// Time of which they are.
    pub ns: u64,
    /// Bytes of that time by these rates.
    pub bytes: f64,
}

impl SummedRates {
    /// Bytes per second of all machines; `None` without time.
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.ns > 0).then(|| self.bytes * 1e9 / self.ns as f64)
    }
}

/// Each of so many accesses, and what was measured beside it.
pub fn beside(machines: &[Vec<SampleSpan>], accesses: usize) -> Vec<BesideTimes> {
    let none = BesideTimes { measured_ns: vec![0; accesses], ..BesideTimes::default() };
    let mut found = vec![none; accesses];
    sweep(
        machines,
        |_, span| (span.from_ns, span.until_ns),
        |ns, now| {
            let mut measuring = vec![0u64; accesses];
            machines
                .iter()
                .zip(now)
                .filter_map(|(spans, index)| Some(spans[(*index)?].access))
                .for_each(|access| measuring[access] += 1);
            let nothing = machines.len() as u64 - measuring.iter().sum::<u64>();
            for (access, one) in found.iter_mut().enumerate().filter(|(access, _)| measuring[*access] > 0) {
                let here = measuring[access];
                one.at_once_ns += if here == machines.len() as u64 { ns } else { 0 };
                let add = |sum: &mut u64, pairs: u64| *sum = sum.saturating_add(pairs.saturating_mul(ns));
                add(&mut one.nothing_ns, here * nothing);
                for (other, measured_ns) in one.measured_ns.iter_mut().enumerate() {
                    add(measured_ns, here * (measuring[other] - u64::from(other == access)));
                }
            }
        },
    );
    found
}

/// The sum of the rates of each of so many accesses, where all machines measured it at once for
/// certain: clocks are off by at most so many nanoseconds.
pub fn sums(machines: &[Vec<SampleSpan>], clock_errors_ns: &[u64], accesses: usize) -> Vec<SummedRates> {
    let certain = |machine: usize, span: &SampleSpan| {
        let error_ns = clock_errors_ns[machine];
        (span.from_ns.saturating_add(error_ns), span.until_ns.saturating_sub(error_ns))
    };
    let all_at_once = |now: &[Option<usize>]| {
        let mut of_all =
            machines.iter().zip(now).map(|(spans, index)| index.map(|index| spans[index].access));
        let first = of_all.next()??;
        of_all.all(|access| access == Some(first)).then_some(first)
    };
    let mut covered_ns: Vec<Vec<u64>> = machines.iter().map(|spans| vec![0; spans.len()]).collect();
    sweep(machines, certain, |ns, now| {
        if all_at_once(now).is_some() {
            let indices = covered_ns.iter_mut().zip(now).filter_map(|(of, index)| of.get_mut((*index)?));
            indices.for_each(|covered_ns| *covered_ns += ns);
        }
    });
    let mut sums = vec![SummedRates::default(); accesses];
    sweep(machines, certain, |ns, now| {
        let Some(access) = all_at_once(now) else { return };
        let of_each = machines.iter().zip(&covered_ns).zip(now).map(|((spans, covered_ns), index)| {
            let (span, covered_ns) = ((*index).map(|index| &spans[index])?, covered_ns[(*index)?]);
            let least_ns = span.until_ns.saturating_sub(span.from_ns) as f64 * LEAST_PART;
            span.bytes_per_second.filter(|_| covered_ns as f64 >= least_ns)
        });
        if let Some(rate) = of_each.sum::<Option<f64>>() {
            sums[access].ns += ns;
            sums[access].bytes += rate * ns as f64 / 1e9;
        }
    });
    sums
}

/// Visit the times between which no machine begins or ends a sample: their duration, and the index
/// of the sample of each machine.
fn sweep(
    machines: &[Vec<SampleSpan>],
    extent: impl Fn(usize, &SampleSpan) -> (u64, u64),
    mut visit: impl FnMut(u64, &[Option<usize>]),
) {
    let mut events = Vec::new();
    for (machine, spans) in machines.iter().enumerate() {
        for (index, span) in spans.iter().enumerate() {
            let (from_ns, until_ns) = extent(machine, span);
            if from_ns < until_ns {
                events.extend([(until_ns, false, machine, index), (from_ns, true, machine, index)]);
            }
        }
    }
    // A sample that begins as another one ends comes after it.
    events.sort_unstable();
    let mut now = vec![None; machines.len()];
    let mut since_ns = 0;
    for (at_ns, begins, machine, index) in events {
        if at_ns > since_ns && now.iter().any(Option::is_some) {
            visit(at_ns - since_ns, &now);
        }
        since_ns = at_ns;
        if begins {
            now[machine] = Some(index);
        } else if now[machine] == Some(index) {
            now[machine] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of one machine: what is measured, from and until when, and its rate.
    fn spans(all: &[(usize, u64, u64, f64)]) -> Vec<SampleSpan> {
        let of = |(access, from_ns, until_ns, rate): &(usize, u64, u64, f64)| SampleSpan {
            access: *access,
            from_ns: *from_ns,
            until_ns: *until_ns,
            bytes_per_second: Some(*rate).filter(|rate| *rate > 0.0),
        };
        all.iter().map(of).collect()
    }

    fn sum(machines: &[Vec<SampleSpan>], errors_ns: &[u64]) -> (u64, Option<f64>) {
        let sums = sums(machines, errors_ns, 2);
        assert_eq!(sums[1], SummedRates::default());
        (sums[0].ns, sums[0].bytes_per_second())
    }

    #[test]
    fn rates_add_up_where_all_measure_the_same() {
        let a = spans(&[(0, 100, 200, 5.0), (1, 300, 400, 50.0), (0, 500, 600, 7.0)]);
        let b = spans(&[(0, 120, 220, 1.0), (0, 300, 400, 100.0), (0, 500, 600, 3.0)]);
        // 80 ns of 6 B/s, and 100 ns of 10 B/s.
        let (ns, rate) = sum(&[a.clone(), b.clone()], &[0, 0]);
        assert_eq!(ns, 180);
        assert!((rate.expect("a sum") - (80.0 * 6.0 + 100.0 * 10.0) / 180.0).abs() < 1e-9, "{rate:?}");
        // Another machine that measured it only in the middle.
        let c = spans(&[(0, 500, 590, 2.0)]);
        assert_eq!(sum(&[a, b, c], &[0, 0, 0]), (90, Some(12.0)));
    }

    #[test]
    fn a_sample_that_was_mostly_alone_is_in_no_sum() {
        let a = spans(&[(0, 0, 100, 5.0)]);
        assert_eq!(sum(&[a.clone(), spans(&[(0, 51, 151, 1.0)])], &[0, 0]), (0, None));
        assert_eq!(sum(&[a.clone(), spans(&[(0, 50, 150, 1.0)])], &[0, 0]), (50, Some(6.0)));
        // Half of it in two parts.
        let twice = spans(&[(0, 10, 40, 1.0), (1, 40, 60, 1.0), (0, 60, 80, 4.0)]);
        let (ns, rate) = sum(&[a.clone(), twice], &[0, 0]);
        assert_eq!((ns, rate.map(|rate| (rate * 10.0).round())), (50, Some(72.0)));
        // Without a valid sample there is no rate, and with none at all no overlap.
        assert_eq!(sum(&[a.clone(), spans(&[(0, 0, 100, 0.0)])], &[0, 0]), (0, None));
        assert_eq!(sum(&[a, Vec::new()], &[0, 0]), (0, None));
    }

    #[test]
    fn what_clocks_may_be_off_is_not_certain() {
        let same = || spans(&[(0, 1000, 1100, 5.0)]);
        assert_eq!(sum(&[same(), same()], &[10, 20]), (60, Some(10.0)));
        assert_eq!(sum(&[same(), same()], &[10, 26]), (0, None), "48 of 100 are certain");
        assert_eq!(sum(&[same(), same()], &[10, 2000]), (0, None));
        assert_eq!(sum(&[same(), same()], &[u64::MAX, 0]), (0, None));
    }

    #[test]
    fn what_others_measured_meanwhile_is_known() {
        let a = spans(&[(0, 0, 100, 5.0), (1, 100, 200, 5.0)]);
        let b = spans(&[(0, 50, 150, 5.0)]);
        let c = spans(&[(1, 90, 110, 0.0)]);
        let found = beside(&[a, b, c], 2);
        // The first access: a from 0 to 100, b from 50 to 150, each beside two others.
        let of_first = BesideTimes { at_once_ns: 0, measured_ns: vec![100, 70 + 10], nothing_ns: 220 };
        assert_eq!(found[0], of_first);
        assert_eq!(found[0].measured_ns.iter().sum::<u64>() + found[0].nothing_ns, 2 * (100 + 100));
        // The second: a from 100 to 200, c from 90 to 110.
        assert_eq!(found[1].measured_ns.iter().sum::<u64>() + found[1].nothing_ns, 2 * (100 + 20));
        assert_eq!(found[1].measured_ns[1], 2 * 10);
    }
}
