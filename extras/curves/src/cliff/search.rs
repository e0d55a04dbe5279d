//! The crossings of a cliff: cells to add. First the window of each prefetching method, then the
//! middles of intervals.

#[cfg(test)]
pub mod simulation;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use pagewise_model::groups::by_key;
use pagewise_model::plan::CliffSearch;
use pagewise_model::run::Run;
use pagewise_model::{Cell, Method, Role};

use super::change::{self, Narrowing, OrderChange};
use super::group::CliffGroup;
use pagewise_analysis::judge::collected::collect;

/// Cells that halving may add to a group, without controls.
struct HalvingAllowance {
    /// Cells for each 100 of the grid.
    percent: usize,
    /// Cells in any case: enough for one pair of methods.
    least: usize,
}

/// From this tolerance, in thousandths, a search is to be short.
const COARSE_THOUSANDTHS: u32 = 100;
const COARSE: HalvingAllowance = HalvingAllowance { percent: 50, least: 8 };
const FINE: HalvingAllowance = HalvingAllowance { percent: 75, least: 20 };

/// Cells that halving may still add to a group.
fn affordable(group: &CliffGroup<'_>, search: &CliffSearch) -> usize {
    let (grid, added) = group.cell_counts();
    let allowance = if search.tolerance_thousandths >= COARSE_THOUSANDTHS { COARSE } else { FINE };
    (grid * allowance.percent / 100).max(allowance.least).saturating_sub(added)
}

/// Return the cells to add to a run whose cells have been sampled, none of which is in its plan
/// yet. None: its plan has no search, or nothing is left to find out, or to afford.
pub fn next(run: &Run) -> Vec<Cell> {
    let samples = collect(run);
    let plan = &run.header.plan;
    let Some(search) = &plan.search else { return Vec::new() };
    let groups = CliffGroup::all(run, &samples);
    let known: HashSet<String> = plan.cells.iter().map(Cell::id).collect();
    let new = |cells: Vec<Cell>| -> Vec<Cell> {
        cells.into_iter().filter(|cell| !known.contains(&cell.id())).collect()
    };
    let windows = new(groups.iter().flat_map(chosen_windows).collect());
    if !windows.is_empty() {
        return windows;
    }
    let page_bytes = run.header.environment.page_bytes;
    new(groups.iter().flat_map(|group| middles(group, search, page_bytes)).collect())
}

/// The chosen window of each prefetching method, at the spans of the grid without it.
fn chosen_windows(group: &CliffGroup<'_>) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for method in group.families.iter().filter_map(|family| family.chosen.as_ref()) {
        for span in group.grid().into_iter().filter(|span| group.member(method, *span).is_none()) {
            let conditions = group.conditions(span);
            cells.push(Cell { role: Role::Measured, method: method.clone(), conditions: conditions.clone() });
            // Its rivals were measured in earlier rounds: repeating one of them shows what has
            // changed since.
            if let Some(rival) = bridge(group, method, span) {
                let control = Cell { role: Role::Control, method: rival, conditions };
                if !cells.contains(&control) {
                    cells.push(control);
                }
            }
        }
    }
    cells
}

/// The fastest rival without a control at a span.
fn bridge(group: &CliffGroup<'_>, method: &Method, span: u64) -> Option<Method> {
    let rivals =
        group.methods().iter().copied().filter(|rival| *rival != method && !group.has_control(rival, span));
    let rates = rivals.filter_map(|rival| Some((rival, group.member(rival, span)?.median_rate()?)));
    rates.max_by(|left, right| left.1.total_cmp(&right.1)).map(|(rival, _)| rival.clone())
}

/// The next middles of every change in a group, as far as they can be afforded. Changes with the
/// same middle share its cells: measured later, one would need a span of its own.
fn middles(group: &CliffGroup<'_>, search: &CliffSearch, page_bytes: u64) -> Vec<Cell> {
    let tolerance = f64::from(search.tolerance_thousandths) / 1000.0;
    let changes = change::changes(group);
    let columns = by_key(changes.iter().filter_map(|change| {
        let Narrowing::Measure(span) = change.narrow(tolerance, group, page_bytes) else { return None };
        Some((span, change))
    }));
    let mut left = affordable(group, search);
    let mut cells: Vec<Cell> = Vec::new();
    for (span, sharing) in columns {
        let (column, halvings) = column(group, span, &sharing, tolerance, left);
        // Cells for the next steps of these changes are not spent on less important ones.
        let measured = column.iter().filter(|cell| cell.role == Role::Measured).count();
        left = left.saturating_sub(halvings.max(1) * measured);
        cells.extend(column);
    }
    cells
}

/// The methods of as many of these changes as `most` cells allow, with one control if the grid has
/// any, and the number of halvings that their intervals need.
fn column(
    group: &CliffGroup<'_>,
    span: u64,
    sharing: &[&OrderChange<'_>],
    tolerance: f64,
    most: usize,
) -> (Vec<Cell>, usize) {
    let cell = |role: Role, method: &Method| Cell {
        role,
        method: method.clone(),
        conditions: group.conditions(span),
    };
    let mut methods: Vec<&Method> = Vec::new();
    let mut halvings = 0;
    for change in sharing {
        let wanted = [change.before, change.after].into_iter().filter(|method| !methods.contains(method));
        let wanted: Vec<&Method> = wanted.collect();
        if methods.len() + wanted.len() <= most {
            methods.extend(wanted);
            halvings = halvings.max(change.halvings(tolerance));
        }
    }
    let control = methods.first().filter(|_| group.has_controls()).map(|method| cell(Role::Control, method));
    (methods.into_iter().map(|method| cell(Role::Measured, method)).chain(control).collect(), halvings)
}
