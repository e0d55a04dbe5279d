//! An inspected program as text: what could not be seen, what its threads waited for, then its
//! files, what could not be attributed, and its threads.

mod verdicts;

use pagewise_model::format::{bytes, counted, grouped, multiple, percent, percent_down, processes, time};
use pagewise_model::inspection::{
    BroughtIn, Calls, InspectedFile, InspectedThread, Inspection, Mapped, Waits,
};
use pagewise_model::watched::ObservationKind;

use crate::document::{Block, Document};
pub use verdicts::Shown;
use verdicts::{lacks, name, unseen, unseen_waits, verdicts, words};

/// Files and threads that are usually shown.
pub const SHOWN: usize = 8;
/// The way to see the others of `inspect`.
pub const ALL: &str = "--all shows them";
/// The way to see those of a replay, as far as a run file keeps them.
pub const PAGE: &str = "the page has them";
/// A share whose upper bound is this or more, and whose lower bound is below the rest, could be
/// any.
const VACUOUS: f64 = 0.9;

/// The inspection.
pub fn document(inspection: &Inspection, shown: Shown<'_>) -> Document {
    let left_out = &inspection.left_out;
    let more = |hidden: usize, left_out: u64, what: &str| more(hidden, left_out, what, shown.others);
    let mut body = vec![Block::heading(3, head(inspection))];
    body.extend(unseen(inspection).into_iter().map(Block::remark));
    let doubts = [lost(inspection), unattributed(inspection), slowed(inspection)];
    body.extend(doubts.into_iter().flatten().map(Block::Warning));
    body.extend(verdicts(inspection, shown).into_iter().map(Block::paragraph));
    let (code, data): (Vec<&InspectedFile>, Vec<&InspectedFile>) =
        inspection.files.iter().partition(|file| file.code);
    let data: Vec<&InspectedFile> = data.into_iter().filter(|file| was_used(file)).collect();
    let named = significant(&data, inspection, shown.most);
    for file in &named {
        let facts = facts(file, inspection.page_bytes);
        let facts = facts.into_iter().map(|(name, text)| (name.to_string(), text));
        body.extend([Block::heading(4, title(file)), Block::facts(facts)]);
    }
    let rest = more(data.len() - named.len(), left_out.files, "file").into_iter();
    let rest = rest.chain(of_code(&code, left_out.files)).chain(others(inspection));
    let rest: Vec<Block> = rest.map(Block::paragraph).collect();
    if !rest.is_empty() {
        body.push(Block::heading(4, "Other files and accesses"));
    }
    body.extend(rest);
    let named = inspection.threads.len().min(shown.most);
    let threads = inspection.threads[..named].iter();
    let threads =
        threads.map(|thread| (format!("{} ({})", thread.thread, thread.name), of_thread(thread, inspection)));
    body.extend([Block::heading(4, "Threads"), Block::facts(threads)]);
    let hidden = inspection.threads.len() - named;
    body.extend(more(hidden, left_out.threads, "thread").map(Block::paragraph));
    Document { body, ..Document::default() }
}

/// At most so many files, without those that nobody waited for and that are less than 1 % of all
/// bytes, such as locales and modules of a runtime. The first one is always shown. Where calls are
/// not seen, all bytes are those that /proc counted.
fn significant<'a>(
    files: &[&'a InspectedFile],
    inspection: &Inspection,
    most: usize,
) -> Vec<&'a InspectedFile> {
    let page_bytes = inspection.page_bytes;
    let faulted =
        |file: &InspectedFile| file.mapping.as_ref().map_or(0, |mapping| mapping.faulted_pages * page_bytes);
    let bytes = |file: &InspectedFile| file.bytes().max(faulted(file));
    let all = files.iter().map(|file| bytes(file)).fold(0, u64::saturating_add);
    let all = all.max(inspection.totals.read_call_bytes.unwrap_or(0));
    let matters = |(index, file): &(usize, &&InspectedFile)| {
        most == usize::MAX || *index == 0 || file.waited_ns() > 0 || bytes(file) > all / 100
    };
    files.iter().enumerate().filter(matters).map(|(_, file)| *file).take(most).collect()
}

/// The number of hidden items, and the way to see them.
fn more(hidden: usize, left_out: u64, what: &str, others: Option<&str>) -> Option<String> {
    match (hidden as u64 + left_out, others) {
        (0, _) => None,
        (all, Some(others)) if left_out == 0 => Some(format!("{} more: {others}", counted(all, what))),
        (all, _) => Some(format!("{} more", counted(all, what))),
    }
}

fn head(inspection: &Inspection) -> String {
    let subject = &inspection.subject;
    let ended = subject.ended.as_ref().map_or(String::new(), |ended| format!(" · {ended}"));
    format!(
        "{} (process {}) · watched for {} · {} · {}{ended}",
        shortened(&subject.command),
        subject.process,
        time(inspection.watched_ns),
        processes(inspection.processes),
        counted(inspection.threads.len() as u64 + inspection.left_out.threads, "thread")
    )
}

/// The beginning of a command.
fn shortened(command: &str) -> String {
    const MOST: usize = 60;
    let first = command.lines().next().unwrap_or_default();
    match first.chars().count() > MOST || first.len() < command.len() {
        true => format!("{} …", first.chars().take(MOST).collect::<String>()),
        false => first.to_string(),
    }
}

fn lost(inspection: &Inspection) -> Option<String> {
    (!inspection.complete).then(|| match inspection.lost_records {
        0 => "incomplete: the kernel counted other numbers of events than were recorded; there is no verdict"
            .into(),
        lost => format!(
            "incomplete: {} found no room, so times and shares below are too low; there is no verdict",
            counted(lost, "record")
        ),
    })
}

/// Processes from which on watching them is what takes the time: each takes some milliseconds to be
/// begun.
const MANY_PROCESSES: u64 = 200;

/// Bytes that every program reads of its libraries.
const FEW_BYTES: u64 = 64 << 10;

/// The cost of watching a program that forks much.
fn slowed(inspection: &Inspection) -> Option<String> {
    (inspection.processes >= MANY_PROCESSES).then(|| {
        format!(
            "{} were watched, and to begin each takes the kernel some milliseconds: alone the command is faster. --no-calls takes less of it",
            processes(inspection.processes)
        )
    })
}

/// Named above all else, if it is more than what is known.
fn unattributed(inspection: &Inspection) -> Option<String> {
    let moved = |file: &InspectedFile| -> u64 {
        file.reads.iter().chain(&file.writes).map(|calls| calls.bytes).fold(0, u64::saturating_add)
    };
    let known = inspection.files.iter().map(moved).fold(0, u64::saturating_add);
    let unknown = inspection.unknown.map_or(0, |unknown| unknown.bytes);
    (unknown > known.max(FEW_BYTES)).then(|| {
        format!(
            "{} of {} that calls moved could not be assigned to a file: the descriptors were closed too soon",
            bytes(unknown),
            bytes(known.saturating_add(unknown))
        )
    })
}

fn title(file: &InspectedFile) -> String {
    let size = file.file_bytes.map(bytes);
    let direct = file.direct.then(|| "O_DIRECT".to_string());
    let facts = size.into_iter().chain(file.filesystem.clone()).chain(direct);
    facts.fold(name(file), |text, fact| format!("{text} · {fact}"))
}

fn was_used(file: &InspectedFile) -> bool {
    file.reads.is_some()
        || file.writes.is_some()
        || file.syncs.is_some()
        || file.prefaults.is_some()
        || file.mapping.is_some()
        || file.brought_in.is_some()
}

fn facts(file: &InspectedFile, page_bytes: u64) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.extend(file.reads.iter().map(|reads| ("reads", calls(reads))));
    facts.extend(file.writes.iter().map(|writes| ("writes", calls(writes) + &read_for(writes))));
    facts.extend(file.syncs.iter().map(|waits| ("syncs", waited(waits, waits.count))));
    facts.extend(file.prefaults.iter().map(|waits| ("prefaults", waited(waits, waits.count))));
    facts.extend(file.mapping.iter().map(|mapping| ("mapping", mapped(mapping, page_bytes))));
    let mapped = file.mapping.is_some();
    facts.extend(file.brought_in.iter().map(|brought| ("brought in", brought_in(brought, mapped))));
    facts
}

fn calls(calls: &Calls) -> String {
    let mut parts = vec![format!("{} of {}", counted(calls.count, "call"), bytes(calls.bytes))];
    if !calls.sizes.is_empty() {
        let sizes: Vec<String> = calls
            .sizes
            .iter()
            .map(|(size, count)| format!("{} of {}", grouped(*count), bytes(*size)))
            .collect();
        parts.push(format!("most often {}", sizes.join(", ")));
    }
    if calls.located > 0 {
        parts.push(format!("{} in order", percent(calls.in_order as f64 / calls.located as f64)));
    }
    parts.push(counted(calls.threads, "thread"));
    if calls.failed > 0 {
        parts.push(format!("{} failed", grouped(calls.failed)));
    }
    parts.extend(calls.in_calls_ns.map(|in_calls_ns| format!("{} in them", time(in_calls_ns))));
    parts.push(waited(&calls.waits, calls.count));
    parts.join("; ")
}

/// The reads that writes cause, of what they change a part of.
fn read_for(writes: &Calls) -> String {
    match writes.device_read_bytes {
        None | Some(0) => String::new(),
        Some(read) => format!("; {} were read from the device for them", bytes(read)),
    }
}

fn mapped(mapping: &Mapped, page_bytes: u64) -> String {
    let faults = mapping.minor_faults + mapping.major_faults;
    let mut parts = vec![
        format!(
            "{} major and {} over {}",
            grouped(mapping.major_faults),
            counted(mapping.minor_faults, "minor fault"),
            bytes(mapping.faulted_pages * page_bytes)
        ),
        format!("{} in order", percent(mapping.in_order as f64 / faults.max(1) as f64)),
        counted(mapping.threads, "thread"),
    ];
    if mapping.major_faults > 0 || mapping.waits.count > 0 {
        parts.push(waited(&mapping.waits, faults));
    }
    parts.join("; ")
}

/// `49 % of them waited, 124 ms in total (median 55 µs, longest 2 ms)`.
fn waited(waits: &Waits, of: u64) -> String {
    let (Some(median_ns), Some(longest_ns)) = (waits.median_ns, waits.longest_ns) else {
        return "none waited".to_string();
    };
    if (waits.count, of) == (1, 1) {
        return format!("waited {}", time(longest_ns));
    }
    if waits.count == 1 {
        return format!("waited once, {}", time(longest_ns));
    }
    let which = match (waits.count == of, of) {
        (true, 2) => "both".to_string(),
        (true, _) => "all".to_string(),
        _ => percent(waits.count as f64 / of as f64),
    };
    let p99 = waits.p99_ns.map_or(String::new(), |p99_ns| format!(", p99 {}", time(p99_ns)));
    format!(
        "{which} of them waited, {} in total (median {}{p99}, longest {})",
        time(waits.total_ns),
        time(median_ns),
        time(longest_ns)
    )
}

fn brought_in(brought: &BroughtIn, mapped: bool) -> String {
    let other = if mapped { "by faults" } else { "otherwise" };
    let mut parts = vec![match (brought.by_calls_bytes, brought.by_faults_bytes) {
        (0, faults) => format!("{} {other}", bytes(faults)),
        (calls, 0) => format!("{} by calls", bytes(calls)),
        (calls, faults) => {
            format!("{}: {} by calls, {} {other}", bytes(brought.bytes), bytes(calls), bytes(faults))
        }
    }];
    match brought.per_read {
        // A bound that excludes nothing is none.
        Some(share) if share > 0.99 && share < 1.0 => {}
        Some(share) if share < 1.0 => {
            parts.push(format!("at least {} of what was read was cached", percent_down(1.0 - share)))
        }
        Some(factor) if multiple(factor) == "1x" => parts.push("as much as was read".to_string()),
        Some(factor) => parts.push(format!("{} of what was read", multiple(factor))),
        None => {}
    }
    if let Some(factor) = brought.per_faulted.filter(|factor| *factor >= 1.5) {
        parts.push(format!("{} as much as the pages that faulted", multiple(factor)));
    }
    match (brought.untouched_at_least, brought.untouched_at_most) {
        (None, Some(most)) if most >= VACUOUS => {}
        (Some(least), Some(most)) if least < 1.0 - VACUOUS && most >= VACUOUS => {}
        (_, Some(0.0)) => parts.push("the program touched all that faults brought in".to_string()),
        (Some(least), Some(most)) if percent(least) == percent(most) => {
            parts.push(format!("the program never touched {} of it", percent(least)));
        }
        (Some(least), Some(most)) => {
            parts.push(format!("the program never touched {} to {} of it", percent(least), percent(most)));
        }
        (None, Some(most)) => parts.push(format!("the program never touched up to {} of it", percent(most))),
        _ => {}
    }
    if brought.again_bytes > 0 {
        parts.push(format!("{} had been evicted and came in again", bytes(brought.again_bytes)));
    }
    parts.join("; ")
}

/// The program and its libraries, together.
fn of_code(code: &[&InspectedFile], left_out: u64) -> Option<String> {
    let least = if left_out > 0 { "at least " } else { "" };
    let mappings = || code.iter().filter_map(|file| file.mapping.as_ref());
    let major: u64 = mappings().map(|mapping| mapping.major_faults).sum();
    let waited_ns: u64 = mappings().map(|mapping| mapping.waits.total_ns).sum();
    let brought: u64 =
        code.iter().filter_map(|file| file.brought_in.as_ref()).map(|brought| brought.bytes).sum();
    let files = counted(code.len() as u64, "file");
    let brought = if brought > 0 { format!(", {} brought in", bytes(brought)) } else { String::new() };
    let waited = if waited_ns > 0 { format!(" that waited {}", time(waited_ns)) } else { String::new() };
    (!code.is_empty()).then(|| {
        format!("Code of the program: {least}{files}; {}{waited}{brought}.", counted(major, "major fault"))
    })
}

/// Lines about accesses to no file, or to an unknown one.
fn others(inspection: &Inspection) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(other) = inspection.no_file.filter(|other| other.calls > 0) {
        let (calls, moved) = (counted(other.calls, "call"), bytes(other.bytes));
        parts.push(format!("Pipes, sockets, devices: {calls} of {moved}."));
    }
    if let Some(other) = inspection.unknown.filter(|other| other.descriptors + other.calls > 0) {
        parts.push(format!(
            "Not assigned to a file: {} of {} on {}, closed too soon.",
            counted(other.calls, "call"),
            bytes(other.bytes),
            counted(other.descriptors, "descriptor")
        ));
    }
    if let Some(requests) = inspection.ring_requests.filter(|requests| *requests > 0) {
        parts.push(format!(
            "io_uring: {}, whose files and offsets are not seen.",
            counted(requests, "request")
        ));
    }
    parts.extend(inspection.not_watched().map(|cut| format!("Not watched: {cut}.")));
    let totals = &inspection.totals;
    // A program that is over soon is not looked at after its beginning.
    if let (Some(device), Some(read @ 1..)) = (totals.device_read_bytes, totals.read_call_bytes) {
        parts.push(format!(
            "By /proc, when it was looked at last: {} read from devices, {} returned by calls.",
            bytes(device),
            bytes(read)
        ));
    }
    if !inspection.files.iter().any(|file| !file.code && was_used(file))
        && !lacks(inspection, ObservationKind::Calls)
    {
        parts.push("No other file was accessed.".to_string());
    }
    parts
}

fn of_thread(thread: &InspectedThread, inspection: &Inspection) -> String {
    let share = |part_ns: u64| percent(part_ns as f64 / thread.watched_ns.max(1) as f64);
    let mut parts = vec![time(thread.watched_ns)];
    for wait in thread.waits.iter().take(3) {
        let (of, file) = (words(wait.by).share_of, &inspection.files[wait.file]);
        parts.push(format!("{} in {of} {}", share(wait.waited_ns), name(file)));
    }
    if thread.waits.is_empty() && thread.blocked_elsewhere_ns + thread.preempted_ns == 0 {
        parts.push("no switch of it was seen: it slept or ran throughout".to_string());
        return parts.join("; ");
    }
    let elsewhere = if unseen_waits(inspection).is_some() {
        "blocked, reason not seen"
    } else {
        "blocked on something else"
    };
    parts.push(format!("{} {elsewhere}", share(thread.blocked_elsewhere_ns)));
    parts.push(format!("{} waiting for a CPU", share(thread.preempted_ns)));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::inspection::{By, FileWait};
    use pagewise_model::watched::Missing;

    fn recorded(json: &str) -> Inspection {
        serde_json::from_str(json).expect("an inspection")
    }

    /// A thread that waits for a mapping half of its time, and reads another file in order.
    fn inspection() -> Inspection {
        recorded(include_str!("../tests/inspections/server.json"))
    }

    fn text(inspection: &Inspection) -> String {
        document(inspection, Shown { most: SHOWN, replayed: &[], is_own: true, others: Some(ALL) })
            .lines(120)
            .iter()
            .map(|line| line.text() + "\n")
            .collect()
    }

    #[test]
    fn a_program_is_described_from_its_waits_to_its_threads() {
        let expected = "\
server --fast … (process 7) · watched for 1 ms · 1 process · 1 thread · it ended
  Not seen: accesses to mapped pages that raise no fault.
  Mapping of /data/a b.db: thread 7 (server) was blocked 50 % of the time in page faults; 16 bytes came in for each byte
    of the pages that faulted. This does not show whether another method is faster. Measure it: pagewise read '/data/a
    b.db' --workload random-read --read-size 4KiB --cache cold --evict

/data/a b.db
  mapping    2 major and 0 minor faults over 8 KiB; 0 % in order; 1 thread; both of them waited, 500 µs in total (median
               250 µs, longest 250 µs)
  brought in 128 KiB by faults; 16x as much as the pages that faulted; the program never touched 94 % of it

/data/log · 1 MiB
  reads      3 calls of 16 KiB; most often 2 of 8 KiB; 100 % in order; 1 thread; 1 failed; 300 ns in them; none waited

Threads
  7 (server) 1 ms; 50 % in faults of /data/a b.db; 0 % blocked on something else; 0 % waiting for a CPU
";
        assert_eq!(text(&inspection()), expected);
    }

    #[test]
    fn the_next_command_has_the_conditions_that_were_seen() {
        let phrase =
            |inspection: &Inspection| text(inspection).split_whitespace().collect::<Vec<_>>().join(" ");
        let mut seen = inspection();
        seen.subject.memory_limit_bytes = Some(128 << 20);
        let of_mapping = |faults: u64, in_order: u64, threads: u64| {
            let mut seen = seen.clone();
            let mapping = seen.files[0].mapping.as_mut().expect("a mapping");
            (mapping.major_faults, mapping.minor_faults) = (faults / 2, faults - faults / 2);
            (mapping.in_order, mapping.in_order_pages, mapping.threads) = (in_order, in_order, threads);
            phrase(&seen)
        };
        let random =
            "pagewise read '/data/a b.db' --workload random-read --read-size 4KiB --memory 128MiB --evict ";
        assert!(of_mapping(1000, 30, 1).contains(random), "{}", of_mapping(1000, 30, 1));
        // Values of 16 pages that lie anywhere are no pass, though most faults are in order.
        let values = "--workload random-read --read-size 64KiB --threads 3 --memory 128MiB --evict ";
        assert!(of_mapping(16_000, 15_000, 3).contains(values), "{}", of_mapping(16_000, 15_000, 3));
        let pass = "pagewise scan '/data/a b.db' --memory 128MiB --evict ";
        for (faults, in_order, threads) in [(20, 19, 1), (1000, 998, 2), (200_000, 199_900, 1)] {
            let phrase = of_mapping(faults, in_order, threads);
            assert!(phrase.contains(pass), "{phrase}");
        }
        // What is read by calls is replayed as it is.
        seen.threads[0].waits[0] = FileWait { file: 1, by: By::Reads, waited_ns: 500_000 };
        let command = "pagewise advise --memory 128MiB --file /data/log --evict -- COMMAND ";
        assert!(phrase(&seen).contains(command), "{}", phrase(&seen));
        seen.subject.started = true;
        seen.subject.command = "sqlite3 a.db 'select 1'".into();
        assert!(phrase(&seen).contains("--evict -- sqlite3 a.db 'select 1' "), "{}", phrase(&seen));
        let shown = Shown { most: SHOWN, replayed: &[], is_own: false, others: None };
        let of_run_file =
            document(&seen, shown).lines(120).iter().map(|line| line.text() + " ").collect::<String>();
        assert!(!of_run_file.contains("-- sqlite3"), "{of_run_file}");
        seen.threads[0].waits[0].by = By::Syncs;
        assert!(!phrase(&seen).contains("Measure it"), "{}", phrase(&seen));
    }

    #[test]
    fn files_that_do_not_matter_are_one_line() {
        let mut seen = inspection();
        let mut small = seen.files[1].clone();
        small.reads.as_mut().expect("reads").bytes = 100;
        for index in 0..5 {
            seen.files
                .push(InspectedFile { path: Some(format!("/usr/share/locale/{index}")), ..small.clone() });
        }
        let mut seen_faults = seen.files[0].mapping.clone();
        let faults = seen_faults.as_mut().expect("a mapping");
        (faults.major_faults, faults.waits) = (0, Waits::default());
        let phrase = text(&seen);
        assert!(phrase.contains("/data/log · 1 MiB") && !phrase.contains("locale"), "{phrase}");
        assert!(phrase.contains("5 files more: --all shows them"), "{phrase}");
        // Without calls a file has only its faults, and /proc has how much was read.
        for file in &mut seen.files {
            file.reads = None;
            file.mapping = seen_faults.clone();
            (file.prefaults, file.syncs) = (None, None);
        }
        seen.threads[0].waits.clear();
        assert!(text(&seen).contains("/locale/"), "each is as much as the others: {}", text(&seen));
        seen.totals.read_call_bytes = Some(300 << 20);
        assert!(!text(&seen).contains("/locale/"), "{}", text(&seen));
        assert!(text(&seen).contains("6 files more: --all shows them"), "{}", text(&seen));
        let all = document(&seen, Shown { most: usize::MAX, replayed: &[], is_own: true, others: Some(ALL) })
            .lines(120);
        assert_eq!(all.iter().filter(|line| line.text().contains("locale")).count(), 5);
    }

    #[test]
    fn a_bound_that_excludes_nothing_is_left_out() {
        let phrase = |at_least, at_most, per_read| {
            let mut seen = inspection();
            let brought = seen.files[0].brought_in.as_mut().expect("pages");
            (brought.untouched_at_least, brought.untouched_at_most) = (at_least, at_most);
            brought.per_read = per_read;
            text(&seen)
        };
        for (at_least, at_most) in [(None, Some(0.99)), (Some(0.0), Some(0.99))] {
            let phrase = phrase(at_least, at_most, Some(0.997));
            assert!(!phrase.contains("never touched") && !phrase.contains("was cached"), "{phrase}");
        }
        assert!(phrase(None, Some(0.4), None).contains("never touched up to 40 % of it"));
        assert!(phrase(Some(0.5), Some(0.99), None).contains("never touched 50 % to 99 % of it"));
        assert!(phrase(None, None, Some(0.75)).contains("at least 25 % of what was read was cached"));
        for factor in [1.0, 1.004] {
            assert!(phrase(None, None, Some(factor)).contains("; as much as was read"), "{factor}");
        }
        assert!(phrase(None, None, Some(1.25)).contains("; 1.25x of what was read"));
    }

    #[test]
    fn a_program_that_forks_much_is_slowed_and_that_is_reported() {
        let of = |processes| text(&Inspection { processes, ..inspection() });
        assert!(!of(MANY_PROCESSES - 1).contains("alone the command is faster"));
        assert!(of(3_000).contains("! 3,000 processes were watched, and to begin each"), "{}", of(3_000));
    }

    /// The wait began before the watch and did not end in it.
    #[test]
    fn a_thread_that_never_switched_is_not_said_to_run() {
        let seen = recorded(include_str!("../tests/inspections/sleeping.json"));
        let text = text(&seen);
        assert!(
            text.contains("7 (sleep)  1 ms; no switch of it was seen: it slept or ran throughout\n"),
            "{text}"
        );
    }

    #[test]
    fn what_is_incomplete_has_no_verdict_and_what_is_missing_its_reason() {
        let torn = text(&recorded(include_str!("../tests/inspections/torn.json")));
        assert!(torn.contains("incomplete: 2 records found no room"), "{torn}");
        assert!(!torn.contains("was blocked"), "{torn}");
        let mut blind = inspection();
        let closed = |kind| Missing { kind, reason: "closed; as root: open it".into() };
        blind.missing = vec![closed(ObservationKind::Calls), closed(ObservationKind::PageCache)];
        let phrase = "Not seen: calls that read and write; pages that come into the page cache: closed; as root: open it.";
        assert!(text(&blind).contains(phrase), "{}", text(&blind));
        // What a mapping waited for is known; what calls waited for is not.
        let phrase = text(&blind).split_whitespace().collect::<Vec<_>>().join(" ");
        let unknown = "Whether threads waited in reads, writes and syncs is unknown: that was not seen. Blocked for any reason: thread 7 (server), 50 % of its time.";
        assert!(
            phrase.contains(unknown) && phrase.contains("blocked 50 % of the time in page faults"),
            "{phrase}"
        );
        assert!(phrase.contains("0 % blocked, reason not seen"), "{phrase}");
        blind.threads[0].waits.clear();
        assert!(!text(&blind).contains("is unknown"), "too short to matter");
        assert!(text(&blind).contains("No thread waited in reads"));
        blind.threads[0].blocked_elsewhere_ns = 490_000;
        assert!(text(&blind).contains("(server), 49 % of its time"), "{}", text(&blind));
        assert!(!text(&blind).contains("No thread waited"), "{}", text(&blind));
        blind.missing.push(closed(ObservationKind::Faults));
        assert!(text(&blind).contains("What threads waited for was not seen: there is no verdict."));
    }
}
