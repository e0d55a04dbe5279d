//! A JSON schema, applied to what is printed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Place;

/// Check `value`; return the fields that the schema names at this place, or the first fault.
fn check(schema: &Value, root: &Value, value: &Value, at: &str) -> Result<BTreeSet<String>, String> {
    let mut named = BTreeSet::new();
    let Some(schema) = schema.as_object() else {
        return if schema == &Value::Bool(false) {
            Err(format!("{at}: nothing is allowed"))
        } else {
            Ok(named)
        };
    };
    for (key, rule) in schema {
        let rules = || rule.as_array().into_iter().flatten();
        match key.as_str() {
            "$ref" => {
                let path = rule.as_str().expect("text").strip_prefix('#').expect("in this schema");
                named.extend(check(root.pointer(path).expect("a definition"), root, value, at)?);
            }
            "type" => {
                let is = |name: &Value| match name.as_str().expect("a type") {
                    "null" => value.is_null(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "number" => value.is_number(),
                    "string" => value.is_string(),
                    "array" => value.is_array(),
                    "object" => value.is_object(),
                    other => panic!("unknown type {other}"),
                };
                let of_one = rule.is_string() && is(rule);
                if !of_one && !rules().any(is) {
                    let shown: String = value.to_string().chars().take(40).collect();
                    return Err(format!("{at}: {shown} is not of type {rule}"));
                }
            }
            "const" if rule != value => return Err(format!("{at}: {value} is not {rule}")),
            "enum" if !rules().any(|one| one == value) => {
                return Err(format!("{at}: {value} is none of {rule}"));
            }
            "anyOf" | "oneOf" => {
                let mut faults = Vec::new();
                let mut held = false;
                for one in rules() {
                    match check(one, root, value, at) {
                        Ok(fields) => {
                            held = true;
                            named.extend(fields);
                        }
                        Err(fault) => faults.push(fault),
                    }
                }
                if !held {
                    return Err(faults.join("; "));
                }
            }
            "allOf" => {
                for one in rules() {
                    named.extend(check(one, root, value, at)?);
                }
            }
            "required" if value.is_object() => {
                if let Some(missing) =
                    rules().find(|name| value.get(name.as_str().expect("a name")).is_none())
                {
                    return Err(format!("{at}: {missing} is missing"));
                }
            }
            "properties" => {
                for (name, rule) in rule.as_object().expect("properties") {
                    named.insert(name.clone());
                    if let Some(inner) = value.get(name) {
                        whole(rule, root, inner, &format!("{at}/{name}"))?;
                    }
                }
            }
            "additionalProperties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    if schema.get("properties").is_none_or(|known| known.get(name).is_none()) {
                        named.insert(name.clone());
                        whole(rule, root, inner, &format!("{at}/{name}"))?;
                    }
                }
            }
            "items" => {
                for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
                    whole(rule, root, inner, &format!("{at}/{index}"))?;
                }
            }
            _ => {}
        }
    }
    Ok(named)
}

/// The same, and every field is one that the schema names.
pub fn whole(schema: &Value, root: &Value, value: &Value, at: &str) -> Result<BTreeSet<String>, String> {
    let named = check(schema, root, value, at)?;
    // A place without a rule takes anything.
    let is_free = schema == &Value::Bool(true) || schema.as_object().is_some_and(|schema| schema.is_empty());
    let mut fields = value.as_object().into_iter().flat_map(|fields| fields.keys());
    match fields.find(|name| !is_free && !named.contains(*name)) {
        Some(unnamed) => Err(format!("{at}/{unnamed} is not in the schema")),
        None => Ok(named),
    }
}

/// What is printed is what the schema says, and nothing else.
#[track_caller]
pub fn expect_schema(place: &Place, command: &str, json: &Value) {
    let schema = place.run(&["schema", command]).expect_code(0).judged();
    assert_eq!(whole(&schema, &schema, json, "").err(), None);
}

/// The same of JSON that is not parsed yet.
#[track_caller]
pub fn expect_schema_of(place: &Place, command: &str, json: &str) {
    expect_schema(place, command, &serde_json::from_str(json).expect("JSON"));
}
