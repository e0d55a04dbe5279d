//! The time that a run may take, as it is chosen: that of all of it, or of its samples, as a share
//! of what the first rounds take.

use std::ops::RangeInclusive;
use std::str::FromStr;

use pagewise_model::units::parse_duration_ns;

/// Every method has its first rounds; a budget of a thousand times as much is a slip.
const PERCENT: RangeInclusive<u32> = 100..=100_000;

/// Time that a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBudget {
    /// Nanoseconds of the whole run.
    Time(u64),
    /// All samples, in per cent of the time that the first rounds take.
    OfFirstRounds(u32),
}

impl FromStr for ChosenBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else { return parse_duration_ns(text).map(Self::Time) };
        let percent = percent.parse().ok().filter(|percent| PERCENT.contains(percent));
        percent.map(Self::OfFirstRounds).ok_or_else(|| {
            format!(
                "invalid budget '{text}': write {}% to {}% of the time of the first five rounds, as in 150%",
                PERCENT.start(),
                PERCENT.end()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_time_or_a_share() {
        assert_eq!("90s".parse(), Ok(ChosenBudget::Time(90_000_000_000)));
        assert_eq!("150%".parse(), Ok(ChosenBudget::OfFirstRounds(150)));
        for text in ["99%", "100001%", "%", "1.5%", "-100%", "150 %", "150", ""] {
            text.parse::<ChosenBudget>().expect_err(text);
        }
    }
}
