//! Sentences of the screen that depend on what else is on it.

use super::*;
use pagewise_analysis::Judged;
use pagewise_analysis::judge::expectations::{Fulfilment, JudgedExpectation};
use pagewise_analysis::judge::self_replay::SelfReplay;
use pagewise_model::Role;
use pagewise_report::line::Line;

#[test]
fn where_a_ring_is_best_the_screen_names_what_needs_no_rewrite() {
    let of_complete = screen_of(std::slice::from_ref(&constructed::complete()), 100);
    let second: Vec<&str> =
        of_complete.lines().filter(|line| line.contains("without a rewrite")).map(str::trim).collect();
    assert_eq!(second, ["without a rewrite: pread 12.7x slower, mmap 215x"], "{of_complete}");
    // More situations have one line each.
    assert!(!screen_of(&all_runs(), 100).contains("without a rewrite"));
}

#[test]
fn a_method_without_a_rival_has_its_figure() {
    let mut run = constructed::complete();
    let is_it = |cell: &Cell| cell.method.to_string() == "pread";
    run.header.plan.cells.retain(is_it);
    let cells: Vec<String> = run.header.plan.cells.iter().map(Cell::id).collect();
    run.samples.retain(|sample| cells.contains(&sample.cell));
    let text = screen_of(std::slice::from_ref(&run), 100);
    let of_it: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("pread: ")).collect();
    assert_eq!(of_it.len(), 2, "warm and cold: {text}");
    assert!(of_it.iter().all(|line| line.ends_with("reads/s")), "{text}");
}

#[test]
fn a_method_that_is_far_behind_says_what_it_read_in_vain() {
    // With cold reads alone nothing says which method to avoid.
    let mut run = constructed::complete();
    let is_cold = |cell: &Cell| cell.conditions.cache == CacheState::Cold;
    let cold: Vec<String> = run.header.plan.cells.iter().filter(|cell| is_cold(cell)).map(Cell::id).collect();
    run.samples.retain(|sample| cold.contains(&sample.cell));
    let text = screen_of(std::slice::from_ref(&run), 100);
    assert!(text.contains("  mmap reads 272 bytes from the device for each byte used\n"), "{text}");
}

#[test]
fn the_row_of_the_program_itself_is_marked() {
    let run = constructed::complete();
    let mut judged = judge(&run);
    let text = |judged: &Judged| {
        let lines = screen::lines(&[JudgedRun::of("run.jsonl", &run, judged)], 100);
        lines.iter().map(|line| line.text() + "\n").collect::<String>()
    };
    assert!(!text(&judged).contains("(the program)"));
    judged.self_replay = Some(SelfReplay {
        method: "pread".into(),
        cache: None,
        cached_bytes: None,
        program_bytes: Some(1),
        program_runs_bytes: vec![1],
        replayed_bytes: Some(1),
        difference: Some(0.0),
        unassigned_bytes: 0,
        stands: true,
        unknown: None,
        failed: None,
    });
    let marked = text(&judged);
    let rows = |marked: &str| marked.matches("pread (the program)").count();
    let advised = judged.advice.iter().filter(|advice| advice.recommended.as_deref() == Some("pread"));
    // A row of the bars, and each situation in which it is the one to use.
    assert_eq!(rows(&marked), 1 + advised.count(), "{marked}");
    assert!(marked.lines().any(|line| line.starts_with("  pread (the program)")), "{marked}");
    let advice = &mut judged.advice[0];
    advice.recommended = Some("mmap".into());
    let other = text(&judged);
    assert_eq!(rows(&other) + 1, rows(&marked), "{other}");
}

#[test]
fn an_open_expectation_names_the_samples_that_would_decide() {
    let run = constructed::complete();
    let mut judged = judge(&run);
    let cell = judged.cells.iter_mut().find(|cell| cell.role == Role::Measured).expect("a method");
    let open = JudgedExpectation {
        expectation: "p99<10ms".parse().expect("an expectation"),
        verdict: Fulfilment::Open,
        samples: 12,
        samples_needed: 12,
        samples_to_decide: Some(31),
        rejected: 1,
        rate_missed: 0,
        operations: 192,
        beyond: 0,
        found: Some(0.0),
        low: Some(0.0),
        high: Some(0.025),
    };
    let few = JudgedExpectation { samples: 7, samples_to_decide: None, rejected: 2, ..open.clone() };
    let at_limit = JudgedExpectation { samples_to_decide: None, ..open.clone() };
    let far = JudgedExpectation { samples_needed: 36_888, rejected: 0, ..few.clone() };
    cell.expected = vec![open, few, at_limit, far];
    let lines = screen::lines(&[JudgedRun::of("run.jsonl", &run, &judged)], 100);
    let text: Vec<String> = lines.iter().map(Line::text).collect();
    let text = text.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let found = "p99<10ms is open: 0 of 192 operations took 10 ms or longer, 0 % [0 %, 2.5 %], and 1 % may";
    for end in [
        "; 31 samples like these would decide (--rounds 31); 1 sample failed a check, and what it shows is not in it",
        "; it needs 12 samples (--rounds) and has 7; 2 samples failed a check, and what they show is not in it",
        "; it needs 36,888 samples (more than a run can have) and has 7",
    ] {
        assert!(text.contains(&format!("{found}{end}")), "{end}: {text}");
    }
    assert_eq!(text.matches(found).count(), 4, "{text}");
}

#[test]
fn the_answer_is_one_screen() {
    assert_golden("screen-80.txt", screen_of(&all_runs(), 80).as_bytes());
    let others =
        [constructed::killed(), constructed::unclear(), constructed::settings(), constructed::workers()];
    let alone = all_runs().into_iter().chain(others).map(|run| vec![run]);
    for runs in alone.chain([all_runs()]) {
        for width in [80, 100, 140] {
            let text = screen_of(&runs, width);
            assert!(text.lines().count() <= screen::MOST_LINES, "{text}");
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= width.max(80), "{widest} of {width}:\n{text}");
            assert!(text.contains("All numbers: pagewise report run-0.jsonl"), "{text}");
        }
    }
}

#[test]
fn emphasis_is_the_only_thing_a_terminal_obeys() {
    let mut run = constructed::complete();
    run.header.environment.host_name = Some("evil\u{1b}[2J\nhost".to_string());
    let judged = judge(&run);
    let path = "run\u{1b}[31m.jsonl";
    let lines = screen::lines(&[JudgedRun::of(path, &run, &judged)], 80);
    let shown = |coloured: bool| {
        let mut out = Vec::new();
        let mut printed = Printed::new(&mut out, Escape::Shown);
        printed.lines(&lines, coloured).expect("memory");
        printed.flush().expect("memory");
        String::from_utf8(out).expect("text")
    };
    let (plain, coloured) = (shown(false), shown(true));
    assert!(!plain.contains('\u{1b}') && plain.contains(r"evil\u{1b}[2J\u{a}host"), "{plain}");
    assert!(coloured.contains("\u{1b}[1mWhat to use\u{1b}[0m"), "{coloured}");
    let bare = ["1", "2", "31", "0"]
        .iter()
        .fold(coloured, |text, code| text.replace(&format!("\u{1b}[{code}m"), ""));
    assert!(!bare.contains('\u{1b}'), "{bare}");
}
