//! Sentences of the advice: one function for each kind of finding.

use pagewise_analysis::judge::advice::{
    Buffers, FilesByBuffer, FillFigures, Insight, Lack, Note, Recommendation, StreamGain, capital, interval,
    listed, slower,
};
use pagewise_analysis::judge::verdict::FEWEST_ROUNDS;
use pagewise_model::format::{bytes, counted, percent, time, times};
use pagewise_model::{Bytes, Consume};

/// All of an advice, one sentence each: explanations of the result, effects of methods on
/// everything else in their process, and the choice.
pub fn sentences(advice: &Recommendation) -> Vec<String> {
    let mut sentences = notes(advice);
    sentences.extend(advice.stalls.iter().chain([&advice.sentence]).cloned());
    sentences
}

/// Explanations of the result, one sentence each; the insight is the first.
pub fn notes(advice: &Recommendation) -> Vec<String> {
    let first = advice.insight.iter().map(|found| format!("{}.", insight(found)));
    first.chain(advice.notes.iter().map(|one| note(one, advice))).collect()
}

fn note(note: &Note, advice: &Recommendation) -> String {
    match note {
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
            format!("Refaults per operation, because of the memory limit: {}.", by_method(methods, times))
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
            let written = by_method(methods, |ratio| format!("{} B", times(ratio)));
            format!("Written to the device by any process, per byte that reached the file: {written}.")
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
        Note::UnknownGain(why) => format!("The possible gain of a method is unknown, because {}.", lack(why)),
        Note::Shares(methods) => {
            format!("Of the most that this device delivered: {}.", by_method(methods, percent))
        }
        Note::Limits(limits) => {
            let words =
                each(limits, |(name, methods)| format!("{} limits {}", name.subject(), listed(methods)));
            format!("{}.", capital(&words.join("; ")))
        }
        Note::Consuming { consume, method, full_ns, touched_ns, costs } => {
            let consuming = match consume {
                Consume::Touch => "Touching pages",
                Consume::Sum => "Summing the bytes",
                Consume::Lines => "Counting lines",
            };
            let cost = match costs {
                true => time(full_ns - touched_ns),
                false => "no distinguishable time".to_string(),
            };
            let (full, touched) = (time(*full_ns), time(*touched_ns));
            format!("{consuming} costs {method} {cost}: {full}, and {touched} where pages are only touched.")
        }
        Note::UnknownPrefault(why) => format!("The gain from prefaulting is unknown, because {}.", lack(why)),
        Note::Unhidden { pretouch, prefaulted, plain } => {
            let tail = pretouch.p999_ns.zip(plain.p999_ns).map_or_else(String::new, |(own, plains)| {
                let (own, plains) = (time(own), time(plains));
                format!(", and p99.9 of a block {own} where {} has {plains}", plain.method)
            });
            format!(
                "{} does not hide the page faults: its fill takes {}, where {} takes {}{tail}.",
                pretouch.method,
                time(pretouch.fill_ns),
                prefaulted.method,
                time(prefaulted.fill_ns)
            )
        }
        Note::Blocks(methods) => {
            let words = each(methods, |(method, p999_ns, longest_ns)| {
                format!("{method} {} and {}", time(*p999_ns), time(*longest_ns))
            });
            format!("Page faults in a block's time, p99.9 and longest: {}.", words.join(", "))
        }
    }
}

/// The meaning of a result beyond the choice, without a full stop.
pub fn insight(found: &Insight) -> String {
    match found {
        Insight::Stream { method, share, low, high, gain } => {
            let others = match gain {
                StreamGain::Known(leader, [ratio, low, high]) => {
                    format!("{leader} gains {}x [{}, {}]", times(*ratio), times(*low), times(*high))
                }
                StreamGain::AtMost(leader, bound) => {
                    format!("it is {} than {leader}, these rounds do not tell", slower(*bound))
                }
                StreamGain::FewRounds(leader) => format!("too few rounds compare it with {leader}"),
                StreamGain::Nothing(false) => "no method here is faster".to_string(),
                StreamGain::Nothing(true) => format!(
                    "no method here is faster, though another had {}x [{}, {}] as much of it",
                    times(1.0 / share),
                    times(1.0 / high),
                    times(1.0 / low)
                ),
            };
            let (share, ends) = (percent(*share), interval(*low, *high));
            format!(
                "{method} runs at {share} {ends} of the most that this device delivered in this run; {others}"
            )
        }
        Insight::Prefault { plain, prefaulted, faster, in_total, steady } => {
            let (method, other) = (&prefaulted.method, &plain.method);
            let (own, others) = (time(prefaulted.fill_ns), time(plain.fill_ns));
            let fill = match faster {
                Some(faster) => {
                    format!("{method} makes the fill {}x faster{}", times(*faster), moved(prefaulted, plain))
                }
                None => format!(
                    "{method} does not make the fill faster than {other} distinguishably in these rounds \
                     ({own} and {others})"
                ),
            };
            let total = match in_total {
                Some(gain) if *gain > 1.0 => format!("in total it gains {}x", times(*gain)),
                Some(gain) => format!("in total it costs {}x", times(1.0 / gain)),
                None => format!("in total the two are not distinguishable{}", totals(prefaulted, plain)),
            };
            let steady = steady.as_ref().and_then(|steady| hidden(steady, prefaulted, plain));
            [fill, total].into_iter().chain(steady).collect::<Vec<_>>().join("; ")
        }
    }
}

fn moved(prefaulted: &FillFigures, plain: &FillFigures) -> String {
    match (prefaulted.setup_ns, plain.setup_ns) {
        (Some(own), Some(plain)) if own > plain => format!(" by moving {} into set-up", time(own - plain)),
        _ => String::new(),
    }
}

fn totals(one: &FillFigures, other: &FillFigures) -> String {
    match (one.total_ns, other.total_ns) {
        (Some(one), Some(other)) => format!(" ({} and {})", time(one), time(other)),
        _ => String::new(),
    }
}

fn hidden(steady: &FillFigures, prefaulted: &FillFigures, plain: &FillFigures) -> Option<String> {
    Some(format!(
        "for a steady writer, {} hides it: p99.9 of a block {} instead of {}, with {} of set-up instead of {}",
        steady.method,
        time(steady.p999_ns?),
        time(plain.p999_ns?),
        time(steady.setup_ns?),
        time(prefaulted.setup_ns?)
    ))
}

fn each<T>(all: &[T], words: impl Fn(&T) -> String) -> Vec<String> {
    all.iter().map(words).collect()
}

/// `mmap 1.50 B, pread 2.00 B`.
fn by_method(methods: &[(String, f64)], text: impl Fn(f64) -> String) -> String {
    each(methods, |(method, figure)| format!("{method} {}", text(*figure))).join(", ")
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
        Lack::NoShare(method) => format!("the share of this device that {method} reaches was not measured"),
        Lack::NoStream => "no plain stream (read:buffer=SIZE) is among the methods".to_string(),
        Lack::NoPlainMapping => "plain mmap is not among the methods".to_string(),
        Lack::NoPrefault => "no method that prefaults is ranked".to_string(),
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
