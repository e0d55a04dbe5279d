//! Line charts in a terminal: both axes logarithmic, one letter for each line.
//!
//! A capital marks a measured point, the small letter the straight line to the next point, and `*`
//! coinciding points. Missing values leave a gap.

use pagewise_model::format::rate;

/// The narrowest chart; smaller widths are treated as this.
pub const NARROWEST: usize = 40;
/// Rows of the plot.
const ROWS: usize = 16;
/// Columns of the labels of the vertical axis.
const LABEL: usize = 6;
/// Letters repeat if there are more lines.
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The letter of a line by its index.
pub fn letter(line: usize) -> char {
    char::from(LETTERS[line % LETTERS.len()])
}

/// Content of a chart. Values that are not positive are left out, like missing ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Points of each line, ascending; `None` breaks the line.
    pub lines: Vec<Vec<(f64, Option<f64>)>>,
    /// Positions marked from top to bottom.
    pub marks: Vec<f64>,
    /// Positions on the horizontal axis with their labels.
    pub ticks: Vec<(f64, String)>,
}

/// A logarithmic axis mapped to whole steps.
#[derive(Clone, Copy, Debug)]
struct Axis {
    low: f64,
    high: f64,
    steps: usize,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone, steps: usize) -> Option<Self> {
        let low = values.clone().min_by(f64::total_cmp)?.ln();
        let high = values.max_by(f64::total_cmp)?.ln();
        // A single value is put in the middle.
        Some(if high > low {
            Self { low, high, steps }
        } else {
            Self { low: low - 0.1, high: high + 0.1, steps }
        })
    }

    fn position(&self, value: f64) -> f64 {
        (value.ln() - self.low) / (self.high - self.low) * (self.steps - 1) as f64
    }

    /// Step of a value; `None` if it is out of range.
    fn step(&self, value: f64) -> Option<usize> {
        let position = self.position(value).round();
        (position >= 0.0 && position < self.steps as f64).then_some(position as usize)
    }
}

fn drawable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// Rows of a chart of `width` columns; empty if there is nothing to draw.
pub fn rows(chart: &Chart, width: usize) -> Vec<String> {
    let columns = width.max(NARROWEST) - LABEL - 2;
    let known = || {
        chart
            .lines
            .iter()
            .flatten()
            .filter_map(|(x, y)| Some((*x, (*y)?)))
            .filter(|(x, y)| drawable(*x) && drawable(*y))
    };
    let ticks = chart.ticks.iter().map(|(x, _)| *x).filter(|x| drawable(*x));
    let across = Axis::over(known().map(|(x, _)| x).chain(ticks).collect::<Vec<_>>().into_iter(), columns);
    let upright = Axis::over(known().map(|(_, y)| y).collect::<Vec<_>>().into_iter(), ROWS);
    let (Some(across), Some(upright)) = (across, upright) else { return Vec::new() };
    let mut plot = vec![vec![' '; columns]; ROWS];
    for column in chart.marks.iter().filter(|x| drawable(**x)).filter_map(|x| across.step(*x)) {
        plot.iter_mut().for_each(|row| row[column] = '┆');
    }
    for (line, points) in chart.lines.iter().enumerate() {
        draw_ways(&mut plot, &across, &upright, points, letter(line).to_ascii_lowercase());
    }
    for (line, points) in chart.lines.iter().enumerate() {
        for (x, y) in points.iter().filter_map(|(x, y)| Some((*x, (*y)?))) {
            if let Some((column, row)) = position(&across, &upright, x, y) {
                let taken = plot[row][column].is_ascii_uppercase() || plot[row][column] == '*';
                plot[row][column] = if taken { '*' } else { letter(line) };
            }
        }
    }
    let labels = upright_labels(&upright);
    let mut text: Vec<String> = plot
        .into_iter()
        .zip(labels)
        .map(|(row, label)| {
            let axis = if label.is_empty() { '│' } else { '┤' };
            format!("{label:>LABEL$} {axis}{}", row.into_iter().collect::<String>()).trim_end().to_string()
        })
        .collect();
    text.extend(below(chart, &across));
    text
}

/// Column and row from the top of a point.
fn position(across: &Axis, upright: &Axis, x: f64, y: f64) -> Option<(usize, usize)> {
    if !drawable(x) || !drawable(y) {
        return None;
    }
    Some((across.step(x)?, ROWS - 1 - upright.step(y)?))
}

/// Draw straight lines between neighbouring points of one line.
fn draw_ways(
    plot: &mut [Vec<char>],
    across: &Axis,
    upright: &Axis,
    points: &[(f64, Option<f64>)],
    mark: char,
) {
    for pair in points.windows(2) {
        let [(from_x, Some(from_y)), (to_x, Some(to_y))] = pair else { continue };
        if ![*from_x, *from_y, *to_x, *to_y].into_iter().all(drawable) {
            continue;
        }
        let (from, to) = (
            (across.position(*from_x), upright.position(*from_y)),
            (across.position(*to_x), upright.position(*to_y)),
        );
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil() as usize;
        for step in 1..steps {
            let share = step as f64 / steps as f64;
            let column = (from.0 + (to.0 - from.0) * share).round() as usize;
            let height = (from.1 + (to.1 - from.1) * share).round() as usize;
            let cell = &mut plot[ROWS - 1 - height.min(ROWS - 1)][column.min(across.steps - 1)];
            if matches!(*cell, ' ' | '┆') {
                *cell = mark;
            }
        }
    }
}

/// A label for each row from the top, or none: 1, 2 and 5 of each power of ten as far as there is
/// room, and the two ends if no such number lies between them.
fn upright_labels(upright: &Axis) -> Vec<String> {
    let mut labels = vec![String::new(); ROWS];
    let exponents = (upright.low / std::f64::consts::LN_10).floor() as i32
        ..=(upright.high / std::f64::consts::LN_10).ceil() as i32;
    for steps in [&[1.0][..], &[5.0, 2.0][..]] {
        for value in
            exponents.clone().flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)))
        {
            let Some(row) = upright.step(value).map(|step| ROWS - 1 - step) else { continue };
            // Two labels need a row between them.
            let is_near =
                labels[row.saturating_sub(1)..(row + 2).min(ROWS)].iter().any(|label| !label.is_empty());
            if !is_near {
                labels[row] = round_rate(value);
            }
        }
    }
    if labels.iter().filter(|label| !label.is_empty()).count() < 2 {
        labels[0] = rate(upright.high.exp());
        labels[ROWS - 1] = rate(upright.low.exp());
    }
    labels
}

/// `20k` instead of `20.0k`.
fn round_rate(value: f64) -> String {
    match value {
        value if value >= 999.5e6 => format!("{:.0}G", value / 1e9),
        value if value >= 999.5e3 => format!("{:.0}M", value / 1e6),
        value if value >= 9999.5 => format!("{:.0}k", value / 1e3),
        value if value >= 0.95 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

/// The horizontal axis and its labels, except those that would touch.
fn below(chart: &Chart, across: &Axis) -> [String; 2] {
    let mut axis = vec!['─'; across.steps];
    let mut labels = vec![' '; LABEL + 2 + across.steps];
    let mut free_from = 0;
    for (x, label) in chart.ticks.iter().filter(|(x, _)| drawable(*x)) {
        let Some(column) = across.step(*x) else { continue };
        axis[column] = '┴';
        let len = label.chars().count();
        let from = (LABEL + 2 + column).saturating_sub(len / 2).min(labels.len().saturating_sub(len));
        if from < free_from || from + len > labels.len() {
            continue;
        }
        labels[from..from + len]
            .iter_mut()
            .zip(label.chars())
            .for_each(|(cell, character)| *cell = character);
        free_from = from + len + 1;
    }
    let line = format!("{:LABEL$} └{}", "", axis.into_iter().collect::<String>());
    [line, labels.into_iter().collect::<String>().trim_end().to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(rows(&Chart::default(), 80).is_empty());
        let missing = Chart { lines: vec![vec![(1.0, None), (2.0, Some(0.0))]], ..Chart::default() };
        assert!(rows(&missing, 80).is_empty());
    }

    #[test]
    fn one_point_is_enough() {
        let chart = Chart { lines: vec![vec![(1.0, Some(5.0))]], ..Chart::default() };
        assert_eq!(rows(&chart, 40).iter().filter(|row| row.contains('A')).count(), 1);
    }

    #[test]
    fn a_missing_point_is_a_gap_and_no_zero() {
        let line = |middle| vec![vec![(1.0, Some(100.0)), (2.0, middle), (4.0, Some(100.0))]];
        let drawn = |middle| rows(&Chart { lines: line(middle), ..Chart::default() }, 60).concat();
        assert_eq!(drawn(Some(100.0)).matches('A').count(), 3);
        assert!(drawn(Some(100.0)).contains('a'));
        assert_eq!(drawn(None).matches('A').count(), 2);
        assert!(!drawn(None).contains('a'));
    }

    #[test]
    fn whatever_the_width_no_row_is_wider() {
        let chart = Chart {
            lines: vec![
                vec![(0.5, Some(1e5)), (1.0, Some(9e4)), (4.0, Some(3.0))],
                vec![(0.5, Some(1e5)), (4.0, Some(2e4))],
            ],
            marks: vec![1.08, 9.0, f64::NAN],
            ticks: vec![(0.5, "0.5x".into()), (1.0, "1x".into()), (1.01, "1.01x".into()), (4.0, "4x".into())],
        };
        for width in [0, 1, 39, 40, 41, 57, 80, 200] {
            for row in rows(&chart, width) {
                assert!(row.chars().count() <= width.max(NARROWEST), "{width}: {row}");
            }
        }
        let text = rows(&chart, 80).join("\n");
        assert!(text.contains('*') && text.contains('┆') && text.contains("0.5x") && !text.contains("1.01x"));
    }

    #[test]
    fn labels_are_round_numbers() {
        assert_eq!([0.5, 1.0, 200.0, 20_000.0, 5e6].map(round_rate), ["0.50", "1", "200", "20k", "5M"]);
    }
}
