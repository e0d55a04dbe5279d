//! `pagewise reproduce`: published studies measured again, and their claims judged one by one.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pagewise_host::files;
use pagewise_lab::begin::Options;
use pagewise_lab::choices::{AllArguments, PrintArguments};
use pagewise_lab::exit::Exit;
use pagewise_lab::measure::{default_destination, execute_all};
use pagewise_lab::output::{self, say};
use pagewise_lab::plan::resolve::Variant;
use pagewise_lab::plan::text::of_table;
use pagewise_lab::plan::{Layer, PlanText};
use pagewise_lab::prepare::{Prepared, TypedQuestion};
use pagewise_lab::rights::ensure_settable;
use pagewise_lab::store;
use pagewise_lab::{command_lines, consent, planned};
use pagewise_model::Plan;
use pagewise_model::misspelt::meant;
use pagewise_model::run::Run;
use pagewise_report::json;
use serde::Deserialize;
use toml::{Table, Value};

use crate::arguments::ReproduceArguments;
use crate::document;
use crate::judgement::{Reproduction, Study, judge_claims};
use crate::studies::STUDIES;

/// A study with the plans that measure it again, by the name of its runs.
struct Loaded {
    name: &'static str,
    study: Study,
    plans: BTreeMap<String, PlanText>,
}

/// The names of a study and of a run.
type RunName = (String, String);
/// The runs of all studies, or why there are none.
type Runs = BTreeMap<RunName, Result<Run, String>>;

/// `pagewise reproduce`.
pub fn reproduce(arguments: &ReproduceArguments) -> Result<Exit> {
    let studies = chosen(arguments.study.as_deref())?;
    if !arguments.from.is_empty() {
        return print(&studies, load(&studies, &store::run_files(&arguments.from)?)?, arguments);
    }
    let ReproduceArguments { json, verbose, max_writes, dry_run, .. } = *arguments;
    let all = AllArguments {
        max_writes,
        dry_run,
        print: PrintArguments { json, verbose, no_html: false },
        ..AllArguments::default()
    };
    let options = Options { all, ..Options::default() };
    let (mut prepared, missing) = prepare(&studies, arguments, &options)?;
    if !consent::limit_writes(&mut prepared, &options)? {
        return Ok(Exit::Interrupted);
    }
    for ((study, run), why) in &missing {
        say(format_args!("note: {study}, run {run}, cannot be measured here: {why}"));
    }
    if options.all.dry_run {
        let plans: Vec<&Plan> = prepared.iter().map(|one| &one.plan).collect();
        if json || verbose {
            return Ok(planned::dry_run(&plans, &options)?);
        }
        planned::summary(&plans, &mut output::stdout())?;
        writeln!(output::stdout(), "{}", consent::announcement(&prepared))?;
        return Ok(Exit::Answered);
    }
    let again = |files: &[PathBuf]| format!("Judge them again with: {}", claims_of(files));
    let files = match execute_all(prepared, &options, again)? {
        Ok(files) => files,
        Err(ending) => return Ok(ending),
    };
    let mut runs = load(&studies, &files)?;
    for (name, why) in missing {
        runs.insert(name, Err(why));
    }
    print(&studies, runs, arguments)?;
    say(again(&files));
    Ok(Exit::Answered)
}

/// The command line that judges the claims of published studies by run files.
fn claims_of(paths: &[PathBuf]) -> String {
    format!("pagewise reproduce --from {}", command_lines::words_of(paths))
}

/// The studies that were asked for.
fn chosen(name: Option<&str>) -> Result<Vec<Loaded>> {
    let Some(name) = name else { return STUDIES.iter().map(|(name, text)| Loaded::of(name, text)).collect() };
    let names: Vec<&str> = STUDIES.iter().map(|(name, _)| *name).collect();
    let Some((name, text)) = STUDIES.iter().find(|(known, _)| *known == name) else {
        bail!("unknown study '{name}': {}", meant(name, &names));
    };
    Ok(vec![Loaded::of(name, text)?])
}

impl Loaded {
    fn of(name: &'static str, text: &str) -> Result<Self> {
        let of_study = || format!("in the study '{name}'");
        let mut table: Table = text.parse().with_context(of_study)?;
        let runs = match table.remove("run") {
            Some(Value::Table(runs)) => runs,
            _ => bail!("the study '{name}' has no runs: write [run.NAME] above a plan"),
        };
        let plan = |(run, plan): (String, Value)| {
            let Value::Table(plan) = plan else {
                bail!("'{run}' is a plan: write [run.{run}] above its keys")
            };
            let plan = of_table(&question(name, &run), plan).with_context(of_study)?;
            Ok((run, plan))
        };
        let plans: BTreeMap<String, PlanText> = runs.into_iter().map(plan).collect::<Result<_>>()?;
        let study = Study::deserialize(Value::Table(table)).with_context(of_study)?;
        let names: Vec<&str> = plans.keys().map(String::as_str).collect();
        study.check(&names).map_err(anyhow::Error::msg).with_context(of_study)?;
        Ok(Self { name, study, plans })
    }
}

/// The name of a run in its file.
fn question(study: &str, run: &str) -> String {
    format!("{study}-{run}")
}

/// Prepare the runs of all studies; those that this machine cannot measure, with the reason.
fn prepare(
    studies: &[Loaded],
    arguments: &ReproduceArguments,
    options: &Options,
) -> Result<(Vec<Prepared>, BTreeMap<RunName, String>)> {
    if let Some(directory) = &arguments.dir {
        files::check_directory(directory)?;
    }
    let variant = if arguments.quick { Variant::Quick } else { Variant::Standard };
    let (mut prepared, mut missing) = (Vec::new(), BTreeMap::new());
    let mut refusal = None;
    for Loaded { name, study, plans } in studies {
        for (run, plan) in plans {
            let of_plan = default_destination(plan, arguments.dir.as_deref()).and_then(|destination| {
                let asked = TypedQuestion {
                    text: plan.clone(),
                    variant,
                    chosen: Layer::default(),
                    destination,
                    traced: None,
                };
                let one = Prepared::of(asked, options)?;
                study.lacking(run, &one.environment).map_or(Ok(()), |lacking| Err(anyhow!(lacking)))?;
                ensure_settable(&one.plan, &one.control, options.all.dry_run)?;
                Ok(one)
            });
            match of_plan {
                Ok(one) => prepared.push(one),
                Err(error) => {
                    missing.insert((name.to_string(), run.clone()), format!("{error:#}"));
                    refusal = refusal.or(Some(error));
                }
            }
        }
    }
    match refusal {
        Some(error) if prepared.is_empty() => Err(error),
        _ => Ok((prepared, missing)),
    }
}

/// The runs in these files by the study and the name that their question has.
fn load(studies: &[Loaded], files: &[PathBuf]) -> Result<Runs> {
    let mut runs = Runs::new();
    for path in files {
        let run = store::load(path)?;
        let asked = run.header.plan.question.clone();
        let found = studies.iter().find_map(|study| {
            let name = study.plans.keys().find(|name| question(study.name, name) == asked)?;
            Some((study.name.to_string(), name.clone()))
        });
        let Some(name) = found else {
            bail!("{} is no run of these studies: its question is '{asked}'", path.display());
        };
        let earlier = runs.insert(name, Ok(run));
        ensure!(earlier.is_none(), "two of these files are runs of {asked}: name one of them");
    }
    Ok(runs)
}

/// Judge and print the claims of the studies that have a run.
fn print(studies: &[Loaded], mut runs: Runs, arguments: &ReproduceArguments) -> Result<Exit> {
    let mut reproduced = Vec::new();
    for Loaded { name, study, plans } in studies {
        let of_study: Vec<(String, Result<Run, String>)> = plans
            .keys()
            .filter_map(|run| Some((run.clone(), runs.remove(&(name.to_string(), run.clone()))?)))
            .collect();
        if of_study.iter().any(|(_, run)| run.is_ok()) || arguments.from.is_empty() {
            reproduced.push(judge_claims(name, study, &of_study));
        }
    }
    let reproduction = Reproduction::of(reproduced);
    if arguments.json {
        json::write_one(&mut output::stdout(), &reproduction)?;
    } else if arguments.markdown {
        document::document(&reproduction, arguments.verbose).markdown(&mut output::stdout())?;
    } else {
        output::lines(&document::document(&reproduction, arguments.verbose).lines(output::width()))?;
    }
    Ok(Exit::Answered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::Word;

    #[test]
    fn every_study_is_read_and_has_the_published_claims() {
        let studies = chosen(None).expect("studies");
        let claims = studies.iter().map(|one| (one.name, one.study.claims.len())).collect::<Vec<_>>();
        assert_eq!(claims, [("append", 12), ("scan", 11), ("lucene", 27), ("fill", 5)]);
    }

    #[test]
    fn each_of_the_claims_has_a_word_and_without_runs_a_reason() {
        for Loaded { name, study, plans } in chosen(None).expect("studies") {
            let none: Vec<(String, Result<Run, String>)> =
                plans.keys().map(|run| (run.clone(), Err("not measured".to_string()))).collect();
            let reproduced = judge_claims(name, &study, &none);
            assert_eq!(reproduced.claims.len(), study.claims.len());
            for claim in reproduced.claims {
                let is_said = claim.word == Word::CannotBeTested && claim.reason.is_some();
                assert!(is_said, "{name} {}: {:?}", claim.id, claim.reason);
            }
        }
    }

    #[test]
    fn a_study_that_cannot_be_judged_is_refused() {
        let refused = |text: &str| format!("{:#}", Loaded::of("test", text).map(|_| ()).expect_err(text));
        let plan = "[run.one]\nworkload = \"scan\"\n";
        assert_eq!(
            refused("published = \"a\""),
            "the study 'test' has no runs: write [run.NAME] above a plan"
        );
        let claim = |rest: &str| {
            format!("published = \"a\"\n{plan}[[claim]]\nid = \"A\"\nsays = \"b\"\npublished = \"c\"\n{rest}")
        };
        let refusal = |rest: &str| refused(&claim(rest)).replace("in the study 'test': ", "");
        assert_eq!(refusal(""), "the claim A needs tests, or a reason that no run can test it");
        let test = |fields: &str| format!("test = [{{ run = \"one\", quantity = \"speed\", {fields} }}]");
        assert_eq!(
            refusal(&test("of = { each = [\"mmap\"] }")),
            "in the claim A: a test needs at_least or at_most"
        );
        assert_eq!(
            refusal(&test("of = { threads = [1] }, at_least = 1.0")),
            "in the claim A: 'of' needs methods: each = [...] or best = [...]"
        );
        assert_eq!(
            refusal(&test("of = { each = [\"mmap\"] }, over = { each = [\"pread\"] }, at_least = 1.0")),
            "in the claim A: 'over' and 'minus' have best = [...], or the methods of 'of'"
        );
        assert_eq!(
            refusal(&test("of = { each = [\"mmap\"] }, at = { best = [\"pread\"] }, at_least = 1.0")),
            "in the claim A: 'at' has conditions alone"
        );
        assert_eq!(
            refusal(&test("of = { best = [\"mmap*\"] }, at_least = 1.0").replace("speed", "time")),
            "in the claim A: the best of several methods has the highest value, which suits a rate alone"
        );
        let other = test("of = { each = [\"mmap\"] }, at_least = 1.0").replace("\"one\"", "\"two\"");
        assert_eq!(refusal(&other), "in the claim A: there is no run 'two': write one of one");
        assert!(refusal(&test("of = { each = [\"mmap\"] }, at_leats = 1.0")).contains("at_leats"));
        let quantity = test("of = { each = [\"mmap\"] }, at_least = 1.0").replace("speed", "sped");
        assert!(refusal(&quantity).contains("unknown quantity 'sped': write one of speed, "));
    }
}
