//! Markdown, and CSV of cells.

use pagewise_analysis::judge;
use pagewise_model::format::multiple;
use pagewise_report::{csv, markdown};

use crate::goldens::assert_golden;
use crate::{all, constructed, document, hostile};

#[test]
fn markdown_has_a_table_for_each_comparison() {
    assert_golden("complete.md", &document(&constructed::complete(), markdown::write));
    for (name, run) in all() {
        let text = document(&run, markdown::write);
        let judged = judge(&run);
        let comparisons = &judged.comparisons;
        let all: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
        let (heads, rows): (Vec<&str>, Vec<&str>) =
            all.iter().partition(|line| line.starts_with("| method ") || line.starts_with("| --- "));
        for line in rows.iter().chain(&heads) {
            assert!(line.ends_with(" |"), "{name}: {line}");
        }
        if name == "scan" {
            continue;
        }
        let cells: usize = comparisons.iter().map(|comparison| comparison.cells.len()).sum();
        assert_eq!(heads.len(), 2 * comparisons.len(), "{name}: {text}");
        assert_eq!(rows.len(), cells, "{name}: {text}");
    }
}

#[test]
fn markdown_of_hostile_names_is_text() {
    let text = document(&hostile(), markdown::write);
    assert!(!text.contains("<script") && !text.contains('\u{1b}'), "{text}");
    assert!(text.contains(r"&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("# ")), "{text}");
    assert!(!text.replace("\\`", "").contains('`'), "{text}");
}

/// A field with its fraction cut to nine digits: logarithms differ in the last one between C
/// libraries.
fn rounded(field: &str) -> String {
    match field.parse::<f64>() {
        Ok(value) if field.contains('.') => {
            format!("{value:.8e}").parse::<f64>().expect("a number").to_string()
        }
        _ => field.to_string(),
    }
}

#[test]
fn the_csv_of_cells_has_a_row_for_each() {
    let unclear = document(&constructed::unclear(), csv::cells::write);
    let rounded = |line: &str| line.split(',').map(rounded).collect::<Vec<_>>().join(",") + "\n";
    assert_golden("unclear.csv", &unclear.lines().map(rounded).collect::<String>());
    for (name, run) in all() {
        let text = document(&run, csv::cells::write);
        assert_eq!(text.lines().count(), 1 + run.header.plan.cells.len(), "{name}");
        let places = judge(&run).comparisons.iter().filter(|comparison| comparison.best.is_some()).count();
        assert_eq!(text.matches(",best,").count(), places, "{name}: {text}");
    }
    let text = document(&hostile(), csv::cells::write);
    assert!(
        !text.contains('\u{1b}') && text.lines().count() == 1 + constructed::killed().header.plan.cells.len()
    );
}

#[test]
fn cells_of_several_machines_can_be_put_below_each_other() {
    let mut run = constructed::method_tables();
    run.header.environment.host_name = Some("rack-a4".into());
    run.header.environment.started_unix_s = 1_700_000_000;
    let text = document(&run, csv::cells::write);
    let mut rows = csv_rows(&text);
    let names = rows.remove(0);
    let column = |name: &str| names.iter().position(|other| other == name).expect("a column");
    let (host, started, ratio) = (column("host"), column("started"), column("span_over_cache"));
    for row in &rows {
        assert_eq!((row[host].as_str(), row[started].as_str()), ("rack-a4", "2023-11-14T22:13:20Z"));
    }
    // One value for all methods at a size, as the label of their comparison has it.
    let (role, label) = (column("role"), column("conditions"));
    let of_ratio = |row: &&Vec<String>| row[role] == "measured" && row[label].contains("the cache");
    assert!(rows.iter().any(|row| of_ratio(&row)));
    for row in rows.iter().filter(of_ratio) {
        let of_label = &row[label];
        let ratio: f64 = row[ratio].parse().expect("a number");
        assert!(of_label.contains(&format!("data {} the cache", multiple(ratio))), "{of_label}: {ratio}");
    }
}

/// Rows of fields without quotes.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_string).collect()).collect()
}
