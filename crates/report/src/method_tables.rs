//! Tables of methods by threads or by size of the data, followed by the figures derived from them,
//! and cold starts.

use std::io::{self, Write};

use pagewise_analysis::Judged;
use pagewise_analysis::judge::method_tables::{
    ColdRow, ColdStart, Fall, Fastest, MethodTable, PairedRatio, Score, Tables,
};
use pagewise_analysis::judge::verdict::{Finding, Verdict};
use pagewise_analysis::judge::{ColdWindow, Status};
use pagewise_model::Untrusted;
use pagewise_model::planned_table::TableColumn;

use crate::chart::{self, Chart, letter};
use crate::paragraph::{paragraph, shortened};
use crate::words;
use pagewise_model::format::{MISSING, bytes, listed, rate, time};

/// Columns between two columns of a table.
const BETWEEN: usize = 2;
/// The widest chart, so that the eye can follow a line.
const WIDEST_CHART: usize = 100;
/// Marks a ratio that is not distinguishable from 1.
const NOT_DISTINGUISHED: &str = "not distinguishable";

/// Write all tables for a terminal of `width` columns.
pub fn write(out: &mut dyn Write, judged: &Judged, tables: &Tables, width: usize) -> io::Result<()> {
    if tables.tables.is_empty() && tables.cold_starts.is_empty() {
        return paragraph(out, "", "the run has no reads by the offset table, so there is no table", width);
    }
    if !tables.tables.is_empty() {
        let text = "Scores in reads/s: the median over rounds, and its 95 % interval. Ratios are paired \
                    by round, with their 98 % interval, and distinguished from 1 by more than 2 %.";
        paragraph(out, "", text, width)?;
    }
    for table in &tables.tables {
        writeln!(out)?;
        write_table(out, judged, tables, table, width)?;
    }
    write_advantages(out, tables, width)?;
    write_scaling(out, tables, width)?;
    for (index, start) in tables.cold_starts.iter().enumerate() {
        if index == 0 {
            writeln!(out, "\nCold start: reads/s over time")?;
        }
        writeln!(out)?;
        write_cold_start(out, start, width)?;
    }
    writeln!(out, "\nWhat follows")?;
    words::method_tables::sentences(tables)
        .iter()
        .try_for_each(|sentence| paragraph(out, "  ", sentence, width))
}

fn write_table(
    out: &mut dyn Write,
    judged: &Judged,
    tables: &Tables,
    table: &MethodTable,
    width: usize,
) -> io::Result<()> {
    paragraph(out, "", &table.label, width)?;
    let rows = table
        .rows
        .iter()
        .map(|row| {
            (row.method.clone(), row.scores.iter().map(|one| score(one, table.reads_per_op)).collect())
        })
        .collect();
    write_grid(out, "method", &names(&table.columns), rows, width)?;
    for column in &table.fastest {
        paragraph(out, "  ", &fastest(column), width)?;
    }
    for note in notes(table) {
        paragraph(out, "  ", &note, width)?;
    }
    for sentence in
        words::method_tables::of_table(table, tables.cpus).into_iter().chain(stalls(judged, table))
    {
        paragraph(out, "  ", &sentence, width)?;
    }
    Ok(())
}

fn names(columns: &[TableColumn]) -> Vec<String> {
    columns.iter().map(ToString::to_string).collect()
}

/// `395k [389k, 402k]`, or the reason that there is none.
fn score(score: &Option<Score>, reads_per_op: u32) -> String {
    let Some(score) = score else { return String::new() };
    match score.ops_per_ms {
        Some(value) => value.times(reads_per_second(reads_per_op)).text(rate),
        None => score.status.name().to_string(),
    }
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
            let reason = found.reason.as_deref().unwrap_or("the data do not support a verdict");
            format!("fastest at {column}: unknown, because {reason}")
        }
    }
}

/// Missing parts of a table with their reasons; a reason that several columns share is shown once.
fn notes(table: &MethodTable) -> Vec<String> {
    let mut notes: Vec<(String, String, Vec<TableColumn>)> = Vec::new();
    for row in &table.rows {
        for score in row.scores.iter().flatten() {
            let Some(note) = note(score) else { continue };
            match notes.iter_mut().find(|(method, text, _)| *method == row.method && *text == note) {
                Some((_, _, all)) => all.push(score.column),
                None => notes.push((row.method.clone(), note, vec![score.column])),
            }
        }
    }
    let line = |(method, note, columns): (String, String, Vec<TableColumn>)| {
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
    let reason = score.reason.as_deref().unwrap_or("no reason is recorded");
    match score.status {
        Status::Ok if score.invalid_samples > 0 => {
            let attempts = score.samples + score.invalid_samples;
            Some(format!("{} of {attempts} attempts invalid; {reason}", score.invalid_samples))
        }
        Status::Ok => score.not_ranked.as_ref().map(|reason| format!("not ranked: {reason}")),
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
        advice.stalls.iter().map(move |effect| format!("{threads}: {}", words::advice::held_up(effect)))
    })
    .collect()
}

fn write_advantages(out: &mut dyn Write, tables: &Tables, width: usize) -> io::Result<()> {
    for (method, over) in words::method_tables::pairs(&tables.tables) {
        writeln!(out)?;
        let title = format!("Advantage: {method} over {over}");
        paragraph(out, "", &title, width)?;
        let rows = tables.tables.iter().filter_map(|table| {
            let own = table
                .advantages
                .iter()
                .find(|own| own.method == *method && own.over.as_ref() == Some(over))?;
            Some((&table.columns, name_of(table), own.ratios.iter().map(ratio).collect()))
        });
        write_aligned(out, "data", rows.collect(), width)?;
    }
    Ok(())
}

/// Name of a row's table.
fn name_of(table: &MethodTable) -> String {
    // The label begins with the pattern and the reads, which are the same in all tables.
    let parts: Vec<&str> = table.label.split(" · ").collect();
    let rest = parts.iter().skip(2).filter(|part| !part.starts_with("memory "));
    std::iter::once(&parts[0]).chain(rest).copied().collect::<Vec<_>>().join(", ")
}

/// `1.62x [1.58, 1.66]`, with a remark if it is not distinguishable from 1.
fn ratio(ratio: &Option<PairedRatio>) -> String {
    let Some(ratio) = ratio else { return MISSING.to_string() };
    let words = ratio.in_words();
    match ratio.finding {
        Finding::Higher | Finding::Lower => words,
        Finding::Indistinguishable => format!("{words} {NOT_DISTINGUISHED}"),
        Finding::TooFewRounds => format!("{words} too few rounds"),
    }
}

fn write_scaling(out: &mut dyn Write, tables: &Tables, width: usize) -> io::Result<()> {
    for table in tables.tables.iter().filter(|table| table.columns.len() > 1) {
        let first = table.columns[0];
        writeln!(out)?;
        paragraph(out, "", &format!("Scaling against {first}: {}", name_of(table)), width)?;
        let rows =
            table.scaling.iter().map(|own| (own.method.clone(), own.ratios.iter().map(ratio).collect()));
        write_grid(out, "method", &names(&table.columns[1..]), rows.collect(), width)?;
    }
    for fall in &tables.falls {
        write_fall(out, fall, width)?;
    }
    Ok(())
}

fn write_fall(out: &mut dyn Write, fall: &Fall, width: usize) -> io::Result<()> {
    writeln!(out)?;
    paragraph(out, "", &format!("Under pressure, {}", fall.label), width)?;
    let rows = fall.rows.iter().map(|row| (row.method.clone(), row.ratios.iter().map(ratio).collect()));
    write_grid(out, "method", &names(&fall.columns), rows.collect(), width)
}

fn write_cold_start(out: &mut dyn Write, start: &ColdStart, width: usize) -> io::Result<()> {
    paragraph(out, "", &start.label, width)?;
    write_course(out, start, width)?;
    let names = ["time to 50 %", "to 90 %", "to steady", "read until steady", "reads/s once steady"];
    let rows =
        start.rows.iter().enumerate().map(|(index, row)| {
            (format!("{} {}", letter(index), row.method), cold_row(row, start.reads_per_op))
        });
    write_grid(out, "method", &names.map(String::from), rows.collect(), width)?;
    for row in start.rows.iter() {
        let reason = row.reason.as_deref().unwrap_or("no reason is recorded");
        match row.status {
            Status::Ok => {
                if let Some(reason) = &row.not_ranked {
                    paragraph(out, "  ", &format!("{}: not ranked: {reason}", row.method), width)?;
                }
            }
            status => paragraph(out, "  ", &format!("{}: {}: {reason}", row.method, status.name()), width)?,
        }
    }
    words::method_tables::cold_start(start)
        .iter()
        .try_for_each(|sentence| paragraph(out, "  ", sentence, width))
}

fn cold_row(row: &ColdRow, reads_per_op: u32) -> Vec<String> {
    if row.status != Status::Ok {
        return vec![row.status.name().to_string()];
    }
    let time = |value: Option<pagewise_analysis::judge::MedianInterval>| {
        value.map_or_else(|| MISSING.to_string(), |value| value.text(time))
    };
    vec![
        time(row.to_half_ns),
        time(row.to_ninety_ns),
        time(row.to_steady_ns),
        row.bytes_to_steady.map_or_else(|| MISSING.to_string(), |read| bytes(read.median)),
        row.steady_ops_per_ms.map_or_else(
            || MISSING.to_string(),
            |steady| rate(steady.median * reads_per_second(reads_per_op)),
        ),
    ]
}

/// The rates over time as lines.
fn write_course(out: &mut dyn Write, start: &ColdStart, width: usize) -> io::Result<()> {
    let reads_per_op = f64::from(start.reads_per_op);
    let point = |window: &ColdWindow| (window.end_ns as f64, Some(window.ops_per_second * reads_per_op));
    let lines: Vec<Vec<(f64, Option<f64>)>> =
        start.rows.iter().map(|row| row.windows.iter().map(point).collect()).collect();
    let ends: Vec<u64> = start.rows.iter().flat_map(|row| &row.windows).map(|window| window.end_ns).collect();
    let (Some(first), Some(last)) = (ends.iter().min(), ends.iter().max()) else { return Ok(()) };
    let middle = ((*first as f64) * (*last as f64)).sqrt() as u64;
    let ticks = [*first, middle, *last].map(|end| (end as f64, time(end))).to_vec();
    let rows = chart::rows(&Chart { lines, marks: Vec::new(), ticks }, width.min(WIDEST_CHART));
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))
}

/// A row with its own columns.
type NamedRow<'a> = (&'a Vec<TableColumn>, String, Vec<String>);

/// Write rows that may have different columns below one heading.
fn write_aligned(out: &mut dyn Write, head: &str, rows: Vec<NamedRow<'_>>, width: usize) -> io::Result<()> {
    let mut all: Vec<TableColumn> = rows.iter().flat_map(|(columns, _, _)| columns.iter().copied()).collect();
    all.sort_by(|left, right| left.position().total_cmp(&right.position()));
    all.dedup();
    let aligned = rows.into_iter().map(|(own, name, texts)| {
        let text = |column: &TableColumn| {
            let index = own.iter().position(|other| other == column);
            index.and_then(|index| texts.get(index).cloned()).unwrap_or_default()
        };
        (name, all.iter().map(text).collect())
    });
    write_grid(out, head, &names(&all), aligned.collect(), width)
}

/// Write named rows below headings, in several tables if the columns are too wide for one. A name
/// that leaves no room for a column is cut.
fn write_grid(
    out: &mut dyn Write,
    head: &str,
    names: &[String],
    rows: Vec<(String, Vec<String>)>,
    width: usize,
) -> io::Result<()> {
    let shown = |text: &String| Untrusted(text).to_string();
    let rows: Vec<(String, Vec<String>)> =
        rows.iter().map(|(name, texts)| (shown(name), texts.iter().map(shown).collect())).collect();
    let len = |text: &str| text.chars().count();
    let wide = |column: usize| {
        let texts = rows.iter().filter_map(|(_, texts)| texts.get(column)).map(|text| len(text));
        texts.chain([len(&names[column])]).max().unwrap_or(0)
    };
    let widest = (0..names.len()).map(wide).max().unwrap_or(0);
    let longest = rows.iter().map(|(name, _)| len(name)).chain([len(head)]).max().unwrap_or(0);
    let first = longest.min(width.saturating_sub(BETWEEN + widest).max(len(head)));
    let mut from = 0;
    while from < names.len() {
        let (mut to, mut used) = (from, first + 1);
        while to < names.len() && (to == from || used + BETWEEN + wide(to) <= width) {
            used += BETWEEN + wide(to);
            to += 1;
        }
        let line = |name: &str, texts: &[String]| {
            let mut line = format!(" {:first$}", shortened(name, first));
            for column in from..to {
                let text = texts.get(column).map_or("", String::as_str);
                line.push_str(&format!("{:BETWEEN$}{text:1$}", "", wide(column)));
            }
            line.trim_end().to_string()
        };
        writeln!(out, "{}", line(head, names))?;
        for (name, texts) in &rows {
            writeln!(out, "{}", line(name, texts))?;
        }
        from = to;
    }
    Ok(())
}
