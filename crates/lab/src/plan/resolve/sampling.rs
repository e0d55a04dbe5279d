//! Parameters of sampling: the topmost layer that chooses one decides it.

use anyhow::{Result, bail, ensure};
use pagewise_analysis::judge::expectations::{samples_needed, unanswerable};
use pagewise_model::Cell;
use pagewise_model::expectation::Expectation;
use pagewise_model::limits::{MAX_PHASE_NS, MAX_ROUNDS};
use pagewise_report::words::reasons;

use super::super::{ChosenBudget, Layer, Sampling};

/// Length of a sample: more processes show more than longer ones.
const SAMPLE_NS: u64 = 80_000_000;
/// Length of a sample if no byte comes from a device.
const MEMORY_SAMPLE_NS: u64 = 40_000_000;

/// The amount of sampling.
pub(super) enum Amount {
    /// So many samples of each method.
    Rounds(u32),
    /// As many as such a time allows, chosen by the last of so many layers; `None`: the usual one.
    Budget(Option<(ChosenBudget, usize)>),
}

/// The parameters of sampling that the layers choose.
pub(super) struct Sampled {
    pub(super) seed: u64,
    pub(super) amount: Amount,
    pub(super) sample_ns: u64,
    pub(super) memory_sample_ns: Option<u64>,
    pub(super) ceilings: bool,
    pub(super) controls: Option<bool>,
    pub(super) crossing_percent: Option<u32>,
}

impl Sampled {
    /// As many rounds as the expectations need, unless an amount was chosen.
    pub(super) fn for_all(self, expectations: &[Expectation]) -> Result<Self> {
        let needs = |one: &Expectation| (samples_needed(one), *one);
        let Some((rounds, strictest)) = expectations.iter().map(needs).max_by_key(|(rounds, _)| *rounds)
        else {
            return Ok(self);
        };
        ensure!(
            rounds <= MAX_ROUNDS,
            "{strictest} needs {rounds} samples of each method, and a run has at most {MAX_ROUNDS}: expect a lower quantile"
        );
        let amount = match self.amount {
            Amount::Budget(None) => Amount::Rounds(rounds),
            Amount::Rounds(chosen) => Amount::Rounds(chosen),
            Amount::Budget(Some(_)) => bail!(
                "--budget ends when the order of methods is decided, which says nothing of {strictest}: leave it out, or choose the samples with --rounds"
            ),
        };
        // Nothing is compared that a control could show the noise of.
        Ok(Self { amount, controls: self.controls.or(Some(false)), ..self })
    }
}

/// Refuse an expectation that no cell can answer, and one that is there twice.
pub(super) fn ensure_answerable(expectations: &[Expectation], cells: &[Cell]) -> Result<()> {
    for (index, expectation) in expectations.iter().enumerate() {
        ensure!(
            !expectations[..index].contains(expectation),
            "{expectation} is expected twice: write it once"
        );
        let reasons: Vec<_> = cells.iter().map(|cell| unanswerable(expectation, &cell.conditions)).collect();
        // What is asked for is a part of the answer only where no rate is.
        let is_refused = match expectation {
            Expectation::Rate(_) => reasons.iter().any(Option::is_some),
            _ => reasons.iter().all(Option::is_some),
        };
        if let Some(reason) = reasons.into_iter().flatten().next().filter(|_| is_refused) {
            bail!("{expectation} cannot be answered: {}", reasons::unanswerable(reason));
        }
    }
    Ok(())
}

/// The choice of the topmost layer that makes one.
pub(super) fn sampling(layers: &[&Layer], fresh_seed: u64) -> Result<Sampled> {
    fn first<T>(layers: &[&Layer], pick: impl Fn(&Sampling) -> Option<T>, default: T) -> T {
        layers.iter().find_map(|layer| pick(&layer.sampling)).unwrap_or(default)
    }
    let amount = |(index, layer): (usize, &&Layer)| match (layer.sampling.rounds, layer.sampling.budget) {
        (Some(_), Some(_)) => bail!("'rounds' and 'budget' exclude each other: write one of them"),
        (Some(rounds), None) => Ok(Some(Amount::Rounds(rounds))),
        (None, Some(budget)) => Ok(Some(Amount::Budget(Some((budget, index + 1))))),
        (None, None) => Ok(None),
    };
    let mut amounts = layers.iter().enumerate().map(amount).filter_map(Result::transpose);
    let amount = amounts.next().transpose()?.unwrap_or(Amount::Budget(None));
    let chosen_ns = layers.iter().find_map(|layer| layer.sampling.sample_ns);
    let (sample_ns, memory_sample_ns) = match chosen_ns {
        Some(chosen_ns) => (chosen_ns, None),
        None => (SAMPLE_NS, Some(MEMORY_SAMPLE_NS)),
    };
    ensure!(
        (1_000_000..=MAX_PHASE_NS).contains(&sample_ns),
        "the length of a sample is out of range: write 1ms to 3600s"
    );
    let seed = first(layers, |sampling| sampling.seed, fresh_seed);
    let ceilings = first(layers, |sampling| sampling.ceilings, true);
    let controls = layers.iter().find_map(|layer| layer.sampling.controls);
    let crossing_percent = layers.iter().find_map(|layer| layer.sampling.crossing_percent);
    Ok(Sampled { seed, amount, sample_ns, memory_sample_ns, ceilings, controls, crossing_percent })
}
