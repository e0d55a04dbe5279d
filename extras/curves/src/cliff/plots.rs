//! Crossings of methods: rates over the size of the data, with the intervals of the crossings.

use pagewise_model::format::{MISSING, bytes, multiple, rate};

use pagewise_report::plot::{Axis, AxisQuantity, Band, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::words::{figures, reasons};

use super::Cliff;

/// A plot of each group.
pub fn plots(cliff: &Cliff) -> Vec<Plot> {
    cliff
        .groups
        .iter()
        .map(|group| {
            let mut series = Vec::new();
            let names =
                ["method", "data over cache", "data", "operations/s", "device bytes per byte", "samples"];
            let mut table = TextTable::of(&names);
            for curve in &group.curves {
                let mut marks = Vec::new();
                for point in &curve.points {
                    let ratio = multiple(point.ratio);
                    let text = point.ops_per_second.map(|value| figures::interval(value, rate));
                    if let (Some(value), Some(text)) = (point.ops_per_second, &text) {
                        marks.push(Mark {
                            x: point.ratio,
                            y: value.median,
                            low: value.low,
                            high: value.high,
                            text: MarkText::Own(format!(
                                "{}, data {ratio} the cache: {text} operations/s",
                                curve.method
                            )),
                            invalid: false,
                        });
                    }
                    let value = point.ops_per_second.map(|value| value.median);
                    let none = || point.reason.as_ref().map_or_else(|| MISSING.to_string(), reasons::of_cell);
                    table.rows.push(vec![
                        TextCell::from(&curve.method),
                        TextCell::of(ratio, point.ratio),
                        TextCell::of(bytes(point.span_bytes), point.span_bytes.0 as f64),
                        TextCell { value, ..text.unwrap_or_else(none).into() },
                        TextCell::number(point.device_bytes_per_byte, rate),
                        TextCell::of(point.samples.to_string(), point.samples as f64),
                    ]);
                }
                if !marks.is_empty() {
                    series.push(Series { name: curve.method.clone(), marks, ..Series::default() });
                }
            }
            let leading = group.crossings.iter().filter(|one| one.before_leads && one.after_leads);
            let bands = leading.map(|crossing| Band {
                low: crossing.low,
                high: crossing.high,
                label: format!(
                    "from {} to {}: between {} and {} the cache",
                    crossing.before,
                    crossing.after,
                    multiple(crossing.low),
                    multiple(crossing.high)
                ),
            });
            Plot {
                id: "crossings",
                heading: "From which size of the data on is another method faster?",
                conditions: group.label.clone(),
                form: Form::Lines,
                x: Axis::of("data over cache", Scale::Log, AxisQuantity::MULTIPLE),
                y: Axis::of("operations/s", Scale::Log, AxisQuantity::RATE),
                series,
                bands: bands.collect(),
                table,
            }
        })
        .collect()
}
