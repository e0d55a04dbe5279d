//! Recommendations by situation: the method, and its certainty.

use pagewise_analysis::judge::advice::Recommendation;
use pagewise_analysis::judge::verdict::{Place, Verdict};
use pagewise_analysis::judge::{Comparison, FigureKind, RatioToLeader};
use pagewise_model::format::{percent_up, times};
use pagewise_model::{Access, Method, MethodOption};

use super::situation::Situation;
use super::syncs;
use crate::line::{Line, Span};
use crate::paragraph::wrapped;
use crate::text_table::{TextCell, TextTable};
use crate::words::{self, figures};

/// A situation and what to use in it.
pub(super) struct Choice {
    situation: String,
    method: Option<String>,
    /// Certainty in words, in decreasing length.
    certainty: Vec<String>,
    is_certain: bool,
    /// The best methods for a program that stays what it is, if the method asks for another one; or
    /// the figure of one that has no rival.
    second_line: Option<String>,
}

/// The choice of each situation. A search and a table of methods have sentences of their own; the
/// syncs of a single method are shown as such.
pub(super) fn all(situations: &[Situation<'_>]) -> Vec<Choice> {
    let shown = situations.iter().filter(|one| !one.is_answered);
    let shown = shown.filter(|one| !syncs::is_alone_with_syncs(one));
    let shown = shown.filter(|one| !one.is_of_a_victim());
    // Where others of its run compare methods, one that stands alone is there for a ceiling.
    let compares = |one: &Situation<'_>| one.comparison.cells.len() > 1;
    let others_compare = |one: &Situation<'_>| {
        situations.iter().any(|other| std::ptr::eq(other.judged, one.judged) && compares(other))
    };
    let shown = shown.filter(|one| compares(one) || !others_compare(one));
    let of = |one: &Situation<'_>| Choice {
        situation: one.name.clone(),
        method: one.advice.recommended.as_deref().map(|method| words::replay::named(one.judged, method)),
        certainty: certainty(one.advice, one.comparison),
        is_certain: matches!(one.comparison.verdict, Verdict::Best | Verdict::Tie),
        second_line: as_it_is(one.advice, one.comparison).or_else(|| figure_alone(one)),
    };
    shown.map(of).collect()
}

/// `without a rewrite: pread:random 3.73x slower, mmap:random 12.7x`, where a ring or O_DIRECT is
/// best: the fastest plain calls and the fastest mapping.
fn as_it_is(advice: &Recommendation, comparison: &Comparison) -> Option<String> {
    let parsed = |method: &str| method.parse::<Method>().ok();
    // Who prefetches knows its next reads.
    let asks_for_another = |method: &Method| {
        method.access() == Access::Uring || method.is_direct() || method.has(MethodOption::Prefetch)
    };
    let recommended =
        advice.recommended.as_ref().filter(|method| comparison.leader.as_ref() == Some(method))?;
    parsed(recommended).filter(asks_for_another)?;
    let kinds: [&[Access]; 2] = [&[Access::Read, Access::Pread], &[Access::Mmap]];
    let mut fastest: Vec<&RatioToLeader> = Vec::new();
    for kind in kinds {
        let plain = |ratio: &&RatioToLeader| {
            parsed(&ratio.method).is_some_and(|it| kind.contains(&it.access()) && !asks_for_another(&it))
        };
        let ratios = comparison.ratios.iter().filter(plain);
        fastest.extend(ratios.min_by(|left, right| left.ratio.total_cmp(&right.ratio)));
    }
    fastest.sort_by(|left, right| left.ratio.total_cmp(&right.ratio));
    let (first, others) = fastest.split_first()?;
    let others = others.iter().map(|other| format!(", {} {}x", other.method, times(other.ratio)));
    let first = format!("without a rewrite: {} {}x slower", first.method, times(first.ratio));
    Some(first + &others.collect::<String>())
}

/// `pread: 682k [638k, 698k] reads/s`, of the only method: there is nothing to choose, and it was
/// measured.
fn figure_alone(situation: &Situation<'_>) -> Option<String> {
    let Situation { judged, comparison, .. } = situation;
    let [only] = &comparison.cells[..] else { return None };
    let cell = judged.cells.iter().find(|cell| cell.id == *only)?;
    let kind = FigureKind::of(&comparison.conditions.conditions);
    let figure = figures::interval(cell.figure(kind)?, |value| figures::shown(kind, value));
    Some(format!("{}: {figure} {}", cell.method, figures::unit(kind)))
}

fn certainty(advice: &Recommendation, comparison: &Comparison) -> Vec<String> {
    let (Some(method), Some(leader)) = (&advice.recommended, &comparison.leader) else {
        return vec![format!("no advice: {}", words::advice::silence(comparison).unwrap_or_default())];
    };
    if method != leader {
        let bound = percent_up(comparison.bound(method).unwrap_or(0.0));
        return vec![
            format!("simpler, at most {bound} slower than {leader}"),
            format!("simpler, at most {bound} slower"),
            "simpler".to_string(),
        ];
    }
    let staying: Vec<_> = comparison.ratios.iter().filter(|ratio| ratio.place != Place::Behind).collect();
    let more = if staying.len() > 1 { format!(" and {} more", staying.len() - 1) } else { String::new() };
    let others = staying.first().map_or_else(String::new, |first| format!("{}{more}", first.method));
    if staying.is_empty() && comparison.verdict != Verdict::Best {
        return vec!["no other method has enough valid samples".to_string(), "alone".to_string()];
    }
    match comparison.verdict {
        Verdict::Best => {
            if let Some((next, ratio)) = comparison.closest_unranked() {
                let by = format!("best, by about {}x", times(ratio));
                return vec![format!("{by}; next is {next}, with too few rounds"), by, "best".to_string()];
            }
            let Some(next) = comparison.ratios.first() else { return vec!["the only method".to_string()] };
            // The closest by its ratio need not be the one that may be closest. The range of few
            // rounds is no bound.
            let bounds = comparison.ratios.iter().filter(|ratio| !ratio.is_gap());
            let least = bounds.filter_map(|ratio| ratio.low).fold(next.ratio, f64::min);
            let least = if next.is_gap() { 1.0 } else { least };
            let by = format!("best, {}", lead(least, next.ratio));
            vec![format!("{by}; next is {}", next.method), by, "best".to_string()]
        }
        Verdict::Tie => {
            vec![format!("ties with {others}, within 2 %"), format!("ties with {others}"), "tie".to_string()]
        }
        Verdict::Close => {
            let most = percent_up(staying.iter().filter_map(|ratio| ratio.bound).fold(0.0, f64::max));
            vec![
                format!("close: {others} may be as fast, at most {most} slower"),
                format!("close: {others} may be as fast"),
                format!("close: {} others", staying.len()),
                "close".to_string(),
            ]
        }
        Verdict::Open => {
            vec![format!("open: {others}"), format!("open: {} others", staying.len())]
        }
        Verdict::NotComparable => vec!["not comparable".to_string()],
    }
}

/// The lead of the best by the lower end of its interval, or by its estimate if that end says
/// nothing.
fn lead(least: f64, estimate: f64) -> String {
    match times(least) {
        nothing if nothing == times(1.0) => format!("by about {}x", times(estimate)),
        least => format!("by at least {least}x"),
    }
}

/// The choices as a table.
pub(super) fn table(choices: &[Choice]) -> TextTable {
    let row = |choice: &Choice| {
        vec![
            TextCell::from(&choice.situation),
            choice.method().into(),
            [choice.certainty.first(), choice.second_line.as_ref()]
                .into_iter()
                .flatten()
                .cloned()
                .collect::<Vec<_>>()
                .join("; ")
                .into(),
        ]
    };
    TextTable {
        rows: choices.iter().map(row).collect(),
        ..TextTable::of(&["situation", "use", "how sure that is"])
    }
}

/// More situations have one line each, to stay on a screen.
const WITH_SECOND_LINES: usize = 4;
/// Longer situations have a line of their own.
const WIDEST_SITUATION: usize = 34;
/// Longer methods reach into the next column.
const WIDEST_METHOD: usize = 26;

/// The choices as lines in three columns.
pub(super) fn lines(choices: &[Choice], width: usize) -> Vec<Line> {
    let length = |text: &str| text.chars().count();
    let longest = |most: usize, lengths: &mut dyn Iterator<Item = usize>| {
        lengths.filter(|length| *length <= most).max().unwrap_or(0)
    };
    let situation = longest(WIDEST_SITUATION, &mut choices.iter().map(|choice| length(&choice.situation)));
    let method = longest(WIDEST_METHOD, &mut choices.iter().map(|choice| length(choice.method())));
    let mut lines = Vec::new();
    for choice in choices {
        let mut own = choice.situation.as_str();
        if length(own) > situation {
            lines.extend(wrapped("  ", own, width).into_iter().map(Line::plain));
            own = "";
        }
        let name = choice.method();
        let pad = method.saturating_sub(length(name)) + 2;
        let mut spans = vec![
            Span::plain(format!("  {own:situation$}  ")),
            if choice.method.is_some() { Span::strong(name) } else { Span::weak(name) },
            Span::plain(" ".repeat(pad)),
        ];
        let room = width.saturating_sub(2 + situation + 2 + length(name) + pad);
        let phrase = |text: &str| if choice.is_certain { Span::plain(text) } else { Span::weak(text) };
        let fitting = choice.certainty.iter().find(|text| length(text) <= room);
        let last = choice.certainty.last().map_or("", String::as_str);
        match fitting {
            Some(text) => {
                spans.push(phrase(text));
                lines.push(Line(spans));
            }
            // What does not fit beside it stands below it.
            None => {
                lines.push(Line(spans));
                lines.extend(wrapped("      ", last, width).iter().map(|text| Line(vec![phrase(text)])));
            }
        }
        if let Some(text) = choice.second_line.as_ref().filter(|_| choices.len() <= WITH_SECOND_LINES) {
            lines.extend(wrapped("      ", text, width).into_iter().map(Line::weak));
        }
    }
    lines
}

impl Choice {
    fn method(&self) -> &str {
        self.method.as_deref().unwrap_or("–")
    }
}

#[cfg(test)]
mod tests {
    use super::lead;

    #[test]
    fn a_lead_says_more_than_nothing() {
        assert_eq!(lead(1.07, 1.1), "by at least 1.07x");
        assert_eq!(lead(1.004, 1.026), "by about 1.03x");
        assert_eq!(lead(1.006, 1.03), "by at least 1.01x");
    }
}
