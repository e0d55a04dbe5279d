//! A plot as JSON within a page: what its drawing shows, for the script that draws it again.
//!
//! Numbers of an axis become text here alone, so its ticks are part of the data.

use pagewise_model::Untrusted;
use serde_json::{Value, json};

use crate::plots::plot::{Axis, Form, Mark, Plot, Scale, Series};
use crate::svg::scale::Placed;

/// The plot as JSON that holds no character of markup.
pub(super) fn json(plot: &Plot) -> String {
    let (x, y) =
        (Placed::over(&plot.x, plot, true, (0.0, 1.0)), Placed::over(&plot.y, plot, false, (0.0, 1.0)));
    let is_placed = |mark: &&Mark| match plot.form {
        Form::Bars => mark.x.is_finite() && y.at(mark.y).is_some(),
        _ => x.at(mark.x).is_some() && y.at(mark.y).is_some(),
    };
    let series = |series: &Series| {
        let marks: Vec<Value> = series.marks.iter().filter(is_placed).map(mark).collect();
        json!({ "name": told(&series.name), "marks": marks, "colour": series.colour })
    };
    let bands = plot.bands.iter().filter(|band| x.at(band.low).is_some() && x.at(band.high).is_some());
    let data = json!({
        "form": match plot.form { Form::Dots => "dots", Form::Lines => "lines", Form::Bars => "bars" },
        "x": axis(&plot.x, &x),
        "y": axis(&plot.y, &y),
        "series": plot.series.iter().map(series).collect::<Vec<_>>(),
        "bands": bands.map(|band| json!([short(band.low), short(band.high), told(&band.label)])).collect::<Vec<_>>(),
    });
    unmarked(&data.to_string())
}

fn axis(axis: &Axis, placed: &Placed) -> Value {
    let (low, high) = placed.ends();
    let scale = match &axis.scale {
        Scale::Categories(names) => {
            return json!({ "label": told(&axis.label), "names": names.iter().map(told).collect::<Vec<_>>() });
        }
        Scale::Linear => "linear",
        Scale::Log => "log",
    };
    let ticks = placed.values_of_ticks(axis);
    let ticks: Vec<Value> = ticks.iter().map(|(value, text)| json!([short(*value), told(text)])).collect();
    json!({ "label": told(&axis.label), "scale": scale, "low": short(low), "high": short(high), "ticks": ticks })
}

/// `[x, y, label, low, high, why it is invalid]`, without what is absent at its end.
fn mark(mark: &Mark) -> Value {
    let mut values = vec![
        short(mark.x),
        short(mark.y),
        told(&mark.label).into(),
        mark.low.map_or(Value::Null, short),
        mark.high.map_or(Value::Null, short),
        mark.invalid.as_ref().map_or(Value::Null, |reason| told(reason).into()),
    ];
    while values.last().is_some_and(Value::is_null) {
        values.pop();
    }
    values.into()
}

/// Digits that no plot needs make a page large.
fn short(value: f64) -> Value {
    format!("{value:.6e}").parse::<f64>().map_or(Value::Null, |value| {
        match value.fract() == 0.0 && value.abs() < 1e9 {
            true => json!(value as i64),
            false => json!(value),
        }
    })
}

fn told(text: impl std::fmt::Display) -> String {
    Untrusted(text).to_string()
}

/// In JSON these characters occur in strings alone, where an escape means the same.
fn unmarked(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_ends_no_element() {
        let text = json!("</script><!-- &amp; \u{2028}").to_string();
        let safe = unmarked(&text);
        assert!(!safe.contains(['<', '>', '&']), "{safe}");
        assert_eq!(serde_json::from_str::<Value>(&safe).expect("JSON"), "</script><!-- &amp; \u{2028}");
    }

    #[test]
    fn numbers_are_short_and_whole_ones_stay() {
        let written = [1.0, 12_345_678.9, 0.123_456_789, 1e12, -3.0].map(|value| short(value).to_string());
        assert_eq!(written, ["1", "12345680", "0.1234568", "1000000000000.0", "-3"]);
        assert_eq!(short(f64::NAN), Value::Null);
    }
}
