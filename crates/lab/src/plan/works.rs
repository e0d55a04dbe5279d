//! The work of a plan: each combination of the axes that define the accesses of a workload.

use anyhow::{Context, Result, ensure};
use pagewise_model::groups::distinct;
use pagewise_model::work::Update;
use pagewise_model::{
    Append, Bytes, Consume, Fill, Reads, Replay, Scan, Skew, Sync, SyncCall, Work, Workload,
};

use super::axes::choose;
use super::matrix::vary;
use super::{Layer, OrUsual};

/// Updates of a sample, where nobody says how many.
const USUAL_UPDATES: u32 = 4096;

/// All variants of a workload.
pub(super) fn works(layers: &[&Layer], workload: Workload, replay: Option<Replay>) -> Result<Vec<Work>> {
    Ok(match workload {
        Workload::RandomRead => reads(layers, workload)?.into_iter().map(Work::RandomRead).collect(),
        Workload::SequentialRead => reads(layers, workload)?.into_iter().map(Work::SequentialRead).collect(),
        Workload::Scan => {
            let consume = choose(layers, workload, |axes| &axes.consume).unwrap_or(vec![Consume::Lines]);
            consume.into_iter().map(|consume| Work::Scan(Scan { consume })).collect()
        }
        Workload::Replay => {
            let replay =
                replay.context("a replay needs a trace: write --trace FILE; pagewise record makes one")?;
            let consume = choose(layers, workload, |axes| &axes.consume).unwrap_or(vec![replay.consume]);
            let fast = choose(layers, workload, |axes| &axes.as_fast_as_possible).unwrap_or(vec![false]);
            let mut all = vec![replay];
            all = vary(all, &fast, |replay, value| replay.gaps_ns = replay.gaps_ns.filter(|_| !value))?;
            all = vary(all, &consume, |replay, value| replay.consume = value)?;
            distinct(all).into_iter().map(Work::Replay).collect()
        }
        Workload::Append => {
            let records = choose(layers, workload, |axes| &axes.record_size).unwrap_or(vec![Bytes(100)]);
            let passes = choose(layers, workload, |axes| &axes.passes).unwrap_or(vec![1]);
            let syncs = syncs(layers, workload)?;
            let mut all =
                vec![Append { record_bytes: Bytes(0), passes: 1, sync: Sync::None, sync_call: None }];
            all = vary(all, &syncs, |append, value| (append.sync, append.sync_call) = value)?;
            all = vary(all, &passes, |append, value| append.passes = value)?;
            all = vary(all, &records, |append, value| append.record_bytes = value)?;
            all.into_iter().map(Work::Append).collect()
        }
        Workload::Update => {
            let blocks = choose(layers, workload, |axes| &axes.block_size).unwrap_or(vec![Bytes::kib(4)]);
            let updates = choose(layers, workload, |axes| &axes.updates).unwrap_or(vec![USUAL_UPDATES]);
            let syncs = syncs(layers, workload)?;
            let reads = choose(layers, workload, |axes| &axes.reads_per_update).unwrap_or(vec![0]);
            let mut all = vec![Update {
                block_bytes: Bytes(0),
                updates: 0,
                reads_per_update: 0,
                sync: Sync::None,
                sync_call: None,
            }];
            all = vary(all, &syncs, |update, value| (update.sync, update.sync_call) = value)?;
            all = vary(all, &reads, |update, value| update.reads_per_update = value)?;
            all = vary(all, &updates, |update, value| update.updates = value)?;
            all = vary(all, &blocks, |update, value| update.block_bytes = value)?;
            // One thread commits by a sync after each block.
            let synced = |update: Update| match update.sync {
                Sync::Commit => Update { sync: Sync::Every(update.block_bytes), ..update },
                _ => update,
            };
            all.into_iter().map(|update| Work::Update(synced(update))).collect()
        }
        Workload::Fill => {
            let blocks = choose(layers, workload, |axes| &axes.block_size).unwrap_or(vec![Bytes(128)]);
            let syncs = syncs(layers, workload)?;
            let mut all = vec![Fill { block_bytes: Bytes(0), sync: Sync::None, sync_call: None }];
            all = vary(all, &syncs, |fill, value| (fill.sync, fill.sync_call) = value)?;
            all = vary(all, &blocks, |fill, value| fill.block_bytes = value)?;
            all.into_iter().map(Work::Fill).collect()
        }
    })
}

/// The times of syncs, each with each call.
fn syncs(layers: &[&Layer], workload: Workload) -> Result<Vec<(Sync, Option<SyncCall>)>> {
    let sync = choose(layers, workload, |axes| &axes.sync).unwrap_or(vec![Sync::None]);
    let calls = choose(layers, workload, |axes| &axes.sync_call);
    if let Some(OrUsual(Some(call))) = calls.iter().flatten().find(|call| call.0.is_some()) {
        ensure!(
            sync.iter().any(|sync| *sync != Sync::None),
            "{call} syncs nothing without a time for it: write --sync every:1MiB, commit or end too"
        );
    }
    let calls = calls.unwrap_or(vec![OrUsual(None)]);
    let all = vary(sync.into_iter().map(|sync| (sync, None)).collect(), &calls, |(sync, call), value| {
        *call = value.0.filter(|_| *sync != Sync::None);
    })?;
    Ok(distinct(all))
}

fn reads(layers: &[&Layer], workload: Workload) -> Result<Vec<Reads>> {
    let skew = choose(layers, workload, |axes| &axes.skew).unwrap_or(vec![Skew::Uniform]);
    let dependent = choose(layers, workload, |axes| &axes.dependent).unwrap_or(vec![false]);
    let read_size = choose(layers, workload, |axes| &axes.read_size).unwrap_or(vec![Bytes::kib(16)]);
    let reads_per_op = choose(layers, workload, |axes| &axes.reads_per_op).unwrap_or(vec![16]);
    let align = choose(layers, workload, |axes| &axes.align).unwrap_or(vec![Bytes::kib(4)]);
    let consume = choose(layers, workload, |axes| &axes.consume).unwrap_or(vec![Consume::Touch]);
    let mut all = vec![Reads { reads_per_op: 0, ..Reads::of(Bytes(0)) }];
    all = vary(all, &skew, |reads, value| reads.skew = value)?;
    all = vary(all, &dependent, |reads, value| reads.dependent = value)?;
    all = vary(all, &read_size, |reads, value| reads.read_bytes = value)?;
    all = vary(all, &reads_per_op, |reads, value| reads.reads_per_op = value)?;
    all = vary(all, &align, |reads, value| reads.align_bytes = value)?;
    vary(all, &consume, |reads, value| reads.consume = value)
}
