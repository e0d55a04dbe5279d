//! Methods as bars: the first work of a run, warm and cold side by side if both
//! were measured.

use pagewise_analysis::Judged;
use pagewise_analysis::judge::label::{LabelPart, shared, texts};
use pagewise_analysis::judge::verdict::Place;
use pagewise_analysis::judge::{ById, CellJudgement, Comparison, FigureKind, RatioToLeader, Status};
use pagewise_model::CacheState;
use pagewise_model::format::{counted, rate, times};
use pagewise_model::groups::distinct;

use super::situation::AMPLIFIED;
use crate::bar;
use crate::judged_run::JudgedRun;
use crate::line::{Line, Span};
use crate::paragraph::wrapped;
use crate::table::positions::leader_place;
use crate::table::rows::contradicted;
use crate::words;

/// Lines around the rows: an empty one, two of headings, those left out, what limits the best.
const AROUND: usize = 5;
/// Fewer rows say nothing.
const FEWEST_ROWS: usize = 2;
/// Width of rate and factor with their gaps.
const NUMBERS: usize = 9 + 1 + 9;
const LONGEST_BAR: usize = 30;
/// From this ratio, a method is so slow that its cause is worth a line.
const FAR: f64 = 10.0;

/// The bars in at most `room` lines; `None` if there is nothing to draw or no room.
pub(super) fn lines(run: &JudgedRun<'_>, width: usize, room: usize) -> Option<Vec<Line>> {
    if room < AROUND + FEWEST_ROWS || run.curves().is_some_and(|curves| curves.is_alone()) {
        return None;
    }
    let judged = run.judged;
    let columns = columns(judged)?;
    let mut methods: Vec<&str> =
        distinct(columns.iter().flat_map(|column| column.ranked()).map(|(method, _)| method));
    if methods.len() < 2 {
        return None;
    }
    let in_state = |column: &Bars<'_>, separator: &str, text: String| match columns.len() {
        1 => text,
        _ => format!("{}{separator}{text}", column.state()),
    };
    let order =
        columns.iter().find_map(|column| Some(in_state(column, ": ", contradicted(&column.ranked())?)));
    let order: Vec<String> = order.iter().flat_map(|order| wrapped("  ", order, width)).collect();
    let rows = (room - AROUND).saturating_sub(order.len()).max(FEWEST_ROWS);
    let left_out = methods.len().saturating_sub(rows);
    // The best of each column stay, then the fastest of the first.
    let leads =
        |method: &str| columns.iter().any(|column| column.comparison.leader.as_deref() == Some(method));
    for _ in 0..left_out {
        let Some(slowest) = methods.iter().rposition(|method| !leads(method)) else { break };
        methods.remove(slowest);
    }
    let name =
        methods.iter().map(|method| words::replay::named(judged, method).chars().count()).max().unwrap_or(0);
    let of_bar =
        (width.saturating_sub(2 + name) / columns.len()).saturating_sub(NUMBERS).clamp(4, LONGEST_BAR);
    let unit = words::figures::unit(columns[0].kind());
    // Where there is one column, its state of the cache has no heading of its own.
    let of_work = if columns.len() > 1 { 2 } else { 3 };
    let without: &[LabelPart] = if columns.len() > 1 { &[LabelPart::Cache] } else { &[] };
    let mut work = texts(&columns[0].comparison.conditions.conditions, without);
    // What distinguishes these bars from others of the run goes last where there is little room.
    let own = work.split_off(of_work.min(work.len()));
    let mut common = shared(judged.comparisons.iter().map(|comparison| &comparison.conditions.conditions));
    work.extend(own.into_iter().filter(|part| !common.contains(part)));
    let lines = columns[0].cells.iter().find_map(|cell| cell.lines).map(|lines| counted(lines, "line"));
    common.extend(lines.clone());
    work.extend(lines);
    let text = |work: &[String]| format!("{}: {unit}, and how much slower", work.join(", "));
    while work.len() > 2 && text(&work).chars().count() > width {
        let last = work.iter().rposition(|part| common.contains(part)).filter(|part| *part > 0);
        work.remove(last.unwrap_or(work.len() - 1));
    }
    let heading = text(&work);
    let mut lines = vec![Line::new(), Line::strong(heading)];
    if columns.len() > 1 {
        let mut heading = " ".repeat(2 + name);
        for column in &columns {
            heading.push_str(&format!("{:>9} {:of_bar$} {:8}", column.state(), "", ""));
        }
        lines.push(Line::plain(heading.trim_end().to_string()));
    }
    for method in &methods {
        let mut spans = vec![Span::plain(format!("  {:name$}", words::replay::named(judged, method)))];
        for column in &columns {
            spans.extend(column.spans(method, of_bar));
        }
        lines.push(Line(spans));
    }
    if left_out > 0 {
        lines.push(Line::weak(format!("  and {left_out} more")));
    }
    lines.extend(order.into_iter().map(Line::weak));
    let limit = |column: &Bars<'_>| Some(in_state(column, " ", column.limit()?));
    let limits: Vec<String> = columns.iter().filter_map(limit).collect();
    if !limits.is_empty() {
        lines.push(Line::plain(fitted("  limits: ", &limits, width)));
    }
    // What to avoid says it of its method already.
    let avoided = judged.cache_unknown.iter().find(|one| one.safest.is_some());
    let avoided = avoided.and_then(|one| one.avoid.as_ref()).map(|avoided| avoided.method.as_str());
    let amplified = columns.iter().flat_map(|column| column.amplified(avoided));
    let amplified = amplified.flat_map(|text| wrapped("  ", &text, width));
    let room = room.saturating_sub(lines.len());
    lines.extend(amplified.take(room).map(Line::weak));
    Some(lines)
}

/// The first comparison, and the same work in the other state of the cache.
fn columns(judged: &Judged) -> Option<Vec<Bars<'_>>> {
    let first = judged.comparisons.iter().find(|comparison| comparison.leader.is_some())?;
    let of = |state| {
        let mut wanted = first.conditions.conditions.clone();
        wanted.cache = state;
        judged.comparisons.iter().find(move |comparison| comparison.conditions.conditions == wanted)
    };
    let pair = [of(CacheState::Warm), of(CacheState::Cold)];
    let shown = match pair {
        [Some(warm), Some(cold)] => vec![warm, cold],
        _ => vec![first],
    };
    let by_id = judged.by_id();
    Some(shown.into_iter().map(|comparison| Bars::of(comparison, &by_id)).collect())
}

/// One comparison as a column.
struct Bars<'a> {
    comparison: &'a Comparison,
    /// Cells with figures.
    cells: Vec<&'a CellJudgement>,
    /// The largest of the figures that a bar is as long as.
    fastest: f64,
}

impl<'a> Bars<'a> {
    fn of(comparison: &'a Comparison, by_id: &ById<'a>) -> Self {
        let cells = comparison.cells.iter().filter_map(|id| by_id.get(id.as_str()).copied());
        let cells: Vec<&CellJudgement> = cells.filter(|cell| cell.status == Status::Ok).collect();
        let fastest = cells.iter().filter_map(|cell| cell.ranked_figure()).fold(0.0, f64::max);
        Self { comparison, cells, fastest }
    }

    fn cache(&self) -> CacheState {
        self.comparison.conditions.conditions.cache
    }

    fn kind(&self) -> FigureKind {
        FigureKind::of(&self.comparison.conditions.conditions)
    }

    fn state(&self) -> &'static str {
        match self.cache() {
            CacheState::Warm => "warm",
            CacheState::WarmSmall => "warm-small",
            _ => "cold",
        }
    }

    fn cell(&self, method: &str) -> Option<&'a CellJudgement> {
        self.cells.iter().find(|cell| cell.method == method).copied()
    }

    /// Ranked methods with their figures: the leader, then the fastest first.
    fn ranked(&self) -> Vec<(&'a str, f64)> {
        let is_ranked = |method: &str| {
            let mut ratios = self.comparison.ratios.iter();
            self.comparison.leader.as_deref() == Some(method) || ratios.any(|ratio| ratio.method == method)
        };
        let ranked = self.cells.iter().filter(|cell| is_ranked(&cell.method));
        let mut figures: Vec<(&str, f64)> =
            ranked.filter_map(|cell| Some((cell.method.as_str(), cell.ranked_figure()?))).collect();
        let leads = |method: &str| self.comparison.leader.as_deref() == Some(method);
        figures.sort_by(|left, right| leads(right.0).cmp(&leads(left.0)).then(right.1.total_cmp(&left.1)));
        figures
    }

    /// Methods that are far behind because they read much that nobody used, but the one to avoid.
    fn amplified(&self, avoided: Option<&str>) -> Vec<String> {
        let far = |ratio: &&RatioToLeader| ratio.ratio >= FAR && Some(ratio.method.as_str()) != avoided;
        let far = self.comparison.ratios.iter().filter(far);
        let of = |ratio: &RatioToLeader| {
            let times = self.cell(&ratio.method)?.amplification().filter(|times| *times >= AMPLIFIED)?;
            Some(format!("{} reads {} bytes from the device for each byte used", ratio.method, rate(times)))
        };
        far.filter_map(of).collect()
    }

    fn spans(&self, method: &str, width: usize) -> Vec<Span> {
        let cell = self.cell(method);
        let figures = |cell: &CellJudgement| Some((cell.figure(self.kind())?.median, cell.ranked_figure()?));
        let Some((shown, figure)) = cell.and_then(figures) else {
            return vec![Span::weak(format!("{:>9} {:width$} {:8}", "–", "", ""))];
        };
        let number = words::figures::shown(self.kind(), shown);
        let drawn = bar::horizontal(figure / self.fastest, width);
        let (factor, is_best) = self.factor(method);
        let rest = format!(" {factor:8}");
        let numbers = format!("{number:>9} ");
        match is_best {
            true => vec![Span::plain(numbers), Span::strong(drawn), Span::strong(rest)],
            false => vec![Span::plain(numbers), Span::plain(drawn), Span::plain(rest)],
        }
    }

    /// The factor by which it is slower than the leader, with a mark if that is not certain.
    fn factor(&self, method: &str) -> (String, bool) {
        if self.comparison.leader.as_deref() == Some(method) {
            return (leader_place(self.comparison).to_string(), true);
        }
        let found = self.comparison.ratios.iter().find(|ratio| ratio.method == method);
        let text = found.map_or_else(
            || "–".to_string(),
            |ratio| {
                let mark = if ratio.place == Place::Behind { "" } else { "~" };
                format!("{mark}{}x", times(ratio.ratio))
            },
        );
        (text, false)
    }

    /// The limit of the leader.
    fn limit(&self) -> Option<String> {
        let leader = self.comparison.leader.as_deref()?;
        let limit = &self.cell(leader)?.limit;
        let text = match limit.bound {
            Some(name) if limit.is_at_ceiling() => format!("{} 100 %", name.name()),
            _ => words::limit::text(limit)?,
        };
        Some(format!("{leader} {text}"))
    }
}

/// As many of these texts as fit.
fn fitted(start: &str, texts: &[String], width: usize) -> String {
    let mut line = format!("{start}{}", texts[0]);
    for text in &texts[1..] {
        if line.chars().count() + 2 + text.chars().count() <= width {
            line.push_str(&format!("; {text}"));
        }
    }
    line
}
