//! Values of an axis as positions, and its ticks.

use crate::plots::plot::{Axis, Form, Plot, Scale};

/// Values beyond are not shown: differences of larger ones lose all digits.
const LARGEST: f64 = 1e30;
/// Ticks at most, about.
const MOST_TICKS: f64 = 7.0;

/// An axis with a place for each value.
pub(crate) struct Placed {
    low: f64,
    high: f64,
    is_log: bool,
    categories: Option<usize>,
    from: f64,
    to: f64,
}

impl Placed {
    /// The axis of a plot, from one position to another.
    pub(crate) fn over(axis: &Axis, plot: &Plot, is_x: bool, (from, to): (f64, f64)) -> Self {
        let is_log = axis.scale == Scale::Log;
        if let Scale::Categories(names) = &axis.scale {
            let count = names.len().max(1);
            return Self {
                low: -0.5,
                high: count as f64 - 0.5,
                is_log,
                categories: Some(names.len()),
                from,
                to,
            };
        }
        let mut values = values(plot, is_x);
        values.retain(|value| is_placeable(*value, is_log));
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match (low <= high, is_log) {
            (false, _) => (1.0, 2.0),
            (true, true) => (low / 1.15, high * 1.15),
            (true, false) => {
                (low.min(0.0), if high > low.min(0.0) { high * 1.02 } else { low.min(0.0) + 1.0 })
            }
        };
        Self { low, high, is_log, categories: None, from, to }
    }

    /// The position of a value; `None` if it has none.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        if !is_placeable(value, self.is_log) || value < self.low || value > self.high {
            return None;
        }
        let form = |value: f64| if self.is_log { value.ln() } else { value };
        let share = (form(value) - form(self.low)) / (form(self.high) - form(self.low));
        Some(self.from + share * (self.to - self.from)).filter(|place| place.is_finite())
    }

    /// The least and the largest value that have a position.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Positions of ticks with their labels.
    pub(crate) fn ticks(&self, axis: &Axis) -> Vec<(f64, String)> {
        if let (Some(_), Scale::Categories(names)) = (self.categories, &axis.scale) {
            let named = |(index, name): (usize, &String)| Some((self.at(index as f64)?, name.clone()));
            return names.iter().enumerate().filter_map(named).collect();
        }
        let placed = |(value, label)| Some((self.at(value)?, label));
        self.values_of_ticks(axis).into_iter().filter_map(placed).collect()
    }

    /// Values of ticks of an axis of numbers, with their labels.
    pub(crate) fn values_of_ticks(&self, axis: &Axis) -> Vec<(f64, String)> {
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for value in self.rounded().into_iter().filter(|value| self.at(*value).is_some()) {
            let label = (axis.told)(value);
            // Rounded to its digits, a tick may look like the one before.
            if ticks.last().is_none_or(|(_, last)| *last != label) {
                ticks.push((value, label));
            }
        }
        ticks
    }

    /// Round values between the ends.
    fn rounded(&self) -> Vec<f64> {
        if self.is_log {
            let decades = (self.high / self.low).log10();
            let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
            let step = (decades / MOST_TICKS).ceil().max(1.0) as usize;
            for parts in [&[1.0][..], &[1.0, 2.0, 5.0]] {
                let of_decade = |power: i32| parts.iter().map(move |part| part * 10f64.powi(power));
                let mut all: Vec<f64> = (first..=last).step_by(step).flat_map(of_decade).collect();
                all.retain(|value| self.at(*value).is_some());
                if all.len() >= 3 {
                    return all;
                }
            }
        }
        let rough = (self.high - self.low) / MOST_TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|part| part * power).into_iter().find(|step| *step >= rough);
        let Some(step) = step.filter(|step| step.is_finite() && *step > 0.0) else { return Vec::new() };
        let first = (self.low / step).ceil();
        (0..=MOST_TICKS as usize + 2).map(|index| (first + index as f64) * step).collect()
    }
}

fn is_placeable(value: f64, is_log: bool) -> bool {
    value.is_finite() && value.abs() <= LARGEST && (!is_log || value >= 1.0 / LARGEST)
}

/// All values of an axis, with the ends of intervals and bands.
fn values(plot: &Plot, is_x: bool) -> Vec<f64> {
    let marks = || plot.series.iter().flat_map(|series| &series.marks);
    if is_x && plot.form == Form::Bars {
        let mut sums: Vec<f64> = vec![0.0];
        for mark in marks() {
            let row = mark.y as usize;
            sums.resize(sums.len().max(row + 1), 0.0);
            sums[row] += mark.x;
        }
        return sums;
    }
    let has_range = is_x == matches!(plot.y.scale, Scale::Categories(_));
    let own = marks().map(|mark| if is_x { mark.x } else { mark.y });
    let ranges = marks().filter(|_| has_range).flat_map(|mark| [mark.low, mark.high]).flatten();
    let bands = plot.bands.iter().filter(|_| is_x).flat_map(|band| [band.low, band.high]);
    own.chain(ranges).chain(bands).collect()
}
