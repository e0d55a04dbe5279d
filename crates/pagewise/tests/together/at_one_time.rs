//! Machines that measured at one time: `compare --together`.

use serde_json::Value;

use super::made_up::{MadeUp, began_together};
use crate::support::schema::expect_schema;
use crate::support::{self, Place, expect_refused, load, skipped};

/// `method` in a row of the table: what stands in its columns.
fn row<'a>(printed: &'a str, method: &str) -> Vec<&'a str> {
    let rows = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.into_iter().find(|row| row.first() == Some(&method)).unwrap_or_else(|| panic!("{printed}"))
}

#[test]
fn rates_of_machines_at_one_time_are_added_up() {
    let place = Place::new();
    place.write("a.jsonl", began_together("a", 0).file());
    place.write(
        "b.jsonl",
        MadeUp { methods: &[("mmap", 20_000), ("pread", 40_000)], ..began_together("b", 10) }.file(),
    );
    let found = place.run(&["compare", "--together", "a.jsonl", "b.jsonl"]).expect_code(0);
    let printed = &found.stdout;
    assert!(printed.starts_with("2 machines measured at the same time for 4."), "{printed}");
    assert!(printed.contains("from 2027-01-15 08:00 UTC; they began 10 ms apart.\n"), "{printed}");
    assert!(printed.contains("clock: in step, off by 1 ms at most\n"), "{printed}");
    assert!(!printed.contains('!'), "no warning: {printed}");
    // 16 KiB in 10 and in 20 us: 1562 and 781 MiB/s, less what rounds differ by. The clocks may be
    // off by 1 ms each: of 190.4 ms in each round 188.4 are certain.
    let mmap = row(printed, "mmap");
    assert_eq!((mmap[1], mmap[6], mmap[7]), ("2,337", "14", "0"), "{printed}");
    assert_eq!((mmap[2], mmap[3]), ("1.32", "s"), "{printed}");
    assert!(printed.contains("While one machine measured pread, another measured the same 95 % of the time"));
    assert!(printed.contains("2 of 2 methods have a sum of the rates of all machines.\n"), "{printed}");
    assert!(printed.ends_with("column the median of its samples.\n"), "{printed}");
    let markdown = place.run(&["compare", "--together", "--markdown", "a.jsonl", "b.jsonl"]).expect_code(0);
    assert!(markdown.stdout.contains("| method | sum, MiB/s | at once | a | b | samples | left out |\n"));
    let json = place.run(&["compare", "--together", "--json", "a.jsonl", "b.jsonl"]).expect_code(0).judged();
    expect_schema(&place, "compare-together", &json);
    assert_eq!(json["began_apart_ns"], 10_000_000);
    assert_eq!(json["situations"][0]["methods"][0]["machines"][1]["samples"], 7);
    // Many machines have no column each.
    std::fs::create_dir(place.file("more")).expect("a directory");
    for index in 0..6u64 {
        let host = ["c", "d", "e", "f", "g", "h"][index as usize];
        place.write(&format!("more/{host}.jsonl"), began_together(host, index).file());
    }
    let many = place.run(&["compare", "--together", "more", "a.jsonl", "b.jsonl"]).expect_code(0);
    let headings = row(&many.stdout, "method");
    assert_eq!(
        headings,
        ["method", "sum,", "MiB/s", "at", "once", "least", "most", "samples", "left", "out"]
    );
    assert!(many.stdout.contains("779 (b)  1,558 (h)"), "{}", many.stdout);
}

#[test]
fn machines_that_measured_other_methods_have_no_sum() {
    let place = Place::new();
    place.write("a.jsonl", began_together("a", 0).file());
    let turned = MadeUp { methods: &[("pread", 20_000), ("mmap", 10_000)], ..began_together("b", 0) };
    place.write("b.jsonl", MadeUp { started_unix_s: turned.started_unix_s + 1, ..turned }.file());
    let found = place.run(&["compare", "--together", "a.jsonl", "b.jsonl"]).expect_code(0);
    let printed = &found.stdout;
    assert_eq!(row(printed, "mmap")[1..3], ["–", "–"], "{printed}");
    let sentence = "While one machine measured mmap, another measured the same 0 % of the time and pread 100 %. \
                    All of them never measured it at once.";
    let joined = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains(sentence), "{printed}");
    assert!(printed.contains("Each run drew an order of its own: with one --seed"), "{printed}");
}

#[test]
fn runs_that_were_not_at_one_time_are_refused() {
    let place = Place::new();
    place.write("a.jsonl", began_together("a", 0).file());
    place.write("b.jsonl", began_together("b", 0).file());
    place.write("same-host.jsonl", MadeUp { started_unix_s: 1, ..began_together("a", 0) }.file());
    place.write("alone.jsonl", MadeUp { began_unix_ns: None, ..began_together("b", 0) }.file());
    place.write("late.jsonl", began_together("b", 6000).file());
    place.write("other.jsonl", MadeUp { plan: Some("ffffffff"), ..began_together("b", 0) }.file());
    place.write("old.jsonl", MadeUp { plan: None, ..began_together("b", 0) }.file());
    place.write("torn.jsonl", "{");
    for (words, sentence) in [
        ("a.jsonl", "--together needs the runs of two machines or more"),
        ("a.jsonl a.jsonl", "a.jsonl is named twice"),
        ("a.jsonl same-host.jsonl", "all runs are of the machine a: name runs of two machines or more"),
        ("a.jsonl alone.jsonl", "alone.jsonl did not begin at a time that was asked for"),
        ("a.jsonl late.jsonl", "the runs share no time: that of a ended "),
        ("a.jsonl other.jsonl", "a.jsonl and other.jsonl have different plans, 1a2b3c4d and ffffffff"),
        ("a.jsonl old.jsonl", "old.jsonl does not name its plan"),
        ("a.jsonl torn.jsonl", "torn.jsonl, line 1"),
        ("a.jsonl none.jsonl", "none.jsonl"),
        ("a.jsonl -- b.jsonl", "cannot be used with '--new <NEW>...'"),
        ("a.jsonl b.jsonl --by kernel", "'--by <FACT>'"),
        ("a.jsonl b.jsonl --all-of 2", "'--all-of <FILE|N>'"),
        ("a.jsonl b.jsonl --html page.html", "'--html <FILE>'"),
        ("a.jsonl b.jsonl --fail-on slower=5%", "'--fail-on <CONDITION>'"),
        ("a.jsonl b.jsonl --json --markdown", "'--markdown'"),
    ] {
        let words: Vec<&str> = ["compare", "--together"].into_iter().chain(words.split(' ')).collect();
        expect_refused(&place.run(&words), sentence);
    }
}

/// Two hosts of this machine, which begin at one moment.
#[test]
fn two_hosts_measure_at_one_time() {
    if !support::is_root() {
        return;
    }
    let places = [Place::new(), Place::new()];
    let at = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs() + 4;
    let words = format!(
        "read --file-size 4MiB --methods pread,mmap --cache warm --workload random-read --threads 1 --rounds 7 \
         --no-ceilings --seed 1 --no-html --out run.jsonl --start-at {at}"
    );
    let words: Vec<&str> = words.split(' ').collect();
    let hosts = ["node-a", "node-b"].iter().zip(&places).map(|(host, place)| {
        let mut command = support::on_host(host, &words);
        place.settle(&mut command);
        command.spawn()
    });
    let hosts: Vec<_> = hosts.collect();
    for (host, place) in hosts.into_iter().zip(&places) {
        let Ok(host) = host else { return skipped("unshare", "there is no unshare") };
        let finished = place.finish(host);
        if finished.code() == 77 {
            return skipped("uts-namespace", "the name of the host cannot be set");
        }
        assert!([0, 1].contains(&finished.code()), "{finished:?}");
    }
    let files = places.each_ref().map(|place| place.file("run.jsonl").display().to_string());
    let json = places[0].run(&["compare", "--together", "--json", &files[0], &files[1]]).expect_code(0);
    let json: Value = json.judged();
    expect_schema(&places[0], "compare-together", &json);
    let names = |index: usize| json["machines"][index]["machine"].as_str().map(str::to_string);
    assert_eq!((names(0).as_deref(), names(1).as_deref()), (Some("node-a"), Some("node-b")));
    assert_eq!(json["has_one_clock"], true, "{json}");
    let attempts = |method: &Value| -> u64 {
        let machines = method["machines"].as_array().expect("machines").iter();
        machines.map(|one| one["samples"].as_u64().expect("n") + one["left_out"].as_u64().expect("n")).sum()
    };
    let methods = json["situations"][0]["methods"].as_array().expect("methods");
    let shown: u64 = methods.iter().map(attempts).sum();
    let taken = places.each_ref().map(|place| load(&place.file("run.jsonl")).samples.len() as u64);
    assert_eq!(shown, taken[0] + taken[1]);
}
