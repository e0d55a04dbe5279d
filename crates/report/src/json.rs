//! The judged JSON, indented: judged runs, and the sentences that are made of them.

use std::io::{self, Write};

use pagewise_analysis::Judged;
use pagewise_analysis::judge::advice::{Buffers, Recommendation};
use pagewise_analysis::judge::cliff::{Cliff, CurveGroup};
use pagewise_analysis::judge::gain::Gain;
use pagewise_analysis::judge::method_tables::{ColdStart, MethodTable, Tables};
use pagewise_analysis::judge::schema;
use pagewise_analysis::judge::self_replay::SelfReplay;
use schemars::Schema;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::printed::{Escape, Printed};
use crate::words;

/// The judged JSON of one run, or of several as a list.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Runs<'a> {
    /// One run.
    One(Box<JudgedJson<'a>>),
    /// Several runs.
    Several(Vec<JudgedJson<'a>>),
}

/// A run with its results.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "Judged")]
pub struct JudgedJson<'a> {
    /// Warnings to read before the numbers, one sentence each.
    warnings: Vec<String>,
    #[serde(flatten)]
    judged: &'a Judged,
    /// Changes of the order of methods as the data grow, if the run searched for them.
    cliff: Option<CliffJson<'a>>,
    /// The tables of methods by threads or by size of the data; `None` if the plan asks for none.
    tables: Option<TablesJson<'a>>,
    /// The proof that a replayed trace stands for its program, or does not; `None` if none was
    /// replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    self_replay: Option<WithSentence<'a, SelfReplay>>,
    /// The gain that another method could bring to the whole program whose trace was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<WithSentence<'a, Gain>>,
    /// Recommendations, one for each comparison.
    advice: Vec<AdviceJson<'a>>,
}

/// Recommendation for one set of conditions.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "Recommendation")]
struct AdviceJson<'a> {
    #[serde(flatten)]
    advice: &'a Recommendation,
    /// Reason that nothing is recommended; `None` if something is.
    reason: Option<String>,
    /// All of it as a sentence.
    sentence: String,
    /// The meaning of the result beyond the choice, without a full stop: the remaining potential of
    /// a cold scan, the gain and the moved cost of prefaulting a fill. It is shown as a sentence
    /// among the notes.
    insight: Option<String>,
    /// Buffers that are as good as the best, if methods of an append differ in that.
    buffers: Vec<WithSentence<'a, Buffers>>,
    /// Explanations of the result, one sentence each; the insight is the first.
    notes: Vec<String>,
    /// Effects of methods on everything else in their process, one sentence each; empty for a run
    /// without heartbeats.
    stalls: Vec<String>,
}

impl<'a> JudgedJson<'a> {
    /// A judged run as it is printed.
    pub fn of(judged: &'a Judged) -> Self {
        let advice = judged.advice.iter().zip(&judged.comparisons).map(|(advice, comparison)| AdviceJson {
            reason: words::advice::silence(comparison),
            sentence: words::advice::sentence(advice, comparison),
            insight: advice.insight.as_ref().map(words::advice::insight),
            buffers: advice.buffers().map(|data| WithSentence::of(data, words::advice::buffers)).collect(),
            notes: words::advice::notes(advice, comparison),
            stalls: advice.stalls.iter().map(words::advice::held_up).collect(),
            advice,
        });
        Self {
            warnings: words::warnings::all(judged),
            judged,
            cliff: judged.cliff.as_ref().map(CliffJson::of),
            tables: judged.tables.as_ref().map(TablesJson::of),
            self_replay: judged.self_replay.as_ref().map(|data| WithSentence::of(data, words::replay::proof)),
            gain: judged.gain.as_ref().map(|data| WithSentence::of(data, words::replay::gain)),
            advice: advice.collect(),
        }
    }
}

#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "Cliff")]
struct CliffJson<'a> {
    #[serde(flatten)]
    cliff: &'a Cliff,
    /// One for each set of conditions that differ only in the span, in the order of the plan. Only
    /// those with a memory limit: without one there is no ratio.
    groups: Vec<WithSentences<'a, CurveGroup>>,
}

impl<'a> CliffJson<'a> {
    fn of(cliff: &'a Cliff) -> Self {
        let group = |data| WithSentences { data, sentences: words::cliff::sentences(data) };
        Self { cliff, groups: cliff.groups.iter().map(group).collect() }
    }
}

#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "Tables")]
struct TablesJson<'a> {
    #[serde(flatten)]
    judged: &'a Tables,
    /// One for each set of conditions that differ in more than the columns, in the order of the
    /// plan.
    tables: Vec<WithSentences<'a, MethodTable>>,
    /// Cold starts, one for each pattern, size and number of threads.
    cold_starts: Vec<WithSentence<'a, ColdStart>>,
    /// Conclusions, as sentences.
    sentences: Vec<String>,
}

impl<'a> TablesJson<'a> {
    fn of(judged: &'a Tables) -> Self {
        let table =
            |data| WithSentences { data, sentences: words::method_tables::of_table(data, judged.cpus) };
        let start = |data| {
            WithSentence::of(data, |start| words::method_tables::cold_start(start).unwrap_or_default())
        };
        Self {
            judged,
            tables: judged.tables.iter().map(table).collect(),
            cold_starts: judged.cold_starts.iter().map(start).collect(),
            sentences: words::method_tables::sentences(judged),
        }
    }
}

#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "{T}")]
struct WithSentence<'a, T> {
    #[serde(flatten)]
    data: &'a T,
    /// The conclusion from it, as a sentence.
    sentence: String,
}

impl<'a, T> WithSentence<'a, T> {
    fn of(data: &'a T, sentence: impl Fn(&T) -> String) -> Self {
        Self { data, sentence: sentence(data) }
    }
}

#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "{T}")]
struct WithSentences<'a, T> {
    #[serde(flatten)]
    data: &'a T,
    /// Conclusions from it, as sentences.
    sentences: Vec<String>,
}

/// The schema of the judged JSON: field names, their types, and their descriptions.
pub fn schema() -> Schema {
    schema::of::<Runs<'_>>()
}

/// Write one judged run as an object, several as an array of such objects.
pub fn write(out: &mut dyn Write, runs: &[Judged]) -> io::Result<()> {
    let runs = match runs {
        [only] => Runs::One(Box::new(JudgedJson::of(only))),
        several => Runs::Several(several.iter().map(JudgedJson::of).collect()),
    };
    write_one(out, &runs)
}

/// Write several judged runs as an array, of which one at a time is in memory.
pub fn write_several<E: From<io::Error>>(
    out: &mut dyn Write,
    mut runs: impl Iterator<Item = Result<Judged, E>>,
) -> Result<(), E> {
    let mut out = Printed::new(out, Escape::Json);
    let mut serializer = serde_json::Serializer::pretty(&mut out);
    let mut list = serializer.serialize_seq(None).map_err(io::Error::from)?;
    runs.try_for_each(|judged| {
        list.serialize_element(&JudgedJson::of(&judged?)).map_err(|error| E::from(io::Error::from(error)))
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
