//! Noises of samples: made-up ones, and the residuals of a real overview.

use std::collections::BTreeMap;

use pagewise_model::random::Random;

/// Residuals of a real overview.
const OVERVIEW: &str = include_str!("overview.txt");
/// Standard deviation that blurs residuals that are drawn again and again.
const BLUR: f64 = 0.02;

/// Scatter of samples.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    /// Standard deviation of the logarithm of a sample's rate.
    pub sample: f64,
    /// Share of samples that are slowed further.
    pub slowed_share: f64,
    /// Slowed samples take longer by a share between the two.
    pub slowed_by: (f64, f64),
    /// Standard deviation of the logarithm of a round's common factor.
    pub round: f64,
    /// Share of samples that are invalid.
    pub invalid_share: f64,
}

impl Scatter {
    /// A quiet virtual machine.
    pub const TYPICAL: Self =
        Self { sample: 0.025, slowed_share: 0.07, slowed_by: (0.05, 0.6), round: 0.2, invalid_share: 0.0 };
    /// A busy one: a wider scatter, every fifth sample slowed by up to a factor of four, some
    /// invalid.
    pub const HEAVY: Self =
        Self { sample: 0.06, slowed_share: 0.2, slowed_by: (0.05, 3.0), round: 0.3, invalid_share: 0.02 };
}

/// Origin of the noise of samples.
#[derive(Clone, Debug)]
pub enum Noise {
    /// Lognormal, with slow samples and a factor common to each round.
    Scatter(Scatter),
    /// Residuals of real comparisons of these kinds, drawn one by one, with the effects of their
    /// rounds.
    Real(&'static [&'static str]),
    /// Rounds of real comparisons of any kind, drawn whole: each method keeps the noise of one real
    /// method.
    RealRounds,
    /// Three of ten processes are a quarter slower.
    Bimodal,
    /// A drift, a slope, and a series of rounds in which most samples are slowed.
    DriftAndSpells,
    /// Every other method scatters ten times as much.
    Unequal,
    /// Each method has noise with this lag-1 correlation over rounds.
    Lasting(f64),
}

impl Noise {
    /// The noises of the tables, by name.
    pub fn all() -> Vec<(&'static str, Noise)> {
        vec![
            ("typical", Noise::Scatter(Scatter::TYPICAL)),
            ("heavy", Noise::Scatter(Scatter::HEAVY)),
            ("real, read warm", Noise::Real(&["read-warm"])),
            ("real, read cold", Noise::Real(&["read-cold"])),
            ("real, scan", Noise::Real(&["scan"])),
            ("real, append", Noise::Real(&["append"])),
            ("real, fill", Noise::Real(&["fill"])),
            ("real, by round", Noise::RealRounds),
            ("bimodal", Noise::Bimodal),
            ("drift and spells", Noise::DriftAndSpells),
            ("unequal", Noise::Unequal),
            ("lasting, 0.3", Noise::Lasting(0.3)),
        ]
    }
}

/// A source of log rates.
pub struct NoiseSource {
    noise: Noise,
    kinds: Vec<RealKind>,
}

/// The real comparisons of one kind.
struct RealKind {
    /// By comparison, by method, by round.
    comparisons: Vec<Vec<Vec<f64>>>,
    rounds: Vec<f64>,
    residuals: Vec<f64>,
}

impl NoiseSource {
    /// A source of this noise.
    pub fn new(noise: &Noise) -> Self {
        let overview = overview();
        let kinds = match noise {
            Noise::Real(kinds) => {
                let of_kind = |kind: &&str| overview[*kind].clone();
                vec![RealKind::of(kinds.iter().flat_map(of_kind).collect())]
            }
            Noise::RealRounds => vec![RealKind::of(overview.into_values().flatten().collect())],
            _ => Vec::new(),
        };
        Self { noise: noise.clone(), kinds }
    }

    /// Logarithms of rates about 0, by method and round; `None` is an invalid sample.
    pub fn draw(&self, methods: usize, rounds: usize, random: &mut Random) -> Vec<Vec<Option<f64>>> {
        match &self.noise {
            Noise::Scatter(scatter) => scattered(scatter, methods, rounds, random),
            Noise::Real(_) => self.kinds[0].exchangeable(methods, rounds, random),
            Noise::RealRounds => self.kinds[0].by_round(methods, rounds, random),
            Noise::Bimodal => bimodal(methods, rounds, random),
            Noise::DriftAndSpells => drift_and_spells(methods, rounds, random),
            Noise::Unequal => unequal(methods, rounds, random),
            Noise::Lasting(correlation) => lasting(*correlation, methods, rounds, random),
        }
    }
}

fn scattered(scatter: &Scatter, methods: usize, rounds: usize, random: &mut Random) -> Vec<Vec<Option<f64>>> {
    let mut logs = vec![vec![None; rounds]; methods];
    for round in 0..rounds {
        let common = scatter.round * normal(random);
        for method in &mut logs {
            let log = common + scatter.sample * normal(random) - slowed(scatter, random);
            method[round] = (random.unit() >= scatter.invalid_share).then_some(log);
        }
    }
    logs
}

/// `log` for each method and round, with a term common to the round.
fn each(
    methods: usize,
    rounds: usize,
    random: &mut Random,
    mut common: impl FnMut(usize, &mut Random) -> f64,
    mut log: impl FnMut(usize, usize, &mut Random) -> f64,
) -> Vec<Vec<Option<f64>>> {
    let mut logs = vec![vec![None; rounds]; methods];
    for round in 0..rounds {
        let common = common(round, random);
        for (index, method) in logs.iter_mut().enumerate() {
            method[round] = Some(common + log(index, round, random));
        }
    }
    logs
}

fn bimodal(methods: usize, rounds: usize, random: &mut Random) -> Vec<Vec<Option<f64>>> {
    let log = |_, _, random: &mut Random| {
        let slow = if random.unit() < 0.3 { 0.25 } else { 0.0 };
        0.05 * normal(random) - slow
    };
    each(methods, rounds, random, |_, random| 0.1 * normal(random), log)
}

fn drift_and_spells(methods: usize, rounds: usize, random: &mut Random) -> Vec<Vec<Option<f64>>> {
    let slope = if random.unit() < 0.5 { 0.01 } else { -0.01 };
    let begin = 2 + random.below(rounds.max(3) as u64 - 2) as usize;
    let spell = begin..begin + 2 + random.below(10) as usize;
    let mut machine = 0.1 * normal(random);
    let common = |round: usize, random: &mut Random| {
        machine = 0.8 * machine + 0.06 * normal(random);
        machine - slope * round as f64
    };
    let log = |_, round: usize, random: &mut Random| {
        let hit = spell.contains(&round) && random.unit() < 0.6;
        0.06 * normal(random) - if hit { 0.7 * random.unit() } else { 0.0 }
    };
    each(methods, rounds, random, common, log)
}

fn unequal(methods: usize, rounds: usize, random: &mut Random) -> Vec<Vec<Option<f64>>> {
    let log = |method: usize, _, random: &mut Random| [0.02, 0.2][method % 2] * normal(random);
    each(methods, rounds, random, |_, random| 0.1 * normal(random), log)
}

fn lasting(correlation: f64, methods: usize, rounds: usize, random: &mut Random) -> Vec<Vec<Option<f64>>> {
    let mut states: Vec<f64> = (0..methods).map(|_| normal(random)).collect();
    let fresh = (1.0 - correlation * correlation).sqrt();
    let log = |method: usize, _, random: &mut Random| {
        states[method] = correlation * states[method] + fresh * normal(random);
        0.1 * states[method]
    };
    each(methods, rounds, random, |_, random| 0.1 * normal(random), log)
}

impl RealKind {
    /// Separate the effects of rounds from the residuals of samples.
    fn of(comparisons: Vec<Vec<Vec<f64>>>) -> Self {
        let (mut rounds, mut residuals) = (Vec::new(), Vec::new());
        for comparison in &comparisons {
            let count = comparison[0].len();
            let effects: Vec<f64> = (0..count)
                .map(|round| median(&comparison.iter().map(|method| method[round]).collect::<Vec<_>>()))
                .collect();
            let left: Vec<f64> = comparison
                .iter()
                .flat_map(|method| method.iter().zip(&effects).map(|(log, effect)| log - effect))
                .filter(|log| log.is_finite())
                .collect();
            // The median of few residuals scatters by itself: the effects are shrunk by that.
            let own = 1.57 * (1.4826 * median(&left.iter().map(|log| log.abs()).collect::<Vec<_>>())).powi(2)
                / comparison.len() as f64;
            let all = variance(&effects);
            let shrunk = ((all - own).max(0.0) / all.max(1e-12)).sqrt();
            let mean = effects.iter().sum::<f64>() / count as f64;
            rounds.extend(effects.iter().map(|effect| (effect - mean) * shrunk));
            residuals.extend(
                comparison
                    .iter()
                    .flat_map(|method| method.iter().zip(&effects).map(|(log, effect)| log - effect * shrunk))
                    .filter(|log| log.is_finite()),
            );
        }
        Self { comparisons, rounds, residuals }
    }

    fn exchangeable(&self, methods: usize, rounds: usize, random: &mut Random) -> Vec<Vec<Option<f64>>> {
        each(
            methods,
            rounds,
            random,
            |_, random| *pick(&self.rounds, random),
            |_, _, random| *pick(&self.residuals, random) + BLUR * normal(random),
        )
    }

    fn by_round(&self, methods: usize, rounds: usize, random: &mut Random) -> Vec<Vec<Option<f64>>> {
        let comparison = pick(&self.comparisons, random);
        let rows: Vec<&Vec<f64>> = (0..methods).map(|_| pick(comparison, random)).collect();
        let mut logs = vec![vec![None; rounds]; methods];
        for round in 0..rounds {
            let column = random.below(comparison[0].len() as u64) as usize;
            // With a sign drawn by round, the centres of all methods are equal whatever their skew.
            let sign = if random.unit() < 0.5 { 1.0 } else { -1.0 };
            for (row, method) in rows.iter().zip(&mut logs) {
                let log = row[column];
                method[round] = log.is_finite().then(|| sign * log + BLUR * normal(random));
            }
        }
        logs
    }
}

fn pick<'a, T>(all: &'a [T], random: &mut Random) -> &'a T {
    &all[random.below(all.len() as u64) as usize]
}

fn median(values: &[f64]) -> f64 {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    crate::statistics::median(&finite).unwrap_or(0.0)
}

fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
}

/// Comparisons by kind: log rates by method and round, NaN where a sample was lost.
fn overview() -> BTreeMap<&'static str, Vec<Vec<Vec<f64>>>> {
    let mut kinds: BTreeMap<&str, Vec<Vec<Vec<f64>>>> = BTreeMap::new();
    let mut kind = "";
    for line in OVERVIEW.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with(|first: char| first.is_ascii_alphabetic()) {
            kind = line;
            kinds.entry(kind).or_default().push(Vec::new());
            continue;
        }
        let logs = line.split(' ').map(|word| word.parse::<f64>().map_or(f64::NAN, |number| number / 1e4));
        let comparisons = kinds.get_mut(kind).expect("a kind comes first");
        comparisons.last_mut().expect("a comparison was begun").push(logs.collect());
    }
    kinds
}

/// The logarithm by which a sample is slowed; 0 for most.
fn slowed(scatter: &Scatter, random: &mut Random) -> f64 {
    if random.unit() >= scatter.slowed_share {
        return 0.0;
    }
    let (least, most) = scatter.slowed_by;
    (1.0 + least + (most - least) * random.unit()).ln()
}

/// A standard normal number (Box and Muller 1958).
pub fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}
