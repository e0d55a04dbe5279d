//! What the tables say, in words.

use super::facts::{ColdStart, Matrix, Row, is_channel, threads_in_words};
use super::ratio::PairedRatio;
use crate::judge::advice::words::{capital, listed};
use crate::judge::verdict::Finding;
use pagewise_model::format::{bytes, multiple};

/// What added threads do to each channel of a matrix, and what it waits for at the most threads.
pub(super) fn of_channels(matrix: &Matrix, cpus: u32) -> Vec<String> {
    matrix
        .rows
        .iter()
        .filter(|row| is_channel(&row.method))
        .map(|row| of_channel(matrix, row, cpus))
        .collect()
}

fn of_channel(matrix: &Matrix, row: &Row, cpus: u32) -> String {
    let scaling = matrix.scaling.iter().find(|scaling| scaling.method == row.method);
    let changes: Vec<String> = scaling
        .iter()
        .flat_map(|scaling| scaling.ratios.iter().zip(&matrix.threads[1..]))
        .map(|(ratio, threads)| change(*threads, ratio.as_ref()))
        .collect();
    let cpus = if cpus == 1 { "1 CPU".to_string() } else { format!("{cpus} CPUs") };
    let fewest = matrix.threads.first().copied().unwrap_or(1);
    let threads = match changes.is_empty() {
        true => format!("only {} was measured", threads_in_words(fewest)),
        false => format!("against {}, {}", threads_in_words(fewest), changes.join(", ")),
    };
    let most =
        row.scores.iter().flatten().rev().find_map(|score| Some((score.threads, score.waits.as_ref()?)));
    let waits = most.map_or_else(
        || "; what it waits for cannot be told, because no sample is valid".to_string(),
        |(threads, waits)| format!("; at {} {}", threads_in_words(threads), waits.words),
    );
    format!("{} on {cpus}: {threads}{waits}.", row.method)
}

fn change(threads: u32, ratio: Option<&PairedRatio>) -> String {
    let Some(ratio) = ratio else { return format!("{threads} threads cannot be told (no round has both)") };
    let words = ratio.in_words();
    match ratio.told {
        Finding::Higher => format!("{threads} threads gain ({words})"),
        Finding::Lower => format!("{threads} threads lose ({words})"),
        Finding::Indistinguishable => {
            format!("{threads} threads make no difference that can be told ({words})")
        }
        Finding::TooFewRounds => {
            format!("{threads} threads cannot be told ({words} in {} rounds, too few)", ratio.rounds)
        }
        Finding::NoiseUnknown => {
            format!("{threads} threads cannot be told ({words}, and the noise of the run is not known)")
        }
    }
}

/// The whole run: where pread is ahead, where channels gain from threads, and which strategy warms faster.
pub(super) fn of_all(matrices: &[Matrix], cold_starts: &[ColdStart]) -> Vec<String> {
    let mut sentences: Vec<String> = advantages(matrices).into_iter().chain(channels(matrices)).collect();
    for workload in distinct(cold_starts.iter().map(|start| start.workload)) {
        let of_workload: Vec<&str> = cold_starts
            .iter()
            .filter(|start| start.workload == workload)
            .map(|start| start.sentence.as_str())
            .collect();
        sentences.push(format!("Cold start, {workload}: {}", of_workload.join(" ")));
    }
    sentences
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// How often something was higher, lower, or neither.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    higher: usize,
    lower: usize,
    neither: usize,
}

impl Tally {
    fn of<'a>(ratios: impl Iterator<Item = &'a Option<PairedRatio>>) -> Self {
        let mut tally = Self::default();
        for ratio in ratios {
            match ratio.as_ref().map(|ratio| ratio.told) {
                Some(Finding::Higher) => tally.higher += 1,
                Some(Finding::Lower) => tally.lower += 1,
                _ => tally.neither += 1,
            }
        }
        tally
    }

    fn in_words(self, higher: &str, lower: &str, neither: &str) -> String {
        let parts = [(self.higher, higher), (self.lower, lower), (self.neither, neither)];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{words} in {count}"))
            .collect();
        let all = self.higher + self.lower + self.neither;
        format!("{} of {all} {}", listed(&parts), if all == 1 { "comparison" } else { "comparisons" })
    }
}

/// Sizes of the data in words, each once.
fn sizes(matrices: &[Matrix]) -> Vec<String> {
    distinct(matrices.iter().map(place))
}

fn place(matrix: &Matrix) -> String {
    match matrix.data_over_cache {
        Some(ratio) => format!("data {} of the cache", multiple(ratio)),
        None => format!("data of {}", bytes(matrix.span_bytes)),
    }
}

fn advantages(matrices: &[Matrix]) -> Vec<String> {
    let pairs = distinct(
        matrices
            .iter()
            .flat_map(|matrix| &matrix.advantages)
            .map(|advantage| (advantage.method.clone(), advantage.over.clone())),
    );
    let sentence = |(method, over): &(String, String)| {
        let at = |size: &String| {
            let ratios = matrices
                .iter()
                .filter(|matrix| place(matrix) == *size)
                .flat_map(|matrix| &matrix.advantages)
                .filter(|advantage| advantage.method == *method && advantage.over == *over)
                .flat_map(|advantage| &advantage.ratios);
            format!("{size}: {}", Tally::of(ratios).in_words("ahead", "behind", "cannot be told"))
        };
        let sizes: Vec<String> = sizes(matrices).iter().map(at).collect();
        format!("{method} against {over}, over patterns, threads and warm-ups: {}.", sizes.join("; "))
    };
    pairs.iter().map(sentence).collect()
}

fn channels(matrices: &[Matrix]) -> Option<String> {
    let scaling = || matrices.iter().flat_map(|matrix| &matrix.scaling);
    let channels =
        distinct(scaling().map(|scaling| scaling.method.clone()).filter(|method| is_channel(method)));
    let of = |method: &String| {
        let ratios =
            scaling().filter(|scaling| scaling.method == *method).flat_map(|scaling| &scaling.ratios);
        let ratios: Vec<&Option<PairedRatio>> = ratios.collect();
        (!ratios.is_empty()).then(|| {
            let told = Tally::of(ratios.into_iter()).in_words("gains", "loses", "cannot be told");
            format!("{method} {told}")
        })
    };
    let told: Vec<String> = channels.iter().filter_map(of).collect();
    (!told.is_empty()).then(|| capital(&format!("added threads, against the fewest: {}.", told.join("; "))))
}
