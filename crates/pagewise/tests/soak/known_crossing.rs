//! A crossing that is known before anything is measured. A cap of bytes gives each method the same
//! device bytes a second, so two methods are equally fast where they read as much from the device
//! for each requested byte, whatever the machine's speed.

use crate::support::until::{can_cap_device, can_limit_memory, my_turn};
use crate::support::{Place, is_honest, kinds, load};
use pagewise_analysis::judge;
use pagewise_curves::CURVES;
use pagewise_model::{FailureKind, Sample};
use pagewise_report::curves_door;
use pagewise_report::json::JudgedJson;
use pagewise_report::judged_run::JudgedRun;
use serde_json::{Value, json};

/// What is claimed is a difference of over 2 %.
const SMALLEST: f64 = 0.02;

#[test]
fn the_order_changes_where_a_mapping_reads_as_much_as_it_is_asked_for() {
    let _turn = my_turn();
    if !can_limit_memory() || !can_cap_device() {
        return;
    }
    let place = Place::new();
    // Readahead that brings in eight times what a read asks for: above memory the mapping reads
    // more than was asked for.
    let words = [
        "cliff",
        "--quick",
        "--memory=64MiB",
        "--span=0.75x,1.25x,2x",
        "--methods=mmap,pread:direct",
        "--device-cap=read-bandwidth=50MiB/s",
        "--readahead=128KiB",
        "--json",
        "--out=run.jsonl",
    ];
    let mut child = place.command(&words).spawn().expect("pagewise starts");
    // It takes minutes.
    child.wait().expect("wait");
    let finished = place.finish(child);
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    // Just above memory a warm-up may end before the cache has settled, which its sample shows.
    let is_reported = |sample: &Sample| is_honest(sample) || kinds(sample) == [FailureKind::NotSettled];
    assert!(
        run.samples.iter().all(is_reported),
        "{:?}",
        run.samples.iter().find(|sample| !is_reported(sample))
    );
    place.expect_no_trace();
    curves_door::offer(&[CURVES]);
    let judged = judge(&run);
    let judged = JudgedRun::of("", &run, &judged);
    let judged = serde_json::to_value(JudgedJson::of(&judged)).expect("JSON");
    let only = |list: &Value| match list.as_array().map(Vec::as_slice) {
        Some([only]) => only.clone(),
        _ => panic!("one: {list:#}"),
    };
    let group = only(&judged["cliff"]["groups"]);
    let crossing = only(&group["crossings"]);
    assert_eq!((&crossing["before"], &crossing["after"]), (&json!("mmap"), &json!("pread:direct")));
    let [low, high] = ["low", "high"].map(|end| crossing[end].as_f64().expect("a ratio"));
    let curves = group["curves"].as_array().expect("curves");
    let mapped = curves.iter().find(|curve| curve["method"] == "mmap").expect("a curve");
    let points = mapped["points"].as_array().expect("points").iter();
    let read =
        points.filter_map(|point| Some((point["ratio"].as_f64()?, point["device_bytes_per_byte"].as_f64()?)));
    let (below, beyond): (Vec<_>, Vec<_>) =
        read.filter(|(ratio, _)| *ratio <= low || *ratio >= high).partition(|(ratio, _)| *ratio <= low);
    println!("crossing within {:.2} to {:.2}; read {below:.3?}, {beyond:.3?}", low, high);
    assert!(!below.is_empty() && below.iter().all(|(_, read)| *read < 1.0 + SMALLEST), "{below:?}");
    assert!(!beyond.is_empty() && beyond.iter().all(|(_, read)| *read > 1.0 - SMALLEST), "{beyond:?}");
    assert!(high <= 1.6 * low, "{} to {}", low, high);
}
