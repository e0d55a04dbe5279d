//! Sentences about the tables of methods and about cold starts.

pub mod waits;

use crate::tables::{ColdRow, ColdStart, Fall, MethodRow, MethodTable, PairedRatio, Tables};
use pagewise_analysis::judge::Status;
use pagewise_analysis::judge::label::{LabelPart, texts};
use pagewise_analysis::judge::verdict::Finding;
use pagewise_model::CacheState;
use pagewise_model::format::{bytes, counted, listed, multiple, time, times};
use pagewise_model::groups::distinct;
use pagewise_model::planned_table::TableColumn;

use pagewise_report::words::reasons;

/// Effects of the columns on the methods that the plan asks about, and what each waits for in the
/// last column.
pub fn of_table(table: &MethodTable, cpus: u32) -> Vec<String> {
    let explained = table.rows.iter().filter(|row| row.explained);
    explained.map(|row| of_method(table, row, cpus)).collect()
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
        |(column, waits)| format!("; at {column} {}", waits::waits(waits)),
    );
    format!("{} on {}: {columns}{waits}.", row.method, counted(u64::from(cpus), "CPU"))
}

fn change(column: TableColumn, ratio: Option<&PairedRatio>) -> String {
    let Some(ratio) = ratio else { return format!("{column} cannot be compared (no round has both)") };
    let words = ratio.shown();
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
pub fn sentences(tables: &Tables) -> Vec<String> {
    let Tables { tables, cold_starts, .. } = tables;
    let mut sentences: Vec<String> = advantages(tables).into_iter().chain(explained(tables)).collect();
    for workload in distinct(cold_starts.iter().map(|start| start.workload)) {
        let starts = cold_starts.iter().filter(|start| start.workload == workload);
        let of_workload: Vec<String> = starts.filter_map(cold_start).collect();
        if !of_workload.is_empty() {
            sentences.push(format!("Cold start, {workload}: {}", of_workload.join(" ")));
        }
    }
    sentences
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

    fn in_words(self, [higher, lower, neither]: [&str; 3], by: &str) -> String {
        let parts = [(self.higher, higher), (self.lower, lower), (self.neither, neither)];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{words} in {count}"))
            .collect();
        let all = self.higher + self.lower + self.neither;
        let of_all = format!("{} of {}{by}", listed(&parts), counted(all as u64, "comparison"));
        let text = [(all, of_all), (self.without_data, format!("{} without data", self.without_data))];
        let text = text.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words);
        text.collect::<Vec<_>>().join(", and ")
    }
}

/// Conditions of a table that others do not share, except its columns.
fn size_of(table: &MethodTable) -> String {
    match (has_threads(table), table.data_over_cache) {
        (false, _) => "all sizes".to_string(),
        (true, Some(ratio)) => TableColumn::OfCache(ratio).to_string(),
        (true, None) => TableColumn::Bytes(table.span_bytes).to_string(),
    }
}

/// True if the columns are threads, and not sizes of the data.
fn has_threads(table: &MethodTable) -> bool {
    matches!(table.columns[..], [TableColumn::Threads(_), ..])
}

/// The methods that are compared, each with the other one.
pub fn pairs(tables: &[MethodTable]) -> Vec<(&String, &String)> {
    let advantages = tables.iter().flat_map(|table| &table.advantages);
    distinct(advantages.filter_map(|own| Some((&own.method, own.over.as_ref()?))))
}

/// `, by 1.6x to 2.5x`, where all of the ratios are distinguished from 1 in one direction.
fn by<'a>(ratios: impl Iterator<Item = &'a PairedRatio>) -> String {
    let ratios: Vec<&PairedRatio> = ratios.collect();
    let all = |finding| !ratios.is_empty() && ratios.iter().all(|ratio| ratio.finding == finding);
    if !all(Finding::Higher) && !all(Finding::Lower) {
        return String::new();
    }
    let factors = ratios.iter().map(|ratio| ratio.ratio.max(1.0 / ratio.ratio));
    let (least, most) =
        factors.fold((f64::INFINITY, 1.0_f64), |(least, most), factor| (least.min(factor), most.max(factor)));
    let (least, most) = (times(least), times(most));
    if least == most { format!(", by {least}x") } else { format!(", by {least}x to {most}x") }
}

/// The conditions in which comparisons differ, besides the size that is named with each.
fn differing(tables: &[MethodTable]) -> Vec<&'static str> {
    fn count<Value: PartialEq>(values: impl Iterator<Item = Value>) -> usize {
        distinct(values).len()
    }
    let reads = |table: &MethodTable| table.conditions.work.parameters().operation();
    // Behind the pattern and the reads.
    let rest = |table: &MethodTable| {
        let mut named = vec![LabelPart::Cache, LabelPart::Size, LabelPart::Memory, LabelPart::Data];
        named.extend(has_threads(table).then_some(LabelPart::Threads));
        let rest = texts(&table.conditions, &named).into_iter().skip(1 + reads(table).len());
        rest.collect::<Vec<_>>()
    };
    let columns = tables.iter().any(|table| table.columns.len() > 1);
    let all_reads = count(tables.iter().map(reads));
    // Reads of a page or less have no alignment of their own.
    let of_reads = count(tables.iter().map(|table| (reads(table), rest(table))));
    let differing = [
        ("patterns", count(tables.iter().map(|table| table.workload)) > 1),
        ("sizes of reads", all_reads > 1),
        ("threads", columns && tables.iter().any(has_threads)),
        ("warm-ups", count(tables.iter().map(|table| table.cache)) > 1),
        ("memory limits", count(tables.iter().map(|table| table.memory_limit_bytes)) > 1),
        ("other conditions", of_reads > all_reads),
    ];
    differing.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

fn advantages(tables: &[MethodTable]) -> Vec<String> {
    let sentence = |(method, over): &(&String, &String)| {
        let at = |size: &String| {
            let ratios = || {
                tables
                    .iter()
                    .filter(|table| size_of(table) == *size)
                    .flat_map(|table| &table.advantages)
                    .filter(|advantage| {
                        advantage.method == **method && advantage.over.as_ref() == Some(*over)
                    })
                    .flat_map(|advantage| &advantage.ratios)
            };
            let words = ["ahead", "behind", "not distinguishable"];
            format!("{size}: {}", Tally::of(ratios()).in_words(words, &by(ratios().flatten())))
        };
        let distinct_sizes = distinct(tables.iter().map(size_of));
        let sizes: Vec<String> = distinct_sizes.iter().map(at).collect();
        let over_what = match differing(tables).as_slice() {
            [] => String::new(),
            what => format!(", over {}", listed(what)),
        };
        format!("{method} against {over}{over_what}: {}.", sizes.join("; "))
    };
    pairs(tables).iter().map(sentence).collect()
}

/// Effects of the columns on the methods that the plan asks about, over all tables.
fn explained(tables: &[MethodTable]) -> Option<String> {
    let rows = tables.iter().flat_map(|table| &table.rows).filter(|row| row.explained);
    let scaling = || tables.iter().flat_map(|table| &table.scaling);
    let of = |method: &&String| {
        let ratios = || scaling().filter(|own| own.method == **method).flat_map(|own| &own.ratios);
        let text = || Tally::of(ratios()).in_words(["gains", "loses", "is not distinguishable"], "");
        ratios().next().map(|_| format!("{method} {}", text()))
    };
    let text: Vec<String> = distinct(rows.map(|row| &row.method)).iter().filter_map(of).collect();
    let what = match tables.iter().any(has_threads) {
        true => "Added threads, against the fewest",
        false => "More data, against the least",
    };
    (!text.is_empty()).then(|| format!("{what}: {}.", text.join("; ")))
}

/// `random-read, warm: data 2x the cache against 0.5x`.
pub fn fall(fall: &Fall) -> String {
    let warm_up = match fall.cache {
        // The larger ones are as warm as they get.
        CacheState::Warm => "warm or steady".to_string(),
        cache => cache.to_string(),
    };
    let (from, to) = (multiple(fall.from), multiple(fall.to));
    format!("{}, {warm_up}: data {to} the cache against {from}", fall.workload)
}

/// The faster one of the two; `None` if the plan compares none.
pub fn cold_start(start: &ColdStart) -> Option<String> {
    let at = format!("At {}", TableColumn::Threads(start.threads));
    let baseline_name = start.baseline.as_ref()?;
    let row = |method: &String| start.rows.iter().find(|row| row.method == *method);
    let both = start.other.as_ref().and_then(|other| Some((row(baseline_name)?, row(other)?)));
    let Some((baseline, other)) = both else {
        return Some(format!(
            "{at} it is unknown which method warms faster: the run lacks {baseline_name} or the method it is compared with."
        ));
    };
    let other_name = &other.method;
    let Some(ratio) = &start.other_over_baseline else {
        return Some(format!(
            "{at} it is unknown whether {other_name} warms faster than {baseline_name}: {}.",
            why_missing(baseline, other)
        ));
    };
    let words = ratio.shown();
    let verdict = match ratio.finding {
        Finding::Higher => format!("{at} {other_name} is warm sooner than {baseline_name}, {words} as fast"),
        Finding::Lower => format!("{at} {other_name} is warm later than {baseline_name}, {words} as fast"),
        Finding::Indistinguishable => {
            format!(
                "{at} the times to warm of {other_name} and {baseline_name} are not distinguishable ({words})"
            )
        }
        Finding::TooFewRounds => {
            let rounds = counted(ratio.rounds as u64, "round");
            format!(
                "{at} it is unknown whether {other_name} warms faster than {baseline_name}: only {rounds} have both times"
            )
        }
    };
    Some(format!("{verdict}{}.", figures(baseline, other)))
}

/// Both times, and the bytes that each read until then.
fn figures(baseline: &ColdRow, other: &ColdRow) -> String {
    let of = |row: &ColdRow| {
        let read =
            row.bytes_to_steady.map_or_else(String::new, |read| format!(" and {} read", bytes(read.median)));
        Some(format!("{}{read}", time(row.to_steady_ns?.median)))
    };
    match (of(other), of(baseline)) {
        (Some(other), Some(baseline)) => format!(": {other} against {baseline}"),
        _ => String::new(),
    }
}

fn why_missing(baseline: &ColdRow, other: &ColdRow) -> String {
    let of = |row: &ColdRow| match (row.status, row.to_steady_ns) {
        (Status::Ok, Some(_)) => None,
        (Status::Ok, None) => Some(format!("{} did not become warm", row.method)),
        (status, _) => {
            let reason = reasons::cell(row.reason.as_ref());
            Some(format!("{} is {} ({reason})", row.method, status.name()))
        }
    };
    let reasons: Vec<String> = [other, baseline].into_iter().filter_map(of).collect();
    if reasons.is_empty() { "no round has both times".to_string() } else { reasons.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Cause, Ratios, Score, ThreadWaits};
    use pagewise_analysis::judge::MedianInterval;
    use pagewise_analysis::judge::reasons::CellReason;
    use pagewise_model::{Bytes, CacheState, Conditions, Reads, Skew, Work, Workload};

    const CHANNEL: &str = "jvm/filechannel:direct-buffer";

    fn ratio(ratio: f64, finding: Finding) -> Option<PairedRatio> {
        Some(PairedRatio { ratio, low: None, high: None, rounds: 8, finding })
    }

    fn conditions(read_bytes: Bytes) -> Conditions {
        Conditions::of(Work::RandomRead(Reads::of(read_bytes)), Bytes::mib(64))
    }

    /// A channel at these columns, which the plan asks about, and pread against mmap.
    fn table(columns: &[TableColumn], own: &[Option<PairedRatio>]) -> MethodTable {
        let waits = ThreadWaits {
            cpus: 2,
            cpu_share: Some(0.99),
            kernel_share: None,
            run_queue_share: Some(0.0),
            wait_share: Some(0.01),
            voluntary_switches_per_op: None,
            involuntary_switches_per_op: None,
            device_share: None,
            cause: Cause::CpusBusy,
            threads: 1,
        };
        let score = |column: &TableColumn| {
            Some(Score {
                cell: "a cell".into(),
                column: *column,
                status: Status::Ok,
                reason: None,
                not_ranked: None,
                samples: 8,
                invalid_samples: 0,
                ops_per_ms: None,
                waits: Some(waits.clone()),
            })
        };
        let scores = columns.iter().map(score).collect();
        let against = own.first().copied().flatten();
        MethodTable {
            label: "random-read".into(),
            conditions: conditions(Bytes::kib(16)),
            workload: Workload::RandomRead,
            reads_per_op: 16,
            cache: CacheState::Warm,
            data_over_cache: Some(0.5),
            span_bytes: Bytes::mib(60),
            memory_limit_bytes: Some(Bytes::mib(256)),
            columns: columns.to_vec(),
            rows: vec![MethodRow { method: CHANNEL.into(), explained: true, scores }],
            fastest: Vec::new(),
            advantages: vec![Ratios {
                method: "jvm/pread".into(),
                over: Some("jvm/mmap".into()),
                ratios: vec![against; columns.len()],
            }],
            scaling: vec![Ratios { method: CHANNEL.into(), over: None, ratios: own.to_vec() }],
        }
    }

    fn of_tables(tables: Vec<MethodTable>) -> Vec<String> {
        sentences(&Tables { cpus: 2, tables, falls: Vec::new(), cold_starts: Vec::new() })
    }

    #[test]
    fn what_columns_do_to_a_method_is_reported_with_what_it_waits_for() {
        let alone = table(&[TableColumn::Threads(1)], &[]);
        assert_eq!(
            of_table(&alone, 2),
            [
                "jvm/filechannel:direct-buffer on 2 CPUs: only 1 thread was measured; at 1 thread its thread runs all the time: \
                 the CPU limits it."
            ]
        );
        let threads = [1, 4, 8, 16].map(TableColumn::Threads);
        let own = [ratio(1.9, Finding::Higher), ratio(1.0, Finding::TooFewRounds), None];
        let sentence = of_table(&table(&threads, &own), 1).remove(0);
        let part = "direct-buffer on 1 CPU: against 1 thread, 4 threads gain (1.90x), 8 threads cannot be compared (1.00x in 8 \
                    rounds, too few), 16 threads cannot be compared (no round has both); at 16 threads its thread";
        assert!(sentence.contains(part), "{sentence}");
        let mut without = table(&threads, &own);
        without.rows[0].scores = vec![None; 4];
        let sentence = of_table(&without, 2).remove(0);
        assert!(
            sentence.ends_with("; what it waits for is unknown, because no sample is valid."),
            "{sentence}"
        );
        without.rows[0].explained = false;
        assert_eq!(of_table(&without, 2), [""; 0]);
    }

    #[test]
    fn all_tables_are_counted_by_size() {
        let threads = [1, 16].map(TableColumn::Threads);
        let ahead = table(&threads, &[ratio(1.5, Finding::Higher)]);
        let mut large = table(&threads, &[ratio(0.5, Finding::Lower)]);
        large.data_over_cache = Some(2.0);
        assert_eq!(
            of_tables(vec![ahead, large]),
            [
                "jvm/pread against jvm/mmap, over threads: data 0.5x the cache: ahead in 2 of 2 \
                 comparisons, by 1.50x; data 2x the cache: behind in 2 of 2 comparisons, by 2.00x.",
                "Added threads, against the fewest: jvm/filechannel:direct-buffer gains in 1 and loses in 1 of 2 comparisons."
            ]
        );
        let of_data = [0.5, 2.0].map(TableColumn::OfCache);
        let sentences = of_tables(vec![table(&of_data, &[ratio(1.0, Finding::Indistinguishable)])]);
        assert!(sentences[0].contains("jvm/pread against jvm/mmap: all sizes: "), "{sentences:?}");
        assert!(sentences[1].starts_with("More data, against the least: "), "{sentences:?}");
        // What differs is what is named.
        let of_reads = |read_bytes: Bytes, skew: Skew| {
            let mut conditions = conditions(read_bytes);
            let reads = conditions.work.reads_mut().expect("reads");
            (reads.align_bytes, reads.skew) = (Bytes::kib(4), skew);
            MethodTable { conditions, ..table(&threads, &[ratio(1.5, Finding::Higher)]) }
        };
        let small = of_reads(Bytes::kib(4), Skew::Uniform);
        let large = of_reads(Bytes::kib(16), Skew::Uniform);
        let skewed = of_reads(Bytes::kib(4), Skew::Zipf { theta_thousandths: 990 });
        let sentences = of_tables(vec![small.clone(), large.clone()]);
        assert!(sentences[0].contains(", over sizes of reads and threads: "), "{sentences:?}");
        let sentences = of_tables(vec![small, large, skewed]);
        assert!(
            sentences[0].contains(", over sizes of reads, threads and other conditions: "),
            "{sentences:?}"
        );
        let nothing = of_tables(vec![table(&threads, &[])]);
        assert!(nothing.len() == 1 && nothing[0].ends_with("x the cache: 2 without data."), "{nothing:?}");
    }

    /// Cold starts of both, which take so long.
    fn start(mmap_ms: f64, pread_ms: f64, finding: Finding) -> ColdStart {
        let figure = |median| Some(MedianInterval { median, low: None, high: None });
        let row = |method: &str, ms: f64| ColdRow {
            method: method.into(),
            cell: method.into(),
            status: Status::Ok,
            reason: None,
            not_ranked: None,
            samples: 8,
            to_half_ns: None,
            to_ninety_ns: None,
            to_steady_ns: figure(ms * 1e6),
            bytes_to_steady: figure(f64::from(40 << 20)),
            steady_ops_per_ms: None,
            windows: Vec::new(),
        };
        ColdStart {
            label: "random-read".into(),
            workload: Workload::RandomRead,
            reads_per_op: 16,
            threads: 2,
            span_bytes: Bytes::mib(60),
            rows: vec![row("jvm/mmap", mmap_ms), row("jvm/pread", pread_ms)],
            baseline: Some("jvm/pread".into()),
            other: Some("jvm/mmap".into()),
            other_over_baseline: ratio(pread_ms / mmap_ms, finding),
        }
    }

    fn sentence(start: &ColdStart) -> String {
        cold_start(start).expect("a sentence")
    }

    #[test]
    fn which_one_warms_faster_is_said_where_it_is_known() {
        let sooner = start(40.0, 80.0, Finding::Higher);
        assert_eq!(
            sentence(&sooner),
            "At 2 threads jvm/mmap is warm sooner than jvm/pread, 2.00x as fast: 40 ms and 40 MiB read against 80 ms and 40 MiB \
             read."
        );
        let later = sentence(&start(80.0, 40.0, Finding::Lower));
        assert!(later.starts_with("At 2 threads jvm/mmap is warm later than jvm/pread, 0.50x"), "{later}");
        let alike = sentence(&start(40.0, 40.0, Finding::Indistinguishable));
        assert!(alike.contains("are not distinguishable"), "{alike}");
        let of_plan = |cold_starts| Tables { cpus: 2, tables: Vec::new(), falls: Vec::new(), cold_starts };
        let all = sentences(&of_plan(vec![sooner.clone(), sooner.clone()]));
        assert!(all.len() == 1 && all[0].starts_with("Cold start, random-read: At 2 threads"), "{all:?}");
        let asked_nothing = ColdStart { baseline: None, other: None, ..sooner };
        assert_eq!(sentences(&of_plan(vec![asked_nothing])), [""; 0]);
    }

    #[test]
    fn one_that_is_not_there_is_unknown() {
        let mut without = start(40.0, 80.0, Finding::Higher);
        without.other_over_baseline = None;
        without.rows[1].status = Status::Unavailable;
        without.rows[1].reason = Some(CellReason::Unavailable("no JDK 22 or newer".into()));
        assert_eq!(
            sentence(&without),
            "At 2 threads it is unknown whether jvm/mmap warms faster than jvm/pread: jvm/pread is unavailable (no JDK 22 or \
             newer)."
        );
        let alone = ColdStart { baseline: Some("pread".into()), other: None, ..without };
        assert!(sentence(&alone).contains("the run lacks pread or the method it is compared with"));
    }
}
