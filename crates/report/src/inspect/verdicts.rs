//! Sentences on what threads waited for, the command that measures other methods, and what was not
//! seen.

use pagewise_analysis::inspect::{LEAST_SHARE, WaitFinding, findings};
use pagewise_model::Bytes;
use pagewise_model::format::{multiple, percent};
use pagewise_model::groups::by_key;
use pagewise_model::inspection::{By, InspectedFile, InspectedThread, Inspection, Mapped};
use pagewise_model::untrusted::shell_word;
use pagewise_model::watched::{Missing, ObservationKind};

/// Pages between two jumps from which on a thread is said to go through its file.
const FAR_PAGES: u64 = 1024;
/// The largest size of reads that a command names.
const MOST_READ_BYTES: u64 = 1 << 20;
/// Threads that a command names at most.
const MOST_THREADS: u64 = 64;
/// Bytes of a command that is repeated, at most.
const LONGEST_COMMAND: usize = 120;

/// The part of an inspection to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown<'a> {
    /// So many files and threads.
    pub most: usize,
    /// Files whose reads are replayed: what other methods would bring is shown there.
    pub replayed: &'a [&'a str],
    /// The program was watched just now, for this user: its command may be repeated as one to type.
    pub is_own: bool,
    /// The way to see the others.
    pub others: Option<&'static str>,
}

/// Sentences on the files that threads waited for, with the command that measures other methods of
/// reading them.
pub(super) fn verdicts(inspection: &Inspection, shown: Shown<'_>) -> Vec<String> {
    if lacks(inspection, ObservationKind::Faults) {
        return vec!["What threads waited for was not seen: there is no verdict.".to_string()];
    }
    if !inspection.complete || (inspection.cut_processes, inspection.processes) == (1, 1) {
        return Vec::new();
    }
    let found = findings(inspection);
    let verdicts = found.iter().map(|finding| verdict(finding, inspection, shown));
    let unknown = unknown_waits(inspection);
    let none = (found.is_empty() && unknown.is_none()).then(|| {
        "No thread waited in reads, writes, syncs or page faults of a file for 10 % of its time or more."
            .to_string()
    });
    verdicts.chain(unknown).chain(none).collect()
}

/// Waits that were not seen, if a thread was blocked for so long that they matter.
fn unknown_waits(inspection: &Inspection) -> Option<String> {
    let unseen = unseen_waits(inspection)?;
    let blocked = inspection.threads.iter().filter(|thread| thread.blocked() >= LEAST_SHARE);
    let longest = blocked.max_by_key(|thread| thread.blocked_ns())?;
    Some(format!(
        "Whether threads waited in {unseen} is unknown: that was not seen. Blocked for any reason: {}, {} of its time.",
        named(longest),
        percent(longest.blocked())
    ))
}

/// Waits for files that this watch cannot see.
pub(super) fn unseen_waits(inspection: &Inspection) -> Option<&'static str> {
    match (lacks(inspection, ObservationKind::Calls), lacks(inspection, ObservationKind::MinorFaultWaits)) {
        (true, true) => Some("reads, writes, syncs and minor page faults"),
        (true, false) => Some("reads, writes and syncs"),
        (false, true) => Some("minor page faults"),
        (false, false) => None,
    }
}

/// Words of a kind of wait.
pub(super) struct WaitWords {
    /// Before a file, at the beginning of a sentence.
    of: &'static str,
    doing: &'static str,
    /// Before a file, behind a share of time.
    pub(super) share_of: &'static str,
}

pub(super) fn words(by: By) -> WaitWords {
    let (of, doing, share_of) = match by {
        By::Faults => ("Mapping of", "page faults", "faults of"),
        By::Reads => ("Reads of", "reads", "reads of"),
        By::Writes => ("Writes to", "writes", "writes to"),
        By::Syncs => ("Syncs of", "syncs", "syncs of"),
        By::Prefaults => {
            ("Mapping of", "prefaults (MAP_POPULATE, MADV_POPULATE_READ, mlock)", "prefaults of")
        }
    };
    WaitWords { of, doing, share_of }
}

fn verdict(finding: &WaitFinding, inspection: &Inspection, shown: Shown<'_>) -> String {
    let file = &inspection.files[finding.file];
    let WaitWords { of, doing, .. } = words(finding.by);
    let who = match &finding.threads[..] {
        [only] => format!("{} was", named(&inspection.threads[*only])),
        several => format!("{} threads were", several.len()),
    };
    let shares = match finding.threads.len() {
        1 => percent(finding.most),
        _ => format!("{} to {}", percent(finding.least), percent(finding.most)),
    };
    // The last sleep before a fault may be another one.
    let at_most = match finding.by {
        By::Faults if lacks(inspection, ObservationKind::MinorFaultWaits) => "at most ",
        _ => "",
    };
    let mut text = format!("{of} {}: {who} blocked {at_most}{shares} of the time in {doing}", name(file));
    if let (By::Faults, Some(factor)) = (finding.by, amplified(file)) {
        let factor = multiple(factor);
        text += &format!(
            "; {} bytes came in for each byte of the pages that faulted",
            factor.trim_end_matches('x')
        );
    }
    text += ".";
    let is_replayed =
        file.path.as_deref().is_some_and(|path| shown.replayed.contains(&path)) && finding.by == By::Reads;
    if let (false, Some(command)) = (is_replayed, next_command(finding, inspection, shown.is_own)) {
        text += &format!(" This does not show whether another method is faster. Measure it: {command}");
    }
    text
}

/// The command that measures other methods of reading the file, under the conditions that were
/// seen: reads by calls are recorded and replayed; of a mapping, whose accesses are not all seen,
/// the question that is closest is asked.
fn next_command(finding: &WaitFinding, inspection: &Inspection, is_own: bool) -> Option<String> {
    let file = &inspection.files[finding.file];
    let (path, subject) = (shell_word(file.path.as_deref()?), &inspection.subject);
    let memory =
        subject.memory_limit_bytes.map_or(String::new(), |limit| format!(" --memory {}", Bytes(limit)));
    // Without a limit it waited because the file was not in the page cache.
    let state = if memory.is_empty() { " --cache cold --evict".into() } else { format!("{memory} --evict") };
    match (finding.by, &file.mapping) {
        (By::Reads, _) => {
            // Of a running process the command is not known, a long one is not repeated, and that
            // of a run file may be from anybody.
            let is_short = subject.command.len() <= LONGEST_COMMAND && !subject.command.contains('\n');
            let command = if subject.started && is_own && is_short { &subject.command } else { "COMMAND" };
            Some(format!("pagewise advise{memory} --file {path} --evict -- {command}"))
        }
        (By::Prefaults, _) => Some(format!("pagewise scan {path}{state}")),
        (By::Faults, Some(mapping)) if is_one_pass(mapping) => Some(format!("pagewise scan {path}{state}")),
        (By::Faults, Some(mapping)) => {
            let size = Bytes(read_size(mapping, inspection.page_bytes));
            let threads = match mapping.threads {
                0 | 1 => String::new(),
                several => format!(" --threads {}", several.min(MOST_THREADS)),
            };
            Some(format!("pagewise read {path} --workload random-read --read-size {size}{threads}{state}"))
        }
        _ => None,
    }
}

/// True if each thread went through the file once, or far between two jumps: values of several
/// pages that lie anywhere are no pass.
fn is_one_pass(mapping: &Mapped) -> bool {
    let jumps = jumps(mapping);
    jumps <= mapping.threads || mapping.in_order_pages / jumps >= FAR_PAGES
}

/// Bytes between two jumps, as a size of reads.
fn read_size(mapping: &Mapped, page_bytes: u64) -> u64 {
    let jumps = jumps(mapping);
    let pages = 1 + (mapping.in_order_pages + jumps / 2) / jumps;
    (page_bytes * pages.next_power_of_two()).clamp(page_bytes, MOST_READ_BYTES)
}

/// Faults that were not shortly behind the one before.
fn jumps(mapping: &Mapped) -> u64 {
    (mapping.minor_faults + mapping.major_faults).saturating_sub(mapping.in_order).max(1)
}

/// Bytes that came in over those that faulted, if it is worth a word.
fn amplified(file: &InspectedFile) -> Option<f64> {
    file.brought_in.as_ref()?.per_faulted.filter(|factor| *factor >= 1.5)
}

/// A file as texts name it.
pub(super) fn name(file: &InspectedFile) -> String {
    match (&file.path, &file.block_device) {
        (Some(path), _) => path.clone(),
        (None, Some(device)) => format!("metadata on {device}"),
        (None, None) => {
            format!("inode {} of device {}:{}", file.identity.2, file.identity.0, file.identity.1)
        }
    }
}

fn named(thread: &InspectedThread) -> String {
    format!("thread {} ({})", thread.thread, thread.name)
}

pub(super) fn lacks(inspection: &Inspection, kind: ObservationKind) -> bool {
    Missing::of(&inspection.missing, kind).is_some()
}

/// Lines about missing observations, one for all of the same reason.
pub(super) fn unseen(inspection: &Inspection) -> Vec<String> {
    let mut parts = vec!["Not seen: accesses to mapped pages that raise no fault.".to_string()];
    let reasons = by_key(inspection.missing.iter().map(|missing| {
        let what = match missing.kind {
            ObservationKind::Faults => "page faults, mappings and waits",
            ObservationKind::Calls => "calls that read and write",
            ObservationKind::PageCache => "pages that come into the page cache",
            ObservationKind::MappedAround => "pages that are mapped around a fault",
            ObservationKind::MinorFaultWaits => "waits in faults that the kernel counts as minor",
        };
        (&missing.reason, what)
    }));
    parts.extend(reasons.iter().map(|(reason, all)| format!("Not seen: {}: {reason}.", all.join("; "))));
    parts
}
