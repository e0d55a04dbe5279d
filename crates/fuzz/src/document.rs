//! Changes to JSON documents that keep them valid JSON: a number to an extreme, a field dropped,
//! doubled, swapped, retyped, or taken from another document.

use pagewise_model::random::Random;
use serde_json::{Map, Value};

use crate::numbers;

/// Suffix of a repeated field's name, removed when the text is written: a map holds a name once.
const AGAIN: &str = "\u{e000}again";

/// Texts in place of others.
const TEXTS: [&str; 14] = [
    "",
    " ",
    "0",
    "none",
    "=HYPERLINK(\"http://x\")",
    "\u{1b}]52;c;AAAA\u{7}",
    "a\r\nb\tc\0d",
    "\u{202e}\u{feff}\u{fffd}",
    "漢字かな漢字かな漢字かな漢字かな",
    "e\u{301}\u{301}\u{301}\u{301}",
    "../../../etc/passwd",
    "-",
    "\"';,|",
    "9999999999999999999999999TiB",
];

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentChange {
    /// A number to an extreme value.
    Number,
    /// A text to another one.
    Text,
    /// A field or an item left out.
    Drop,
    /// A field or an item twice.
    Double,
    /// Two fields or items exchange their values.
    Swap,
    /// A value of another type.
    Retype,
    /// The value of the field with the same name in another document.
    Transplant,
    /// An array made longer by itself, or emptied.
    Resize,
}

const OPERATIONS: [(DocumentChange, u64); 8] = [
    (DocumentChange::Number, 50),
    (DocumentChange::Text, 10),
    (DocumentChange::Drop, 8),
    (DocumentChange::Double, 4),
    (DocumentChange::Swap, 8),
    (DocumentChange::Retype, 4),
    (DocumentChange::Transplant, 10),
    (DocumentChange::Resize, 6),
];

impl DocumentChange {
    /// Draw one by its weight.
    pub fn draw(random: &mut Random) -> Self {
        let mut left = random.below(OPERATIONS.iter().map(|(_, weight)| weight).sum());
        for (operation, weight) in OPERATIONS {
            match left.checked_sub(weight) {
                None => return operation,
                Some(rest) => left = rest,
            }
        }
        DocumentChange::Number
    }
}

/// Change `document` by one operation at a suitable position; no change if there is none.
pub fn change(random: &mut Random, document: &mut Value, donor: &Value, operation: DocumentChange) {
    let suits = |value: &Value| match operation {
        DocumentChange::Number => value.is_number(),
        DocumentChange::Text => value.is_string(),
        DocumentChange::Drop | DocumentChange::Double => children(value) > 0,
        DocumentChange::Swap => children(value) > 1,
        DocumentChange::Retype => true,
        DocumentChange::Transplant => value.is_object() && children(value) > 0,
        DocumentChange::Resize => value.is_array(),
    };
    let places = count(document, &suits);
    if places == 0 {
        return;
    }
    let mut place = random.below(places);
    let Some(value) = find(document, &suits, &mut place) else { return };
    match operation {
        DocumentChange::Number => {
            let Value::Number(was) = &*value else { return };
            *value = numbers::value(random, was);
        }
        DocumentChange::Text => *value = Value::from(text(random, value.as_str().unwrap_or_default())),
        DocumentChange::Drop => drop_child(random, value),
        DocumentChange::Double => double_child(random, value),
        DocumentChange::Swap => swap_children(random, value),
        DocumentChange::Retype => *value = another_type(random, value),
        DocumentChange::Transplant => transplant(random, value, donor),
        DocumentChange::Resize => resize(random, value),
    }
}

/// The text of a document that was changed.
pub fn to_text(document: &Value) -> String {
    let text = document.to_string();
    if text.contains(AGAIN) { text.replace(AGAIN, "") } else { text }
}

fn children(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

fn count(value: &Value, suits: &impl Fn(&Value) -> bool) -> u64 {
    let within = match value {
        Value::Object(map) => map.values().map(|value| count(value, suits)).sum(),
        Value::Array(items) => items.iter().map(|value| count(value, suits)).sum(),
        _ => 0,
    };
    within + u64::from(suits(value))
}

/// Find the suitable value with this number, parents first.
fn find<'a>(value: &'a mut Value, suits: &impl Fn(&Value) -> bool, place: &mut u64) -> Option<&'a mut Value> {
    if suits(value) {
        if *place == 0 {
            return Some(value);
        }
        *place -= 1;
    }
    match value {
        Value::Object(map) => map.values_mut().find_map(|value| find(value, suits, place)),
        Value::Array(items) => items.iter_mut().find_map(|value| find(value, suits, place)),
        _ => None,
    }
}

fn text(random: &mut Random, was: &str) -> String {
    match random.below(5) {
        0 => was.chars().rev().collect(),
        1 => was.chars().take(random.below(was.len() as u64 + 1) as usize).collect(),
        2 => was.repeat(1 + random.below(30) as usize),
        3 => crate::lines::word(random, was),
        _ => TEXTS[random.below(TEXTS.len() as u64) as usize].to_string(),
    }
}

/// The name of one of the fields.
fn name(random: &mut Random, map: &Map<String, Value>) -> String {
    map.keys().nth(random.below(map.len() as u64) as usize).cloned().unwrap_or_default()
}

fn drop_child(random: &mut Random, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let name = name(random, map);
            map.remove(&name);
        }
        Value::Array(items) => {
            items.remove(random.below(items.len() as u64) as usize);
        }
        _ => {}
    }
}

fn double_child(random: &mut Random, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let name = name(random, map);
            let same = map[&name].clone();
            map.insert(format!("{name}{AGAIN}"), same);
        }
        Value::Array(items) => {
            let place = random.below(items.len() as u64) as usize;
            items.insert(place, items[place].clone());
        }
        _ => {}
    }
}

fn swap_children(random: &mut Random, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let (left, right) = (name(random, map), name(random, map));
            let taken = std::mem::take(&mut map[&left]);
            let other = std::mem::replace(&mut map[&right], taken);
            if left != right {
                map[&left] = other;
            }
        }
        Value::Array(items) => {
            let (left, right) = (random.below(items.len() as u64), random.below(items.len() as u64));
            items.swap(left as usize, right as usize);
        }
        _ => {}
    }
}

fn another_type(random: &mut Random, value: &Value) -> Value {
    match random.below(6) {
        0 => Value::Null,
        1 => Value::Bool(true),
        2 => Value::Array(vec![value.clone()]),
        3 => Value::Object(Map::from_iter([("value".to_string(), value.clone())])),
        4 => Value::from(value.to_string()),
        _ => Value::from(0),
    }
}

/// The first value under `name` in a document.
fn under<'a>(document: &'a Value, name: &str) -> Option<&'a Value> {
    match document {
        Value::Object(map) => map.get(name).or_else(|| map.values().find_map(|value| under(value, name))),
        Value::Array(items) => items.iter().find_map(|value| under(value, name)),
        _ => None,
    }
}

fn transplant(random: &mut Random, value: &mut Value, donor: &Value) {
    let Value::Object(map) = value else { return };
    let name = name(random, map);
    if let Some(other) = under(donor, &name) {
        map[&name] = other.clone();
    }
}

fn resize(random: &mut Random, value: &mut Value) {
    let Value::Array(items) = value else { return };
    if random.below(3) == 0 {
        return items.clear();
    }
    let times = 1 + random.below(8) as usize;
    let longer: Vec<Value> = items.iter().cloned().cycle().take((items.len() * times).min(200)).collect();
    *items = longer;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_changes_a_document_that_it_suits() {
        let document: Value =
            serde_json::from_str(r#"{"a":1,"b":"two","c":[3,4,5],"d":{"e":6.5,"f":null,"a":{"g":true}}}"#)
                .expect("json");
        let donor: Value = serde_json::from_str(r#"{"x":{"a":9,"c":[7],"e":1}}"#).expect("json");
        let whole = to_text(&document);
        for (operation, _) in OPERATIONS {
            let changed = (0..100).filter(|seed| {
                let mut changed = document.clone();
                change(&mut Random::new(*seed), &mut changed, &donor, operation);
                let text = to_text(&changed);
                assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
                text != whole
            });
            assert!(changed.count() > 30, "{operation:?}");
        }
    }

    #[test]
    fn a_doubled_field_stands_twice_under_its_name() {
        let mut document: Value = serde_json::from_str(r#"{"only":1}"#).expect("json");
        change(&mut Random::new(1), &mut document, &Value::Null, DocumentChange::Double);
        assert_eq!(to_text(&document), r#"{"only":1,"only":1}"#);
    }
}
