//! The word of each claim: holds here, does not, or cannot be tested here.

use pagewise_analysis::judge::collected::{CellSamples, collect};
use pagewise_analysis::judge::label::label;
use pagewise_analysis::judge::rates_by_conditions;
use pagewise_analysis::proof;
use pagewise_analysis::statistics::{lasting, median};
use pagewise_model::Environment;
use pagewise_model::run::Run;
use serde::Serialize;

use super::case::{Case, CaseFinding, by_round, cases};
use super::quantity::{Quantity, Unit};
use super::selection::RunCells;
use super::study::{Cases, Claim, Defect, Study, Test};

/// Share of cases that are most of them.
const MOST: f64 = 0.8;

/// The verdict on a claim on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Every test is within its bounds.
    Holds,
    /// A test is beyond them.
    DoesNotHold,
    /// The machine, the sizes or the rounds do not decide.
    CannotBeTested,
}

impl Word {
    /// The words, in the order in which they are counted.
    pub const ALL: [Word; 3] = [Word::Holds, Word::DoesNotHold, Word::CannotBeTested];

    /// As it is printed.
    pub fn text(self) -> &'static str {
        match self {
            Word::Holds => "holds",
            Word::DoesNotHold => "does not hold",
            Word::CannotBeTested => "cannot be tested here",
        }
    }
}

/// Studies measured again.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Reproduction {
    /// Version of this JSON.
    pub schema: u32,
    /// The studies.
    pub studies: Vec<Reproduced>,
}

impl Reproduction {
    /// Of these studies.
    pub fn of(studies: Vec<Reproduced>) -> Self {
        Self { schema: 1, studies }
    }

    /// Number of claims with this word.
    pub fn count(&self, word: Word) -> usize {
        self.studies.iter().flat_map(|study| &study.claims).filter(|claim| claim.word == word).count()
    }
}

/// A study, measured again.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Reproduced {
    /// Name.
    pub study: String,
    /// Subject, machine and date of the published measurement.
    pub published: String,
    /// Reasons that runs of it are missing.
    pub missing: Vec<String>,
    /// Claims.
    pub claims: Vec<JudgedClaim>,
}

/// One claim with its word.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct JudgedClaim {
    /// Name.
    pub id: String,
    /// The claim.
    pub says: String,
    /// The figures that were published for it.
    pub published: String,
    /// Word of the claim here.
    pub word: Word,
    /// Reason that it cannot be tested.
    pub reason: Option<String>,
    /// Findings, test by test.
    pub tests: Vec<JudgedTest>,
    /// Counters of the cells that decided.
    pub because: Vec<Counters>,
    /// Faults of the published method, each with the figure that is known here.
    pub defects: Vec<JudgedDefect>,
}

/// One test with its cases.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct JudgedTest {
    /// The quantity.
    pub quantity: &'static str,
    /// The word in a sentence.
    pub text: &'static str,
    /// The form of its values, unless they are ratios.
    pub unit: Unit,
    /// True if values are ratios.
    pub is_ratio: bool,
    /// True if values are differences.
    pub is_difference: bool,
    /// The least with which the claim holds.
    pub at_least: Option<f64>,
    /// The most.
    pub at_most: Option<f64>,
    /// Cases that must be within.
    pub of_cases: Cases,
    /// The word of this test.
    pub word: Word,
    /// The case that decides, as an index.
    pub deciding: Option<usize>,
    /// All cases.
    pub cases: Vec<Case>,
}

/// Quantities of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Counters {
    /// Method.
    pub method: String,
    /// Conditions.
    pub conditions: String,
    /// Medians over its valid samples.
    pub values: Vec<Counter>,
}

/// A quantity.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Counter {
    /// Name in a sentence.
    pub text: &'static str,
    /// The form of its value.
    pub unit: Unit,
    /// Median.
    pub value: f64,
}

/// A defect of the published method.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct JudgedDefect {
    /// The fault.
    pub says: String,
    /// The quantity that this run has instead, in a sentence.
    pub text: &'static str,
    /// The form of its values.
    pub unit: Unit,
    /// The least and the most among medians of cells; `None` without a valid sample.
    pub here: Option<(f64, f64)>,
    /// Valid samples that show it.
    pub samples: usize,
}

/// Judge the claims of a study by its runs, each by the name of its plan: the run, or why there is
/// none. Today's checks decide which samples are valid.
pub fn judge_claims(name: &str, study: &Study, runs: &[(String, Result<Run, String>)]) -> Reproduced {
    let checked: Vec<(&str, Result<proof::Again<'_>, &str>)> = runs
        .iter()
        .map(|(name, run)| (name.as_str(), run.as_ref().map(proof::again).map_err(String::as_str)))
        .collect();
    let known: Vec<(&str, Result<Measured<'_>, &str>)> = checked
        .iter()
        .map(|(name, again)| {
            (*name, again.as_ref().map(|again| Measured::of(&again.run)).map_err(|why| *why))
        })
        .collect();
    let missing = runs.iter().filter_map(|(run, found)| Some(format!("{run}: {}", found.as_ref().err()?)));
    Reproduced {
        study: name.to_string(),
        published: study.published.clone(),
        missing: missing.collect(),
        claims: study.claims.iter().map(|claim| judge_claim(claim, &study.defects, &known)).collect(),
    }
}

/// A run whose samples are checked.
struct Measured<'a> {
    environment: &'a Environment,
    cells: Vec<CellSamples<'a>>,
    inflation: f64,
}

impl<'a> Measured<'a> {
    fn of(run: &'a Run) -> Self {
        let cells = collect(run);
        let inflation = lasting::inflation(&rates_by_conditions(&cells));
        Self { environment: &run.header.environment, cells, inflation }
    }
}

type Known<'a> = [(&'a str, Result<Measured<'a>, &'a str>)];

fn run_of<'a>(runs: &'a Known<'_>, name: &str) -> Result<&'a Measured<'a>, String> {
    let found = runs.iter().find(|(known, _)| *known == name);
    match found {
        Some((_, Ok(measured))) => Ok(measured),
        Some((_, Err(why))) => Err(format!("the run {name} is missing: {why}")),
        None => Err(format!("the run {name} is not among these")),
    }
}

fn judge_claim(claim: &Claim, defects: &[Defect], runs: &Known<'_>) -> JudgedClaim {
    let (mut tests, mut reason) = (Vec::new(), claim.untestable.clone());
    let environments = runs.iter().filter_map(|(_, run)| Some(run.as_ref().ok()?.environment));
    reason = reason.or(environments.into_iter().find_map(|environment| claim.needs.lacking(environment)));
    for test in &claim.tests {
        if reason.is_some() {
            break;
        }
        match run_of(runs, &test.run) {
            Ok(run) => tests.push(judge_test(test, run)),
            Err(why) => reason = Some(why),
        }
    }
    let has = |word: Word| tests.iter().any(|test| test.word == word);
    let word = match (has(Word::DoesNotHold), reason.is_some() || has(Word::CannotBeTested)) {
        (true, _) => Word::DoesNotHold,
        (false, true) => Word::CannotBeTested,
        (false, false) => Word::Holds,
    };
    if word == Word::CannotBeTested {
        let undecided = tests.iter().find(|test| test.word == Word::CannotBeTested);
        reason = reason.or(undecided.map(why_open));
    }
    JudgedClaim {
        id: claim.id.clone(),
        says: claim.says.clone(),
        published: claim.published.clone(),
        word,
        reason: reason.filter(|_| word == Word::CannotBeTested),
        because: because(claim, &tests, word, runs),
        tests,
        defects: defects
            .iter()
            .filter(|defect| defect.claims.contains(&claim.id))
            .map(|defect| judge_defect(defect, runs))
            .collect(),
    }
}

fn judge_test(test: &Test, run: &Measured<'_>) -> JudgedTest {
    let pairs = RunCells::of(&run.cells).pairs(test);
    let cases = cases(test, &pairs, run.environment.cpus, run.inflation);
    let definition = test.quantity.definition();
    let word = word_of(test.cases, &cases);
    JudgedTest {
        quantity: definition.name,
        text: definition.text,
        unit: definition.unit,
        is_ratio: test.over.is_some(),
        is_difference: test.minus.is_some(),
        at_least: test.at_least,
        at_most: test.at_most,
        of_cases: test.cases,
        word,
        deciding: deciding(test.cases, word, &cases),
        cases,
    }
}

/// The word of a test with these cases. One that is missing decides nothing; one that the machine
/// or the method does not support is left out, if others are not.
fn word_of(which: Cases, cases: &[Case]) -> Word {
    let supported: Vec<&Case> =
        cases.iter().filter(|case| case.finding != CaseFinding::Unavailable).collect();
    let count = |finding: CaseFinding| supported.iter().filter(|case| case.finding == finding).count() as f64;
    let (within, beyond) = (count(CaseFinding::Within), count(CaseFinding::Beyond));
    let all = supported.len() as f64;
    let (holds, fails) = match which {
        Cases::Every => (within == all, beyond > 0.0),
        Cases::Most => (within >= MOST * all, beyond > (1.0 - MOST) * all + 1e-9),
        Cases::Any => (within > 0.0, beyond == all),
    };
    match (supported.is_empty(), fails, holds) {
        (true, ..) => Word::CannotBeTested,
        (_, true, _) => Word::DoesNotHold,
        (.., true) => Word::Holds,
        _ => Word::CannotBeTested,
    }
}

/// The case whose distance from the bounds decides, among those that speak for the word.
fn deciding(which: Cases, word: Word, cases: &[Case]) -> Option<usize> {
    let mut order: Vec<usize> = (0..cases.len()).filter(|index| cases[*index].value.is_some()).collect();
    order.sort_by(|one, other| cases[*one].margin.total_cmp(&cases[*other].margin));
    let last = order.len().checked_sub(1)?;
    let wanted = match which {
        Cases::Every => 0,
        Cases::Most => ((order.len() as f64 * (1.0 - MOST) + 1e-9) as usize).min(last),
        Cases::Any => last,
    };
    let speaks = match word {
        Word::Holds => CaseFinding::Within,
        Word::DoesNotHold => CaseFinding::Beyond,
        Word::CannotBeTested => CaseFinding::Open,
    };
    let speaking = (0..order.len()).filter(|at| cases[order[*at]].finding == speaks);
    let nearest = speaking.min_by_key(|at| at.abs_diff(wanted)).unwrap_or(wanted);
    Some(order[nearest])
}

fn why_open(test: &JudgedTest) -> String {
    let missing = test.cases.iter().find_map(|case| case.reason.clone());
    let open = test.cases.iter().any(|case| case.finding == CaseFinding::Open);
    match (test.cases.is_empty(), missing) {
        (true, _) => "this run has none of its cases".to_string(),
        (false, Some(missing)) if !open => missing,
        _ => "these rounds do not decide: the interval includes a bound".to_string(),
    }
}

/// The counters of the cells that decided the claim.
fn because(claim: &Claim, tests: &[JudgedTest], word: Word, runs: &Known<'_>) -> Vec<Counters> {
    let mut all: Vec<Counters> = Vec::new();
    for (test, judged) in claim.tests.iter().zip(tests).filter(|(_, judged)| judged.word == word) {
        let Ok(run) = run_of(runs, &test.run) else { continue };
        let ids = judged.deciding.map_or(&[][..], |index| &judged.cases[index].cells);
        let cells = ids.iter().filter_map(|id| run.cells.iter().find(|cell| cell.id == *id));
        let found = cells.map(|cell| counters(claim, cell, run.environment.cpus));
        for counters in found.filter(|counters| !counters.values.is_empty()) {
            if !all.contains(&counters) {
                all.push(counters);
            }
        }
    }
    all
}

fn counters(claim: &Claim, cell: &CellSamples<'_>, cpus: u32) -> Counters {
    let value = |quantity: &Quantity| {
        let definition = quantity.definition();
        let values = by_round(definition, cell, cpus).values();
        Some(Counter { text: definition.text, unit: definition.unit, value: median(&values)? })
    };
    Counters {
        method: cell.cell.method.to_string(),
        conditions: label(&cell.cell.conditions),
        values: claim.because.iter().filter_map(value).collect(),
    }
}

fn judge_defect(defect: &Defect, runs: &Known<'_>) -> JudgedDefect {
    let definition = defect.here.quantity.definition();
    let run = run_of(runs, &defect.here.run).ok();
    let values: Vec<Vec<f64>> = run
        .into_iter()
        .flat_map(|run| {
            let rounds = |cell: &CellSamples<'_>| by_round(definition, cell, run.environment.cpus).values();
            RunCells::of(&run.cells).shown(&defect.here.of).into_iter().map(rounds).collect::<Vec<_>>()
        })
        .collect();
    let medians: Vec<f64> = values.iter().filter_map(|values| median(values)).collect();
    let least = medians.iter().copied().min_by(f64::total_cmp);
    let most = medians.iter().copied().max_by(f64::total_cmp);
    JudgedDefect {
        says: defect.says.clone(),
        text: definition.text,
        unit: definition.unit,
        here: least.zip(most),
        samples: values.iter().map(Vec::len).sum(),
    }
}
