//! Warnings to read before the numbers.

use pagewise_analysis::Judged;
use pagewise_analysis::judge::{AsOf, CellJudgement, UnlikeItself, Validity};
use pagewise_model::FailureKind;
use pagewise_model::format::{percent, time};

use super::replay;

/// All of them, one sentence each.
pub fn all(judged: &Judged) -> Vec<String> {
    let unproven = judged.self_replay.iter().filter(|replay| !replay.stands).map(replay::proof);
    // What makes these numbers doubtful comes before what is so on the machine in general.
    unproven
        .chain(file_changed(&judged.validity))
        .chain(of_samples(judged))
        .chain(judged.unlike_itself.as_ref().map(unlike_itself))
        .chain(filled_while_cold(&judged.cells))
        .chain(judged.environment.warnings.iter().cloned())
        .collect()
}

fn of_samples(judged: &Judged) -> Vec<String> {
    let Judged { run, validity, .. } = judged;
    let mut warnings = Vec::new();
    if let Some(command) = &run.worker_command {
        warnings.push(format!("the samples come from another worker, '{command}', not from pagewise's own"));
    }
    if !run.complete {
        let planned = run.samples_planned.map_or_else(String::new, |all| format!(" of {all} planned"));
        warnings.push(format!("the run is not complete: {}{planned} samples so far", run.samples_tried));
    }
    if run.resumptions > 0 {
        let times = if run.resumptions == 1 { "once" } else { "several times" };
        warnings.push(format!("the run was interrupted and resumed {times}"));
    }
    if let Some(late_ns) = run.start.map(|start| start.late_ns()).filter(|late_ns| *late_ns > 0) {
        warnings
            .push(format!("the run was prepared {} after the time that it was to start at", time(late_ns)));
    }
    if validity.as_of == AsOf::Measurement {
        warnings.push(format!(
            "validity is as of pagewise {}, which measured the samples: the run file lacks the context to apply checks again",
            judged.environment.pagewise_version
        ));
    }
    if validity.valid_now + validity.invalid_now > 0 {
        warnings.push(format!(
            "the checks of this pagewise differ from those that measured: {} valid now, {} not any more",
            is_or_are(validity.valid_now, "sample is", "samples are"),
            is_or_are(validity.invalid_now, "is", "are"),
        ));
    }
    warnings
}

/// A warning if the file changed under the run, which ended its cells.
fn file_changed(validity: &Validity) -> Option<String> {
    let changed = validity.reasons.iter().find(|reason| reason.kind == FailureKind::FileChanged)?;
    Some(format!("{}: no sample after that is valid", changed.example))
}

/// Two series of one method differ.
fn unlike_itself(unlike: &UnlikeItself) -> String {
    format!(
        "two series of {} differ by {}, more than chance explains: something is not random here, such as the order or the \
         memory that workers get",
        unlike.method,
        percent(unlike.by)
    )
}

/// A warning if single operations of a method fill the page cache with so much of a cold file that
/// it is not cold any more.
fn filled_while_cold(cells: &[CellJudgement]) -> Option<String> {
    let filled = |cell: &CellJudgement| Some((cell.filled_while_cold?, cell.method.clone()));
    let mut filled: Vec<(f64, String)> = cells.iter().filter_map(filled).collect();
    filled.sort_by(|left, right| right.0.total_cmp(&left.0));
    let most = filled.first()?.0;
    let mut methods: Vec<&str> = filled.iter().map(|(_, method)| method.as_str()).collect();
    methods.sort_unstable();
    methods.dedup();
    Some(format!(
        "cold samples of {} ended after their first operations, since readahead had filled up to {} of the file, and so many \
         of its reads may be hits: the true rates are lower, by that share at most; measure a larger file or with less readahead",
        methods.join(", "),
        percent(most)
    ))
}

fn is_or_are(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
