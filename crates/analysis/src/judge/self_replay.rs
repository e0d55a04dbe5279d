//! The proof that a trace stands for its program: its own method, replayed under the conditions of
//! the recording, must read what the program read.

use pagewise_model::format::{bytes, difference};
use pagewise_model::plan::PlannedTrace;
use pagewise_model::run::Run;
use pagewise_model::{CacheState, Role};

use super::collected::CellSamples;
use crate::statistics::median_count;

/// Device bytes of the replay and of the program agree within this share.
pub const WITHIN: f64 = 0.05;
/// Of little more than this, single pages of readahead are over that share.
const SLACK_BYTES: f64 = 256.0 * 1024.0;

/// The replay of a trace by the program's own method, beside the program.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct SelfReplay {
    /// The method by which the program read.
    pub method: String,
    /// Bytes that came from the device for the program's reads of the file: the median of its runs.
    pub program_bytes: Option<u64>,
    /// The same of each run of the program: when it was recorded, and between rounds of the replay.
    pub program_runs_bytes: Vec<u64>,
    /// The same of the replay: the median of its valid samples.
    pub replayed_bytes: Option<u64>,
    /// The second over the first, less one.
    pub difference: Option<f64>,
    /// True if the trace stands for the program: the replay read as much as a run of it, within 5 %
    /// of their median or between the least and the most of them. Otherwise no other method is
    /// shown.
    pub stands: bool,
    /// The finding, as a sentence.
    pub sentence: String,
}

/// The replay of the plan's trace by its own method; `None` if no trace is replayed.
pub(crate) fn of(run: &Run, samples: &[CellSamples<'_>]) -> Option<SelfReplay> {
    let trace = run.header.plan.trace.as_ref()?;
    let again = run.program_runs.iter().map(|again| again.device_bytes);
    // In windows nothing is mapped around a fault, from which the kernel concludes how far to read
    // ahead.
    let recorded = trace.device_bytes.filter(|_| !trace.windows || run.program_runs.is_empty());
    let program_runs: Vec<u64> = recorded.into_iter().chain(again.flatten()).collect();
    let program_bytes = median_count(&program_runs);
    let own =
        samples.iter().find(|cell| cell.cell.role == Role::Measured && cell.cell.method == trace.method);
    let replayed_bytes = own.and_then(|own| {
        let read = own.valid().filter_map(|(_, evidence)| {
            Some(evidence.device_read_bytes?.saturating_add(evidence.setup_device_read_bytes.unwrap_or(0)))
        });
        median_count(&read.collect::<Vec<u64>>())
    });
    let method = trace.method.to_string();
    let proof = |difference: Option<f64>, stands: bool, sentence: String| {
        Some(SelfReplay {
            method: method.clone(),
            program_bytes,
            program_runs_bytes: program_runs.clone(),
            replayed_bytes,
            difference,
            stands,
            sentence,
        })
    };
    let unknown = |reason: String| {
        proof(
            None,
            false,
            format!(
                "whether the trace stands for the program is not known, so no other method is shown: {reason}"
            ),
        )
    };
    let Some(own) = own else {
        return unknown(format!("its own method {method} was not replayed; add it to --methods"));
    };
    if let Some(reason) = other_conditions(trace, own) {
        return unknown(reason);
    }
    if trace.windows && run.program_runs.is_empty() && trace.method.to_string() == "mmap" {
        return unknown(
            "windows keep the kernel from mapping pages around a fault, from which it concludes how far to read ahead for mmap; \
             pagewise advise --windows runs the program without them, too"
                .to_string(),
        );
    }
    let Some(program) = program_bytes else {
        return unknown("how much the program read from the device was not seen".to_string());
    };
    let Some(replayed) = replayed_bytes else {
        return unknown(format!("there is no valid replay by its own method {method}"));
    };
    let apart = replayed as f64 - program as f64;
    let by = apart / (program as f64).max(1.0);
    let (least, most) = spread(&program_runs);
    let stands =
        (least..=most).contains(&replayed) || apart.abs() <= (program as f64 * WITHIN).max(SLACK_BYTES);
    // Of next to nothing, a share is nonsense.
    let percent = (program as f64 > SLACK_BYTES).then(|| format!("{} %", difference(by * 100.0)));
    let (of_replay, of_program) = (bytes(replayed), bytes(program));
    let own = format!("its replay by {method}, the program's own method,");
    let figures = match (program_runs.len(), percent) {
        (1, Some(percent)) => format!(
            "{own} differs by {percent} from the one recording: it read {of_replay} from the device, and the program {of_program}"
        ),
        (_, percent) => {
            let percent = percent.map_or(String::new(), |percent| format!(" ({percent})"));
            let measured = measured(&program_runs);
            format!(
                "{own} read {of_replay} from the device, and the program, {measured}, {of_program}{percent}"
            )
        }
    };
    proof(
        Some(by),
        stands,
        match stands {
            true => format!("the trace stands for the program: {figures}"),
            false => {
                format!("the trace does not stand for the program, so no other method is shown: {figures}")
            }
        },
    )
}

/// The least and the most that a run of the program read.
fn spread(program_runs: &[u64]) -> (u64, u64) {
    let least = program_runs.iter().min().copied().unwrap_or_default();
    (least, program_runs.iter().max().copied().unwrap_or_default())
}

/// The runs of the program, and how far they are apart if that is more than a replay may be.
fn measured(program_runs: &[u64]) -> String {
    if program_runs.len() < 2 {
        return "measured once".to_string();
    }
    let (least, most) = spread(program_runs);
    let apart = (most - least) as f64 > (least as f64 * WITHIN).max(SLACK_BYTES);
    let spread = if apart { format!(" ({} to {})", bytes(least), bytes(most)) } else { String::new() };
    format!("measured {} times{spread}", program_runs.len())
}

/// Conditions that differ from those of the recording.
fn other_conditions(trace: &PlannedTrace, own: &CellSamples<'_>) -> Option<String> {
    let conditions = &own.cell.conditions;
    if !trace.cold && conditions.cache == CacheState::Cold && !own.cell.method.is_direct() {
        return Some(
            "the file may have been in memory when the program was recorded; record it with --cold and the name of the file"
                .to_string(),
        );
    }
    let limit = conditions.host_settings.memory_limit_bytes;
    (limit != trace.memory_limit).then(|| {
        let sentence_under = |limit: Option<pagewise_model::Bytes>| {
            limit.map_or_else(
                || "without a memory limit".to_string(),
                |limit| format!("with {limit} of memory"),
            )
        };
        format!(
            "the program was recorded {}, and its trace replayed {}; record it with that limit",
            sentence_under(trace.memory_limit),
            sentence_under(limit)
        )
    })
}
