//! The schema of the judged JSON: it holds for what is printed, and names every field of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pagewise_report::curves_door;
use pagewise_report::json::JudgedJson;
use pagewise_report::judged_run::JudgedRun;
use serde_json::{Value, json};

use crate::support::schema::whole;
use crate::support::{self, Place};

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
            let mut value: Value = serde_json::from_str(&text).expect("JSON");
            // The report that made it has no extra.
            for key in pagewise_curves::CURVES.keys {
                value.as_object_mut().expect("a run").insert(key.name.to_string(), Value::Null);
            }
            holds(&value, &entry.path().display().to_string());
            files += 1;
        }
    }
    let mut all = Vec::new();
    curves_door::offer(&[pagewise_curves::CURVES]);
    for entry in fs::read_dir(crates.join("fuzz/corpus/run-files")).expect("run files").flatten() {
        let Ok(run) = pagewise_model::run::Run::parse(&fs::read(entry.path()).expect("read")) else {
            continue;
        };
        let judged = pagewise_analysis::judge(&run);
        let judged = serde_json::to_value(JudgedJson::of(&JudgedRun::of("", &run, &judged))).expect("JSON");
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
        assert!(script.contains("cliff") && script.contains("max-writes"), "{shell}");
    }
}
