//! Sentences about the curves of a run over ratios of data to cache.

use crate::cliff::{CapacitySource, Closing, Crossing, CurveGroup, Edge, Lead, Precision, WindowChoice};
use pagewise_model::format::{bytes, capitalized, counted, listed, multiple, times};
use pagewise_model::{Access, Method, MethodOption};

use super::WideCrossing;

/// Fewer device bytes per requested byte than this are called none.
const ALMOST_NONE: f64 = 0.005;
/// From this ratio, one method is said to read more than the other.
const MORE: f64 = 1.25;
/// Shares of a gap below this are not mentioned.
const SMALLEST_SHARE: f64 = 0.05;
/// From this share, it is all of it.
const ALL: f64 = 0.995;

/// All sentences about a group, as they are printed.
pub fn printed(group: &CurveGroup) -> Vec<String> {
    sentences(group).iter().map(|sentence| format!("{}.", capitalized(sentence))).collect()
}

/// The sentences without capitals and full stops: leaders by range, each crossing, unclear ranges,
/// and the reference of ratios.
pub fn sentences(group: &CurveGroup) -> Vec<String> {
    let mut sentences: Vec<String> = leads(group).into_iter().collect();
    sentences.extend(group.crossings.iter().map(|crossing| crossing_sentence(crossing, group)));
    sentences.extend(no_crossing(group));
    sentences.extend(group.edges.iter().map(edge));
    sentences.extend(group.windows.iter().map(windows));
    sentences.push(capacity(group));
    sentences
}

/// The lowest and the highest ratio with a rate.
fn swept(group: &CurveGroup) -> Option<(f64, f64)> {
    let points = || group.curves.iter().flat_map(|curve| &curve.points);
    let ratios = || points().filter(|point| point.ops_per_second.is_some()).map(|point| point.ratio);
    Some((ratios().min_by(f64::total_cmp)?, ratios().max_by(f64::total_cmp)?))
}

fn leads(group: &CurveGroup) -> Option<String> {
    swept(group)?;
    let (first, last) = (group.leads.first()?, group.leads.last()?);
    if group.leads.len() == 1 {
        let range = match first.from < last.to {
            true => format!("from {} to {} the cache", multiple(first.from), multiple(last.to)),
            false => format!("at {} the cache", multiple(first.from)),
        };
        return Some(match first.methods.as_slice() {
            [] => format!("{range} the data do not decide which method leads"),
            [only] if first.from < last.to => {
                format!("{range} {only} leads, or cannot be distinguished from the leader")
            }
            [only] => format!("{range} {only} leads"),
            several => format!("{range} {} lead: they are not distinguishable", listed(several)),
        });
    }
    let part = |(index, lead): (usize, &Lead)| {
        let range = match index {
            0 => format!("up to {} the cache", multiple(lead.to)),
            _ => format!("from {} on", multiple(lead.from)),
        };
        format!("{range}: {}", leading(&lead.methods))
    };
    let parts: Vec<String> = group.leads.iter().enumerate().map(part).collect();
    Some(format!("fastest {}", parts.join("; ")))
}

fn leading(methods: &[String]) -> String {
    match methods {
        [] => "undecided by the data".to_string(),
        [only] => only.clone(),
        several => format!("{} (not distinguishable)", listed(several)),
    }
}

fn crossing_sentence(crossing: &Crossing, group: &CurveGroup) -> String {
    let (before, after) = (plain(&crossing.before), plain(&crossing.after));
    let here = format!("here at {}", counted(u64::from(group.threads), "thread"));
    let mut sentence = match (crossing.precision, crossing.ratio) {
        (Precision::Reached, Some(ratio)) => format!(
            "from {ratio:.2}x the cache [{:.2}, {:.2}] on, {after} beats {before} {here}",
            crossing.low, crossing.high
        ),
        (precision, _) => {
            let known = match precision {
                Precision::Undecided => "The data do not give a narrower interval",
                _ => "No narrower interval is known",
            };
            let reason =
                crossing.reason.map_or_else(String::new, |reason| format!(": {}", wide_crossing(reason)));
            format!(
                "{after} overtakes {before} between {} and {} the cache {here}. {known}{reason}",
                multiple(crossing.low),
                multiple(crossing.high),
            )
        }
    };
    let facts: Vec<String> =
        [device_bytes(crossing, group), faults(crossing, group)].into_iter().flatten().collect();
    if let Some(behind) = crossing.behind.as_ref().filter(|_| !facts.is_empty()) {
        sentence.push_str(&format!(". At {} {}", multiple(behind.ratio), facts.join(", and ")));
    }
    let closing = crossing.behind.as_ref().and_then(|behind| behind.closing.as_ref());
    if let Some(text) = closing.and_then(|closing| closes(closing, &crossing.after)) {
        sentence.push_str(&format!("; {text}"));
    }
    if let Some((lowest, highest)) = swept(group) {
        if crossing.low <= lowest {
            sentence.push_str(&format!("; {} is the lowest ratio that was measured", multiple(lowest)));
        }
        if crossing.high >= highest {
            sentence.push_str(&format!("; {} is the highest ratio that was measured", multiple(highest)));
        }
    }
    sentence
}

/// Sentence about the bytes that both read from the device above the crossing.
fn device_bytes(crossing: &Crossing, group: &CurveGroup) -> Option<String> {
    let behind = crossing.behind.as_ref()?;
    let (slower, faster) = (behind.before_device_bytes_per_byte?, behind.after_device_bytes_per_byte?);
    let (before, after) = (&crossing.before, &crossing.after);
    if slower < ALMOST_NONE && faster < ALMOST_NONE {
        return Some("neither reads from the device".to_string());
    }
    if slower < faster * MORE && faster < slower * MORE {
        return Some(format!(
            "both read about {} from the device for each requested byte",
            counted_bytes(slower)
        ));
    }
    let ahead = group.readahead_bytes.filter(|_| slower >= MORE && reads_ahead(before));
    let readahead = ahead.map_or_else(String::new, |ahead| format!(" (readahead is {})", bytes(ahead)));
    Some(format!(
        "{before} reads {} from the device for each requested byte{readahead}, {after} {}",
        counted_bytes(slower),
        few_digits(faster)
    ))
}

/// Sentence about major faults, if the slower method has them and the faster one has not.
fn faults(crossing: &Crossing, group: &CurveGroup) -> Option<String> {
    let behind = crossing.behind.as_ref()?;
    let (slower, faster) = (behind.before_major_faults_per_op?, behind.after_major_faults_per_op?);
    // If bytes explain it, faults need no mention.
    let bytes = |bytes: Option<f64>| bytes.unwrap_or(0.0);
    let by_bytes =
        bytes(behind.before_device_bytes_per_byte) >= bytes(behind.after_device_bytes_per_byte) * MORE;
    if slower < ALMOST_NONE || slower < faster * MORE || by_bytes {
        return None;
    }
    let reads = match group.reads_per_op {
        1 => "1 read".to_string(),
        reads => format!("{reads} reads"),
    };
    Some(format!(
        "{} waits for the device in {} page faults for each operation of {reads}, {} in {}",
        crossing.before,
        few_digits(slower),
        crossing.after,
        few_digits(faster)
    ))
}

fn closes(closing: &Closing, faster: &str) -> Option<String> {
    let method = &closing.method;
    match closing.share {
        share if share < SMALLEST_SHARE => None,
        share if share >= 1.0 / ALL => {
            Some(format!("{method} closes all of the gap and is faster than {faster}"))
        }
        share if share >= ALL => Some(format!("{method} closes all of the gap")),
        share => Some(format!("{method} closes {:.0} % of the gap", share * 100.0)),
    }
}

fn no_crossing(group: &CurveGroup) -> Option<String> {
    if !group.crossings.is_empty() {
        return None;
    }
    let with_rates =
        group.curves.iter().filter(|curve| curve.points.iter().any(|point| point.ops_per_second.is_some()));
    match (with_rates.count(), swept(group)) {
        (0, _) | (_, None) => Some("no method has a valid sample, so nothing can be said".to_string()),
        (1, _) => Some("only one method could be measured, so nothing is compared".to_string()),
        (_, Some((lowest, highest))) => {
            let range = format!("between {} and {} the cache", multiple(lowest), multiple(highest));
            let is_open = group.leads.iter().any(|lead| lead.methods.is_empty());
            Some(match is_open {
                true => format!(
                    "{range} the data do not decide everywhere which method leads, so no crossing can be located"
                ),
                false => format!("{range} no method is seen to lose its lead to another"),
            })
        }
    }
}

fn edge(edge: &Edge) -> String {
    let (which, beyond) = if edge.highest { ("highest", "above") } else { ("lowest", "below") };
    format!(
        "at {}, the {which} ratio measured, {} can no longer be distinguished from {}: their order may change {beyond} it",
        multiple(edge.ratio),
        listed(&edge.rivals),
        edge.leader
    )
}

fn windows(choice: &WindowChoice) -> String {
    let tried: Vec<String> = choice.candidates.iter().map(|candidate| candidate.window.to_string()).collect();
    let tried = format!(
        "prefetching {} reads ahead was tried at {} the cache",
        listed(&tried),
        multiple(choice.ratio)
    );
    let chosen = choice.candidates.iter().find(|candidate| Some(&candidate.method) == choice.chosen.as_ref());
    match chosen {
        Some(chosen) => format!("{tried}: {} did best, and its curve is the one shown", chosen.window),
        None => format!("{tried}, and none has a valid sample"),
    }
}

fn capacity(group: &CurveGroup) -> String {
    let share = group.capacity.bytes.0 as f64 / group.memory_limit_bytes.0.max(1) as f64;
    let known = match (group.capacity.source, group.capacity.samples) {
        (CapacitySource::Measured, 1) => "as measured in 1 sample".to_string(),
        (CapacitySource::Measured, samples) => format!("as measured in {samples} samples"),
        (CapacitySource::Nominal, _) => "as calculated, since the samples do not say it".to_string(),
    };
    format!(
        "the cache is what the memory limit of {} leaves for the file: {} ({:.0} % of it), {known}",
        bytes(group.memory_limit_bytes),
        bytes(group.capacity.bytes),
        share * 100.0
    )
}

/// `plain mmap`, so that a method without options is not mistaken for all variants of it.
fn plain(method: &str) -> String {
    if method == "mmap" { format!("plain {method}") } else { method.to_string() }
}

fn reads_ahead(method: &str) -> bool {
    // The readahead of a third-party method is unknown.
    let may = |method: &Method| method.access() != Access::Unknown && !method.is_direct();
    method.parse::<Method>().is_ok_and(|method| may(&method) && !method.has(MethodOption::Random))
}

/// The reason that the interval of a crossing is wider than the tolerance.
pub fn wide_crossing(reason: WideCrossing) -> &'static str {
    match reason {
        WideCrossing::NoSearch => "the plan has no search",
        WideCrossing::Undecided => "ratios between these were measured, and their order is not certain",
        WideCrossing::TooFine => "there is no other amount of data in between",
        WideCrossing::RunEnded => "the run ended before the interval was narrowed",
        WideCrossing::SearchSpent => "the search had used up the measurements that it may add to the grid",
    }
}

fn few_digits(value: f64) -> String {
    if value < ALMOST_NONE { "none".to_string() } else { times(value) }
}

fn counted_bytes(value: f64) -> String {
    if value < ALMOST_NONE { "almost nothing".to_string() } else { format!("{} bytes", times(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cliff::{Behind, Capacity, Curve, Point};
    use pagewise_analysis::judge::MedianInterval;
    use pagewise_model::{Bytes, CacheState, Skew, Workload};

    /// Two methods that were measured at half and at four times of the cache.
    fn group() -> CurveGroup {
        let point = |ratio: f64| Point {
            ratio,
            ratio_to_limit: ratio,
            span_bytes: Bytes((ratio * f64::from(100 << 20)) as u64),
            samples: 7,
            ops_per_second: Some(MedianInterval { median: 1.0, low: None, high: None }),
            device_bytes_per_byte: None,
            major_faults_per_op: None,
            refaults_per_op: None,
            reason: None,
        };
        let curve = |method: &str| Curve { method: method.into(), points: vec![point(0.5), point(4.0)] };
        CurveGroup {
            label: "random-read".into(),
            compared_label: "random-read".into(),
            workload: Workload::RandomRead,
            threads: 1,
            read_bytes: Bytes::kib(16),
            reads_per_op: 16,
            skew: Skew::Uniform,
            cache: CacheState::Warm,
            memory_limit_bytes: Bytes::mib(128),
            readahead_bytes: Some(Bytes::mib(8)),
            capacity: Capacity { bytes: Bytes::mib(100), source: CapacitySource::Measured, samples: 28 },
            curves: vec![curve("mmap"), curve("pread")],
            windows: Vec::new(),
            leads: vec![lead(0.5, 1.18, "mmap"), lead(1.22, 4.0, "pread")],
            edges: Vec::new(),
            crossings: Vec::new(),
        }
    }

    fn lead(from: f64, to: f64, method: &str) -> Lead {
        Lead { from, to, methods: vec![method.into()] }
    }

    fn crossing(low: f64, high: f64, precision: Precision, reason: Option<WideCrossing>) -> Crossing {
        Crossing {
            before: "mmap".into(),
            after: "pread".into(),
            ratio: Some((low * high).sqrt()),
            low,
            high,
            coverage: 0.98,
            low_span_bytes: Bytes::mib(1),
            high_span_bytes: Bytes::mib(2),
            before_leads: true,
            after_leads: true,
            precision,
            reason,
            behind: None,
        }
    }

    #[test]
    fn a_known_crossing_comes_with_amplification_readahead_and_what_closes_the_gap() {
        let behind = Behind {
            ratio: 1.22,
            times: Some(50.0),
            before_device_bytes_per_byte: Some(272.0),
            after_device_bytes_per_byte: Some(1.0),
            before_major_faults_per_op: None,
            after_major_faults_per_op: None,
            closing: Some(Closing { method: "mmap:random".into(), share: 0.5 }),
        };
        let known = Crossing {
            ratio: Some(1.19),
            behind: Some(behind),
            ..crossing(1.18, 1.22, Precision::Reached, None)
        };
        let text = sentences(&CurveGroup { crossings: vec![known], ..group() });
        assert_eq!(text[0], "fastest up to 1.18x the cache: mmap; from 1.22x on: pread");
        assert_eq!(
            text[1],
            "from 1.19x the cache [1.18, 1.22] on, pread beats plain mmap here at 1 thread. At 1.22x mmap reads 272 bytes \
             from the device for each requested byte (readahead is 8 MiB), pread 1.00; mmap:random closes 50 % of the gap"
        );
        assert_eq!(
            text[2],
            "the cache is what the memory limit of 128 MiB leaves for the file: 100 MiB (78 % of it), as measured in 28 samples"
        );
    }

    #[test]
    fn a_crossing_that_is_not_known_closely_has_its_reason() {
        let text = |unknown| sentences(&CurveGroup { crossings: vec![unknown], ..group() }).remove(1);
        let stopped = crossing(0.5, 4.0, Precision::Stopped, Some(WideCrossing::NoSearch));
        assert_eq!(
            text(stopped),
            "pread overtakes plain mmap between 0.5x and 4x the cache here at 1 thread. No narrower interval is known: the plan \
             has no search; 0.5x is the lowest ratio that was measured; 4x is the highest ratio that was measured"
        );
        let sentence = text(crossing(1.0, 2.0, Precision::Undecided, Some(WideCrossing::Undecided)));
        let part = ". The data do not give a narrower interval: ratios between these were measured";
        assert!(sentence.contains(part), "{sentence}");
    }

    #[test]
    fn no_crossing_and_a_near_one_at_the_edge_are_said() {
        let always = CurveGroup { leads: vec![lead(0.5, 4.0, "pread")], ..group() };
        let text = sentences(&always);
        assert_eq!(
            text[0],
            "from 0.5x to 4x the cache pread leads, or cannot be distinguished from the leader"
        );
        assert_eq!(text[1], "between 0.5x and 4x the cache no method is seen to lose its lead to another");
        let open = CurveGroup {
            leads: vec![lead(0.5, 1.0, "pread"), Lead { methods: Vec::new(), ..lead(1.0, 4.0, "") }],
            ..group()
        };
        assert_eq!(
            no_crossing(&open).as_deref(),
            Some(
                "between 0.5x and 4x the cache the data do not decide everywhere which method leads, so no crossing can be located"
            )
        );
        let near = Edge { ratio: 4.0, highest: true, leader: "pread".into(), rivals: vec!["mmap".into()] };
        assert_eq!(
            edge(&near),
            "at 4x, the highest ratio measured, mmap can no longer be distinguished from pread: their order may change above it"
        );
    }

    #[test]
    fn of_no_sample_and_of_one_method_nothing_is_said() {
        let mut without = group();
        for curve in &mut without.curves {
            curve.points.iter_mut().for_each(|point| point.ops_per_second = None);
        }
        let text = printed(&without);
        assert_eq!(text[0], "No method has a valid sample, so nothing can be said.");
        without.curves[0] = group().curves.remove(0);
        let text = sentences(&without);
        assert_eq!(text[1], "only one method could be measured, so nothing is compared");
    }

    #[test]
    fn a_gap_is_closed_in_part_or_wholly() {
        let text = |share| closes(&Closing { method: "mmap:random".to_string(), share }, "pread");
        assert_eq!(text(0.8).as_deref(), Some("mmap:random closes 80 % of the gap"));
        assert_eq!(text(0.999).as_deref(), Some("mmap:random closes all of the gap"));
        assert_eq!(text(1.3).as_deref(), Some("mmap:random closes all of the gap and is faster than pread"));
        assert_eq!(text(0.01), None);
    }

    #[test]
    fn only_what_reads_ahead_has_the_readahead_named() {
        assert!(reads_ahead("mmap") && reads_ahead("pread") && reads_ahead("jvm/mmap"));
        assert!(!reads_ahead("mine/lsm-get"));
        assert!(!reads_ahead("mmap:random") && !reads_ahead("pread:direct") && !reads_ahead("nothing"));
    }
}
