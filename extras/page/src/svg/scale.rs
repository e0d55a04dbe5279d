//! Values of an axis as positions, and its ticks, whose labels name their values exactly.

use pagewise_report::plot::{Axis, Form, Plot, Scale, TickSteps};

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
    fn values_of_ticks(&self, axis: &Axis) -> Vec<(f64, String)> {
        let ticks = self.rounded(axis.quantity.steps).into_iter().filter(|value| self.at(*value).is_some());
        // Zero has no unit: 0 ns and 10 s do not look like one axis.
        let text = |value| if value == 0.0 { "0".to_string() } else { (axis.quantity.text)(value) };
        ticks.map(|value| (value, text(value))).filter(|(value, label)| names(label, *value)).collect()
    }

    /// Round values between the ends.
    fn rounded(&self, steps: TickSteps) -> Vec<f64> {
        let (base, parts): (f64, [&[f64]; 2]) = match steps {
            TickSteps::Binary => (2.0, [&[1.0], &[1.0, 1.5]]),
            TickSteps::Decimal | TickSteps::Whole => (10.0, [&[1.0], &[1.0, 2.0, 5.0]]),
        };
        if self.is_log {
            let powers = (self.high / self.low).log(base);
            let (first, last) = (self.low.log(base).floor() as i32, self.high.log(base).ceil() as i32);
            let step = (powers / MOST_TICKS).ceil().max(1.0) as i32;
            let first = first.div_euclid(step) * step;
            for parts in parts {
                let of_power = |power: i32| parts.iter().map(move |part| part * base.powi(power));
                let mut all: Vec<f64> = (first..=last).step_by(step as usize).flat_map(of_power).collect();
                all.retain(|value| self.at(*value).is_some());
                if all.len() >= 3 {
                    return all;
                }
            }
        }
        let least = if steps == TickSteps::Whole { 1.0 } else { 0.0 };
        let rough = ((self.high - self.low) / MOST_TICKS).max(least);
        let power = base.powi(rough.log(base).floor() as i32);
        let multiples: &[f64] = if steps == TickSteps::Binary { &[1.0, 2.0] } else { &[1.0, 2.0, 5.0, 10.0] };
        let step = multiples.iter().map(|part| part * power).find(|step| *step >= rough);
        let Some(step) = step.filter(|step| step.is_finite() && *step > 0.0) else { return Vec::new() };
        let first = (self.low / step).ceil();
        (0..=MOST_TICKS as usize + 2).map(|index| (first + index as f64) * step).collect()
    }
}

/// True if a label names this value, and not one that is close to it.
fn names(label: &str, value: f64) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',' | '-');
    let (number, unit) = label.split_at(label.find(|letter| !is_digit(letter)).unwrap_or(label.len()));
    let unit = match unit.trim_start() {
        "" | "x" | "ns" | "B" => 1.0,
        "µs" | "k" => 1e3,
        "ms" | "M" => 1e6,
        "s" | "G" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024f64.powi(2),
        "GiB" => 1024f64.powi(3),
        "TiB" => 1024f64.powi(4),
        "%" => 0.01,
        _ => return false,
    };
    let named = number.replace(',', "").parse().map(|number: f64| number * unit);
    named.is_ok_and(|named| (named - value).abs() <= value.abs() * 1e-9)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use pagewise_report::plot::AxisQuantity;

    const QUANTITIES: [AxisQuantity; 8] = [
        AxisQuantity::TIME,
        AxisQuantity::BYTES,
        AxisQuantity::COUNT,
        AxisQuantity::RATE,
        AxisQuantity::PLAIN,
        AxisQuantity::MULTIPLE,
        AxisQuantity::RATIO,
        AxisQuantity::SHARE,
    ];

    fn labels(quantity: AxisQuantity, scale: Scale, (low, high): (f64, f64)) -> Vec<String> {
        let axis = Axis::of("", scale, quantity);
        let is_log = axis.scale == Scale::Log;
        let placed = Placed { low, high, is_log, categories: None, from: 0.0, to: 1.0 };
        placed.values_of_ticks(&axis).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn a_tick_stands_where_its_label_says() {
        let linear = |quantity, high| labels(quantity, Scale::Linear, (0.0, high));
        assert_eq!(linear(AxisQuantity::COUNT, 3.6), ["0", "1", "2", "3"]);
        assert_eq!(linear(AxisQuantity::TIME, 31e9), ["0", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]);
        let gibibytes = linear(AxisQuantity::BYTES, 15.2 * 1024f64.powi(3));
        assert_eq!(gibibytes, ["0", "4 GiB", "8 GiB", "12 GiB"]);
        assert_eq!(linear(AxisQuantity::SHARE, 1.02), ["0", "20 %", "40 %", "60 %", "80 %", "100 %"]);
        assert_eq!(
            labels(AxisQuantity::BYTES, Scale::Log, (3e6, 3e9)),
            ["4 MiB", "16 MiB", "64 MiB", "256 MiB", "1 GiB"]
        );
        assert_eq!(labels(AxisQuantity::COUNT, Scale::Log, (0.87, 18.4)), ["1", "2", "5", "10"]);
        assert!(
            names("1.5 GiB", 1.5 * 1024f64.powi(3)) && names("12.3k", 12_300.0) && names("9,876", 9876.0)
        );
        assert!(!names("2", 1.5) && !names("4.77 GiB", 5.12e9) && !names("", 0.0) && !names("1 h", 1.0));
    }

    proptest! {
        #[test]
        fn an_axis_over_a_decade_or_more_has_ticks(low in 0.0..6.0f64, decades in 1.0..6.0f64) {
            let (low, factor) = (10f64.powf(low), 10f64.powf(decades));
            for quantity in QUANTITIES {
                let unit = if quantity.steps == TickSteps::Binary { 4096.0 } else { 1.0 };
                let (low, high) = (low * unit, low * factor * unit);
                for scale in [Scale::Log, Scale::Linear] {
                    let least = if scale == Scale::Linear { 0.0 } else { low };
                    let found = labels(quantity, scale.clone(), (least, high));
                    let mut different = found.clone();
                    different.dedup();
                    prop_assert!((2..=18).contains(&found.len()), "{found:?} in {low} to {high}");
                    prop_assert_eq!(different, found);
                }
            }
        }
    }
}
