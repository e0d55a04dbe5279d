//! Conditions under which a comparison fails.

use std::str::FromStr;

use pagewise_analysis::judge::verdict::SMALLEST_DIFFERENCE;
use pagewise_model::format::{percent, times, times_interval};
use serde::Serialize;

use super::advice::AdviceFinding;
use super::change::{Change, ChangeFinding};
use super::crossing::{ChangedCrossing, CrossingFinding};
use super::difference::{ChangedSituation, Difference};

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gate {
    /// A method is slower by more than this share, or has no figure any more.
    Slower(f64),
    /// The method that was advised is behind now.
    AdviceChanged,
    /// A crossing moved, appeared or is gone.
    CrossoverMoved,
}

/// Findings about a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct GateFindings {
    /// The condition.
    pub gate: String,
    /// Violations that the runs show, one sentence each: the gate failed if there are any.
    pub failed: Vec<String>,
    /// Questions that the runs do not decide.
    pub undecided: Vec<String>,
}

/// A comparison with its conditions.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Gated {
    /// The comparison.
    #[serde(flatten)]
    pub difference: Difference,
    /// The conditions.
    pub gates: Vec<GateFindings>,
}

impl Gated {
    /// Apply conditions. An error says in one sentence why these runs cannot decide one of them,
    /// whatever their figures.
    pub fn of(difference: Difference, gates: &[Gate]) -> Result<Self, String> {
        match gates.iter().find_map(|gate| gate.refuses(&difference)) {
            Some(reason) => Err(reason),
            None => {
                Ok(Self { gates: gates.iter().map(|gate| gate.findings(&difference)).collect(), difference })
            }
        }
    }

    /// True if a condition failed.
    pub fn failed(&self) -> bool {
        self.gates.iter().any(|gate| !gate.failed.is_empty())
    }
}

impl Gate {
    /// Name on the command line.
    fn name(self) -> String {
        match self {
            Self::Slower(share) => format!("slower={}", percent(share).replace(' ', "")),
            Self::AdviceChanged => "advice-changed".to_string(),
            Self::CrossoverMoved => "crossover-moved".to_string(),
        }
    }

    /// Reason that the runs cannot decide it.
    fn refuses(self, difference: &Difference) -> Option<String> {
        let name = self.name();
        match self {
            Self::AdviceChanged if !difference.situations.iter().any(has_advice) => {
                Some(format!("{name} needs runs with advice: these have none in common"))
            }
            Self::AdviceChanged => None,
            _ if !difference.noise_is_known => Some(format!(
                "{name} needs three runs or more on each side, because the noise between runs is unknown with fewer: there are {} \
                 and {}",
                difference.base.files.len(),
                difference.new.files.len()
            )),
            Self::CrossoverMoved if !difference.crossings.iter().any(is_decidable) => Some(format!(
                "{name} needs runs of cliff on both sides that found a crossing, three or more each"
            )),
            Self::Slower(_)
                if !difference.situations.iter().flat_map(|one| &one.methods).any(can_be_slower) =>
            {
                Some(format!("{name} needs a method with a figure in three runs or more on each side"))
            }
            _ => None,
        }
    }

    /// Apply it.
    fn findings(self, difference: &Difference) -> GateFindings {
        let found = match self {
            Self::Slower(share) => slower(difference, share),
            Self::AdviceChanged => advice(difference),
            Self::CrossoverMoved => crossings(difference),
        };
        GateFindings { gate: self.name(), failed: found.failed, undecided: found.undecided }
    }
}

// A gate that cannot fail, whatever the program does, must not pass.

fn has_advice(situation: &ChangedSituation) -> bool {
    situation.advice.finding != AdviceFinding::NoAdvice
}

fn is_decidable(crossing: &ChangedCrossing) -> bool {
    crossing.finding != CrossingFinding::NoiseUnknown
}

fn can_be_slower(change: &Change) -> bool {
    match change.finding {
        ChangeFinding::NoiseUnknown => false,
        ChangeFinding::NotMeasured => change.base_runs > 0,
        _ => true,
    }
}

#[derive(Default)]
struct Findings {
    failed: Vec<String>,
    undecided: Vec<String>,
}

fn slower(difference: &Difference, share: f64) -> Findings {
    let mut findings = Findings::default();
    for situation in &difference.situations {
        for change in &situation.methods {
            let what = format!("{} ({})", change.method, situation.label);
            match (change.finding, change.ratio, change.low, change.high) {
                (ChangeFinding::NotMeasured, ..) if change.base_runs > 0 => {
                    let reason = change.reason.as_deref().unwrap_or("no run has a figure");
                    findings.failed.push(format!("{what} has no figure any more: {reason}"));
                }
                // Nothing was lost: it had no figure before.
                (ChangeFinding::NotMeasured, ..) => {}
                (ChangeFinding::NoiseUnknown, ..) => findings.undecided.push(format!(
                    "{what} has a figure in too few runs: {} and {}",
                    change.base_runs, change.new_runs
                )),
                (_, Some(ratio), Some(low), Some(high)) if low > 1.0 + share => {
                    let (low, high) = times_interval(low, high);
                    findings.failed.push(format!("{what} is {}x slower [{low}x to {high}x]", times(ratio)));
                }
                (_, _, _, Some(high)) if high > 1.0 + share => {
                    findings.undecided.push(match change.bounds() {
                        Some(_) => format!("{what} may be up to {}x slower", times(high)),
                        None => format!(
                            "{what} scatters too much for a bound, over {} and {} runs",
                            change.base_runs, change.new_runs
                        ),
                    })
                }
                _ => {}
            }
        }
    }
    // What was measured and is not any more must not pass for equal.
    for lost in difference.unmatched.iter().filter(|one| one.is_base) {
        let method = lost.method.as_deref().unwrap_or("every method");
        findings.undecided.push(format!("{method} ({}) was measured on the first side only", lost.label));
    }
    findings
}

fn advice(difference: &Difference) -> Findings {
    let mut findings = Findings::default();
    for situation in &difference.situations {
        let advised = |side: &[super::advice::Advised]| {
            side.first().and_then(|one| one.method.clone()).unwrap_or_else(|| "nothing".to_string())
        };
        let (then, now) = (advised(&situation.advice.base), advised(&situation.advice.new));
        match situation.advice.finding {
            AdviceFinding::Changed => findings.failed.push(format!(
                "{}: {now} is advised in place of {then}, which is behind now",
                situation.label
            )),
            AdviceFinding::Open => findings.undecided.push(format!(
                "{}: {now} is advised in place of {then}, which is not behind for certain",
                situation.label
            )),
            AdviceFinding::Same | AdviceFinding::NoAdvice => {}
        }
    }
    findings
}

fn crossings(difference: &Difference) -> Findings {
    let mut findings = Findings::default();
    for crossing in &difference.crossings {
        let what = format!("{} to {} ({})", crossing.before, crossing.after, crossing.label);
        let shown = |ratio: Option<f64>| {
            ratio.map_or_else(|| "none".to_string(), |ratio| format!("{}x", times(ratio)))
        };
        match crossing.finding {
            CrossingFinding::Moved | CrossingFinding::Gone | CrossingFinding::Appeared => {
                findings.failed.push(format!(
                    "{what}: from {} to {}",
                    shown(crossing.base),
                    shown(crossing.new)
                ));
            }
            CrossingFinding::NoiseUnknown => {
                findings.undecided.push(format!("{what}: found in too few runs"));
            }
            CrossingFinding::NotMoved => {}
        }
    }
    findings
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "advice-changed" => Ok(Self::AdviceChanged),
            None if text == "crossover-moved" => Ok(Self::CrossoverMoved),
            Some(("slower", share)) => {
                let number = share.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
                match number.filter(|number| (0.0..=1000.0).contains(number)) {
                    // Sides that differ by less are the same, and a gate must not fail on those.
                    Some(number) if number / 100.0 < SMALLEST_DIFFERENCE => Err(format!(
                        "'{text}' would fail on sides that are the same, within {}: write slower={} or more",
                        percent(SMALLEST_DIFFERENCE),
                        percent(SMALLEST_DIFFERENCE).replace(' ', "")
                    )),
                    Some(number) => Ok(Self::Slower(number / 100.0)),
                    None => Err(format!("invalid share '{share}': write a per cent, as in slower=5%")),
                }
            }
            _ => {
                Err(format!("unknown condition '{text}': write slower=5%, advice-changed or crossover-moved"))
            }
        }
    }
}
