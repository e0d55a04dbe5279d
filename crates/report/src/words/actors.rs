//! Sentences about actors, ranked by what they leave to a method.

use pagewise_analysis::judge::{ActorPlace, ActorRanking, LeftFigure, RankedActor};
use pagewise_model::Actor;
use pagewise_model::format::{percent, times};

/// `pread: data that is still cached: most beside scan:pread:direct (100 %); 3.70x less beside …`
pub(crate) fn ranking(ranking: &ActorRanking) -> String {
    let actors: Vec<String> = ranking.actors.iter().map(|actor| ranked(actor, ranking.by)).collect();
    format!("{}: {}.", ranked_by(ranking), actors.join("; "))
}

/// The method of each actor, and `scan:…,rate=400MiB/s`, if they differ in their methods alone.
pub(crate) fn by_method(ranking: &ActorRanking) -> Option<(Vec<String>, String)> {
    let parsed = |one: &RankedActor| one.actor.parse::<Actor>().ok();
    let actors: Vec<Actor> = ranking.actors.iter().map(parsed).collect::<Option<_>>()?;
    let first = actors.first()?;
    let is_alike = |actor: &Actor| Actor { method: first.method.clone(), ..actor.clone() } == *first;
    actors.iter().all(is_alike).then(|| {
        let common = first.to_string().replacen(&first.method.to_string(), "…", 1);
        (actors.iter().map(|actor| actor.method.to_string()).collect(), common)
    })
}

/// `pread: data that is still cached`
pub(crate) fn ranked_by(ranking: &ActorRanking) -> String {
    let what = match ranking.by {
        LeftFigure::Cached => "data that is still cached",
        LeftFigure::Figure => "speed",
    };
    format!("{}: {what}", ranking.method)
}

fn ranked(one: &RankedActor, by: LeftFigure) -> String {
    let share = match by {
        LeftFigure::Cached => one.left.map(|left| format!(" ({})", percent(left.median))),
        LeftFigure::Figure => None,
    };
    let share = share.unwrap_or_default();
    let comma = if one.place == ActorPlace::Open { "," } else { "" };
    format!("{}{comma} beside {}{share}", place(one), one.actor)
}

/// `3.70x less`, next to the actor that leaves most.
pub(crate) fn place(one: &RankedActor) -> String {
    let factor = one.times_less.map_or_else(String::new, |factor| format!("{}x ", times(factor)));
    match one.place {
        ActorPlace::Most => "most".to_string(),
        ActorPlace::Alike => "as much".to_string(),
        ActorPlace::Less => format!("{factor}less"),
        ActorPlace::Open => format!("{factor}less, not for certain"),
        ActorPlace::TooFewRounds => "too few rounds".to_string(),
        ActorPlace::Unknown => "unknown".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(actors: &[(&str, ActorPlace, Option<f64>)]) -> ActorRanking {
        let of = |(actor, place, times_less): &(&str, ActorPlace, Option<f64>)| RankedActor {
            actor: actor.to_string(),
            cell: String::new(),
            place: *place,
            left: None,
            times_less: *times_less,
        };
        ActorRanking {
            method: "pread".to_string(),
            label: String::new(),
            alone: None,
            by: LeftFigure::Cached,
            actors: actors.iter().map(of).collect(),
        }
    }

    #[test]
    fn actors_of_one_kind_are_named_by_their_methods() {
        let alike = ranking(&[
            ("scan:pread:direct,rate=400MiB/s", ActorPlace::Most, None),
            ("scan:pread,rate=400MiB/s", ActorPlace::Open, Some(3.7)),
            ("scan:mmap,rate=400MiB/s", ActorPlace::TooFewRounds, None),
        ]);
        let methods = ["pread:direct", "pread", "mmap"].map(String::from).to_vec();
        assert_eq!(by_method(&alike), Some((methods, "scan:…,rate=400MiB/s".to_string())));
        assert_eq!(
            super::ranking(&alike),
            "pread: data that is still cached: most beside scan:pread:direct,rate=400MiB/s; \
             3.70x less, not for certain, beside scan:pread,rate=400MiB/s; \
             too few rounds beside scan:mmap,rate=400MiB/s."
        );
        let others = ranking(&[
            ("scan:pread,rate=400MiB/s", ActorPlace::Most, None),
            ("scan:pread,rate=200MiB/s", ActorPlace::Alike, None),
        ]);
        assert_eq!(by_method(&others), None, "they differ in their rates");
    }
}
