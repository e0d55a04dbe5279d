//! `advice`: whether what quick runs advise holds in full ones, on fresh seeds and fresh files.
//!
//! Full runs are the reference. A few of them serve many quick ones: a *case* is one comparison of
//! a quick run, and it holds if the advised method is near the best of the full runs of the same
//! conditions. That is by the paired ratios of the full runs: of rates, and of the total of set-up,
//! measured region and tear-down where the work is done once; the mean over the full runs, each of
//! which has datasets of its own. The cases are a function of run files, which may have been taken
//! before.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use pagewise_analysis::{Judged, judge};
use pagewise_model::run::Run;
use pagewise_report::words::advice::sentence;

use crate::dataset::Scratch;
use crate::pagewise::{Pagewise, Place};

/// What is asked.
const QUESTIONS: [&str; 4] = ["read", "scan", "append", "fill"];
/// The question whose files lie in memory unless a folder is named.
const IN_MEMORY: &str = "fill";
/// How far behind the best an advised method may be.
const AT_MOST: f64 = 1.05;
/// Budget of a reference: with the usual one of full runs (800 %) four questions take 27 minutes.
const REFERENCE_BUDGET: &str = "--budget=300%";

/// Whether what quick runs advise holds in full ones, on fresh seeds and fresh files.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// Runs of each question that advise.
    #[arg(long, default_value_t = 2)]
    pairs: usize,
    /// Full runs of each question that decide.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    references: u32,
    /// Measure nothing: run files that advise, such as those of overviews.
    #[arg(long, num_args = 1.., value_name = "FILE", requires = "deciding", conflicts_with = "questions")]
    advising: Vec<PathBuf>,
    /// Run files that decide, taken by `--full`.
    #[arg(long, num_args = 1.., value_name = "FILE", requires = "advising")]
    deciding: Vec<PathBuf>,
    /// The questions, such as `scan append`; all of them if none is named.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(QUESTIONS))]
    questions: Vec<String>,
}

/// Measures, unless there are run files, and prints a line for each advice.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    if !options.advising.is_empty() {
        let load_all = |paths: &[PathBuf]| paths.iter().map(|path| load(path)).collect::<Result<Vec<_>>>();
        let (advising, deciding) = (load_all(&options.advising)?, load_all(&options.deciding)?);
        let mut cases = Vec::new();
        for (path, judged) in options.advising.iter().zip(&advising) {
            cases.extend(cases_of(&path.display().to_string(), judged, &deciding));
        }
        return print(&cases, out);
    }
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    let all: Vec<String> = QUESTIONS.map(str::to_string).to_vec();
    let questions = if options.questions.is_empty() { &all } else { &options.questions };
    let mut cases = Vec::new();
    for question in questions {
        let mut deciding = Vec::new();
        for reference in 0..options.references {
            let name = format!("deciding-{question}-{reference}.jsonl");
            deciding.push(measured(&pagewise, &scratch, question, &reference_arguments(question), &name)?);
        }
        for pair in 0..options.pairs {
            let name = format!("advising-{question}-{pair}.jsonl");
            let advising = measured(&pagewise, &scratch, question, &["--quick"], &name)?;
            cases.extend(cases_of(&name, &advising, &deciding));
        }
    }
    print(&cases, out)
}

/// One comparison of a run that advises.
#[derive(Clone, Debug, PartialEq)]
struct Case {
    /// The run.
    run: String,
    /// The conditions.
    label: String,
    /// The advised method.
    method: Option<String>,
    reference: Reference,
}

/// What the full runs say of the advised method.
#[derive(Clone, Debug, PartialEq)]
enum Reference {
    /// The advised method is so many times as slow as the best, which is one of these.
    Behind(f64, Vec<String>),
    /// Nothing, for this reason.
    Nothing(String),
}

impl Case {
    fn holds(&self) -> bool {
        matches!(self.reference, Reference::Behind(times, _) if times <= AT_MOST)
    }
}

/// The cases of a run that advises.
fn cases_of(run: &str, advising: &Judged, deciding: &[Judged]) -> Vec<Case> {
    let cases = advising.advice.iter().zip(&advising.comparisons).map(|(advice, own)| {
        let rankings: Vec<Ranking> = deciding
            .iter()
            .flat_map(|judged| &judged.comparisons)
            .filter(|comparison| comparison.conditions.conditions == advice.conditions.conditions)
            .map(|comparison| {
                let others = comparison.ratios.iter().map(|ratio| (ratio.method.clone(), ratio.ratio));
                Ranking { leader: comparison.leader.clone(), times: others.collect() }
            })
            .collect();
        Case {
            run: run.to_string(),
            label: advice.conditions.label.clone(),
            method: advice.recommended.clone(),
            reference: against(advice.recommended.as_deref(), &sentence(advice, own), &rankings),
        }
    });
    cases.collect()
}

/// The methods of a comparison of a full run.
#[derive(Clone, Debug, Default)]
struct Ranking {
    leader: Option<String>,
    /// How many times as slow as the leader the others are.
    times: BTreeMap<String, f64>,
}

impl Ranking {
    fn times(&self, method: &str) -> Option<f64> {
        let leads = self.leader.as_deref() == Some(method);
        if leads { Some(1.0) } else { self.times.get(method).copied() }
    }
}

/// What the rankings of full runs say of the method: how far it is behind the method that is best
/// over all of them. Each other method is compared with it by the geometric mean over the full runs
/// that rank both.
fn against(method: Option<&str>, sentence: &str, rankings: &[Ranking]) -> Reference {
    let Some(method) = method else { return Reference::Nothing(format!("no advice: {sentence}")) };
    let ranked: Vec<&Ranking> = rankings.iter().filter(|ranking| ranking.leader.is_some()).collect();
    if ranked.is_empty() {
        return Reference::Nothing("no full run has these conditions and a best".to_string());
    }
    if ranked.iter().any(|ranking| ranking.times(method).is_none()) {
        return Reference::Nothing(format!("{method} is not ranked in a full run"));
    }
    let mut names: Vec<&String> =
        ranked.iter().flat_map(|ranking| ranking.times.keys().chain(&ranking.leader)).collect();
    names.sort_unstable();
    names.dedup();
    let behind = |name: &String| {
        let logs =
            ranked.iter().filter_map(|ranking| Some((ranking.times(method)? / ranking.times(name)?).ln()));
        let logs: Vec<f64> = logs.collect();
        logs.iter().sum::<f64>() / logs.len() as f64
    };
    // The method itself is at 0.
    let most = names.iter().map(|name| behind(name)).fold(0.0, f64::max);
    let best = names.into_iter().filter(|name| behind(name) == most).cloned().collect();
    Reference::Behind(most.exp(), best)
}

/// A line for each case, and how many hold.
fn print(cases: &[Case], out: &mut impl Write) -> Result<()> {
    for Case { run, label, method, reference } in cases {
        let method = method.as_deref().unwrap_or("-");
        match reference {
            Reference::Behind(times, best) => {
                let mark = if *times <= AT_MOST { "" } else { "  behind" };
                writeln!(out, "{run}: {label}: {method}; best: {}, {times:.3}x{mark}", best.join(", "))?;
            }
            Reference::Nothing(reason) => writeln!(out, "{run}: {label}: {method}; not decided: {reason}")?,
        }
    }
    let decided = cases.iter().filter(|case| matches!(case.reference, Reference::Behind(..))).count();
    let (held, percent) = (cases.iter().filter(|case| case.holds()).count(), (AT_MOST - 1.0) * 100.0);
    writeln!(
        out,
        "\nwithin {percent:.0} % of the best: {held} of {decided}; not decided: {}",
        cases.len() - decided
    )?;
    Ok(())
}

/// Arguments of a full run that has the conditions of a quick one, on files of its size, and more
/// methods.
fn reference_arguments(question: &str) -> Vec<&'static str> {
    let conditions: &[&str] = match question {
        "read" => &["--threads=1", "--file-size=1GiB"],
        "scan" => &["--consume=lines", "--file-size=128MiB"],
        "append" => &["--record-size=100B,1KiB", "--file-size=32MiB"],
        _ => &["--block-size=128B", "--file-size=64MiB"],
    };
    [&["--full", REFERENCE_BUDGET], conditions].concat()
}

fn measured(
    pagewise: &Pagewise<'_>,
    scratch: &Scratch,
    question: &str,
    arguments: &[&str],
    name: &str,
) -> Result<Judged> {
    let path = scratch.path(name);
    let mut command = pagewise.command();
    command.args(["run", question, "--json"]).args(arguments).arg("--out").arg(&path);
    if question != IN_MEMORY {
        command.arg("--dir").arg(scratch.path(""));
    }
    let status = command.stdout(Stdio::null()).status().context("pagewise does not start")?;
    ensure!(matches!(status.code(), Some(0 | 1)), "pagewise run: {status}");
    load(&path)
}

fn load(path: &Path) -> Result<Judged> {
    let text = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(judge(&Run::parse(&text).with_context(|| format!("in {}", path.display()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(leader: &str, others: &[(&str, f64)]) -> Ranking {
        let times = others.iter().map(|(method, times)| (method.to_string(), *times)).collect();
        Ranking { leader: Some(leader.to_string()), times }
    }

    fn behind(method: &str, rankings: &[Ranking]) -> f64 {
        match against(Some(method), "", rankings) {
            Reference::Behind(times, _) => times,
            Reference::Nothing(reason) => panic!("{reason}"),
        }
    }

    #[test]
    fn an_advised_method_is_compared_with_the_best_over_all_full_runs() {
        let one = ranking("mmap", &[("pread", 1.08), ("uring", 3.0)]);
        let other = ranking("pread", &[("mmap", 1.04), ("uring", 2.0)]);
        assert_eq!(behind("mmap", std::slice::from_ref(&one)), 1.0);
        assert_eq!(behind("pread", std::slice::from_ref(&one)), 1.08);
        let both = [one, other];
        // Mean of 1 and 1.04 against that of 1.08 and 1.
        assert_eq!(behind("mmap", &both), 1.0);
        assert!((behind("pread", &both) - (1.08f64 / 1.04).sqrt()).abs() < 1e-9);
        let Reference::Behind(_, best) = against(Some("uring"), "", &both) else { panic!("it is ranked") };
        assert_eq!(best, ["mmap"]);
    }

    #[test]
    fn what_no_full_run_decides_is_no_case_that_holds() {
        let nothing =
            |method, rankings: &[Ranking]| matches!(against(method, "", rankings), Reference::Nothing(_));
        assert!(nothing(None, &[ranking("mmap", &[])]));
        assert!(nothing(Some("mmap"), &[]));
        assert!(nothing(Some("mmap"), &[Ranking::default()]), "it has no best");
        assert!(nothing(Some("read"), &[ranking("mmap", &[("pread", 1.5)])]));
        let case =
            |reference| Case { run: "r".into(), label: "l".into(), method: Some("mmap".into()), reference };
        let cases = [
            case(Reference::Behind(1.05, vec!["pread".into()])),
            case(Reference::Behind(1.06, vec!["pread".into()])),
            case(Reference::Nothing("because".into())),
        ];
        assert_eq!(cases.iter().filter(|case| case.holds()).count(), 1);
        let mut out = Vec::new();
        print(&cases, &mut out).expect("printed");
        let text = String::from_utf8(out).expect("text");
        assert!(text.ends_with("\nwithin 5 % of the best: 1 of 2; not decided: 1\n"), "{text}");
        assert!(text.contains("1.060x  behind\n") && text.contains("not decided: because\n"), "{text}");
    }
}
