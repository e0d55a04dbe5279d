//! Conclusions from the tables, as sentences.

use super::facts::{ColdStart, Data, MethodRow, MethodTable};
use super::ratio::PairedRatio;
use crate::judge::advice::phrases::listed;
use crate::judge::verdict::Finding;
use pagewise_model::format::counted;
use pagewise_model::pivot::{PivotColumn, PivotColumns};

/// Effects of the columns on the methods that the plan asks about, and what each waits for in the
/// last column.
pub(super) fn of_table(data: &Data<'_>, table: &MethodTable) -> Vec<String> {
    let explained = table.rows.iter().filter(|row| data.pivot.explains(&row.method));
    explained.map(|row| of_method(table, row, data.cpus)).collect()
}

fn of_method(table: &MethodTable, row: &MethodRow, cpus: u32) -> String {
    let scaling = table.scaling.iter().find(|scaling| scaling.method == row.method);
    let changes: Vec<String> = scaling
        .iter()
        .flat_map(|scaling| scaling.ratios.iter().zip(&table.columns[1..]))
        .map(|(ratio, column)| change(*column, ratio.as_ref()))
        .collect();
    let first = table.columns[0];
    let columns = match changes.is_empty() {
        true => format!("only {first} was measured"),
        false => format!("against {first}, {}", changes.join(", ")),
    };
    let last =
        row.scores.iter().flatten().rev().find_map(|score| Some((score.column, score.waits.as_ref()?)));
    let waits = last.map_or_else(
        || "; what it waits for is unknown, because no sample is valid".to_string(),
        |(column, waits)| format!("; at {column} {}", waits.words),
    );
    format!("{} on {}: {columns}{waits}.", row.method, counted(u64::from(cpus), "CPU"))
}

fn change(column: PivotColumn, ratio: Option<&PairedRatio>) -> String {
    let Some(ratio) = ratio else { return format!("{column} cannot be compared (no round has both)") };
    let words = ratio.in_words();
    match ratio.finding {
        Finding::Higher => format!("{column} gain ({words})"),
        Finding::Lower => format!("{column} lose ({words})"),
        Finding::Indistinguishable => {
            format!("{column} make no distinguishable difference ({words})")
        }
        Finding::TooFewRounds => {
            format!("{column} cannot be compared ({words} in {} rounds, too few)", ratio.rounds)
        }
    }
}

/// Conclusions for the whole run: where the baseline is ahead, where methods gain along the
/// columns, and which one warms faster.
pub(super) fn of_all(data: &Data<'_>, tables: &[MethodTable], cold_starts: &[ColdStart]) -> Vec<String> {
    let mut sentences: Vec<String> =
        advantages(data, tables).into_iter().chain(explained(data, tables)).collect();
    for workload in distinct(cold_starts.iter().map(|start| start.workload)) {
        let of_workload: Vec<&str> = cold_starts
            .iter()
            .filter(|start| start.workload == workload)
            .map(|start| start.sentence.as_str())
            .collect();
        sentences.push(format!("Cold start, {workload}: {}", of_workload.join(" ")));
    }
    sentences
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// Counts of higher, lower and indistinguishable results, and of pairs without one.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    higher: usize,
    lower: usize,
    neither: usize,
    without_data: usize,
}

impl Tally {
    fn of<'a>(ratios: impl Iterator<Item = &'a Option<PairedRatio>>) -> Self {
        let mut tally = Self::default();
        for ratio in ratios {
            match ratio.as_ref().map(|ratio| ratio.finding) {
                Some(Finding::Higher) => tally.higher += 1,
                Some(Finding::Lower) => tally.lower += 1,
                Some(_) => tally.neither += 1,
                None => tally.without_data += 1,
            }
        }
        tally
    }

    fn in_words(self, higher: &str, lower: &str, neither: &str) -> String {
        let parts = [(self.higher, higher), (self.lower, lower), (self.neither, neither)];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{words} in {count}"))
            .collect();
        let all = self.higher + self.lower + self.neither;
        let of_all = format!("{} of {}", listed(&parts), counted(all as u64, "comparison"));
        let text = [(all, of_all), (self.without_data, format!("{} without data", self.without_data))];
        let text = text.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words);
        text.collect::<Vec<_>>().join(", and ")
    }
}

/// Conditions of a table that others do not share, except its columns.
fn place(data: &Data<'_>, table: &MethodTable) -> String {
    match (data.pivot.columns, table.data_over_cache) {
        (PivotColumns::Data, _) => "all sizes".to_string(),
        (PivotColumns::Threads, Some(ratio)) => PivotColumn::OfCache(ratio).to_string(),
        (PivotColumns::Threads, None) => PivotColumn::Bytes(table.span_bytes).to_string(),
    }
}

fn advantages(data: &Data<'_>, tables: &[MethodTable]) -> Vec<String> {
    let pairs = distinct(
        tables
            .iter()
            .flat_map(|table| &table.advantages)
            .filter_map(|own| Some((own.method.clone(), own.over.clone()?))),
    );
    let sentence = |(method, over): &(String, String)| {
        let at = |size: &String| {
            let ratios = tables
                .iter()
                .filter(|table| place(data, table) == *size)
                .flat_map(|table| &table.advantages)
                .filter(|advantage| advantage.method == *method && advantage.over.as_ref() == Some(over))
                .flat_map(|advantage| &advantage.ratios);
            format!("{size}: {}", Tally::of(ratios).in_words("ahead", "behind", "not distinguishable"))
        };
        let places = distinct(tables.iter().map(|table| place(data, table)));
        let sizes: Vec<String> = places.iter().map(at).collect();
        format!("{method} against {over}, over patterns, threads and warm-ups: {}.", sizes.join("; "))
    };
    pairs.iter().map(sentence).collect()
}

/// Effects of the columns on the methods that the plan asks about, over all tables.
fn explained(data: &Data<'_>, tables: &[MethodTable]) -> Option<String> {
    let scaling =
        || tables.iter().flat_map(|table| &table.scaling).filter(|own| data.pivot.explains(&own.method));
    let of = |method: &String| {
        let ratios = || scaling().filter(|own| own.method == *method).flat_map(|own| &own.ratios);
        let text = || Tally::of(ratios()).in_words("gains", "loses", "is not distinguishable");
        ratios().next().map(|_| format!("{method} {}", text()))
    };
    let text: Vec<String> = distinct(scaling().map(|own| own.method.clone())).iter().filter_map(of).collect();
    let what = match data.pivot.columns {
        PivotColumns::Threads => "Added threads, against the fewest",
        PivotColumns::Data => "More data, against the least",
    };
    (!text.is_empty()).then(|| format!("{what}: {}.", text.join("; ")))
}
