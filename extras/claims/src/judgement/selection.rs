//! Cells of a run by method and conditions, and the pairs of sides that a test compares.

use pagewise_analysis::judge::collected::CellSamples;
use pagewise_analysis::judge::label::data_over_cache;
use pagewise_model::groups::by_key;
use pagewise_model::{CacheState, Cell, Conditions, Descriptor, DeviceCap, HostSettings, Numa, Role, Work};

use super::study::{Cells, SizeRank, Test};

/// The cells of one case: those of each side, of which the best counts.
pub(super) struct Pair<'a> {
    pub(super) of: Vec<&'a CellSamples<'a>>,
    /// `None`: the quantity stands alone.
    pub(super) against: Option<Vec<&'a CellSamples<'a>>>,
}

/// The cells of a run, and the sizes of their data.
pub(super) struct RunCells<'a> {
    cells: &'a [CellSamples<'a>],
    /// From the smallest; under a memory limit over the cache.
    sizes: Vec<f64>,
}

/// Sizes of data that differ by less are the same one: more threads leave a little less cache, of
/// which sizes may be multiples.
const SAME_SIZE: f64 = 1.05;

impl<'a> RunCells<'a> {
    pub(super) fn of(cells: &'a [CellSamples<'a>]) -> Self {
        let measured = cells.iter().map(|one| one.cell).filter(|one| one.role == Role::Measured);
        let mut sizes: Vec<f64> = measured.map(|one| size(&one.conditions)).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        sizes.dedup_by(|next, before| *next < *before * SAME_SIZE);
        Self { cells, sizes }
    }

    /// The cases of a test.
    pub(super) fn pairs(&self, test: &Test) -> Vec<Pair<'a>> {
        let side = test.over.as_ref().or(test.minus.as_ref());
        let named = Named::on(&test.of, side);
        let matching = |side: &Cells, methods: &[String]| -> Vec<&'a CellSamples<'a>> {
            let is_at = |one: &&CellSamples<'_>| self.suits(&test.at, one.cell);
            self.chosen(side, methods).into_iter().filter(is_at).collect()
        };
        let groups = match test.of.best.is_empty() {
            true => matching(&test.of, &test.of.each).into_iter().map(|one| vec![one]).collect(),
            false => self.by_situation(matching(&test.of, &test.of.best), &named),
        };
        let Some(side) = side else {
            return groups.into_iter().map(|of| Pair { of, against: None }).collect();
        };
        let against = |of: &[&CellSamples<'_>]| {
            let situation = self.situation(of[0].cell, &named);
            let own = [of[0].cell.method.to_string()];
            let methods = if side.best.is_empty() { &own[..] } else { &side.best[..] };
            let others = matching(side, methods).into_iter();
            others.filter(|other| self.situation(other.cell, &named) == situation).collect()
        };
        groups.into_iter().map(|of| Pair { against: Some(against(&of)), of }).collect()
    }

    /// The cells that a quantity is shown of.
    pub(super) fn shown(&self, side: &Cells) -> Vec<&'a CellSamples<'a>> {
        let methods: Vec<String> = side.each.iter().chain(&side.best).cloned().collect();
        self.chosen(side, &methods)
    }

    /// Cells of one of these methods that have the role and the conditions that a side names.
    fn chosen(&self, side: &Cells, methods: &[String]) -> Vec<&'a CellSamples<'a>> {
        let is_chosen = |one: &&CellSamples<'_>| {
            let method = one.cell.method.to_string();
            let is_one = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, &method));
            is_one(methods)
                && !is_one(&side.but)
                && one.cell.role == side.role.unwrap_or(Role::Measured)
                && self.suits(side, one.cell)
        };
        self.cells.iter().filter(is_chosen).collect()
    }

    fn by_situation(
        &self,
        matching: Vec<&'a CellSamples<'a>>,
        named: &Named,
    ) -> Vec<Vec<&'a CellSamples<'a>>> {
        let groups = by_key(matching.into_iter().map(|one| (self.situation(one.cell, named), one)));
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// True if the conditions of `cell` are those that a side names.
    fn suits(&self, side: &Cells, cell: &Cell) -> bool {
        let Cells { each: _, best: _, but: _, workload, cache, threads, data, record, device, numa, role: _ } =
            side;
        let conditions = &cell.conditions;
        let is_size = |size: &SizeRank| match size {
            SizeRank::Smallest => self.rank(cell) == 0,
            SizeRank::Largest => self.rank(cell) + 1 == self.sizes.len(),
        };
        let has_record =
            |sizes: &Vec<_>| conditions.writes().is_some_and(|writes| sizes.contains(&writes.record_bytes));
        workload.is_none_or(|workload| conditions.workload() == workload)
            && cache.is_none_or(|cache| conditions.cache == cache)
            && threads.as_ref().is_none_or(|threads| threads.contains(&conditions.threads))
            && data.as_ref().is_none_or(is_size)
            && record.as_ref().is_none_or(has_record)
            && device.as_ref().is_none_or(|device| conditions.host_settings.device_cap == *device)
            && numa.is_none_or(|numa| conditions.host_settings.numa == Some(numa))
    }

    /// The place of a cell's data among the sizes of the run.
    fn rank(&self, cell: &Cell) -> usize {
        let own = size(&cell.conditions);
        self.sizes.iter().filter(|size| **size * SAME_SIZE <= own).count()
    }

    fn situation(&self, cell: &Cell, named: &Named) -> Situation {
        let conditions = &cell.conditions;
        Situation {
            work: (!named.work).then_some(conditions.work),
            cache: (!named.cache).then_some(conditions.cache),
            threads: (!named.threads).then_some(conditions.threads),
            rank: (!named.data).then(|| self.rank(cell)),
            device: (!named.device).then_some(conditions.host_settings.device_cap),
            numa: (!named.numa).then_some(conditions.host_settings.numa),
            descriptor: conditions.descriptor,
            settings: HostSettings { device_cap: None, numa: None, ..conditions.host_settings.clone() },
        }
    }
}

fn size(conditions: &Conditions) -> f64 {
    data_over_cache(conditions).unwrap_or(conditions.span_bytes.0 as f64)
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
