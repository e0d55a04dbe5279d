//! Which method to use where: a table with a row for each machine or run and a column for each
//! situation.

use pagewise_analysis::judge::label::{LabelPart, label_without};

use super::html::{Html, MapCell};
use crate::plots::colours::Colours;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::map::MethodMap;

/// Cells of a map; the situations that it has no room for are named.
const MOST_CELLS: usize = 6_000;
/// Situations of a map.
const MOST_COLUMNS: usize = 40;
/// Parts of a label.
const BETWEEN: &str = " · ";

/// The situations that several runs have; nothing without one.
pub(super) fn of_runs(page: &mut Html, runs: &[JudgedRun<'_>], colours: &Colours) {
    let mut map = MethodMap {
        of: "run".to_string(),
        rows: runs.iter().map(|run| run.path.to_string()).collect(),
        labels: Vec::new(),
        columns: Vec::new(),
    };
    for (row, run) in runs.iter().enumerate() {
        for (comparison, advice) in run.judged.comparisons.iter().zip(&run.judged.advice) {
            let Some(method) = &advice.recommended else { continue };
            let label = label_without(&comparison.conditions.conditions, &[LabelPart::Size]);
            let column = map.labels.iter().position(|known| *known == label).unwrap_or_else(|| {
                map.labels.push(label);
                map.columns.push(vec![None; runs.len()]);
                map.columns.len() - 1
            });
            map.columns[column][row] = Some((method.clone(), method.clone()));
        }
    }
    let is_shared = |column: &Vec<Option<_>>| column.iter().flatten().count() > 1;
    let shared: Vec<bool> = map.columns.iter().map(is_shared).collect();
    let mut kept = shared.iter();
    map.labels.retain(|_| *kept.next().unwrap_or(&false));
    map.columns.retain(is_shared);
    if map.columns.is_empty() {
        return;
    }
    page.heading(2, "Which method is best where?");
    draw(page, &map, colours);
    page.paragraph("What differs for certain is shown by pagewise compare BASE… -- NEW… --html FILE.");
}

/// Draw a map; methods that have no colour get those of their order.
pub(crate) fn draw(page: &mut Html, map: &MethodMap, colours: &Colours) {
    let all = map.columns.len();
    let most = (MOST_CELLS / map.rows.len().max(1)).clamp(1, MOST_COLUMNS);
    let (shared, headings) = shared_label(&map.labels);
    if !shared.is_empty() {
        page.paragraph(format!("all: {shared}"));
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in map.columns.iter().flatten().flatten() {
        if !name.is_empty() && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let cell = |column: &Vec<Option<(String, String)>>, row: usize| match &column[row] {
        Some((name, text)) => {
            let own = || names.iter().position(|known| known == name);
            MapCell { colour: colours.get(name).or_else(own), text: text.clone() }
        }
        None => MapCell::default(),
    };
    let shown = &map.columns[..all.min(most)];
    let headings: Vec<String> =
        std::iter::once(map.of.clone()).chain(headings.into_iter().take(most)).collect();
    let rows = map.rows.iter().enumerate();
    let rows: Vec<(String, Vec<MapCell>)> = rows
        .map(|(row, name)| (name.clone(), shown.iter().map(|column| cell(column, row)).collect()))
        .collect();
    page.map(&headings, &rows, "Which method is best where");
    if all > most {
        page.left_out(all - most, "situation");
    }
}

/// The part that all labels share, and each without it.
fn shared_label(labels: &[String]) -> (String, Vec<String>) {
    let parts: Vec<Vec<&str>> = labels.iter().map(|label| label.split(BETWEEN).collect()).collect();
    let is_shared = |part: &&str| parts.len() > 1 && parts.iter().all(|of_label| of_label.contains(part));
    let shared: Vec<&str> = parts.iter().flatten().take(parts.first().map_or(0, Vec::len)).copied().collect();
    let shared: Vec<&str> = shared.into_iter().filter(is_shared).collect();
    let own = |of_label: &Vec<&str>| {
        let own: Vec<&str> = of_label.iter().copied().filter(|part| !shared.contains(part)).collect();
        own.join(BETWEEN)
    };
    (shared.join(BETWEEN), parts.iter().map(own).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_by_what_differs() {
        let labels = ["read · warm · 1 thread", "read · cold · 1 thread"].map(str::to_string);
        let (shared, own) = shared_label(&labels);
        assert_eq!((shared.as_str(), own), ("read · 1 thread", vec!["warm".to_string(), "cold".to_string()]));
        assert_eq!(shared_label(&labels[..1]), (String::new(), vec![labels[0].clone()]));
    }
}
