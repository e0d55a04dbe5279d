//! Deserialising an outcome in one pass. For a tagged enum, serde buffers the whole value until the tag is known, which
//! takes most of the time of reading a run file.

use serde::Deserialize;

use crate::sample::{Evidence, Failure, Measurement, Outcome};

/// All fields that any outcome may have.
#[derive(Deserialize)]
pub(crate) struct OutcomeFields {
    outcome: Word,
    measurement: Option<Measurement>,
    evidence: Option<Box<Evidence>>,
    failures: Option<Vec<Failure>>,
    stderr_tail: Option<String>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    Taken,
    Broken,
    Unavailable,
}

impl TryFrom<OutcomeFields> for Outcome {
    type Error = String;

    fn try_from(told: OutcomeFields) -> Result<Self, String> {
        let missing = |field: &str| format!("missing field `{field}`");
        Ok(match told.outcome {
            Word::Taken => Outcome::Taken {
                measurement: told.measurement.ok_or_else(|| missing("measurement"))?,
                evidence: told.evidence.ok_or_else(|| missing("evidence"))?,
                failures: told.failures.ok_or_else(|| missing("failures"))?,
            },
            Word::Broken => Outcome::Broken {
                failures: told.failures.ok_or_else(|| missing("failures"))?,
                stderr_tail: told.stderr_tail.ok_or_else(|| missing("stderr_tail"))?,
            },
            Word::Unavailable => {
                Outcome::Unavailable { reason: told.reason.ok_or_else(|| missing("reason"))? }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_read_as_it_was_written() {
        let outcomes = [
            Outcome::Taken {
                measurement: Measurement { operations: 7, ..Measurement::default() },
                evidence: Box::new(Evidence { wall_ns: 9, ..Evidence::default() }),
                failures: Vec::new(),
            },
            Outcome::Broken { failures: Vec::new(), stderr_tail: "end".into() },
            Outcome::Unavailable { reason: "none".into() },
        ];
        for outcome in outcomes {
            let text = serde_json::to_string(&outcome).expect("text");
            assert_eq!(serde_json::from_str::<Outcome>(&text).expect("the same"), outcome);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let wrong = |text: &str| serde_json::from_str::<Outcome>(text).expect_err("incomplete").to_string();
        assert!(wrong(r#"{"outcome":"unavailable"}"#).starts_with("missing field `reason`"));
        assert!(wrong(r#"{"outcome":"broken","failures":[]}"#).starts_with("missing field `stderr_tail`"));
        assert!(wrong(r#"{"outcome":"better"}"#).starts_with("unknown variant `better`"));
    }
}
