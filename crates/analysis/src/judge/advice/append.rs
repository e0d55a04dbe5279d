//! Advice for appends: the buffers that pay off, and the dirty bytes left when the last record is
//! written.

use std::collections::BTreeSet;

use pagewise_model::{Bytes, Conditions, Method, Workload};

use super::case::Case;
use super::given::{Buffers, Recommendation};
use super::phrases::{capital, listed, slower};
use crate::judge::cell::CellJudgement;
use crate::judge::verdict::{BOUND_LEVEL, FALSE_WINNERS, FEWEST_ROUNDS, SMALLEST_DIFFERENCE};
use crate::proof::measured::ops_per_second;
use crate::statistics::paired::PairedTest;
use pagewise_model::format::{bytes, time, times};

/// From this many bytes written by the device per byte appended, write amplification is reported.
const WRITTEN_AGAIN: f64 = 1.05;

/// Return the good buffers of each distinguishable family, and notes.
pub(super) fn explain(case: &Case<'_>) -> (Vec<Buffers>, Vec<String>) {
    let families = families(case);
    let debts = notes_of_writes(case);
    if families.is_empty() {
        return (Vec::new(), debts);
    }
    if let Some(reason) = case.silence() {
        let silent = format!("No buffer is advised, because {reason}.");
        return (Vec::new(), std::iter::once(silent).chain(debts).collect());
    }
    let judged = || families.iter().map(|family| (family, family.judge(case)));
    let notes = judged().map(|(family, found)| match found {
        Some(found) => found.sentence,
        None => format!("{}: no buffer is advised, because {}.", family.base, listed(&family.missing)),
    });
    (judged().filter_map(|(_, found)| found).collect(), notes.chain(debts).collect())
}

/// Notes that apply to all workloads that write.
pub(super) fn notes_of_writes(case: &Case<'_>) -> Vec<String> {
    let not_durable = case.compared.iter().find_map(|cell| cell.syncs.as_ref()?.not_durable());
    [not_durable, debt(case), stalls(case), written_again(case)].into_iter().flatten().collect()
}

/// A buffer and the time of a record with it.
struct BufferCost<'a> {
    buffer: Bytes,
    cell: &'a CellJudgement,
    ns: f64,
}

/// A buffer compared with the best one.
struct AgainstBest {
    /// Time of a record over that with the best.
    ratio: f64,
    /// True if it costs more for certain.
    is_behind: bool,
    /// The most that it may cost more, as a share; `None` with too few rounds.
    bound: Option<f64>,
}

/// Methods that differ only in their buffer, the smallest first.
struct BufferFamily<'a> {
    base: String,
    members: Vec<BufferCost<'a>>,
    /// Number of requested buffers, with or without figures.
    buffers: usize,
    /// Reasons that some have no figures.
    missing: Vec<String>,
}

/// Families with several buffers.
fn families<'a>(case: &Case<'a>) -> Vec<BufferFamily<'a>> {
    let mut families: Vec<BufferFamily<'a>> = Vec::new();
    for cell in case.compared.iter().copied() {
        let Some((base, buffer)) = split(&cell.method) else { continue };
        let index = families.iter().position(|family| family.base == base).unwrap_or_else(|| {
            families.push(BufferFamily { base, members: Vec::new(), buffers: 0, missing: Vec::new() });
            families.len() - 1
        });
        let family = &mut families[index];
        family.buffers += usize::from(buffer.0 > 0);
        match cell.ns_per_op.filter(|_| case.not_ranked(cell).is_none()) {
            Some(ns) if cell.samples >= FEWEST_ROUNDS => {
                family.members.push(BufferCost { buffer, cell, ns: ns.median });
            }
            // It may be a rival for the verdict, but has too few rounds for an interval.
            Some(_) => family.missing.push(format!("{} has too few valid rounds", cell.method)),
            None => family.missing.extend(case.missing(&cell.method)),
        }
    }
    for family in &mut families {
        family.members.sort_by_key(|member| member.buffer);
    }
    families.retain(|family| family.buffers > 1);
    families
}

/// Split a method into its text without the buffer and the buffer size; 0 without one.
pub(super) fn split(method: &str) -> Option<(String, Bytes)> {
    let method: Method = method.parse().ok()?;
    Some((method.without_buffer().to_string(), method.buffer().unwrap_or(Bytes(0))))
}

impl BufferFamily<'_> {
    /// `None` if fewer than two have figures.
    fn judge(&self, case: &Case<'_>) -> Option<Buffers> {
        if self.members.len() < 2 {
            return None;
        }
        let best =
            (0..self.members.len()).min_by(|a, b| self.members[*a].ns.total_cmp(&self.members[*b].ns))?;
        let against = self.against(best, case);
        let good = |index: &usize| against[*index].bound.is_some_and(|bound| bound <= case.price);
        let first = (0..best).rev().take_while(good).last().unwrap_or(best);
        let last = (best..self.members.len()).take_while(good).last().unwrap_or(best);
        let outside = || (0..self.members.len()).filter(|index| !(first..=last).contains(index));
        let buffer = |index: usize| self.members[index].buffer;
        let (costs, open): (Vec<usize>, Vec<usize>) = outside().partition(|index| against[*index].is_behind);
        let words = |index: &usize| match against[*index].bound {
            Some(bound) => format!("{} is {}", with(buffer(*index)), slower(bound)),
            None => format!("{} has too few rounds", with(buffer(*index))),
        };
        let unclear: Vec<Bytes> = open.iter().map(|index| buffer(*index)).collect();
        let behind: Vec<String> = costs
            .iter()
            .map(|index| format!("{} costs {}x", with(buffer(*index)), times(against[*index].ratio)))
            .chain(open.iter().map(words))
            .collect();
        let mut found = Buffers {
            base: self.base.clone(),
            smallest_bytes: buffer(first),
            largest_bytes: buffer(last),
            bound: against[first..=last].iter().filter_map(|member| member.bound).fold(0.0, f64::max),
            best_bytes: buffer(best),
            best_ns_per_op: self.members[best].ns,
            unclear_bytes: unclear,
            sentence: String::new(),
        };
        found.sentence = self.sentence(&found, &behind);
        Some(found)
    }

    /// Each member compared with the best, by the records alone.
    fn against(&self, best: usize, case: &Case<'_>) -> Vec<AgainstBest> {
        let cost = |member: &BufferCost<'_>| {
            case.paired(self.members[best].cell, member.cell, ops_per_second).unwrap_or_default()
        };
        let mut costs: Vec<Vec<f64>> = self.members.iter().map(cost).collect();
        // The best is no rival of itself.
        costs.remove(best);
        let claims = costs.len();
        let test = PairedTest::new(costs, case.comparison.inflation);
        let rival = |rival: usize| AgainstBest {
            ratio: test.estimate(rival).exp(),
            is_behind: test.estimate(rival) > SMALLEST_DIFFERENCE.ln_1p()
                && test.exceeds(rival, 0.0, FALSE_WINNERS / 2.0 / claims as f64),
            bound: test.upper_end(rival, 1.0 - BOUND_LEVEL).map(|most| most.exp_m1().max(0.0)),
        };
        let mut against: Vec<AgainstBest> = (0..claims).map(rival).collect();
        against.insert(best, AgainstBest { ratio: 1.0, is_behind: false, bound: Some(0.0) });
        against
    }

    fn sentence(&self, found: &Buffers, behind: &[String]) -> String {
        let (smallest, largest) = (found.smallest_bytes, found.largest_bytes);
        let best = format!("the best ({} a record)", time(found.best_ns_per_op));
        let within = format!("{} than {best}", slower(found.bound));
        let unclear_below = found.unclear_bytes.iter().any(|unclear| *unclear < smallest);
        let known = if unclear_below { "buffer known to be good" } else { "good buffer" };
        let of = format!("{} (by the records alone, without set-up)", self.base);
        let lead = match (smallest.0, smallest == largest) {
            (_, true) if !found.unclear_bytes.is_empty() => {
                let leads = with(smallest);
                format!("{of}: {leads} is ahead ({} a record)", time(found.best_ns_per_op))
            }
            (0, true) => format!("{of}: no buffer is {best}"),
            (0, false) => {
                format!(
                    "{of}: no buffer is needed: without one and up to {} all are {within}",
                    bytes(largest)
                )
            }
            (_, true) => format!("{of}: a buffer of {} is {best}", bytes(smallest)),
            (_, false) => format!(
                "{of}: the smallest {known} is {}: from it to {} all are {within}",
                bytes(smallest),
                bytes(largest)
            ),
        };
        let behind = (!behind.is_empty()).then(|| behind.join(", "));
        let parts: Vec<String> =
            [Some(lead), behind].into_iter().flatten().chain(self.missing.iter().cloned()).collect();
        format!("{}.", parts.join("; "))
    }
}

/// A buffer as a phrase.
fn with(buffer: Bytes) -> String {
    if buffer.0 == 0 { "no buffer".to_string() } else { bytes(buffer) }
}

/// Sentence about the bytes that have not reached the device when the clock stops.
fn debt(case: &Case<'_>) -> Option<String> {
    let of = bytes(case.comparison.conditions.conditions.file_bytes);
    let owed: Vec<(u64, &CellJudgement)> = case
        .ranked()
        .filter_map(|cell| Some((cell.dirty_end_bytes.filter(|dirty| *dirty > 0)?, cell)))
        .collect();
    let least = bytes(owed.iter().map(|(dirty, _)| *dirty).min()? as f64);
    let most = bytes(owed.iter().map(|(dirty, _)| *dirty).max()? as f64);
    let dirty = if least == most { most } else { format!("from {least} to {most}") };
    let methods: Vec<String> = owed.iter().map(|(_, cell)| cell.method.clone()).collect();
    Some(format!(
        "{} of {of} are still dirty at the end with {}: they have not reached the device.",
        capital(&dirty),
        among(&methods, case.ranked().count())
    ))
}

/// Methods by name, or "all".
fn among(methods: &[String], of: usize) -> String {
    if methods.len() == of && of > 1 { "every method".to_string() } else { listed(methods) }
}

/// Sentence about the intervals that took over a millisecond too long.
fn stalls(case: &Case<'_>) -> Option<String> {
    let mut stalled: Vec<(u64, u64, &str)> = case
        .ranked()
        .filter_map(|cell| Some((cell.stall_longest_ns?, cell.stalls?, cell.method.as_str())))
        .filter(|(longest, ..)| *longest > 0)
        .collect();
    stalled.sort_by_key(|(longest, ..)| std::cmp::Reverse(*longest));
    let words: Vec<String> = stalled
        .iter()
        .map(|(longest, count, method)| {
            // The count is a median over samples.
            let often = if *count > 0 { format!("{count} a sample") } else { "in some samples".to_string() };
            format!("{method} {often}, the longest {}", time(*longest as f64))
        })
        .collect();
    (!words.is_empty()).then(|| format!("Stalls over 1 ms: {}.", words.join("; ")))
}

/// Sentence about bytes that the device wrote per byte that reached the file, if syncs fall in the
/// measured region. A sync at the end falls after it, and writes at the kernel's discretion say
/// nothing about the method.
fn written_again(case: &Case<'_>) -> Option<String> {
    case.comparison.conditions.conditions.writes().filter(|writes| writes.sync.is_measured())?;
    let ratio = |cell: &CellJudgement| {
        let reached = cell.evidence.as_ref()?.requested_bytes;
        Some(cell.device_written_bytes? as f64 / reached as f64).filter(|_| reached > 0)
    };
    let words: Vec<String> = case
        .ranked()
        .filter_map(|cell| Some((ratio(cell).filter(|ratio| *ratio >= WRITTEN_AGAIN)?, cell)))
        .map(|(ratio, cell)| format!("{} {} B", cell.method, times(ratio)))
        .collect();
    (!words.is_empty()).then(|| {
        format!("Written to the device by any process, per byte that reached the file: {}.", words.join(", "))
    })
}

/// For each size of record that was appended to files of several sizes: the smallest good buffer by
/// file size. Each sentence comes with the index of the last advice it is about.
pub(super) fn by_file_size(all: &[Recommendation]) -> Vec<(usize, String)> {
    let alike = |advice: &Recommendation| {
        let mut conditions = advice.conditions.conditions.clone();
        (conditions.file_bytes, conditions.span_bytes) = (Bytes(0), Bytes(0));
        conditions
    };
    let advised: Vec<(usize, Conditions, &Recommendation)> = all
        .iter()
        .enumerate()
        .filter(|(_, advice)| {
            advice.conditions.conditions.workload() == Workload::Append && !advice.buffers.is_empty()
        })
        .map(|(index, advice)| (index, alike(advice), advice))
        .collect();
    let mut done: Vec<&Conditions> = Vec::new();
    let mut sentences = Vec::new();
    for (_, conditions, _) in &advised {
        if done.contains(&conditions) {
            continue;
        }
        done.push(conditions);
        let group: Vec<(usize, &Recommendation)> = advised
            .iter()
            .filter(|(_, other, _)| other == conditions)
            .map(|(index, _, advice)| (*index, *advice))
            .collect();
        if let Some(sentence) = of_file_sizes(conditions, &group) {
            sentences.push((group.last().map_or(0, |(index, _)| *index), sentence));
        }
    }
    sentences
}

fn of_file_sizes(conditions: &Conditions, group: &[(usize, &Recommendation)]) -> Option<String> {
    let record = bytes(conditions.writes()?.record_bytes);
    let buffers =
        || group.iter().flat_map(|(_, advice)| advice.buffers.iter().map(move |found| (*advice, found)));
    let mut bases: Vec<&str> = Vec::new();
    for (_, found) in buffers() {
        if !bases.contains(&found.base.as_str()) {
            bases.push(&found.base);
        }
    }
    let mut words = Vec::new();
    for base in bases {
        let of_base: Vec<(Bytes, &Buffers)> = buffers()
            .filter(|(_, found)| found.base == base)
            .map(|(advice, found)| (advice.conditions.conditions.file_bytes, found))
            .collect();
        if of_base.len() > 1 {
            words.push(format!("of {base} is {}", by_size(&of_base)));
        }
    }
    (!words.is_empty()).then(|| {
        format!(
            "{}.",
            capital(&format!("for records of {record} the smallest good buffer {}", words.join("; that ")))
        )
    })
}

/// `4 KiB at 10 MiB and 100 MiB, 16 KiB at 1 GiB`.
fn by_size(found: &[(Bytes, &Buffers)]) -> String {
    let smallest: BTreeSet<Bytes> = found.iter().map(|(_, found)| found.smallest_bytes).collect();
    let at = |smallest: &Bytes| {
        let files: Vec<String> = found
            .iter()
            .filter(|(_, found)| found.smallest_bytes == *smallest)
            .map(|(file, found)| {
                let doubt = found.unclear_bytes.iter().any(|unclear| unclear < smallest);
                format!("{}{}", bytes(*file), if doubt { " (a smaller one is unclear)" } else { "" })
            })
            .collect();
        format!("{} at {}", with(*smallest), listed(&files))
    };
    smallest.iter().map(at).collect::<Vec<_>>().join(", ")
}
