//! The judged JSON, indented: judged runs, and the sentences that are made of them.

use std::io::{self, Write};

use pagewise_analysis::Judged;
use pagewise_analysis::judge::advice::{Buffers, Recommendation};
use pagewise_analysis::judge::gain::Gain;
use pagewise_analysis::judge::schema;
use pagewise_analysis::judge::self_replay::SelfReplay;
use pagewise_analysis::judge::{CellJudgement, Comparison, Unranked};
use pagewise_model::run::Run;
use schemars::Schema;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::curves_door::CurvesJson;
use crate::judged_run::JudgedRun;
use crate::printed::{Escape, Printed};
use crate::words::{self, reasons};

/// The judged JSON of one run, or of several as a list.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Runs<'a> {
    /// One run.
    One(Box<JudgedJson<'a>>),
    /// Several runs.
    Several(Vec<JudgedJson<'a>>),
}

/// Parts of the judged JSON: data of the analysis, and the fields that are made of it. The file
/// that uses it imports `serde::Serialize`.
#[macro_export]
macro_rules! json_parts {
    ($(
        $name:ident = $schema:literal, of($data:ident: $of:ty $(, $other:ident: $other_type:ty)*) {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $value:expr;)*
        }
    )*) => {$(
        #[derive(Serialize, schemars::JsonSchema)]
        #[schemars(rename = $schema)]
        pub(crate) struct $name<'a> {
            #[serde(flatten)]
            $data: &'a $of,
            $($(#[$attribute])* $field: $type,)*
        }

        impl<'a> $name<'a> {
            pub(crate) fn of($data: &'a $of $(, $other: $other_type)*) -> Self {
                Self { $data, $($field: $value,)* }
            }
        }
    )*};
}

/// A part of each.
pub fn each<'a, T, P>(data: &'a [T], part: impl Fn(&'a T) -> P) -> Vec<P> {
    data.iter().map(part).collect()
}

/// A run with its results.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "Judged")]
pub struct JudgedJson<'a> {
    /// Warnings to read before the numbers, one sentence each.
    warnings: Vec<String>,
    #[serde(flatten)]
    judged: &'a Judged,
    /// Every cell in the order of the plan.
    cells: Vec<CellJson<'a>>,
    /// Every set of conditions under which methods are compared.
    comparisons: Vec<ComparisonJson<'a>>,
    #[serde(flatten)]
    curves: CurvesJson<'a>,
    /// The proof that a replayed trace stands for its program, or does not; `None` if none was
    /// replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    self_replay: Option<SelfReplayJson<'a>>,
    /// The gain that another method could bring to the whole program whose trace was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<GainJson<'a>>,
    /// Recommendations, one for each comparison.
    advice: Vec<AdviceJson<'a>>,
}

impl<'a> JudgedJson<'a> {
    /// A judged run as it is printed.
    pub fn of(run: &'a JudgedRun<'_>) -> Self {
        let judged = run.judged;
        let advice = judged.advice.iter().zip(&judged.comparisons);
        Self {
            warnings: words::warnings::all(judged),
            judged,
            cells: each(&judged.cells, CellJson::of),
            comparisons: each(&judged.comparisons, ComparisonJson::of),
            curves: CurvesJson(run.curves()),
            self_replay: judged.self_replay.as_ref().map(SelfReplayJson::of),
            gain: judged.gain.as_ref().map(GainJson::of),
            advice: advice.map(|(advice, comparison)| AdviceJson::of(advice, comparison)).collect(),
        }
    }
}

json_parts! {
    CellJson = "CellJudgement", of(cell: CellJudgement) {
        /// Reason that it has no figures, or that some samples are missing.
        reason: Option<String> = cell.reason.as_ref().map(reasons::of_cell);
        /// Reason that the latency is withheld, if it is.
        latency_reason: Option<&'static str> = cell.latency_reason.map(reasons::no_latency);
        /// Reason that the delays of heartbeats are withheld, if they are.
        stall_reason: Option<&'static str> = cell.stall_reason.map(reasons::no_stall);
    }

    ComparisonJson = "Comparison", of(comparison: Comparison) {
        /// Methods that are shown but not ranked.
        unranked: Vec<UnrankedJson<'a>> = each(&comparison.unranked, UnrankedJson::of);
        /// Reason that there is no verdict.
        reason: Option<String> = comparison.reason.as_ref().map(reasons::of_no_verdict);
    }

    UnrankedJson = "Unranked", of(unranked: Unranked) {
        /// The reason.
        reason: String = reasons::unranked(&unranked.reason);
    }

    AdviceJson = "Recommendation", of(advice: Recommendation, comparison: &'a Comparison) {
        /// Reason that nothing is recommended; `None` if something is.
        reason: Option<String> = words::advice::silence(comparison);
        /// All of it as a sentence.
        sentence: String = words::advice::sentence(advice, comparison);
        /// The meaning of the result beyond the choice, without a full stop: the remaining
        /// potential of a cold scan, the gain and the moved cost of prefaulting a fill. It is shown
        /// as a sentence among the notes.
        insight: Option<String> = advice.insight.as_ref().map(words::advice::insight);
        /// Buffers that are as good as the best, if methods of an append differ in that.
        buffers: Vec<BuffersJson<'a>> = advice.buffers().map(BuffersJson::of).collect();
        /// Explanations of the result, one sentence each; the insight is the first.
        notes: Vec<String> = words::advice::notes(advice, comparison);
        /// Effects of methods on everything else in their process, one sentence each; empty for a
        /// run without heartbeats.
        stalls: Vec<String> = each(&advice.stalls, words::advice::held_up);
    }

    BuffersJson = "Buffers", of(buffers: Buffers) {
        /// The conclusion from it, as a sentence.
        sentence: String = words::advice::buffers(buffers);
    }

    SelfReplayJson = "SelfReplay", of(replay: SelfReplay) {
        /// The conclusion from it, as a sentence.
        sentence: String = words::replay::proof(replay);
    }

    GainJson = "Gain", of(gain: Gain) {
        /// The conclusion from it, as a sentence.
        sentence: String = words::replay::gain(gain);
    }
}

/// The schema of the judged JSON: field names, their types, and their descriptions.
pub fn schema() -> Schema {
    schema::of::<Runs<'_>>()
}

/// Write one judged run as an object, several as an array of such objects.
pub fn write(out: &mut dyn Write, runs: &[JudgedRun<'_>]) -> io::Result<()> {
    let runs = match runs {
        [only] => Runs::One(Box::new(JudgedJson::of(only))),
        several => Runs::Several(each(several, JudgedJson::of)),
    };
    write_one(out, &runs)
}

/// Write several judged runs as an array, of which one at a time is in memory.
pub fn write_several<E: From<io::Error>>(
    out: &mut dyn Write,
    mut runs: impl Iterator<Item = Result<(Run, Judged), E>>,
) -> Result<(), E> {
    let mut out = Printed::new(out, Escape::Json);
    let mut serializer = serde_json::Serializer::pretty(&mut out);
    let mut list = serializer.serialize_seq(None).map_err(io::Error::from)?;
    runs.try_for_each(|both| {
        let (run, judged) = both?;
        let one = JudgedRun::of("", &run, &judged);
        list.serialize_element(&JudgedJson::of(&one)).map_err(|error| E::from(io::Error::from(error)))
    })?;
    list.end().map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Write any value as JSON for people and programs: strings keep their content, escaped so that a
/// terminal obeys none of it.
pub fn write_one(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut out = Printed::new(out, Escape::Json);
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}
