//! A judged run as text for a terminal.
//!
//! Above the numbers is the information needed to read them: environment, seed, warnings, number of
//! valid samples. The conclusions are below each comparison. A table never wraps within a row: if
//! it is too wide, columns are left out, the least important first, and their names are listed.

mod append;
pub(crate) mod columns;
mod fill;
mod grid;
pub(crate) mod heading;
mod one_shot;
mod reads;
mod replay;
pub(crate) mod rows;
mod scan;
pub(crate) mod standing;

use std::io::{self, Write};

use pagewise_analysis::Judged;
use pagewise_analysis::judge::advice::Recommendation;
use pagewise_analysis::judge::bound::ceilings::is_large;
use pagewise_analysis::judge::verdict::{Place, Verdict};
use pagewise_analysis::judge::{CellJudgement, Comparison, Status};
use pagewise_model::{Bytes, Role, Workload};

use crate::paragraph::{NARROWEST, WIDEST, paragraph};
use crate::{cliff, method_tables, words};
use columns::against_leader;
use pagewise_model::format::{bytes, counted, listed, percent_down, rate, times};

/// Methods of an open verdict that are named; the table has all.
const NAMED: usize = 4;
/// From this factor on, disturbances that outlast rounds are reported.
const LASTING: f64 = 1.2;

/// Write all of a judged run for a terminal of `width` columns.
pub fn write(out: &mut dyn Write, judged: &Judged, width: usize) -> io::Result<()> {
    let width = width.clamp(NARROWEST, WIDEST);
    heading::write(out, judged, width)?;
    if let Some(cliff) = &judged.cliff {
        // The curves contain the content of the tables of all sizes; CSV and JSON have the rest.
        writeln!(out)?;
        return cliff::write(out, cliff, width);
    }
    if let Some(tables) = &judged.tables {
        writeln!(out)?;
        method_tables::write(out, judged, tables, width)?;
        return write_ceilings(out, judged, width);
    }
    let cells = judged.by_id();
    for (index, comparison) in judged.comparisons.iter().enumerate() {
        writeln!(out)?;
        rows::write(out, &cells, comparison, width)?;
        for sentence in said(comparison, judged.advice.get(index)) {
            paragraph(out, "  ", &sentence, width)?;
        }
    }
    write_ceilings(out, judged, width)
}

/// All that is said of a comparison, one sentence each; the choice is the last.
pub(crate) fn said(comparison: &Comparison, advice: Option<&Recommendation>) -> Vec<String> {
    let advice = advice.map(|advice| words::advice::sentences(advice, comparison));
    let found = cache_as_is(comparison).into_iter().chain([verdict(comparison)]);
    found.chain(advice.into_iter().flatten()).collect()
}

/// The verdict as a sentence.
fn verdict(comparison: &Comparison) -> String {
    let leader = comparison.leader.as_deref().unwrap_or("the leader");
    let staying = || comparison.ratios.iter().filter(|ratio| ratio.place != Place::Behind);
    let mut words: Vec<String> =
        staying().take(NAMED).map(|ratio| format!("{} ({})", ratio.method, against_leader(ratio))).collect();
    let more = staying().count().saturating_sub(NAMED);
    if more > 0 {
        words.push(format!("{more} more"));
    }
    let others = listed(&words);
    let said = match comparison.verdict {
        Verdict::Best => format!("{leader} is best"),
        Verdict::Tie => format!("{} tie, within 2 %", listed(&comparison.staying())),
        Verdict::Close => format!("close: {leader} is ahead, not for certain of {others}"),
        Verdict::Open => match words::advice::ahead_in_few_rounds(comparison) {
            Some(ahead) => format!("open: {ahead}"),
            None => {
                format!("open: {leader} is ahead, not for certain of {others}; these rounds do not decide it")
            }
        },
        Verdict::NotComparable => format!(
            "not comparable, because {}",
            comparison.reason.as_deref().unwrap_or("the data do not support a verdict")
        ),
    };
    let inflated = match comparison.inflation > LASTING {
        true => format!(
            " Disturbances outlast rounds in this run: intervals are {} times as long for that.",
            times(comparison.inflation)
        ),
        false => String::new(),
    };
    format!("Verdict: {said}.{inflated}")
}

/// State of the page cache, if the run used it as found.
fn cache_as_is(comparison: &Comparison) -> Option<String> {
    let seen = comparison.as_is.as_ref()?;
    let rounds = format!("{} of {}", seen.rounds_counted, counted(seen.rounds as u64, "round"));
    let [first, low, high] =
        [seen.resident_share_first, seen.resident_share_low, seen.resident_share_high].map(percent_down);
    if !seen.changed() {
        let held = if low == high { low } else { format!("from {low} to {high}") };
        return Some(format!(
            "the page cache held {held} of the span before the samples that count ({rounds})"
        ));
    }
    let change = if seen.resident_share_first < seen.resident_share_low {
        format!("the samples filled the page cache from {first} to {high}")
    } else {
        format!("the page cache shrank from {first} to {low} during the run")
    };
    Some(match comparison.verdict {
        Verdict::NotComparable => change,
        _ => format!(
            "{change}; judged are the {rounds} from then on, when the cache was no longer as the run found it"
        ),
    })
}

fn write_ceilings(out: &mut dyn Write, judged: &Judged, width: usize) -> io::Result<()> {
    let ceilings = &judged.ceilings;
    let missing: Vec<&CellJudgement> =
        judged.cells.iter().filter(|cell| cell.role == Role::Ceiling && cell.status != Status::Ok).collect();
    if ceilings.device.is_empty()
        && ceilings.copy.is_empty()
        && ceilings.flushes.is_empty()
        && missing.is_empty()
    {
        return Ok(());
    }
    writeln!(out, "\nCeilings: the most that this run reached for certain")?;
    for device in &ceilings.device {
        let cap = device.device_cap.map_or_else(String::new, |cap| format!(" under the cap {cap}"));
        let order = if device.workload == Workload::RandomRead { "" } else { " read in order" };
        let cpus = device.cpus.as_ref().map_or_else(String::new, |cpus| format!(" on CPUs {cpus}"));
        let by = match device.dedicated {
            true => String::new(),
            false => format!(", reached by {}", device.reached_by),
        };
        // The number of large requests says nothing: the kernel merges them.
        let requests = match is_large(device.issued_bytes) && device.device_cap.is_none() {
            true => String::new(),
            false => format!("{} requests/s, ", rate(device.requests_per_second.low)),
        };
        let line = format!(
            "device{cap}{order}, {}{cpus}, {} in flight each, {} a request{by}: {requests}{}/s",
            counted(u64::from(device.threads), "thread"),
            device.depth,
            bytes(device.issued_bytes),
            bytes(device.bytes_per_second.low),
        );
        paragraph(out, "  ", &line, width)?;
    }
    for copy in &ceilings.copy {
        let line = format!(
            "{}, {}, {}{}: {}/s",
            if copy.conditions.workload().is_reading() { "copy from memory" } else { "stores into memory" },
            copy.conditions.workload(),
            counted(u64::from(copy.threads), "thread"),
            each(
                copy.conditions.workload(),
                copy.read_bytes.or(copy.conditions.writes().map(|writes| writes.record_bytes)),
            ),
            bytes(copy.bytes_per_second.low),
        );
        paragraph(out, "  ", &line, width)?;
    }
    for flushes in &ceilings.flushes {
        let cap = flushes.device_cap.map_or_else(String::new, |cap| format!(" under the cap {cap}"));
        let (size, each) = (bytes(flushes.bytes_per_sync), rate(flushes.per_second.low));
        let by = match flushes.dedicated {
            true => String::new(),
            false => format!(", reached by {}", flushes.reached_by),
        };
        paragraph(out, "  ", &format!("syncs of the device{cap}, {size} each{by}: {each}/s"), width)?;
    }
    for cell in missing {
        let parameters = &cell.parameters;
        let size = parameters.read_bytes.or(parameters.record_bytes).or(parameters.block_bytes);
        let line = format!(
            "{}, {}{}: {}, {}",
            cell.method,
            cell.workload,
            each(cell.workload, size),
            cell.status.name(),
            cell.reason.as_deref().unwrap_or("for an unknown reason"),
        );
        paragraph(out, "  ", &line, width)?;
    }
    Ok(())
}

/// The size of one read, record or block.
fn each(workload: Workload, size: Option<Bytes>) -> String {
    let of = workload.facts().access;
    size.map_or_else(String::new, |size| format!(", {} a {of}", bytes(size)))
}
