//! Announcement of a run's writes, and consent to many of them: flash wears.
//!
//! Up to 8 GiB are written to a device without a question. More is asked about on a terminal, and
//! needs `--max-writes` elsewhere. What was allowed is a limit of the run: rounds after the first
//! ones are planned within it, and no sample begins that would exceed it by what the device wrote
//! for those before it.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use pagewise_model::format::{bytes, duration};
use pagewise_model::{Bytes, Plan};

use crate::begin::Options;
use crate::command_lines;
use crate::output::{self, say};
use crate::plan::estimate;
use crate::prepare::Prepared;

/// Bytes that are written without a question.
const FREE: Bytes = Bytes::gib(8);

/// Limit the writes of runs that follow each other to what is allowed; false if the user refuses
/// them. A dry run asks nothing. What does not fit at all is refused first; a dry run says so.
pub fn limit_writes(runs: &mut [Prepared], options: &Options) -> Result<bool> {
    for refused in runs.iter().filter_map(|one| one.ensure_space().err()) {
        ensure!(options.all.dry_run, refused);
        say(format_args!("note: a run of this is refused: {refused:#}"));
    }
    let of_device = |one: &&Prepared| one.device.is_some();
    let total = |of: fn(&Plan) -> u64| {
        runs.iter().filter(of_device).map(|one| of(&one.plan)).fold(0, u64::saturating_add)
    };
    let (first, most) = (total(estimate::first_written_bytes), total(estimate::most_written_bytes));
    let mut allowed = options.all.max_writes.unwrap_or(FREE);
    if first > allowed.0 && !options.all.dry_run {
        let what =
            format!("{} writes {}", names(runs), amounts(runs, estimate::first_written_bytes).join(", "));
        if options.all.max_writes.is_some() {
            bail!(
                "{what}, and --max-writes allows {}: allow more, or choose fewer methods, smaller files or fewer rounds",
                bytes(allowed)
            );
        }
        // Whole GiB, so that it is typed easily.
        let enough = Bytes::gib(most.div_ceil(Bytes::gib(1).0));
        match output::confirm(&format!("{what}, which wears flash. Go on?")) {
            Some(true) => allowed = enough,
            Some(false) => return Ok(false),
            None => bail!(
                "{what}, which wears flash: allow it with: {}",
                command_lines::typed_with(&["--max-writes", &enough.to_string()])
            ),
        }
    }
    if first > allowed.0 {
        let limit = bytes(allowed);
        say(format_args!(
            "note: a run of this asks first, because it writes more than {limit}; elsewhere than on a terminal it needs --max-writes"
        ));
        return Ok(true);
    }
    let spare = allowed.0.saturating_sub(first);
    for one in runs.iter_mut().filter(|one| one.device.is_some()) {
        let written = one.plan.written_bytes().0;
        if written > 0 {
            let share = u128::from(spare) * u128::from(written) / u128::from(first.max(1));
            one.limit_writes(Bytes(written.saturating_add(share as u64)));
        }
    }
    Ok(true)
}

/// A line about what the runs will do.
pub fn announcement(runs: &[Prepared]) -> String {
    let takes = runs.iter().map(|one| estimate::duration_ns(&one.plan)).fold(0, u64::saturating_add);
    let amounts = amounts(runs, estimate::most_written_bytes);
    let writes = match amounts.as_slice() {
        [] => "writes nothing but its results".to_string(),
        amounts => format!("writes at most about {}", amounts.join(", ")),
    };
    // A budget is what its samples may take: a run whose questions are decided ends earlier.
    let most = if runs.iter().any(|one| one.plan.budget.is_some()) { "at most " } else { "" };
    // How much slower than its program a replay is shows only when it is measured.
    let (most, provided) = match runs.iter().any(|one| one.plan.trace.is_some()) {
        true => ("", ", longer if a method is slower than the program"),
        false => (most, ""),
    };
    format!("{}: {most}about {}{provided}; {writes}", names(runs), duration(takes))
}

fn names(runs: &[Prepared]) -> String {
    match runs {
        [one] => one.plan.question.clone(),
        several => format!("{} questions", several.len()),
    }
}

/// Bytes by the device they go to.
fn amounts(runs: &[Prepared], of: fn(&Plan) -> u64) -> Vec<String> {
    let mut devices: BTreeMap<String, u64> = BTreeMap::new();
    for one in runs {
        let device = one.device.as_ref().map_or("memory".to_string(), |device| device.clone());
        *devices.entry(device).or_default() += of(&one.plan);
    }
    let amount = |(device, written): (String, u64)| format!("{} to {device}", bytes(Bytes(written)));
    devices.into_iter().filter(|(_, written)| *written > 0).map(amount).collect()
}
