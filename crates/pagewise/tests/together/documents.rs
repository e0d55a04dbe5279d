//! Documents of run files: each appears when it is complete, and none takes the place of another
//! file.

use std::fs;

use crate::support::Place;

/// A short run.
const SHORT: [&str; 10] = [
    "read",
    "--workload=random-read",
    "--methods=pread,mmap",
    "--threads=1",
    "--cache=warm",
    "--file-size=1MiB",
    "--no-ceilings",
    "--rounds=7",
    "--sample=1ms",
    "--out=run.jsonl",
];

/// A place with the file of a short run.
fn place() -> Place {
    let place = Place::new();
    place.run(&[&SHORT[..], &["--no-html"]].concat());
    place
}

#[test]
fn a_document_appears_whole_or_not_at_all() {
    let place = place();
    for form in ["--csv", "--csv=samples", "--markdown", "--json", "--answer"] {
        let printed = place.run(&["report", "run.jsonl", form]).expect_code(0).stdout;
        let written = place.run(&["report", "run.jsonl", form, "--out=document"]).expect_code(0);
        assert_eq!(written.stdout, "", "{form}");
        assert_eq!(fs::read_to_string(place.file("document")).expect("read"), printed, "{form}");
        let refused = place.run(&["report", "run.jsonl", form, "--out=document"]).expect_code(2);
        assert_eq!(refused.stderr, "pagewise: document exists: name another file\n", "{form}");
        fs::remove_file(place.file("document")).expect("remove");
    }
    let names = |place: &Place| {
        let mut names: Vec<_> = fs::read_dir(place.file("."))
            .expect("list")
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let before = names(&place);
    place.run(&["report", "run.jsonl", "--csv", "--out=none/document"]).expect_code(2);
    assert_eq!(names(&place), before);
}

#[test]
fn forms_exclude_one_another() {
    let place = place();
    for forms in [["--csv", "--json"], ["--markdown", "--answer"], ["--vmstat", "--csv=samples"]] {
        let refused = place.run(&["report", "run.jsonl", forms[0], forms[1]]).expect_code(2);
        assert!(refused.stderr.contains("cannot be used with"), "{refused:?}");
    }
    let refused = place.run(&["report", "run.jsonl", "--csv=rows"]).expect_code(2);
    assert!(refused.stderr.contains("cells, samples"), "{refused:?}");
}

#[test]
fn plots_are_files_of_their_own() {
    let place = place();
    let printed = place.run(&["report", "run.jsonl", "--svg=plots"]).expect_code(0).stdout;
    let names: Vec<&str> = printed.lines().collect();
    assert!(names.contains(&"plots/read-rounds-1.svg"), "{printed}");
    for name in &names {
        let text = fs::read_to_string(place.file(name)).expect("read");
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"), "{name}");
    }
    assert_eq!(fs::read_dir(place.file("plots")).expect("list").count(), names.len());
    let refused = place.run(&["report", "run.jsonl", "--svg=plots"]).expect_code(2);
    assert!(refused.stderr.contains(".svg exists: name another directory"), "{refused:?}");
    let refused = place.run(&["report", "run.jsonl", "--svg=run.jsonl"]).expect_code(2);
    assert!(refused.stderr.contains("run.jsonl"), "{refused:?}");
}

#[test]
fn a_page_is_one_file_with_the_command_that_made_it() {
    let place = place();
    let written = place.run(&["report", "run.jsonl", "--html=page.html"]).expect_code(0);
    assert_eq!((written.stdout.as_str(), written.stderr.as_str()), ("", ""));
    let page = fs::read_to_string(place.file("page.html")).expect("read");
    assert_eq!(place.run(&["report", "run.jsonl", "--html=-"]).expect_code(0).stdout, page);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains("<pre>pagewise read --workload=random-read --methods=pread,mmap "), "{page}");
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let refused = place.run(&["report", "run.jsonl", "--html=page.html"]).expect_code(2);
    assert_eq!(refused.stderr, "pagewise: page.html exists: name another file\n");
    for path in ["none/page.html", "."] {
        let refused = place.run(&["report", "run.jsonl", "--html", path]).expect_code(2);
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    }
}

#[test]
fn the_page_of_a_run_is_written_beside_it() {
    let place = Place::new();
    let run = place.run(&SHORT);
    assert_eq!(run.stdout.lines().last(), Some("The same as a page: run.html"), "{run:?}");
    let page = fs::read_to_string(place.file("run.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert_eq!(place.entries(), ["run.html", "run.jsonl"].map(String::from).into());
    // Resumed, the same run has the newer page.
    fs::write(place.file("run.html"), format!("{page}<!-- older -->")).expect("write");
    place.run(&["read", "--resume", "--out=run.jsonl"]);
    assert_eq!(fs::read_to_string(place.file("run.html")).expect("a page"), page);
    assert_eq!(place.entries(), ["run.html", "run.jsonl"].map(String::from).into());
}

#[test]
fn a_run_without_a_page_has_none_when_it_is_resumed() {
    let place = place();
    let resumed = place.run(&["read", "--resume", "--out=run.jsonl"]);
    assert!(!resumed.stdout.contains("page:") && !place.file("run.html").exists(), "{resumed:?}");
}

#[test]
fn a_page_takes_the_place_of_no_other_file_and_loses_no_run() {
    let place = Place::new();
    place.run(&SHORT);
    fs::remove_file(place.file("run.html")).expect("a page");
    let without = place.run(&["read", "--resume", "--out=run.jsonl", "--no-html"]);
    assert!(!without.stdout.contains("page:") && !place.file("run.html").exists(), "{without:?}");
    let json = place.run(&["read", "--resume", "--out=run.jsonl", "--json"]);
    assert!(json.judged()["run"].is_object() && !place.file("run.html").exists(), "{json:?}");
    let other = (pagewise_page::PAGE.mark)(&[]);
    for text in ["mine", &format!("<!doctype html>{other}")] {
        place.write("run.html", text);
        let resumed = place.run(&["read", "--resume", "--out=run.jsonl"]).expect_code(without.code());
        assert!(
            resumed.stderr.ends_with("warning: there is no page: run.html exists: name another file\n"),
            "{resumed:?}"
        );
        assert_eq!(resumed.stdout, without.stdout);
        assert_eq!(fs::read_to_string(place.file("run.html")).expect("read"), text);
    }
    fs::remove_file(place.file("run.html")).expect("remove");
    std::os::unix::fs::symlink("elsewhere", place.file("run.html")).expect("a link");
    place.run(&["read", "--resume", "--out=run.jsonl"]).expect_code(without.code());
    assert!(!place.file("elsewhere").exists());
}
