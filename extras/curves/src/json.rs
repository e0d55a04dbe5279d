//! The parts of the judged JSON of a cliff and of tables: their data, and the sentences that are
//! made of them.

use pagewise_report::curves_door::CurvesKey;
use pagewise_report::json::each;
use pagewise_report::json_parts;
use pagewise_report::words::reasons;
use serde::Serialize;

use crate::cliff::{self, Cliff, Crossing, Curve, CurveGroup, Point};
use crate::tables::{
    self, ColdRow, ColdStart, Fall, Fastest, MethodRow, MethodTable, Score, Tables, ThreadWaits,
};

/// The parts by their keys.
pub const KEYS: &[CurvesKey] = &[
    CurvesKey {
        name: "cliff",
        help: "Changes of the order of methods as the data grow, if the run searched for them.",
        schema: |generator| generator.subschema_for::<Option<CliffJson<'_>>>(),
    },
    CurvesKey {
        name: "tables",
        help: "The tables of methods by threads or by size of the data; `None` if the plan asks for none.",
        schema: |generator| generator.subschema_for::<Option<TablesJson<'_>>>(),
    },
];

json_parts! {
    CliffJson = "Cliff", of(cliff: Cliff) {
        /// One for each set of conditions that differ only in the span, in the order of the plan.
        /// Only those with a memory limit: without one there is no ratio.
        groups: Vec<CurveGroupJson<'a>> = each(&cliff.groups, CurveGroupJson::of);
    }

    CurveGroupJson = "CurveGroup", of(group: CurveGroup) {
        /// All compared methods, in the order of the plan.
        curves: Vec<CurveJson<'a>> = each(&group.curves, CurveJson::of);
        /// Changes of order, those that change the leader first.
        crossings: Vec<CrossingJson<'a>> = each(&group.crossings, CrossingJson::of);
        /// Conclusions from it, as sentences.
        sentences: Vec<String> = cliff::words::sentences(group);
    }

    CurveJson = "Curve", of(curve: Curve) {
        /// Ascending; only ratios at which it was planned.
        points: Vec<PointJson<'a>> = each(&curve.points, PointJson::of);
    }

    PointJson = "Point", of(point: Point) {
        /// Reason that there is no rate.
        reason: Option<String> = point.reason.as_ref().map(reasons::of_cell);
    }

    CrossingJson = "Crossing", of(crossing: Crossing) {
        /// Reason that it is wider than the tolerance.
        reason: Option<&'static str> = crossing.reason.map(cliff::words::wide_crossing);
    }

    TablesJson = "Tables", of(judged: Tables) {
        /// One for each set of conditions that differ in more than the columns, in the order of the
        /// plan.
        tables: Vec<MethodTableJson<'a>> =
            each(&judged.tables, |table| MethodTableJson::of(table, judged.cpus));
        /// If threads are columns: the remaining score of each method as the data grow.
        falls: Vec<FallJson<'a>> = each(&judged.falls, FallJson::of);
        /// Cold starts, one for each pattern, size and number of threads.
        cold_starts: Vec<ColdStartJson<'a>> = each(&judged.cold_starts, ColdStartJson::of);
        /// Conclusions, as sentences.
        sentences: Vec<String> = tables::words::sentences(judged);
    }

    MethodTableJson = "MethodTable", of(table: MethodTable, cpus: u32) {
        /// One for each method, in the order of the plan.
        rows: Vec<MethodRowJson<'a>> = each(&table.rows, MethodRowJson::of);
        /// The fastest methods by column.
        fastest: Vec<FastestJson<'a>> = each(&table.fastest, FastestJson::of);
        /// Conclusions from it, as sentences.
        sentences: Vec<String> = tables::words::of_table(table, cpus);
    }

    MethodRowJson = "MethodRow", of(row: MethodRow) {
        /// One for each column; `None` if the plan has no such cell.
        scores: Vec<Option<ScoreJson<'a>>> = each(&row.scores, |score| score.as_ref().map(ScoreJson::of));
    }

    ScoreJson = "Score", of(score: Score) {
        /// Reason that it has no figures, or that some samples are missing.
        reason: Option<String> = score.reason.as_ref().map(reasons::of_cell);
        /// Reason that it is not ranked.
        not_ranked: Option<String> = score.not_ranked.as_ref().map(reasons::unranked);
        /// Activity of its threads when they were not reading.
        waits: Option<WaitsJson<'a>> = score.waits.as_ref().map(WaitsJson::of);
    }

    WaitsJson = "ThreadWaits", of(waits: ThreadWaits) {
        /// Cause of their waiting as the rest of a sentence.
        words: String = tables::words::waits::waits(waits);
    }

    FastestJson = "Fastest", of(fastest: Fastest) {
        /// Reason that there is none.
        reason: Option<String> = fastest.reason.as_ref().map(reasons::of_no_verdict);
    }

    FallJson = "Fall", of(fall: Fall) {
        /// `random-read, warm: data 2x the cache against 0.5x`.
        label: String = tables::words::fall(fall);
    }

    ColdStartJson = "ColdStart", of(start: ColdStart) {
        /// One for each method.
        rows: Vec<ColdRowJson<'a>> = each(&start.rows, ColdRowJson::of);
        /// The conclusion from it, as a sentence.
        sentence: String = tables::words::cold_start(start).unwrap_or_default();
    }

    ColdRowJson = "ColdRow", of(row: ColdRow) {
        /// Reason that it has no figures, or that some samples are missing.
        reason: Option<String> = row.reason.as_ref().map(reasons::of_cell);
        /// Reason that it is not ranked.
        not_ranked: Option<String> = row.not_ranked.as_ref().map(reasons::unranked);
    }
}
