//! Plans measured: what was asked becomes a run file, once its consents are given.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use pagewise_analysis::judge::{expectations::more_samples, self_replay};
use pagewise_host::{cache, cgroup, pace};
use pagewise_model::date::compact_utc;
use pagewise_model::expectation::Expectation;
use pagewise_model::format::{self, counted, duration, only_or_counted};
use pagewise_model::limits::MAX_ROUNDS;
use pagewise_model::run::{Header, SCHEMA_VERSION};
use pagewise_model::{
    Alignment, CacheState, Cell, Conditions, Method, Plan, Replay, Role, Source, Work, Workload,
};
use pagewise_report::words::replay;

use crate::begin::{
    Claimed, Destination, Options, Taken, claim_within, examine, find_workers, finish, fresh_seed, stop_flag,
};
use crate::command_lines::typed;
use crate::exit::Exit;
use crate::output::{self, STANDARD_STREAM, say};
use crate::plan::axes::choose;
use crate::plan::resolve::{Variant, limited};
use crate::plan::validate;
use crate::plan::{ChosenBudget, Layer, MissingArgument, PlanText};
use crate::prepare::{Prepared, TypedQuestion};
use crate::rights::ensure_settable;
use crate::session::RunSession;
use crate::state::directories;
use crate::store::RunFile;
use crate::supervise::answer_time;
use crate::{command_lines, consent, planned};

/// The usual place of files in memory.
const IN_MEMORY: &str = "/dev/shm";
/// Run files of one second are numbered up to here.
const MAX_NUMBERED_RUNS: u32 = 999;

/// Measure what is asked, once its consents are given.
pub fn measure(asked: TypedQuestion, options: &Options) -> Result<Taken> {
    if let Some(traced) = &asked.traced {
        traced.notes.iter().for_each(|note| say(format_args!("note: {note}")));
    }
    let asked = asked.with_recording();
    let mut prepared = match prepare_with_consent(asked.clone(), options) {
        Err(refused) if matches!(refused.downcast_ref(), Some(MissingArgument::Time(_))) => {
            before_time(asked, options)?;
            return Err(refused);
        }
        prepared => prepared?,
    };
    ensure_provable(&prepared.plan, options)?;
    ensure_settable(&prepared.plan, &prepared.control, options.all.dry_run)?;
    let notes = left_out(&prepared).into_iter().chain(not_measured(&prepared)).chain(without_gaps(&prepared));
    let notes = notes.chain(without_read_ahead(&prepared));
    let notes = notes.chain(too_few_syncs(&prepared.plan)).chain(unfelt_limit(&prepared.plan));
    notes.for_each(|note| say(format_args!("note: {note}")));
    if !consent::limit_writes(std::slice::from_mut(&mut prepared), options)? {
        return Ok(Taken::Ended(Exit::Interrupted));
    }
    if options.all.dry_run {
        return Ok(Taken::Ended(planned::dry_run(&[&prepared.plan], options)?));
    }
    let mut announcement = consent::announcement(std::slice::from_ref(&prepared));
    if let Some(ends_at) = options.ends_at {
        let left = ends_at.saturating_duration_since(Instant::now());
        announcement.push_str(&format!("; it ends after {} at most", duration(left.as_nanos() as u64)));
    }
    execute(prepared, options, Some(announcement), None)
}

/// Refuse a trace of which it is known beforehand that its replay shows no other method.
fn ensure_provable(plan: &Plan, options: &Options) -> Result<()> {
    let Some(trace) = &plan.trace else { return Ok(()) };
    match self_replay::foreseen(plan, options.program.is_some()) {
        Some(reason) => bail!("{}", replay::not_validated(reason, &trace.method.to_string())),
        None => Ok(()),
    }
}

/// Run plans in order. The files of all, or the ending of one that did not complete, after it was
/// said what to do with those before.
pub fn execute_all(
    prepared: Vec<Prepared>,
    options: &Options,
    next: impl Fn(&[PathBuf]) -> String,
) -> Result<Result<Vec<PathBuf>, Exit>> {
    let (number, mut announcement) = (prepared.len(), Some(consent::announcement(&prepared)));
    let mut taken: Vec<PathBuf> = Vec::new();
    for (index, one) in prepared.into_iter().enumerate() {
        match execute(one, options, announcement.take(), Some((index + 1, number)))? {
            Taken::File(path) => taken.push(path),
            Taken::Ended(ending) => {
                if !taken.is_empty() {
                    let complete = counted(taken.len() as u64, "question");
                    say(format_args!("complete before that: {complete}. {}", next(&taken)));
                }
                return Ok(Err(ending));
            }
        }
    }
    Ok(Ok(taken))
}

/// Run a plan, which is that question of so many; say first what it does, once nothing refuses it
/// any more.
fn execute(
    mut prepared: Prepared,
    options: &Options,
    announcement: Option<String>,
    question: Option<(usize, usize)>,
) -> Result<Taken> {
    let stop = stop_flag()?;
    let Some(Claimed { state, has_waited, has_restored }) = claim_within(options.all.wait, &stop)? else {
        return Ok(Taken::Ended(Exit::Interrupted));
    };
    if has_waited {
        // The other run had a part of the memory and of the disk.
        let limit = prepared.max_written_bytes;
        prepared = Prepared::of(prepared.asked, options)?;
        limit.into_iter().for_each(|limit| prepared.limit_writes(limit));
    }
    if let (Variant::Quick, Source::Dataset { directory }, false) =
        (prepared.asked.variant, &prepared.plan.source, prepared.plan.datasets().is_empty())
    {
        // A quick run on a slow device gets a smaller dataset. Measuring the device writes to it,
        // which needs the right to run, so the plan is resolved again.
        let pace = pace::write_pace(Path::new(directory)).ok();
        prepared.resolve(options, pace)?;
    }
    let Prepared { asked, plan, mut environment, labels, control, .. } = prepared;
    if has_restored {
        // The environment above was that of the settings before they were restored.
        environment = examine(asked.destination)?.1;
    }
    environment.memory_control = Some(text_of_memory(&control));
    environment.device_control = Some(text_of_control(control.device()));
    environment.worker_answer_ns = answer_time::answer_ns(environment.page_bytes, options.patience, &stop);
    let (programs, workers) = find_workers(&plan, options, &stop)?;
    if stop.load(Ordering::Relaxed) {
        say("stopped before anything was measured");
        return Ok(Taken::Ended(Exit::Interrupted));
    }
    let worker_command = options.worker_command.clone();
    let typed = typed();
    let header = Header { schema: SCHEMA_VERSION, plan, environment, workers, worker_command, typed, labels };
    let store = match &options.out {
        Some(path) if path == Path::new(STANDARD_STREAM) => RunFile::to_stdout(header.clone())?,
        Some(path) => RunFile::create(path, header.clone())?,
        None => create_named(&header)?,
    };
    announcement.iter().for_each(say);
    finish(
        RunSession {
            header,
            store,
            earlier: Vec::new(),
            program_runs: Vec::new(),
            elapsed_before_ns: 0,
            state,
            random: fresh_seed(),
            question,
            start_at: options.start_at,
            program: options.program.clone(),
            ends_at: options.ends_at,
        },
        programs,
        options,
        &stop,
    )
}

/// Obstacles that more time does not remove: rights, files, space.
fn before_time(mut asked: TypedQuestion, options: &Options) -> Result<()> {
    asked.chosen.sampling.budget = Some(ChosenBudget::OfFirstRounds(100));
    let prepared = Prepared::of(asked, options)?;
    ensure_settable(&prepared.plan, &prepared.control, true)?;
    let file = options.out.as_deref().filter(|path| *path != Path::new(STANDARD_STREAM));
    file.map_or(Ok(()), output::can_appear)?;
    prepared.ensure_space()
}

/// Note on what a question measures without a memory limit alone, unless it is asked for.
fn not_measured(prepared: &Prepared) -> Option<String> {
    let TypedQuestion { text, variant, chosen, .. } = &prepared.asked;
    let limited = limited(text, *variant, chosen)?;
    if limited.axes.cache.as_deref() == Some(&[CacheState::Cold]) {
        let is_typed = chosen.axes.cache.is_some();
        let name = &text.name;
        return (!is_typed).then(|| {
            format!(
                "under a memory limit {name} is measured not cached: pages that are written before it are not charged to it"
            )
        });
    }
    let mut options = Vec::new();
    if limited.axes.cache.is_some() && chosen.axes.cache.is_none() {
        options.push("--cache warm,cold");
    }
    if limited.axes.threads.is_some() && chosen.axes.threads.is_none() && *variant == Variant::Standard {
        options.push("--threads 1,cpus");
    }
    (!options.is_empty()).then(|| {
        format!(
            "under a memory limit {} is measured warm, by one thread; for more write {}",
            text.name,
            options.join(" ")
        )
    })
}

/// Note on a replay that leaves out the gaps between reads although nobody asks for that.
fn without_gaps(prepared: &Prepared) -> Option<String> {
    let TypedQuestion { text, variant, chosen, traced, .. } = &prepared.asked;
    let layers: Vec<&Layer> =
        std::iter::once(chosen).chain(variant.changes(text)).chain([&text.base]).collect();
    let asked = choose(&layers, Workload::Replay, |axes| &axes.as_fast_as_possible);
    let has_gaps =
        |cell: &Cell| matches!(cell.conditions.work, Work::Replay(Replay { gaps_ns: Some(_), .. }));
    let keeps = prepared.plan.cells.iter().any(has_gaps);
    let traced = traced.as_ref().filter(|_| !keeps && asked.is_none_or(|asked| asked.contains(&false)))?;
    let reason = traced.no_gaps.as_deref().unwrap_or("of the workers only pagewise's own one keeps them");
    Some(format!("the replay is as fast as possible, without the program's gaps between its reads: {reason}"))
}

/// Note on a replay that leaves out the program's requests to read ahead.
fn without_read_ahead(prepared: &Prepared) -> Option<String> {
    let makes = |cell: &Cell| cell.conditions.work.read_ahead() > 0;
    let requests = prepared.asked.traced.as_ref().map_or(0, |traced| traced.work.read_ahead);
    (requests > 0 && !prepared.plan.cells.iter().any(makes)).then(|| {
        format!(
            "the replay leaves out the program's {} to read ahead: of the workers only pagewise's own one makes them",
            counted(requests, "request")
        )
    })
}

/// Notes on expectations that as many samples as there are cannot show, each with so few syncs.
fn too_few_syncs(plan: &Plan) -> Vec<String> {
    let measured = || plan.cells.iter().filter(|cell| cell.role == Role::Measured);
    let of_one = |expectation: &Expectation| {
        let needs = measured().filter_map(|cell| more_samples(expectation, &cell.conditions));
        let (syncs, fewest) = needs.max_by_key(|(_, fewest)| *fewest)?;
        let rounds = plan.first_rounds();
        let cure = match fewest <= MAX_ROUNDS {
            true => format!("write --rounds {fewest}, or have more syncs in each"),
            false => "have more syncs in each".to_string(),
        };
        (rounds < fewest).then(|| {
            format!(
                "{expectation} is open after {rounds} samples of {}, even if none is slow: {cure}",
                counted(syncs, "sync")
            )
        })
    };
    plan.expectations.iter().filter_map(of_one).collect()
}

/// Note on updates that bring in less than the memory limit holds, so that it hardly acts.
fn unfelt_limit(plan: &Plan) -> Option<String> {
    let page = rustix::param::page_size() as u64;
    let unfelt = plan.cells.iter().filter(|cell| cell.role == Role::Measured).find_map(|cell| {
        let writes = cell.conditions.writes()?;
        let updates = writes.updates?;
        let limit = cell.conditions.host_settings.memory_limit_bytes?.0;
        let each = writes.record_bytes.0.next_multiple_of(page) * (u64::from(writes.reads_each) + 1);
        let brought = each.saturating_mul(u64::from(updates));
        (brought < limit).then(|| (brought, limit, limit.saturating_mul(2).div_ceil(each)))
    });
    unfelt.map(|(brought, limit, updates)| {
        format!(
            "the updates of a sample bring in {}, and the memory limit of {} acts on more: write --updates {updates}, and a --file-size of more blocks",
            format::bytes(brought),
            format::bytes(limit)
        )
    })
}

/// Methods that nobody named and that cannot do the work, or not all of it, with the reasons.
fn left_out(prepared: &Prepared) -> Vec<String> {
    let Prepared { asked, plan, .. } = prepared;
    if asked.chosen.axes.methods.is_some() {
        return Vec::new();
    }
    let layers = asked.variant.changes(&asked.text).into_iter().chain([&asked.text.base]);
    let usual = layers.into_iter().find_map(|layer| layer.axes.methods.as_ref());
    let mut comparisons = plan.comparisons();
    comparisons.retain(|conditions| validate::may_leave_out(conditions));
    let missing = |method: &Method| {
        let without = |conditions: &&&Conditions| {
            !plan.cells.iter().any(|cell| cell.method == *method && cell.conditions == ***conditions)
        };
        let missing: Vec<&&Conditions> = comparisons.iter().filter(without).collect();
        let reason = validate::leaves_out(method, missing.first()?, Alignment::ANY);
        let reason = reason.unwrap_or_else(|| "it cannot do this work here".to_string());
        // The name is said once.
        let reason =
            reason.strip_prefix(&format!("{method} ")).map_or(reason.clone(), |it| format!("it {it}"));
        let of = match missing.len() == comparisons.len() {
            true => String::new(),
            false => format!(" of {} of {} comparisons", missing.len(), comparisons.len()),
        };
        Some(format!("{method} is left out{of}: {reason}"))
    };
    usual.into_iter().flatten().filter_map(missing).collect()
}

/// Prepare; a file of the user's own is dropped from the page cache only if the user allows it, now
/// or on the command line.
fn prepare_with_consent(asked: TypedQuestion, options: &Options) -> Result<Prepared> {
    let refused = match Prepared::of(asked.clone(), options) {
        Ok(prepared) => return Ok(prepared),
        Err(error) => error,
    };
    match (refused.downcast_ref::<MissingArgument>(), &asked.destination) {
        (Some(MissingArgument::Evict(_)), Destination::File { paths, directory, .. }) => {
            let asks = !options.all.dry_run;
            let dropped = only_or_counted(paths.iter().map(|path| path.display()), "file");
            if asks
                && output::confirm(&format!("{refused}. Drop {dropped} from the page cache?")) == Some(true)
            {
                let (paths, directory) = (paths.clone(), directory.clone());
                let destination = Destination::File { paths, evict: true, directory };
                return Prepared::of(TypedQuestion { destination, ..asked }, options);
            }
            bail!("{refused}: allow it with: {}", command_lines::typed_with(&["--evict"]))
        }
        _ => Err(refused),
    }
}

/// Directory of the files of a plan unless one is named for it: `usual` or the current one, or in
/// memory if the plan requires that.
pub fn default_destination(plan: &PlanText, usual: Option<&Path>) -> Result<Destination> {
    if !plan.in_memory {
        return Ok(Destination::Directory(usual.unwrap_or(Path::new(".")).to_path_buf()));
    }
    ensure!(
        has_memory_directory(),
        "{} makes its files in memory, but {IN_MEMORY} is not a tmpfs here: name a directory with --dir",
        plan.name
    );
    Ok(Destination::Directory(PathBuf::from(IN_MEMORY)))
}

/// True if files can be made in memory at the usual place.
fn has_memory_directory() -> bool {
    std::fs::File::open(IN_MEMORY).is_ok_and(|directory| cache::in_memory(&directory).is_some())
}

/// Leave questions out of an overview whose files have no place in memory, and say so.
pub fn leave_out_without_memory(texts: &mut Vec<PlanText>) {
    texts.retain(|text| {
        let has_place = !text.in_memory || has_memory_directory();
        if !has_place {
            say(format_args!(
                "note: {0} is left out, since {IN_MEMORY} is not a tmpfs here: ask it with a directory, as in pagewise {0} --dir DIR",
                text.name
            ));
        }
        has_place
    });
}

/// Create a run file whose name says when, where and what was measured; names that are taken are
/// passed over.
fn create_named(header: &Header) -> Result<RunFile> {
    let Header { plan, environment, .. } = header;
    let date = compact_utc(environment.started_unix_s);
    let stem = format!("pagewise-{date}-{}-{}", directories::host_word(), plan.question);
    let path = |number: u32| match number {
        1 => PathBuf::from(format!("{stem}.jsonl")),
        more => PathBuf::from(format!("{stem}-{more}.jsonl")),
    };
    RunFile::create_first((1..=MAX_NUMBERED_RUNS).map(path), header.clone())?.with_context(|| {
        format!("there are {MAX_NUMBERED_RUNS} run files of '{stem}' here: name one with --out")
    })
}

/// Text of the memory limit's place, or of the limit in place.
pub fn text_of_memory(control: &cgroup::Control) -> String {
    let in_place = control.limit_in_place().map(|own| format!("only the limit in place: {own}"));
    in_place.unwrap_or_else(|| text_of_control(control.memory()))
}

/// Text of a limit's parent group, or of the reason that there is none.
pub fn text_of_control(parent: Result<&cgroup::ParentGroup, &cgroup::NoControl>) -> String {
    match parent {
        Ok(parent) => parent.to_string(),
        Err(refusal) => format!("none: {refusal}"),
    }
}

#[cfg(test)]
mod tests {
    use pagewise_model::work::Update;
    use pagewise_model::{Bytes, Sync};

    use super::*;

    /// Updates of blocks, synced each 256 KiB, under a limit of 16 MiB.
    fn updating(block_bytes: Bytes, updates: u32, reads_per_update: u32) -> Plan {
        let sync = Sync::Every(Bytes::kib(256));
        let update = Update { block_bytes, updates, reads_per_update, sync, sync_call: None };
        let mut conditions = Conditions::of(Work::Update(update), Bytes::mib(64));
        conditions.host_settings.memory_limit_bytes = Some(Bytes::mib(16));
        let method = "pwrite".parse().expect("a method");
        Plan::of(vec![Cell { role: Role::Measured, method, conditions }])
    }

    #[test]
    fn no_more_rounds_are_named_than_a_run_can_have() {
        let note = |expectation: &str, updates| {
            let expectations = vec![expectation.parse().expect("an expectation")];
            too_few_syncs(&Plan { expectations, ..updating(Bytes::kib(4), updates, 0) }).join(" ")
        };
        assert!(note("sync-p99<10ms", 256).ends_with(": write --rounds 98, or have more syncs in each"));
        assert!(note("sync-p99.99<10ms", 64).ends_with("even if none is slow: have more syncs in each"));
        assert_eq!(note("sync-p99<10ms", 8192), "");
    }

    #[test]
    fn a_limit_that_updates_do_not_reach_is_named() {
        let note = |updates, reads_per_update| unfelt_limit(&updating(Bytes(200), updates, reads_per_update));
        let text = note(256, 1).expect("2 MiB");
        assert!(text.contains("bring in 2 MiB") && text.contains("write --updates 4096"), "{text}");
        assert_eq!([note(2048, 1), note(4096, 0)], [None, None], "as much as it holds");
    }
}
