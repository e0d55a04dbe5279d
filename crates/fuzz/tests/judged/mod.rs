//! What holds of every judged JSON and every CSV, whatever the run file says.

use serde_json::Value;

/// Quantiles in ascending order.
const QUANTILES: [&str; 11] =
    ["p50", "p90", "p99", "p999", "p9999", "max", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"];
/// Shares that are parts of a whole. A ceiling is the most that anything reached.
const PARTS: [&str; 10] = [
    "share",
    "coverage",
    "covered",
    "of_ceiling",
    "of_ceiling_low",
    "of_ceiling_high",
    "of_other",
    "of_device_bandwidth",
    "of_device_bandwidth_low",
    "of_device_bandwidth_high",
];

/// That it is JSON, and its intervals and shares are some.
#[track_caller]
pub fn check_json(text: &[u8]) {
    let judged: Value = serde_json::from_slice(text).expect("the judged JSON is JSON");
    assert!(judged.is_object());
    walk(&judged, "");
}

#[track_caller]
fn walk(value: &Value, at: &str) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, at)),
        Value::Object(map) => {
            check_interval(value, at);
            let mut before: Option<(&str, f64)> = None;
            for name in QUANTILES {
                let Some(figure) = map.get(name).and_then(Value::as_f64) else { continue };
                if let Some((smaller, least)) = before {
                    assert!(least <= figure, "{at}: {smaller} {least} is above {name} {figure}");
                }
                before = Some((name, figure));
            }
            for name in PARTS {
                if let Some(share) = map.get(name).and_then(Value::as_f64) {
                    assert!((0.0..=1.0).contains(&share), "{at}: {name} is {share}");
                }
            }
            for (name, value) in map {
                walk(value, &format!("{at}.{name}"));
            }
        }
        _ => {}
    }
}

/// `low`, `high` and what lies between them: all there, or no ends.
#[track_caller]
fn check_interval(value: &Value, at: &str) {
    let Some(middle) = value.get("median").or_else(|| value.get("ratio")) else { return };
    assert!(middle.is_number() || at.ends_with("ratios"), "{at}: a median that is no number: {value}");
    let number = |name: &str| value.get(name).and_then(Value::as_f64);
    if let (Some(low), Some(middle), Some(high)) = (number("low"), middle.as_f64(), number("high")) {
        assert!(low <= middle && middle <= high, "{at}: {value}");
    }
}

/// That all records have as many fields as the header, and there is one for each sample.
#[track_caller]
pub fn check_csv(text: &[u8], samples: usize) {
    let text = std::str::from_utf8(text).expect("CSV is text");
    let (mut records, mut fields, mut quoted) = (Vec::new(), 1, false);
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields += 1,
            '\n' if !quoted => {
                records.push(fields);
                fields = 1;
            }
            _ => {}
        }
    }
    assert!(!quoted, "a quote is not closed");
    assert!(records.iter().all(|fields| *fields == records[0]), "records of different lengths: {records:?}");
    assert!(samples == usize::MAX || records.len() == samples + 1, "{} records", records.len());
}
