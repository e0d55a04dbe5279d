//! The schema of the judged JSON: it holds for what is printed, and names every field of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{self, Place};

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

#[test]
fn what_is_printed_is_what_the_schema_says() {
    let place = Place::new();
    let schema = place.run(&["schema"]).expect_code(0).judged();
    let holds = |value: &Value, name: &str| {
        let fault = whole(&schema, &schema, value, "").err();
        // Both forms were tried; the fault of the one that is not meant comes with it.
        assert_eq!(fault, None, "{name}");
    };
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = 0;
    for entry in fs::read_dir(crates.join("report/tests/golden")).expect("goldens").flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "json") {
            let text = fs::read_to_string(entry.path()).expect("read");
            holds(&serde_json::from_str(&text).expect("JSON"), &entry.path().display().to_string());
            files += 1;
        }
    }
    let mut all = Vec::new();
    for entry in fs::read_dir(crates.join("fuzz/corpus/run-files")).expect("run files").flatten() {
        let Ok(run) = pagewise_model::run::Run::parse(&fs::read(entry.path()).expect("read")) else {
            continue;
        };
        let judged = serde_json::to_value(pagewise_analysis::judge(&run)).expect("JSON");
        holds(&judged, &entry.path().display().to_string());
        all.push(judged);
        files += 1;
    }
    assert!(files > 3, "{files}");
    holds(&Value::from(all.clone()), "several runs");
    // A field that no type has, a type that is another, and a field that is missing are found.
    let changed = |change: fn(&mut Value)| {
        let mut judged = all[0].clone();
        change(&mut judged);
        whole(&schema, &schema, &judged, "").expect_err("a fault")
    };
    assert!(changed(|judged| judged["cells"][0]["speed"] = json!(1)).contains("speed"));
    assert!(changed(|judged| judged["run"]["seed"] = json!("seven")).contains("seven"));
    assert!(
        changed(|judged| drop(judged["environment"].as_object_mut().expect("fields").remove("kernel")))
            .contains("kernel")
    );
}

#[test]
fn manual_pages_and_completions_are_made_from_the_arguments() {
    let place = Place::new();
    let page = place.run(&["man"]).expect_code(0).stdout;
    for wanted in [".TH pagewise", "pagewise\\-cliff(1)", "130"] {
        assert!(page.contains(wanted), "'{wanted}' is not in: {page}");
    }
    let page = place.run(&["man", "append"]).expect_code(0).stdout;
    assert!(page.contains("max\\-writes") && !page.contains("patience"), "{page}");
    support::expect_refused(
        &place.run(&["man", "apend"]),
        "'apend' is no command of pagewise: did you mean 'append'?",
    );
    fs::create_dir(place.file("pages")).expect("directory");
    place.run(&["man", "--dir", "pages"]).expect_code(0);
    let pages: BTreeSet<String> = fs::read_dir(place.file("pages"))
        .expect("list")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(pages.contains("pagewise.1") && pages.contains("pagewise-read.1"), "{pages:?}");
    assert!(!pages.contains("pagewise-worker.1"), "what is hidden has no page: {pages:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]).expect_code(0).stdout;
        assert!(script.contains("beyond-memory") && script.contains("max-writes"), "{shell}");
    }
}
