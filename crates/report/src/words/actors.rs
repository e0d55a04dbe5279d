//! Sentences about actors, ranked by what they leave to a method.

use pagewise_analysis::judge::{ActorPlace, ActorRanking, LeftFigure, RankedActor};
use pagewise_model::format::{percent, times};

/// `pread: data that is still cached: most beside scan:pread:direct (100 %); 3.70x less beside …`
pub(crate) fn ranking(ranking: &ActorRanking) -> String {
    let what = match ranking.by {
        LeftFigure::Cached => "data that is still cached",
        LeftFigure::Figure => "speed",
    };
    let actors: Vec<String> = ranking.actors.iter().map(|actor| ranked(actor, ranking.by)).collect();
    format!("{}: {what}: {}.", ranking.method, actors.join("; "))
}

fn ranked(one: &RankedActor, by: LeftFigure) -> String {
    let share = match by {
        LeftFigure::Cached => format!(" ({})", percent(one.left.median)),
        LeftFigure::Figure => String::new(),
    };
    let factor = one.times_less.map_or_else(String::new, |factor| format!("{}x ", times(factor)));
    let place = match one.place {
        ActorPlace::Most => "most".to_string(),
        ActorPlace::Alike => "as much".to_string(),
        ActorPlace::Less => format!("{factor}less"),
        ActorPlace::Open => format!("{factor}less, not for certain,"),
    };
    format!("{place} beside {}{share}", one.actor)
}
