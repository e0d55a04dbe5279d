//! All of a judged run as a document.
//!
//! Above the numbers is the information needed to read them: environment, seed, warnings, number of
//! valid samples.

mod append;
pub mod columns;
mod fill;
mod grid;
pub mod heading;
mod one_shot;
pub mod positions;
mod reads;
mod replay;
pub mod rows;
mod said;
mod scan;
mod update;

use pagewise_analysis::Judged;
use pagewise_analysis::judge::bound::ceilings::is_large;
use pagewise_analysis::judge::{CellJudgement, Status};
use pagewise_model::format::{bytes, counted, rate};
use pagewise_model::{Bytes, Role, Workload};

use crate::document::{Block, Document};
use crate::judged_run::JudgedRun;
use crate::screen::actors::rankings;
use crate::words;

/// Machine, validity and warnings, then each comparison, or the answer to the run as a whole; CSV
/// and JSON have the rest.
pub fn document(run: &JudgedRun<'_>) -> Document {
    let judged = run.judged;
    let curves = run.curves();
    let mut body = curves.map_or_else(|| comparisons(judged), |curves| curves.blocks(judged));
    if !curves.is_some_and(|curves| curves.is_alone()) {
        body.extend(rankings(std::iter::once(judged), false));
        body.extend(ceilings(judged));
    }
    Document { head: heading::blocks(judged), conclusion: Vec::new(), body }
}

/// Each comparison as a part.
pub(crate) fn comparisons(judged: &Judged) -> Vec<Block> {
    let by_id = judged.by_id();
    let of =
        |(index, comparison)| Block::Part(rows::section(&by_id, comparison, judged.advice.get(index), 3));
    judged.comparisons.iter().enumerate().map(of).collect()
}

/// The most that the run reached, or the reason that this is not known.
fn ceilings(judged: &Judged) -> Vec<Block> {
    let ceilings = &judged.ceilings;
    let missing: Vec<&CellJudgement> =
        judged.cells.iter().filter(|cell| cell.role == Role::Ceiling && cell.status != Status::Ok).collect();
    if ceilings.device.is_empty()
        && ceilings.copy.is_empty()
        && ceilings.flushes.is_empty()
        && missing.is_empty()
    {
        return Vec::new();
    }
    let mut lines = Vec::new();
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
        lines.push(format!(
            "device{cap}{order}, {}{cpus}, {} in flight each, {} a request{by}: {requests}{}/s",
            counted(u64::from(device.threads), "thread"),
            device.depth,
            bytes(device.issued_bytes),
            bytes(device.bytes_per_second.low),
        ));
    }
    for copy in &ceilings.copy {
        lines.push(format!(
            "{}, {}, {}{}: {}/s",
            if copy.conditions.workload().is_reading() { "copy from memory" } else { "stores into memory" },
            copy.conditions.workload(),
            counted(u64::from(copy.threads), "thread"),
            each(
                copy.conditions.workload(),
                copy.read_bytes.or(copy.conditions.writes().map(|writes| writes.record_bytes)),
            ),
            bytes(copy.bytes_per_second.low),
        ));
    }
    for flushes in &ceilings.flushes {
        let cap = flushes.device_cap.map_or_else(String::new, |cap| format!(" under the cap {cap}"));
        let (size, each) = (bytes(flushes.bytes_per_sync), rate(flushes.per_second.low));
        let by = match flushes.dedicated {
            true => String::new(),
            false => format!(", reached by {}", flushes.reached_by),
        };
        lines.push(format!("syncs of the device{cap}, {size} each{by}: {each}/s"));
    }
    for cell in missing {
        let parameters = &cell.parameters;
        let size = parameters.read_bytes.or(parameters.record_bytes).or(parameters.block_bytes);
        lines.push(format!(
            "{}, {}{}: {}, {}",
            cell.method,
            cell.workload,
            each(cell.workload, size),
            cell.status.name(),
            words::reasons::cell(cell.reason.as_ref()),
        ));
    }
    let heading = "Ceilings: the most that this run reached for certain";
    vec![Block::heading(3, heading), Block::List(lines)]
}

/// The size of one read, record or block.
fn each(workload: Workload, size: Option<Bytes>) -> String {
    let of = workload.facts().access;
    size.map_or_else(String::new, |size| format!(", {} a {of}", bytes(size)))
}
