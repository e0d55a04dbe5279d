//! `docs/columns.md`, made from the registries of columns and the documentation of the fields that
//! they show. `PAGEWISE_BLESS=1` writes it anew.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use pagewise_model::sample::Measurement;
use pagewise_model::{Evidence, HostSettings};
use pagewise_report::csv::{Described, cells, samples};
use schemars::schema_for;
use serde_json::Value;

const HEAD: &str = "# Columns

Made from the registries of columns; a test holds it. An empty field is an unknown number, or one
that does not apply. A field of several numbers separates them by spaces, with `?` for an unknown
one. Units: ns are nanoseconds, B are bytes, a share is 1 for all.
";

/// Meaning of a column, and origin of its values.
struct Meaning {
    text: String,
    source: String,
}

/// Meanings by column.
#[derive(Default)]
struct Dictionary(HashMap<String, Meaning>);

impl Dictionary {
    fn add_all(&mut self, described: impl IntoIterator<Item = Described>, source: &str) {
        for (name, meaning) in described {
            let meaning = Meaning { text: meaning.to_string(), source: source.to_string() };
            assert!(self.0.insert(name.to_string(), meaning).is_none(), "{name} is there twice");
        }
    }

    /// Add the fields of a structure, and of its parts with their names as prefixes, as they are
    /// named in a row.
    fn add_schema(&mut self, root: &Value, part: &Value, prefix: &str, source: &str) {
        for (key, field) in part["properties"].as_object().expect("a structure") {
            let text = field["description"].as_str().unwrap_or_default().replace('\n', " ");
            match (referred(root, field), referred(root, &field["items"])) {
                (Some(inner), _) => {
                    self.add_schema(root, inner, &format!("{prefix}{key}_"), &first_sentence(&text))
                }
                (_, Some(inner)) => {
                    let prefix = format!("{prefix}{}_", key.trim_end_matches('s'));
                    self.add_schema(root, inner, &prefix, &first_sentence(&text));
                }
                _ => {
                    let meaning = Meaning { text, source: source.to_string() };
                    self.0.insert(format!("{prefix}{key}"), meaning);
                }
            }
        }
    }

    fn table(&self, columns: &[String]) -> String {
        let mut text = "| column | unit | meaning | source |\n| --- | --- | --- | --- |\n".to_string();
        for column in columns {
            let Meaning { text: meaning, source } =
                self.0.get(column).unwrap_or_else(|| panic!("{column} has no meaning"));
            assert!(!meaning.is_empty(), "{column} has no meaning");
            let meaning = meaning.replace('|', "\\|").replace("[`", "`").replace("`]", "`");
            let _ = writeln!(text, "| `{column}` | {} | {meaning} | {source} |", unit(column));
        }
        text
    }
}

/// The structure that a field refers to; `None` for a plain value.
fn referred<'a>(root: &'a Value, field: &'a Value) -> Option<&'a Value> {
    let options = field["anyOf"].as_array().into_iter().flatten();
    let found = std::iter::once(field).chain(options).find_map(|one| one["$ref"].as_str())?;
    let inner = root.pointer(found.trim_start_matches('#')).expect("a definition");
    inner.get("properties").map(|_| inner)
}

fn first_sentence(text: &str) -> String {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_string()
}

/// The unit in a column's name.
fn unit(column: &str) -> &'static str {
    let name = ["_median", "_low", "_high"].iter().fold(column, |name, end| name.trim_end_matches(end));
    match name {
        "ratio" | "span_over_cache" => "ratio",
        _ if name.ends_with("_ns") => "ns",
        _ if name.ends_with("bytes_per_second") => "B/s",
        _ if name.ends_with("_per_second") => "1/s",
        _ if name.ends_with("_bytes") => "B",
        _ if name.ends_with("_pages") => "pages",
        _ if name.ends_with("_share") => "share",
        _ => "",
    }
}

fn header(write: impl FnOnce(&mut Vec<u8>)) -> Vec<String> {
    let mut out = Vec::new();
    write(&mut out);
    let text = String::from_utf8(out).expect("text");
    text.lines().next().expect("a header").split(',').map(str::to_string).collect()
}

fn document() -> String {
    let mut of_cells = Dictionary::default();
    of_cells.add_all(cells::columns(), "judged from the run file");
    let mut of_samples = Dictionary::default();
    of_samples.add_all(samples::CONDITIONS.iter().chain(samples::AXES).copied(), "plan");
    of_samples.add_all(samples::OUTCOME.iter().copied(), "supervisor and checks");
    of_samples.add_all(samples::HEARTBEATS.iter().copied(), "worker");
    let measurement = schema_for!(Measurement).to_value();
    of_samples.add_schema(&measurement, &measurement, "", "worker");
    let evidence = schema_for!(Evidence).to_value();
    of_samples.add_schema(&evidence, &evidence, "", "supervisor");
    let settings = schema_for!(HostSettings).to_value();
    for column in HostSettings::COLUMNS {
        let field = &settings["properties"][column.trim_start_matches("set_")];
        let text =
            field["description"].as_str().unwrap_or_else(|| panic!("{column} has no field")).to_string();
        for dictionary in [&mut of_cells, &mut of_samples] {
            let meaning = Meaning { text: text.clone(), source: "plan".to_string() };
            dictionary.0.insert(column.to_string(), meaning);
        }
    }
    let cells = header(|out| cells::write(out, &[]).expect("memory"));
    let samples = header(|out| samples::write(out, &[]).expect("memory"));
    let fields = evidence["properties"].as_object().expect("an object").keys();
    let has_column = |field: &&String| {
        let one = field.trim_end_matches('s');
        samples.iter().any(|column| column.starts_with(one))
    };
    let missing: Vec<&String> = fields.filter(|field| !has_column(field)).collect();
    assert_eq!(missing, ["observed"], "evidence_columns() leaves them out; failures have what was observed");
    format!(
        "{HEAD}\n## A row for each cell\n\n`pagewise report RUN --csv`. Figures are of valid samples only.\n\n{}\n\
         ## A row for each sample\n\n`pagewise report RUN --csv=samples`. Every attempt is there, valid or not.\n\n{}",
        of_cells.table(&cells),
        of_samples.table(&samples)
    )
}

#[test]
fn every_column_has_its_meaning_in_the_dictionary() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/columns.md");
    let made = document();
    if std::env::var_os("PAGEWISE_BLESS").is_some() {
        std::fs::write(&path, &made).expect("write");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
    assert!(
        made == kept,
        "docs/columns.md is not of these columns (PAGEWISE_BLESS=1 writes it): {differs:?}"
    );
}
