//! The cells of a plan as a summary: how many of what, what all of them share, and short lists of
//! what differs.

use pagewise_analysis::judge::label::{LabelPart, shared, texts_of};
use pagewise_model::format::counted;
use pagewise_model::groups::{by_key, distinct};
use pagewise_model::{Cell, Conditions, Plan, Role};
use pagewise_report::document::Block;

/// The number of cells of a role that carries no verdict, and their methods; `None` without any.
pub(super) fn beside(plan: &Plan, role: Role) -> Option<String> {
    let cells: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.role == role).collect();
    let methods = distinct(cells.iter().map(|cell| cell.method.to_string()));
    (!cells.is_empty()).then(|| format!("{}: {}", counted(cells.len() as u64, "cell"), methods.join(", ")))
}

/// The parts of labels that all measured cells share.
pub(super) fn common(plan: &Plan) -> Vec<String> {
    let measured = plan.cells.iter().filter(|cell| cell.role == Role::Measured);
    shared(measured.map(|cell| &cell.conditions))
}

/// The measured cells: a heading and lists for each set of methods.
pub(super) fn measured(plan: &Plan, common: &[String]) -> Vec<Block> {
    groups(plan).iter().flat_map(|group| group.blocks(common)).collect()
}

/// Conditions under which the same methods are measured.
struct Group<'a> {
    methods: Vec<String>,
    conditions: Vec<&'a Conditions>,
}

/// The measured cells, by their methods.
fn groups(plan: &Plan) -> Vec<Group<'_>> {
    let measured = plan.cells.iter().filter(|cell| cell.role == Role::Measured);
    let by_conditions = by_key(measured.map(|cell| (&cell.conditions, cell.method.to_string())));
    let by_methods = by_key(by_conditions.into_iter().map(|(conditions, methods)| (methods, conditions)));
    by_methods.into_iter().map(|(methods, conditions)| Group { methods, conditions }).collect()
}

impl Group<'_> {
    fn blocks(&self, common: &[String]) -> [Block; 2] {
        let shared = shared(self.conditions.iter().copied());
        let axes = axes(&self.conditions, &shared);
        let own: Vec<String> = shared.into_iter().filter(|part| !common.contains(part)).collect();
        let own = if own.is_empty() { String::new() } else { format!(", {}", own.join(" · ")) };
        let heading = format!("measured{own}: {}", count(self, &axes));
        let methods = ("methods".to_string(), self.methods.join(", "));
        let lists = axes.iter().map(|axis| (axis.part.plural().to_string(), axis.list()));
        [Block::heading(3, heading), Block::facts(std::iter::once(methods).chain(lists))]
    }
}

/// `11 methods x 2 workloads x 2 thread counts = 44 cells`.
fn count(group: &Group<'_>, axes: &[Axis]) -> String {
    let (methods, conditions) = (group.methods.len(), group.conditions.len());
    let mut factors = vec![counted(methods as u64, "method")];
    let combinations: usize = axes.iter().map(|axis| axis.values().len()).product();
    match combinations == conditions {
        true => {
            factors.extend(axes.iter().map(|axis| format!("{} {}", axis.values().len(), axis.part.plural())));
        }
        false => factors.push(format!("{conditions} of {combinations} combinations")),
    }
    format!("{} = {}", factors.join(" x "), counted((methods * conditions) as u64, "cell"))
}

/// A part of labels that differs, with its value in each of the conditions, and with parts that
/// follow from it.
struct Axis {
    part: LabelPart,
    own: Vec<String>,
}

impl Axis {
    /// Distinct values in their order.
    fn values(&self) -> Vec<&str> {
        distinct(self.own.iter().map(String::as_str))
    }

    fn list(&self) -> String {
        let named = |value: &str| if value.is_empty() { "as usual".to_string() } else { value.to_string() };
        self.values().into_iter().map(named).collect::<Vec<_>>().join("; ")
    }

    /// True if each value of this part always comes with the same value of the other.
    fn determines(&self, other: &Axis) -> bool {
        let pairs = || self.own.iter().zip(&other.own);
        pairs().all(|(own, value)| pairs().all(|(again, same)| own != again || value == same))
    }
}

/// Parts that differ between conditions, in the order of a label. A part that follows from another
/// stands with it: where data exceed a memory limit, warm is the steady state.
fn axes(conditions: &[&Conditions], shared: &[String]) -> Vec<Axis> {
    let own = |one: &&Conditions, part: LabelPart| {
        let texts = texts_of(one, part).into_iter().filter(|text| !shared.contains(text));
        texts.collect::<Vec<_>>().join(" · ")
    };
    let of = |part| Axis { part, own: conditions.iter().map(|one| own(one, part)).collect() };
    let mut differing: Vec<Axis> = LabelPart::ALL.into_iter().map(of).collect();
    differing.retain(|axis| axis.values().len() > 1);
    differing.sort_by_key(|axis| std::cmp::Reverse(axis.values().len()));
    let mut axes: Vec<Axis> = Vec::new();
    for axis in differing {
        let Some(known) = axes.iter_mut().find(|known| known.determines(&axis)) else {
            axes.push(axis);
            continue;
        };
        for (value, more) in known.own.iter_mut().zip(&axis.own) {
            *value = [value.as_str(), more]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join(" · ");
        }
    }
    axes.sort_by_key(|axis| LabelPart::ALL.iter().position(|part| *part == axis.part));
    axes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Layer;
    use crate::plan::axes::Axes;
    use crate::plan::resolve::Variant;
    use crate::plan::resolve::tests::resolved;

    fn summary(plan: &Plan) -> Vec<String> {
        let heading = |group: Group<'_>| {
            let shared = shared(group.conditions.iter().copied());
            count(&group, &axes(&group.conditions, &shared))
        };
        groups(plan).into_iter().map(heading).collect()
    }

    #[test]
    fn cells_are_counted_by_what_differs() {
        let mut plan = resolved("read", Variant::Quick, &Layer::default());
        assert_eq!(
            summary(&plan),
            ["8 methods x 2 cache states = 16 cells", "7 methods x 2 cache states = 14 cells"]
        );
        let all = plan.cells.iter().filter(|cell| cell.role == Role::Measured).count();
        assert_eq!(all, 30);
        // A combination that is left out makes it no product.
        let random = plan.cells[0].conditions.clone();
        let mut more = random.clone();
        more.threads = 7;
        plan.cells.retain(|cell| cell.conditions == random || cell.role != Role::Measured);
        let methods = plan.cells.iter().filter(|cell| cell.role == Role::Measured).count();
        let same = plan.cells.clone();
        let changed = |threads: u32, cache| {
            same.iter().filter(|cell| cell.role == Role::Measured).map(move |cell| {
                let mut cell = cell.clone();
                (cell.conditions.threads, cell.conditions.cache) = (threads, cache);
                cell
            })
        };
        let (one, other) = (random.cache, pagewise_model::CacheState::ReadOnce);
        plan.cells.extend(changed(7, one).chain(changed(7, other)));
        assert_eq!(
            summary(&plan),
            [format!("{methods} methods x 3 of 4 combinations = {} cells", 3 * methods)]
        );
        let cells: Vec<Cell> = changed(random.threads, other).collect();
        plan.cells.extend(cells);
        assert_eq!(
            summary(&plan),
            [format!("{methods} methods x 2 cache states x 2 thread counts = {} cells", 4 * methods)]
        );
    }

    #[test]
    fn what_follows_from_the_size_is_said_with_it() {
        let memory = Some(vec!["128MiB".parse().expect("a limit")]);
        let chosen = Layer { axes: Axes { memory, ..Axes::default() }, ..Layer::default() };
        let plan = resolved("cliff", Variant::Quick, &chosen);
        let group = &groups(&plan)[0];
        let shared = shared(group.conditions.iter().copied());
        let axes = axes(&group.conditions, &shared);
        assert_eq!(axes.iter().map(|axis| axis.part).collect::<Vec<_>>(), [LabelPart::Size]);
        let list = axes[0].list();
        assert!(list.starts_with("in its first ") && list.contains(" · data "), "{list}");
        assert!(list.contains("steady state"), "{list}");
    }
}
