//! Sentences of the advice: one function for each kind of finding.

use pagewise_analysis::judge::advice::{Buffers, FilesByBuffer, Lack, Note, Recommendation, listed, slower};
use pagewise_analysis::judge::verdict::FEWEST_ROUNDS;
use pagewise_model::Bytes;
use pagewise_model::format::{bytes, counted, time, times};

/// All of an advice, one sentence each: explanations of the result, effects of methods on
/// everything else in their process, and the choice.
pub fn sentences(advice: &Recommendation) -> Vec<String> {
    let mut sentences = notes(advice);
    sentences.extend(advice.stalls.iter().chain([&advice.sentence]).cloned());
    sentences
}

/// Explanations of the result, one sentence each; the insight is the first.
pub fn notes(advice: &Recommendation) -> Vec<String> {
    let insight = advice.insight.iter().map(|insight| format!("{insight}."));
    insight.chain(advice.notes.iter().map(|one| note(one, advice))).collect()
}

fn note(note: &Note, advice: &Recommendation) -> String {
    match note {
        Note::Said(sentence) => sentence.clone(),
        Note::Amplified(method, read) => {
            format!("{method}: {} B read from the device per requested byte.", times(*read))
        }
        Note::MajorFaults(method, per_op) => {
            format!("{method}: {} major faults per operation.", times(*per_op))
        }
        Note::MinorFaults(method, per_op) => format!(
            "{method}: {} page faults per operation, none of which needed the device.",
            times(*per_op)
        ),
        Note::Refaults(methods) => {
            let words = each(methods, |(method, per_op)| format!("{method} {}", times(*per_op)));
            format!("Refaults per operation, because of the memory limit: {}.", words.join(", "))
        }
        Note::NotDurable { call, in_memory: true } => {
            format!("{call} is not durable here: the file is stored in memory.")
        }
        Note::NotDurable { call, in_memory: false } => {
            format!("{call} is not durable: neither metadata nor the cache of the device are flushed.")
        }
        Note::StillDirty { methods, of_bytes, every } => {
            let dirty = || methods.iter().map(|(_, dirty)| *dirty);
            let (least, most) = (bytes(dirty().min().unwrap_or(0)), bytes(dirty().max().unwrap_or(0)));
            let dirty = if least == most { most } else { format!("From {least} to {most}") };
            let methods = match every {
                true => "every method".to_string(),
                false => listed(&each(methods, |(method, _)| method.clone())),
            };
            format!(
                "{dirty} of {} are still dirty at the end with {methods}: they have not reached the device.",
                bytes(*of_bytes)
            )
        }
        Note::Stalls(methods) => format!("Stalls over 1 ms: {}.", each(methods, stalled).join("; ")),
        Note::WrittenAgain(methods) => {
            let words = each(methods, |(method, ratio)| format!("{method} {} B", times(*ratio)));
            format!(
                "Written to the device by any process, per byte that reached the file: {}.",
                words.join(", ")
            )
        }
        Note::NoBuffer => {
            let reason = advice.reason.as_deref().unwrap_or_default();
            format!("No buffer is advised, because {reason}.")
        }
        Note::NoBufferOf(base, missing) => {
            format!("{base}: no buffer is advised, because {}.", listed(&each(missing, lack)))
        }
        Note::Buffers(found) => buffers(found),
        Note::BufferByFileSize(record, bases) => {
            let words = each(bases, |(base, files)| format!("of {base} is {}", by_file_size(files)));
            format!("For records of {} the smallest good buffer {}.", bytes(*record), words.join("; that "))
        }
    }
}

fn each<T>(all: &[T], words: impl Fn(&T) -> String) -> Vec<String> {
    all.iter().map(words).collect()
}

fn stalled((method, count, longest_ns): &(String, u64, u64)) -> String {
    // The count is a median over samples.
    let often = if *count > 0 { format!("{count} a sample") } else { "in some samples".to_string() };
    format!("{method} {often}, the longest {}", time(*longest_ns))
}

fn lack(lack: &Lack) -> String {
    match lack {
        Lack::NotRanked(method, reason) => format!("{method} is not ranked: {reason}"),
        Lack::FewRounds(method, rounds) => {
            let rounds = counted(*rounds as u64, "valid round");
            format!("{method} has {rounds}, and {FEWEST_ROUNDS} are needed")
        }
    }
}

/// The good buffers of methods that differ only in that.
pub fn buffers(found: &Buffers) -> String {
    let (smallest, largest) = (found.smallest_bytes, found.largest_bytes);
    let best = format!("the best ({} a record)", time(found.best_ns_per_op));
    let within = format!("{} than {best}", slower(found.bound));
    let unclear_below = found.unclear_bytes.iter().any(|unclear| *unclear < smallest);
    let known = if unclear_below { "buffer known to be good" } else { "good buffer" };
    let lead = match (smallest.0, smallest == largest) {
        (_, true) if !found.unclear_bytes.is_empty() => {
            format!("{} is ahead ({} a record)", buffer(smallest), time(found.best_ns_per_op))
        }
        (0, true) => format!("no buffer is {best}"),
        (0, false) => {
            format!("no buffer is needed: without one and up to {} all are {within}", bytes(largest))
        }
        (_, true) => format!("a buffer of {} is {best}", bytes(smallest)),
        (_, false) => format!(
            "the smallest {known} is {}: from it to {} all are {within}",
            bytes(smallest),
            bytes(largest)
        ),
    };
    let mut behind =
        each(&found.costs, |(bytes, ratio)| format!("{} costs {}x", buffer(*bytes), times(*ratio)));
    behind.extend(found.unclear_bytes.iter().zip(&found.unclear_bounds).map(|(bytes, bound)| match bound {
        Some(bound) => format!("{} is {}", buffer(*bytes), slower(*bound)),
        None => format!("{} has too few rounds", buffer(*bytes)),
    }));
    let mut parts = vec![lead];
    parts.extend((!behind.is_empty()).then(|| behind.join(", ")));
    parts.extend(found.missing.iter().map(lack));
    format!("{} (by the records alone, without set-up): {}.", found.base, parts.join("; "))
}

/// A buffer as a phrase.
fn buffer(size: Bytes) -> String {
    if size.0 == 0 { "no buffer".to_string() } else { bytes(size) }
}

/// `4 KiB at 10 MiB and 100 MiB, 16 KiB at 1 GiB`.
fn by_file_size(files: &FilesByBuffer) -> String {
    let file = |(file, doubt): &(Bytes, bool)| {
        format!("{}{}", bytes(*file), if *doubt { " (a smaller one is unclear)" } else { "" })
    };
    let at = |(smallest, files): (&Bytes, &Vec<(Bytes, bool)>)| {
        format!("{} at {}", buffer(*smallest), listed(&each(files, file)))
    };
    files.iter().map(at).collect::<Vec<_>>().join(", ")
}
