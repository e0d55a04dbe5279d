//! Cells of a run by method and conditions, and the pairs of sides that a test compares.

use pagewise_model::{CacheState, Cell, Conditions, Descriptor, DeviceCap, HostSettings, Numa, Role, Work};

use super::study::{Cells, Size, Test};
use crate::judge::collected::CellSamples;
use crate::judge::label::data_over_cache;

/// The cells of one case: those of each side, of which the best counts.
pub(super) struct Pair<'a> {
    pub(super) of: Vec<&'a CellSamples<'a>>,
    /// `None`: the quantity stands alone.
    pub(super) against: Option<Vec<&'a CellSamples<'a>>>,
}

/// The cases of a test among the cells of a run.
pub(super) fn pairs<'a>(test: &Test, cells: &'a [CellSamples<'a>]) -> Vec<Pair<'a>> {
    let matching = |side: &Cells, methods: &[String]| -> Vec<&'a CellSamples<'a>> {
        let matches = |one: &&CellSamples<'_>| {
            is_chosen(side, methods, one.cell, cells) && suits(&test.at, one.cell, cells)
        };
        cells.iter().filter(matches).collect()
    };
    let side = test.over.as_ref().or(test.minus.as_ref());
    let named = Named::on(&test.of, side);
    let groups = match test.of.best.is_empty() {
        true => matching(&test.of, &test.of.each).into_iter().map(|one| vec![one]).collect(),
        false => by_situation(matching(&test.of, &test.of.best), &named, cells),
    };
    let Some(side) = side else {
        return groups.into_iter().map(|of| Pair { of, against: None }).collect();
    };
    let against = |of: &[&CellSamples<'_>]| {
        let situation = Situation::of(of[0].cell, &named, cells);
        let own = [of[0].cell.method.to_string()];
        let methods = if side.best.is_empty() { &own[..] } else { &side.best[..] };
        let others = matching(side, methods);
        others.into_iter().filter(|other| Situation::of(other.cell, &named, cells) == situation).collect()
    };
    groups.into_iter().map(|of| Pair { against: Some(against(&of)), of }).collect()
}

/// The cells that a quantity is shown of.
pub(super) fn shown<'a>(side: &Cells, cells: &'a [CellSamples<'a>]) -> Vec<&'a CellSamples<'a>> {
    let methods: Vec<String> = side.each.iter().chain(&side.best).cloned().collect();
    cells.iter().filter(|one| is_chosen(side, &methods, one.cell, cells)).collect()
}

fn by_situation<'a>(
    matching: Vec<&'a CellSamples<'a>>,
    named: &Named,
    cells: &[CellSamples<'_>],
) -> Vec<Vec<&'a CellSamples<'a>>> {
    let mut groups: Vec<(Situation, Vec<&CellSamples<'_>>)> = Vec::new();
    for one in matching {
        let situation = Situation::of(one.cell, named, cells);
        match groups.iter_mut().find(|(known, _)| *known == situation) {
            Some((_, group)) => group.push(one),
            None => groups.push((situation, vec![one])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// True if `cell` is of one of these methods, and has the role and the conditions that a side names.
fn is_chosen(side: &Cells, methods: &[String], cell: &Cell, cells: &[CellSamples<'_>]) -> bool {
    let method = cell.method.to_string();
    let is_one = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, &method));
    is_one(methods)
        && !is_one(&side.but)
        && cell.role == side.role.unwrap_or(Role::Measured)
        && suits(side, cell, cells)
}

/// True if `text` is `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(after, &rest[at..]))
        }),
    }
}

/// True if the conditions of `cell` are those that a side names.
fn suits(side: &Cells, cell: &Cell, cells: &[CellSamples<'_>]) -> bool {
    let Cells { each: _, best: _, but: _, workload, cache, threads, data, record, device, numa, role: _ } =
        side;
    let conditions = &cell.conditions;
    let size = |size: &Size| {
        let (rank, sizes) = rank(cell, cells);
        match size {
            Size::Smallest => rank == 0,
            Size::Largest => rank + 1 == sizes,
        }
    };
    let has_record =
        |sizes: &Vec<_>| conditions.writes().is_some_and(|writes| sizes.contains(&writes.record_bytes));
    workload.is_none_or(|workload| conditions.workload() == workload)
        && cache.is_none_or(|cache| conditions.cache == cache)
        && threads.as_ref().is_none_or(|threads| threads.contains(&conditions.threads))
        && data.as_ref().is_none_or(size)
        && record.as_ref().is_none_or(has_record)
        && device.as_ref().is_none_or(|device| conditions.host_settings.device_cap == *device)
        && numa.is_none_or(|numa| conditions.host_settings.numa == Some(numa))
}

/// Sizes of data that differ by less are the same one: more threads leave a little less cache, of which sizes may be multiples.
const SAME_SIZE: f64 = 1.05;

/// The place of a cell's data among the sizes of a run, from the smallest, and their number. Under a memory limit the size is that
/// over the cache.
fn rank(cell: &Cell, cells: &[CellSamples<'_>]) -> (usize, usize) {
    let size =
        |conditions: &Conditions| data_over_cache(conditions).unwrap_or(conditions.span_bytes.0 as f64);
    let measured = cells.iter().map(|one| one.cell).filter(|one| one.role == Role::Measured);
    let mut sizes: Vec<f64> = measured.map(|one| size(&one.conditions)).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.dedup_by(|next, before| *next < *before * SAME_SIZE);
    let own = size(&cell.conditions);
    (sizes.iter().filter(|size| **size * SAME_SIZE <= own).count(), sizes.len())
}

/// Conditions that a test names on one of its sides, so that they may differ between them.
struct Named {
    work: bool,
    cache: bool,
    threads: bool,
    data: bool,
    device: bool,
    numa: bool,
}

impl Named {
    fn on(of: &Cells, against: Option<&Cells>) -> Self {
        let any = |is_named: fn(&Cells) -> bool| [Some(of), against].into_iter().flatten().any(is_named);
        Self {
            work: any(|side| side.workload.is_some() || side.record.is_some()),
            cache: any(|side| side.cache.is_some()),
            threads: any(|side| side.threads.is_some()),
            data: any(|side| side.data.is_some()),
            device: any(|side| side.device.is_some()),
            numa: any(|side| side.numa.is_some()),
        }
    }
}

/// Conditions that both sides of a case share.
#[derive(PartialEq)]
struct Situation {
    work: Option<Work>,
    cache: Option<CacheState>,
    threads: Option<u32>,
    rank: Option<usize>,
    device: Option<Option<DeviceCap>>,
    numa: Option<Option<Numa>>,
    descriptor: Descriptor,
    /// Settings that no side can name.
    settings: HostSettings,
}

impl Situation {
    fn of(cell: &Cell, named: &Named, cells: &[CellSamples<'_>]) -> Self {
        let conditions = &cell.conditions;
        Self {
            work: (!named.work).then_some(conditions.work),
            cache: (!named.cache).then_some(conditions.cache),
            threads: (!named.threads).then_some(conditions.threads),
            rank: (!named.data).then(|| rank(cell, cells).0),
            device: (!named.device).then_some(conditions.host_settings.device_cap),
            numa: (!named.numa).then_some(conditions.host_settings.numa),
            descriptor: conditions.descriptor,
            settings: HostSettings { device_cap: None, numa: None, ..conditions.host_settings.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, expected) in [
            ("mmap", "mmap", true),
            ("mmap", "mmap:buffer=1KiB", false),
            ("mmap:buffer=*", "mmap:buffer=1KiB", true),
            ("mmap:buffer=*", "mmap", false),
            ("*mmap*", "jvm/mmap:random", true),
            ("*", "", true),
            ("", "mmap", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
