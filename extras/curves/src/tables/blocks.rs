//! Tables of methods by threads or by size of the data, followed by the figures derived from them,
//! and cold starts.

use crate::tables::{ColdRow, ColdStart, Fall, Fastest, MethodTable, PairedRatio, Score, Tables};
use pagewise_analysis::Judged;
use pagewise_analysis::judge::verdict::{Finding, Verdict};
use pagewise_analysis::judge::{MedianInterval, Status};
use pagewise_model::Untrusted;
use pagewise_model::format::{bytes, listed, rate, time};
use pagewise_model::groups::by_key;
use pagewise_model::planned_table::TableColumn;

use pagewise_report::bar;
use pagewise_report::document::Block;
use pagewise_report::line::Line;
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::words::{figures, reasons};

use super::words;

/// Marks a ratio that is not distinguishable from 1.
const NOT_DISTINGUISHED: &str = "not distinguishable";
/// Bars of a cold start.
const COURSE: u64 = 40;

/// All tables, and what follows from them.
pub fn blocks(judged: &Judged, tables: &Tables) -> Vec<Block> {
    if tables.tables.is_empty() && tables.cold_starts.is_empty() {
        return vec![Block::paragraph("the run has no reads by the offset table, so there is no table")];
    }
    let mut blocks = Vec::new();
    if !tables.tables.is_empty() {
        blocks.push(Block::paragraph(
            "Scores in reads/s: the median over rounds, and its 95 % interval. Ratios are paired by round, \
             with their 98 % interval, and distinguished from 1 by more than 2 %.",
        ));
    }
    blocks.extend(tables.tables.iter().flat_map(|table| of_table(judged, tables, table)));
    blocks.extend(advantages(tables));
    blocks.extend(scaling(tables));
    blocks.extend(tables.falls.iter().flat_map(fall));
    blocks.extend(tables.cold_starts.iter().flat_map(cold_start));
    blocks.push(Block::heading(3, "What follows"));
    blocks.push(Block::List(words::sentences(tables)));
    blocks
}

fn of_table(judged: &Judged, tables: &Tables, table: &MethodTable) -> [Block; 3] {
    let rows = table.rows.iter().map(|row| {
        let scores = row.scores.iter().map(|one| score(one, table.reads_per_op));
        (row.method.clone(), scores.collect())
    });
    let notes = table.fastest.iter().map(fastest).chain(notes(table));
    let said = words::of_table(table, tables.cpus);
    [
        Block::heading(3, &table.label),
        grid("method", names(&table.columns), rows, &table.label),
        Block::List(notes.chain(said).chain(stalls(judged, table)).collect()),
    ]
}

fn names(columns: &[TableColumn]) -> Vec<String> {
    columns.iter().map(ToString::to_string).collect()
}

/// `395k [389k, 402k]`, or the reason that there is none.
fn score(score: &Option<Score>, reads_per_op: u32) -> TextCell {
    let Some(score) = score else { return TextCell::default() };
    match score.ops_per_ms {
        Some(value) => interval(value.times(reads_per_second(reads_per_op)), rate),
        None => score.status.name().into(),
    }
}

fn interval(value: MedianInterval, text: impl Fn(f64) -> String) -> TextCell {
    TextCell::of(figures::interval(value, text), value.median)
}

/// Reads per second in one operation per millisecond.
fn reads_per_second(reads_per_op: u32) -> f64 {
    f64::from(reads_per_op) * 1e3
}

fn fastest(found: &Fastest) -> String {
    let column = found.column;
    match (found.verdict, found.methods.as_slice()) {
        (Verdict::Best, [best]) => format!("fastest at {column}: {best}"),
        (Verdict::Tie | Verdict::Close | Verdict::Open, [_, ..]) => {
            format!("fastest at {column}: {} ({NOT_DISTINGUISHED})", listed(&found.methods))
        }
        _ => {
            let reason = reasons::no_verdict(found.reason.as_ref());
            format!("fastest at {column}: unknown, because {reason}")
        }
    }
}

/// Missing parts of a table with their reasons; a reason that several columns share is shown once.
fn notes(table: &MethodTable) -> Vec<String> {
    let scores = table.rows.iter().flat_map(|row| row.scores.iter().flatten().map(move |score| (row, score)));
    let notes = by_key(scores.filter_map(|(row, score)| Some(((&row.method, note(score)?), score.column))));
    let line = |((method, note), columns): ((&String, String), Vec<TableColumn>)| {
        let numbers: Vec<String> = columns.iter().map(|column| column.number()).collect();
        match columns.as_slice() {
            [only] => format!("{method} at {only}: {note}"),
            [TableColumn::Threads(_), ..] => format!("{method} at {} threads: {note}", listed(&numbers)),
            _ => format!("{method} at data of {}: {note}", listed(&numbers)),
        }
    };
    notes.into_iter().map(line).collect()
}

fn note(score: &Score) -> Option<String> {
    let reason = reasons::cell(score.reason.as_ref());
    match score.status {
        Status::Ok if score.invalid_samples > 0 => {
            let attempts = score.samples + score.invalid_samples;
            Some(format!("{} of {attempts} attempts invalid; {reason}", score.invalid_samples))
        }
        Status::Ok => {
            score.not_ranked.as_ref().map(|reason| format!("not ranked: {}", reasons::unranked(reason)))
        }
        status => Some(format!("{}: {reason}", status.name())),
    }
}

/// Effects of the methods of a table on everything else in their process.
fn stalls(judged: &Judged, table: &MethodTable) -> Vec<String> {
    let ids: Vec<&String> =
        table.rows.iter().flat_map(|row| row.scores.iter().flatten()).map(|score| &score.cell).collect();
    let of_comparison = judged.comparisons.iter().zip(&judged.advice);
    let own = of_comparison.filter(|(comparison, _)| comparison.cells.iter().any(|id| ids.contains(&id)));
    own.flat_map(|(comparison, advice)| {
        let threads = TableColumn::Threads(comparison.conditions.conditions.threads);
        advice
            .stalls
            .iter()
            .map(move |effect| format!("{threads}: {}", pagewise_report::words::advice::held_up(effect)))
    })
    .collect()
}

fn advantages(tables: &Tables) -> Vec<Block> {
    let (mut blocks, all) = (Vec::new(), labels(tables));
    for (method, over) in words::pairs(&tables.tables) {
        let title = format!("Advantage: {method} over {over}");
        let rows = tables.tables.iter().filter_map(|table| {
            let own = table
                .advantages
                .iter()
                .find(|own| own.method == *method && own.over.as_ref() == Some(over))?;
            Some((&table.columns, name_of(&table.label, &all), own.ratios.iter().map(ratio).collect()))
        });
        blocks.push(Block::heading(3, &title));
        blocks.push(aligned("data", rows.collect(), &title));
    }
    blocks
}

/// Name of a row's table by its label, which is one of `all`.
fn name_of(label: &str, all: &[&str]) -> String {
    let is_shared = |part: &str| all.iter().all(|other| other.split(" · ").any(|own| own == part));
    // A label begins with the pattern and the reads. Reads and memory are named where tables differ
    // in them.
    let parts = label.split(" · ").enumerate();
    let named = parts.filter(|(position, part)| {
        let may_be_shared = *position == 1 || part.starts_with("memory ");
        !may_be_shared || !is_shared(part)
    });
    named.map(|(_, part)| part).collect::<Vec<_>>().join(", ")
}

/// Labels of all tables.
fn labels(tables: &Tables) -> Vec<&str> {
    tables.tables.iter().map(|table| table.label.as_str()).collect()
}

/// `1.62x [1.58, 1.66]`, with a remark if it is not distinguishable from 1.
fn ratio(ratio: &Option<PairedRatio>) -> TextCell {
    let Some(ratio) = ratio else { return TextCell::missing() };
    let words = ratio.shown();
    let text = match ratio.finding {
        Finding::Higher | Finding::Lower => words,
        Finding::Indistinguishable => format!("{words} {NOT_DISTINGUISHED}"),
        Finding::TooFewRounds => format!("{words} too few rounds"),
    };
    TextCell::of(text, ratio.ratio)
}

fn scaling(tables: &Tables) -> Vec<Block> {
    let (mut blocks, all) = (Vec::new(), labels(tables));
    for table in tables.tables.iter().filter(|table| table.columns.len() > 1) {
        let title = format!("Scaling against {}: {}", table.columns[0], name_of(&table.label, &all));
        let rows =
            table.scaling.iter().map(|own| (own.method.clone(), own.ratios.iter().map(ratio).collect()));
        blocks.push(Block::heading(3, &title));
        blocks.push(grid("method", names(&table.columns[1..]), rows, &title));
    }
    blocks
}

fn fall(fall: &Fall) -> [Block; 2] {
    let title = format!("Under pressure, {}", words::fall(fall));
    let rows = fall.rows.iter().map(|row| (row.method.clone(), row.ratios.iter().map(ratio).collect()));
    [Block::heading(3, &title), grid("method", names(&fall.columns), rows, &title)]
}

fn cold_start(start: &ColdStart) -> Vec<Block> {
    let title = format!("Cold start: {}", start.label);
    let names = ["time to 50 %", "to 90 %", "to steady", "read until steady", "reads/s once steady"];
    let rows = start.rows.iter().map(|row| (row.method.clone(), cold_row(row, start.reads_per_op)));
    let note = |row: &ColdRow| {
        let reason = reasons::cell(row.reason.as_ref());
        match row.status {
            Status::Ok => row
                .not_ranked
                .as_ref()
                .map(|why| format!("{}: not ranked: {}", row.method, reasons::unranked(why))),
            status => Some(format!("{}: {}: {reason}", row.method, status.name())),
        }
    };
    let notes = start.rows.iter().filter_map(note).chain(words::cold_start(start)).collect();
    let mut blocks = vec![Block::heading(3, &title)];
    blocks.extend([
        Block::Lines(course(start)),
        grid("method", names.map(String::from).to_vec(), rows, &title),
        Block::List(notes),
    ]);
    blocks
}

fn cold_row(row: &ColdRow, reads_per_op: u32) -> Vec<TextCell> {
    if row.status != Status::Ok {
        return vec![row.status.name().into()];
    }
    let took =
        |value: Option<MedianInterval>| value.map_or_else(TextCell::missing, |value| interval(value, time));
    let steady = row.steady_ops_per_ms.map(|steady| steady.median * reads_per_second(reads_per_op));
    vec![
        took(row.to_half_ns),
        took(row.to_ninety_ns),
        took(row.to_steady_ns),
        TextCell::number(row.bytes_to_steady.map(|read| read.median), bytes),
        TextCell::number(steady, rate),
    ]
}

/// The rates over time as standing bars, a line for each method.
fn course(start: &ColdStart) -> Vec<Line> {
    let windows = || start.rows.iter().flat_map(|row| &row.windows);
    let Some(end_ns) = windows().map(|window| window.end_ns).max() else { return Vec::new() };
    let fastest = windows().map(|window| window.ops_per_second).fold(0.0, f64::max);
    let name = start.rows.iter().map(|row| row.method.chars().count()).max().unwrap_or(0);
    let bars = |row: &ColdRow| -> String {
        let middles = (0..COURSE).map(|bar| (2 * bar + 1) * end_ns / (2 * COURSE));
        let within = middles.map_while(|at_ns| row.windows.iter().find(|window| at_ns <= window.end_ns));
        within.map(|window| bar::vertical(window.ops_per_second / fastest)).collect()
    };
    let fastest = rate(fastest * f64::from(start.reads_per_op));
    let heading =
        Line::weak(format!("  {:name$}  from 0 to {}, up to {fastest} reads/s", "method", time(end_ns)));
    let of_row =
        |row: &ColdRow| Line::plain(format!("  {:name$}  {}", Untrusted(&row.method).to_string(), bars(row)));
    std::iter::once(heading).chain(start.rows.iter().map(of_row)).collect()
}

/// A row with its own columns.
type NamedRow<'a> = (&'a Vec<TableColumn>, String, Vec<TextCell>);

/// Rows that may have different columns, below one heading.
fn aligned(head: &str, rows: Vec<NamedRow<'_>>, label: &str) -> Block {
    let mut all: Vec<TableColumn> = rows.iter().flat_map(|(columns, _, _)| columns.iter().copied()).collect();
    all.sort_by(|left, right| left.position().total_cmp(&right.position()));
    all.dedup();
    let aligned = rows.into_iter().map(|(own, name, cells)| {
        let cell = |column: &TableColumn| {
            let index = own.iter().position(|other| other == column);
            index.and_then(|index| cells.get(index).cloned()).unwrap_or_default()
        };
        (name, all.iter().map(cell).collect())
    });
    grid(head, names(&all), aligned, label)
}

/// Named rows below headings; those that are too short are blank at their ends.
fn grid(
    head: &str,
    names: Vec<String>,
    rows: impl Iterator<Item = (String, Vec<TextCell>)>,
    label: &str,
) -> Block {
    let columns = names.len();
    let row = |(name, mut cells): (String, Vec<TextCell>)| {
        cells.resize(columns, TextCell::default());
        std::iter::once(name.into()).chain(cells).collect()
    };
    let table = TextTable {
        columns: std::iter::once(head.to_string()).chain(names).map(Into::into).collect(),
        rows: rows.map(row).collect(),
    };
    Block::Table(table, label.to_string())
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn rows_name_the_reads_and_the_memory_in_which_tables_differ() {
        let names = |all: [&str; 2]| all.map(|label| name_of(label, &all));
        assert_eq!(
            names([
                "random-read · reads of 16 KiB · warm · memory 1 GiB",
                "random-read · reads of 64 KiB · warm"
            ]),
            ["random-read, reads of 16 KiB, warm, memory 1 GiB", "random-read, reads of 64 KiB, warm"]
        );
        assert_eq!(
            names(["random-read · reads of 16 KiB · warm", "sequential-read · reads of 16 KiB · warm"]),
            ["random-read, warm", "sequential-read, warm"]
        );
    }
}
