//! Advice for appends: the buffers that pay off, and the dirty bytes left when the last record is
//! written.

use pagewise_model::groups::by_key;
use pagewise_model::{Bytes, Conditions, Method};

use super::case::Case;
use super::given::Recommendation;
use super::note::{Buffers, FilesByBuffer, Lack, Note};
use crate::judge::cell::CellJudgement;
use crate::judge::verdict::{BOUND_LEVEL, FALSE_WINNERS, FEWEST_ROUNDS, SMALLEST_DIFFERENCE};
use crate::proof::measured::ops_per_second;
use crate::statistics::paired::PairedTest;

/// From this many bytes written by the device per byte appended, write amplification is reported.
const WRITTEN_AGAIN: f64 = 1.05;

/// The good buffers of each distinguishable family, and what applies to all writing.
pub(super) fn notes(case: &Case<'_>) -> Vec<Note> {
    let families = families(case);
    let mut notes: Vec<Note> = match case.recommended {
        None if !families.is_empty() => vec![Note::NoBuffer],
        _ => families.into_iter().map(|family| family.judge(case)).collect(),
    };
    notes.extend(notes_of_writes(case));
    notes
}

/// Notes that apply to all workloads that write.
pub(super) fn notes_of_writes(case: &Case<'_>) -> Vec<Note> {
    let syncs = case.compared.iter().filter_map(|cell| cell.syncs.as_ref()).find(|syncs| !syncs.is_durable);
    let not_durable = syncs.map(|syncs| Note::NotDurable { call: syncs.call, in_memory: syncs.in_memory });
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
    missing: Vec<Lack>,
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
            Some(_) => family.missing.push(Lack::FewRounds(cell.method.clone(), cell.samples)),
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
    /// The good buffers, if at least two have figures.
    fn judge(self, case: &Case<'_>) -> Note {
        let ns = |index: &usize| self.members[*index].ns;
        let best = (0..self.members.len()).min_by(|a, b| ns(a).total_cmp(&ns(b)));
        let Some(best) = best.filter(|_| self.members.len() > 1) else {
            return Note::NoBufferOf(self.base, self.missing);
        };
        let against = self.against(best, case);
        let good = |index: &usize| against[*index].bound.is_some_and(|bound| bound <= case.price);
        let first = (0..best).rev().take_while(good).last().unwrap_or(best);
        let last = (best..self.members.len()).take_while(good).last().unwrap_or(best);
        let outside = || (0..self.members.len()).filter(|index| !(first..=last).contains(index));
        let buffer = |index: usize| self.members[index].buffer;
        let (costs, open): (Vec<usize>, Vec<usize>) = outside().partition(|index| against[*index].is_behind);
        Note::Buffers(Buffers {
            smallest_bytes: buffer(first),
            largest_bytes: buffer(last),
            bound: against[first..=last].iter().filter_map(|member| member.bound).fold(0.0, f64::max),
            best_bytes: buffer(best),
            best_ns_per_op: self.members[best].ns,
            costs: costs.iter().map(|index| (buffer(*index), against[*index].ratio)).collect(),
            unclear_bytes: open.iter().map(|index| buffer(*index)).collect(),
            unclear_bounds: open.iter().map(|index| against[*index].bound).collect(),
            base: self.base,
            missing: self.missing,
        })
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
}

/// The bytes that have not reached the device when the clock stops.
fn debt(case: &Case<'_>) -> Option<Note> {
    let owed: Vec<(String, u64)> = case
        .ranked()
        .filter_map(|cell| Some((cell.method.clone(), cell.dirty_end_bytes.filter(|dirty| *dirty > 0)?)))
        .collect();
    (!owed.is_empty()).then(|| Note::StillDirty {
        of_bytes: case.comparison.conditions.conditions.file_bytes,
        every: owed.len() > 1 && owed.len() == case.ranked().count(),
        methods: owed,
    })
}

/// The intervals that took over a millisecond too long.
fn stalls(case: &Case<'_>) -> Option<Note> {
    let mut stalled: Vec<(String, u64, u64)> = case
        .ranked()
        .filter_map(|cell| Some((cell.method.clone(), cell.stalls?, cell.stall_longest_ns?)))
        .filter(|(.., longest)| *longest > 0)
        .collect();
    stalled.sort_by_key(|(.., longest)| std::cmp::Reverse(*longest));
    (!stalled.is_empty()).then_some(Note::Stalls(stalled))
}

/// Bytes that the device wrote per byte that reached the file, if syncs fall in the measured
/// region. A sync at the end falls after it, and writes at the kernel's discretion say nothing
/// about the method.
fn written_again(case: &Case<'_>) -> Option<Note> {
    case.comparison.conditions.conditions.writes().filter(|writes| writes.sync.is_measured())?;
    let ratio = |cell: &CellJudgement| {
        let reached = cell.evidence.as_ref()?.requested_bytes;
        Some(cell.device_written_bytes? as f64 / reached as f64).filter(|_| reached > 0)
    };
    let written: Vec<(String, f64)> = case
        .ranked()
        .filter_map(|cell| Some((cell.method.clone(), ratio(cell).filter(|ratio| *ratio >= WRITTEN_AGAIN)?)))
        .collect();
    (!written.is_empty()).then_some(Note::WrittenAgain(written))
}

/// For each size of record that was appended to files of several sizes: the smallest good buffer by
/// file size. Each note comes with the index of the last advice it is about.
pub(super) fn by_file_size(all: &[Recommendation]) -> Vec<(usize, Note)> {
    let alike = |advice: &Recommendation| {
        let mut conditions = advice.conditions.conditions.clone();
        (conditions.file_bytes, conditions.span_bytes) = (Bytes(0), Bytes(0));
        conditions
    };
    let buffered = all.iter().enumerate().filter(|(_, advice)| advice.buffers().next().is_some());
    let groups = by_key(buffered.map(|(index, advice)| (alike(advice), index)));
    let note = |(conditions, group): (Conditions, Vec<usize>)| {
        let last = *group.last()?;
        Some((last, of_file_sizes(&conditions, group.into_iter().map(|index| &all[index]))?))
    };
    groups.into_iter().filter_map(note).collect()
}

fn of_file_sizes<'a>(
    conditions: &Conditions,
    group: impl Iterator<Item = &'a Recommendation>,
) -> Option<Note> {
    let mut bases: Vec<(String, FilesByBuffer)> = Vec::new();
    for advice in group {
        for found in advice.buffers() {
            let index = bases.iter().position(|(base, _)| *base == found.base).unwrap_or_else(|| {
                bases.push((found.base.clone(), FilesByBuffer::new()));
                bases.len() - 1
            });
            let doubt = found.unclear_bytes.iter().any(|unclear| *unclear < found.smallest_bytes);
            let file = (advice.conditions.conditions.file_bytes, doubt);
            bases[index].1.entry(found.smallest_bytes).or_default().push(file);
        }
    }
    bases.retain(|(_, files)| files.values().map(Vec::len).sum::<usize>() > 1);
    (!bases.is_empty()).then_some(Note::BufferByFileSize(conditions.writes()?.record_bytes, bases))
}
