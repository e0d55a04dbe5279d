//! Resolved and refused plans.

mod actors;
mod amounts;
mod rates;
mod workers;

use pagewise_model::plan::FileIdentity;

use pagewise_model::Content;

use pagewise_model::{CpuList, Environment};

use super::*;
use crate::plan::{QUESTIONS, Sampling, text};
use workers::{OFFERED, no_workers};

fn environment() -> Environment {
    Environment {
        cpus: 4,
        page_bytes: 4096,
        memory_available_bytes: Some(Bytes::gib(16)),
        last_level_cache_bytes: Some(Bytes::mib(32)),
        ..Environment::default()
    }
}

fn machine(environment: &Environment) -> Machine<'_> {
    Machine {
        replay: None,
        environment,
        free_bytes: 100 << 30,
        write_pace: None,
        fresh_seed: 9,
        online_cpus: CpuList::new(vec![0, 1, 2, 3]).expect("four"),
        numa_nodes: vec![0],
        least_memory_bytes: 4 << 20,
        no_device: None,
        drop_caches: false,
        workers: no_workers(),
        offered: OFFERED,
    }
}

fn dataset() -> Source {
    Source::Dataset { directory: "/data".into() }
}

fn file(evict: bool) -> Source {
    let identity = FileIdentity { device: 1, inode: 2, file_bytes: Bytes::mib(64), modified_ns: 3 };
    Source::File { path: "/data/file".into(), evict, identity, others: Vec::new(), directory: None }
}

fn resolve_text(text: &str, source: Source) -> Result<Plan> {
    let environment = environment();
    let machine = machine(&environment);
    resolve(&text::parse("test", text)?, Variant::Standard, &Layer::default(), source, &machine)
}

fn refused(text: &str) -> String {
    resolve_text(text, dataset()).expect_err(text).to_string()
}

/// The overview's plan on a machine of four CPUs.
fn quick_plan() -> Plan {
    question(Variant::Quick, Sampling::default()).expect("a shipped question")
}

fn question(variant: Variant, sampling: Sampling) -> Result<Plan> {
    let (name, text) = QUESTIONS[0];
    let environment = environment();
    let machine = machine(&environment);
    let chosen = Layer { sampling, ..Layer::default() };
    resolve(&text::parse(name, text)?, variant, &chosen, dataset(), &machine)
}

/// The plan of a shipped question on that machine.
pub(crate) fn resolved(name: &str, variant: Variant, chosen: &Layer) -> Plan {
    let (_, shipped) = QUESTIONS.iter().find(|(known, _)| *known == name).expect("a shipped question");
    let text = text::parse(name, shipped).expect("a plan");
    let environment = environment();
    resolve(&text, variant, chosen, dataset(), &machine(&environment)).expect("resolved")
}

fn measured(plan: &Plan) -> Vec<String> {
    plan.cells.iter().filter(|cell| cell.role == Role::Measured).map(|cell| cell.method.to_string()).collect()
}

#[test]
fn an_absurd_matrix_is_not_multiplied_out() {
    let list = |unit: &str| {
        let items: Vec<String> = (1..=3000).map(|item| format!("\"{item}{unit}\"")).collect();
        items.join(",")
    };
    // 27,000,000,000 kinds of reads of 48 bytes each.
    let counts = list("").replace('"', "");
    let reads = format!("read_size = [{0}]\nalign = [{0}]\nreads_per_op = [{counts}]", list("B"));
    assert!(refused(&reads).starts_with("the matrix has at least "), "{}", refused(&reads));
    let settings = format!("memory = [{0}]\nreadahead = [{0}]\nfile_size = \"1MiB\"", list("MiB"));
    assert!(refused(&settings).starts_with("the matrix has at least "), "{}", refused(&settings));
}

#[test]
fn sizes_that_no_disk_has_are_estimated() {
    let plan = resolve_text(
        "file_size = [\"8388607TiB\", \"8388606TiB\", \"8388605TiB\"]\nrounds = 10000",
        dataset(),
    );
    let plan = plan.expect("held against the disk later");
    assert_eq!(crate::plan::estimate::duration_ns(&plan), u64::MAX);
}

#[test]
fn any_list_is_an_axis() {
    let plan = resolve_text(
        "workload = \"random-read\"\nmethods = [\"mmap\", \"pread\"]\nthreads = [1, \"cpus\"]\nread_size = [\"4KiB\", \"16KiB\"]",
        dataset(),
    )
    .expect("plan");
    assert_eq!(measured(&plan).len(), 8);
    assert_eq!(plan.comparisons().len(), 4);
    let of = |conditions: &&Conditions| (conditions.threads, conditions.thread_per_cpu);
    assert_eq!(plan.comparisons().iter().map(of).collect::<Vec<_>>(), [1, 1, 4, 4].map(|n| (n, n == 4)));
    // A number that is asked for too stands for both.
    let plan = resolve_text("workload = \"random-read\"\nthreads = [\"cpus\", 4]", dataset()).expect("plan");
    assert_eq!(plan.comparisons().iter().map(of).collect::<Vec<_>>(), [(4, false)]);
}

#[test]
fn every_comparison_of_a_full_run_has_one_control() {
    assert!(
        quick_plan().cells.iter().all(|cell| cell.role != Role::Control),
        "it would take the time of a method"
    );
    let plan = question(Variant::Full, Sampling::default()).expect("a shipped question");
    for conditions in plan.comparisons() {
        let controls = plan
            .cells
            .iter()
            .filter(|cell| cell.role == Role::Control && cell.conditions == *conditions)
            .map(|cell| cell.method.to_string());
        assert_eq!(controls.collect::<Vec<_>>(), ["pread"]);
    }
}

#[test]
fn cells_have_names_of_their_own() {
    let plan = quick_plan();
    let mut ids: Vec<String> = plan.cells.iter().map(Cell::id).collect();
    ids.sort();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn ceilings_are_those_of_the_sizes_that_are_issued() {
    let ceilings = |cache: &str, method: &str| {
        let text = format!("workload = \"random-read\"\nmethods = \"{method}\"\ncache = \"{cache}\"");
        let plan = resolve_text(&text, dataset()).expect("plan");
        let ceilings = plan.cells.iter().filter(|cell| cell.role == Role::Ceiling);
        ceilings
            .map(|cell| format!("{} {}", cell.method, cell.conditions.reads().expect("reads").read_bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(ceilings("warm", "pread"), ["anonymous 16KiB"]);
    assert_eq!(ceilings("warm", "pread:direct").len(), 3);
    assert_eq!(
        ceilings("cold", "mmap:random"),
        [
            "uring:direct+depth=32 16KiB",
            "uring:direct+depth=1 16KiB",
            "uring:direct+depth=32 4KiB",
            "uring:direct+depth=1 4KiB",
            "uring:direct+depth=8 1MiB"
        ]
    );
}

#[test]
fn the_dataset_is_large_against_the_cache_and_small_against_the_machine() {
    let size_at = |last_level: Bytes, available: Bytes, free: Bytes, write_pace| {
        let environment = Environment {
            last_level_cache_bytes: Some(last_level),
            memory_available_bytes: Some(available),
            ..environment()
        };
        default_file_size(&Machine { free_bytes: free.0, write_pace, ..machine(&environment) })
    };
    let size = |last_level, available, free| size_at(last_level, available, free, None);
    assert_eq!(size(Bytes::mib(32), Bytes::gib(64), Bytes::gib(64)), Bytes::gib(1));
    assert_eq!(size(Bytes::mib(300), Bytes::gib(64), Bytes::gib(64)), Bytes::mib(1200));
    assert_eq!(size(Bytes::mib(300), Bytes::gib(1), Bytes::gib(64)), Bytes::mib(256));
    assert_eq!(size(Bytes::mib(300), Bytes::gib(64), Bytes::gib(2)), Bytes::mib(512));
    assert_eq!(size_at(Bytes::mib(32), Bytes::gib(64), Bytes::gib(64), Some(20 << 20)), Bytes::mib(160));
}

#[test]
fn the_command_line_is_above_the_variant_and_the_variant_above_the_plan() {
    let text = "methods = \"mmap\"\nthreads = 1\nrounds = 9\n[random-read]\nmethods = \"pread\"\n[quick]\nrounds = 8\n[quick.random-read]\nmethods = \"uring\"";
    let text = text::parse("test", text).expect("plan");
    let environment = environment();
    let machine = machine(&environment);
    let resolved =
        |variant, chosen: &Layer| resolve(&text, variant, chosen, dataset(), &machine).expect("plan");
    let standard = resolved(Variant::Standard, &Layer::default());
    assert_eq!((standard.rounds, measured(&standard)), (9, vec!["pread".to_string(), "mmap".to_string()]));
    let quick = resolved(Variant::Quick, &Layer::default());
    assert_eq!((quick.rounds, measured(&quick)), (8, vec!["uring:depth=32".to_string(), "mmap".to_string()]));
    let methods = Some(vec!["pread:direct".parse().expect("method")]);
    let chosen = Layer { axes: Axes { methods, ..Axes::default() }, ..Layer::default() };
    let typed = resolved(Variant::Quick, &chosen);
    assert_eq!(measured(&typed), ["pread:direct", "pread:direct"]);
}

#[test]
fn a_trial_has_too_few_rounds_for_a_verdict_and_no_more() {
    let text = text::parse("test", "methods = \"pread\"").expect("plan");
    let environment = environment();
    let machine = machine(&environment);
    let trial = |variant, rounds| {
        let sampling = Sampling { rounds: Some(rounds), is_trial: true, ..Sampling::default() };
        resolve(&text, variant, &Layer { sampling, ..Layer::default() }, dataset(), &machine)
    };
    for variant in [Variant::Standard, Variant::Quick, Variant::Full] {
        let plan = trial(variant, 4).expect("a plan");
        assert_eq!(plan.rounds, 4);
        assert!(plan.cells.iter().all(|cell| cell.role != Role::Control), "nothing is compared");
        for rounds in [0, 5, 33] {
            let refused = trial(variant, rounds).expect_err("refused").to_string();
            assert_eq!(refused, format!("{rounds} rounds: write 1 to 4, since a trial has no verdict"));
        }
    }
}

#[test]
fn a_file_of_the_user_is_left_as_it_is_unless_its_cache_is_named() {
    let plan = resolve_text("methods = \"pread\"", file(false)).expect("plan");
    assert!(plan.cells.iter().all(|cell| cell.conditions.cache == CacheState::AsIs));
    assert_eq!(plan.dataset_bytes(), Bytes(0));
    let error = resolve_text("cache = \"cold\"", file(false)).expect_err("not allowed");
    assert_eq!(
        error.to_string(),
        "a run that begins with an empty page cache, or with a part of the file in it, evicts your file from the page cache, now and \
         between samples, and other programs that read the file slow down then"
    );
    assert!(resolve_text("cache = \"cold\"", file(true)).is_ok());
    let error = resolve_text("file_size = \"1GiB\"", file(false)).expect_err("not together");
    assert!(error.to_string().contains("your own file has its size"));
}

#[test]
fn what_cannot_be_measured_is_refused_in_one_sentence() {
    assert_eq!(refused("threads = 0"), "0 threads read nothing: write 1 or more");
    assert!(refused("threads = 5000").contains("at most 1024"));
    assert_eq!(
        refused("file_size = \"1MiB\"\nread_size = \"2MiB\""),
        "a read of 2MiB is larger than the span of 1MiB"
    );
    assert!(refused("file_size = \"1MiB\"\nspan = \"2MiB\"").contains("larger than the file"));
    assert!(refused("read_size = \"0B\"").contains("reads nothing"));
    assert!(refused("align = \"0B\"").contains("write 1B"));
    assert!(refused("reads_per_op = 0").contains("1 to 65536"));
    assert!(refused("file_size = \"0B\"").contains("holds nothing"));
    assert!(refused("rounds = 5").contains("7 to 10000"));
    assert!(refused("sample = \"10us\"").contains("1ms to 3600s"));
    assert!(refused("file_size = \"1MiB\"\ncache = \"cold\"\nthreads = 2").contains("a quarter of the span"));
    assert!(
        refused("file_size = \"1TiB\"\nread_size = \"1GiB\"\nreads_per_op = 1\nthreads = 1024")
            .contains("memory")
    );
    let threads: Vec<String> = (1..=1000).map(|count| count.to_string()).collect();
    let text = format!("threads = [{0}]\nreads_per_op = [{0}]", threads.join(", "));
    assert!(refused(&text).contains("the matrix has"), "{}", refused(&text));
}

#[test]
fn the_same_value_twice_is_one_cell() {
    let plan = resolve_text(
        "methods = [\"pread\", \"pread\"]\nworkload = [\"random-read\", \"random-read\"]",
        dataset(),
    );
    assert_eq!(measured(&plan.expect("plan")), ["pread"]);
}

/// A sample above a memory limit takes long, so that fewer cells are measured unless more are asked
/// for.
#[test]
fn a_memory_limit_leaves_out_what_does_not_depend_on_it() {
    let states = |variant, text: &str| {
        let chosen = text::parse("typed", &format!("memory = \"128MiB\"\n{text}")).expect("a layer").base;
        let plan = resolved("read", variant, &chosen);
        let mut states: Vec<String> = plan
            .comparisons()
            .iter()
            .map(|conditions| format!("{} {}", conditions.cache, conditions.threads))
            .collect();
        states.sort_unstable();
        states.dedup();
        states.join(", ")
    };
    assert_eq!(states(Variant::Standard, ""), "warm 1");
    assert_eq!(states(Variant::Quick, ""), "warm 1");
    assert_eq!(states(Variant::Standard, "cache = [\"warm\", \"cold\"]\nthreads = 2"), "cold 2, warm 2");
    assert_eq!(states(Variant::Full, ""), "cold 1, cold 4, warm 1, warm 4");
    let plan = resolved("read", Variant::Standard, &Layer::default());
    assert!(plan.comparisons().iter().any(|conditions| conditions.cache == CacheState::Cold), "no limit");
}

#[test]
fn updates_under_a_memory_limit_are_of_a_file_that_is_not_cached() {
    let chosen = text::parse("typed", "memory = \"32MiB\"").expect("a layer").base;
    let plan = resolved("update", Variant::Standard, &chosen);
    let measured = plan.cells.iter().filter(|cell| cell.role == Role::Measured);
    let caches: Vec<CacheState> = measured.map(|cell| cell.conditions.cache).collect();
    assert!(!caches.is_empty() && caches.iter().all(|cache| *cache == CacheState::Cold), "{caches:?}");
}

const LIMITED: &str = "workload = \"random-read\"\nmethods = [\"mmap\", \"pread\"]\nmemory = \"128MiB\"\n";

#[test]
fn multiples_are_of_the_cache_under_the_limit_and_share_a_file() {
    let plan =
        resolve_text(&format!("{LIMITED}threads = [1, 4]\nspan = [\"0.5x\", \"1x\", \"4x\"]"), dataset());
    let plan = plan.expect("plan");
    let spans: Vec<u64> = plan.comparisons().iter().map(|conditions| conditions.span_bytes.0 >> 20).collect();
    assert_eq!(spans, [63, 63, 125, 125, 500, 500]);
    assert_eq!(plan.datasets(), [(Content::Random, Bytes::mib(500))]);
    let fits: Vec<bool> = plan.comparisons().iter().map(|conditions| conditions.fits_memory()).collect();
    assert_eq!(fits, [true, true, false, false, false, false]);
    assert!(refused("workload = \"random-read\"\nspan = \"0.5x\"").contains("needs a memory limit"));
    for nonsense in ["0x", "-1x", "x", "nanx", "1e9x"] {
        let text = format!("{LIMITED}span = \"{nonsense}\"");
        assert!(text::parse("test", &text).is_err(), "{nonsense} was taken");
    }
}

#[test]
fn what_is_measured_besides_shares_the_file() {
    let text = "workload = \"random-read\"\nmethods = \"jvm/pread\"\nmemory = \"256MiB\"\nspan = [\"0.5x\", \"2x\"]\n\
                [also]\ncache = \"cold-start\"\nspan = \"0.5x\"";
    let plan = resolve_text(text, dataset()).expect("plan");
    let states: Vec<(CacheState, u64)> = plan
        .comparisons()
        .iter()
        .map(|conditions| (conditions.cache, conditions.span_bytes.0 >> 20))
        .collect();
    // 256 MiB less a JVM, which native methods compared with it leave unused too.
    assert_eq!(states, [(CacheState::Warm, 95), (CacheState::Warm, 380), (CacheState::ColdStart, 95)]);
    assert_eq!(plan.datasets().len(), 1);
}

#[test]
fn settings_of_the_machine_are_axes_and_none_leaves_them() {
    let plan = resolve_text(
        "workload = \"random-read\"\nmethods = \"pread\"\nmemory = [\"none\", \"256MiB\"]\n\
         device_cap = [\"none\", \"microsd\", \"read-iops=5,read-bandwidth=1MiB/s\"]\nreadahead = \"128KiB\"\ncpus = \"0-1\"",
        dataset(),
    )
    .expect("plan");
    assert_eq!(plan.comparisons().len(), 6);
    let untouched = resolve_text("workload = \"random-read\"\nmemory = \"none\"", dataset()).expect("plan");
    assert!(untouched.cells.iter().all(|cell| cell.conditions.host_settings.is_untouched()));
}

#[test]
fn what_the_machine_cannot_be_set_to_is_refused() {
    let with = |setting: &str| refused(&format!("workload = \"random-read\"\n{setting}"));
    let least = "a memory limit of 2MiB is too small for a worker here: the smallest that works is 5MiB";
    assert_eq!(with("memory = \"2MiB\""), least);
    assert!(with("cpus = \"0-9\"").starts_with("CPU 4 is not online here: write CPUs of 0-3"));
    assert!(with("numa = \"7\"").starts_with("NUMA node 7 has no memory here: there is only 0"));
    assert!(with("readahead = \"100B\"").contains("not a whole number of pages"));
    assert!(with("memory = \"64MiB\"\nspan = \"2x\"\nnuma = \"same\"").contains("use --cache warm"));
    assert!(with("memory = \"64MiB\"\ncache = \"as-is\"").contains("not charged to the worker"));
    assert!(with("cache = \"cold\"\nskew = \"zipf:0.99\"").contains("a cold sample has none twice"));
    let sequential = refused("workload = \"sequential-read\"\ndependent = true");
    assert!(sequential.starts_with("sequential reads do not depend on each other"));
    let environment = Environment { memory_bytes: Some(Bytes::mib(512)), ..environment() };
    let resolve_on = |machine: &Machine<'_>, text: &str| {
        resolve(
            &text::parse("test", text).expect(text),
            Variant::Standard,
            &Layer::default(),
            dataset(),
            machine,
        )
        .expect_err(text)
        .to_string()
    };
    let text = "workload = \"random-read\"\nmemory = \"1GiB\"";
    assert_eq!(
        resolve_on(&machine(&environment), text),
        "a memory limit of 1GiB is above this machine\'s memory of 512MiB"
    );
    let in_memory =
        Machine { no_device: Some("tmpfs keeps its files in memory".into()), ..machine(&environment) };
    let text = "workload = \"random-read\"\ndevice_cap = \"emmc\"";
    assert_eq!(
        resolve_on(&in_memory, text),
        "the cap emmc needs a block device that can be capped: tmpfs keeps its files in memory"
    );
}

#[test]
fn data_that_a_capped_cold_sample_would_use_up_are_refused() {
    let of_text = |cap: &str, size: &str, more: &str| {
        let text =
            format!("workload = \"random-read\"\ndevice_cap = \"{cap}\"\nfile_size = \"{size}\"\n{more}");
        resolve_text(&text, dataset()).map(|_| ()).map_err(|error| error.to_string())
    };
    let of = |cap: &str, size: &str, cache: &str| {
        of_text(cap, size, &format!("methods = \"pread\"\ncache = \"{cache}\""))
    };
    let refusal = "under the cap emmc a cold sample of 1.05 s reads 110 MiB, and of 881MiB it may read 110 MiB: use \
                   882MiB or more";
    assert_eq!(of("emmc", "881MiB", "cold"), Err(refusal.to_string()));
    assert_eq!(of("emmc", "882MiB", "cold"), Ok(()));
    assert_eq!(of("emmc", "64MiB", "warm"), Ok(()));
    let by_requests = of("read-iops=2000", "256MiB", "cold").expect_err("reads of 16 KiB");
    assert!(by_requests.ends_with("it may read 32 MiB: use 263MiB or more"), "{by_requests}");
    assert_eq!(of("read-iops=2000,read-bandwidth=10MiB/s", "256MiB", "cold"), Ok(()));
    let by_pages = "methods = \"mmap:random\"\ncache = \"cold\"\nceilings = false";
    assert_eq!(of_text("read-iops=2000", "128MiB", by_pages), Ok(()));
}

#[test]
fn ones_own_file_must_leave_the_cache_to_be_limited() {
    let text = format!("{LIMITED}cache = \"warm\"");
    assert!(
        resolve_text(&text, file(false))
            .expect_err("kept")
            .to_string()
            .contains("evicts your file from the page cache")
    );
    assert!(resolve_text(&text, file(true)).is_ok());
}

#[test]
fn a_search_compares_windows_of_prefetch_at_one_size_first() {
    let text = "workload = \"random-read\"\nmemory = \"128MiB\"\nspan = [\"0.5x\", \"1.5x\", \"4x\"]\ncrossing_percent = 5\n\
                methods = [\"mmap\", \"mmap:random+prefetch=8\", \"mmap:random+prefetch=32\"]";
    let plan = resolve_text(text, dataset()).expect("plan");
    let search = plan.search.as_ref().expect("search");
    assert_eq!((search.tolerance_thousandths, &*search.prefetch_windows), (50, &[8, 32][..]));
    assert_eq!(measured(&plan).len(), 3 + 2);
    assert!(refused("workload = \"random-read\"\ncrossing_percent = 5").contains("needs a memory limit"));
}

#[test]
fn a_search_has_controls_only_in_full() {
    let text = "workload = \"random-read\"\nmemory = \"128MiB\"\nspan = [\"0.5x\", \"4x\"]\ncrossing_percent = 5\n\
                rounds = 7\nmethods = [\"mmap\", \"pread\"]";
    let (plan, environment) = (text::parse("test", text).expect("a plan"), environment());
    let controls = |variant| {
        let resolved = resolve(&plan, variant, &Layer::default(), dataset(), &machine(&environment));
        resolved.expect("a plan").cells.iter().filter(|cell| cell.role == Role::Control).count()
    };
    assert_eq!((controls(Variant::Standard), controls(Variant::Quick), controls(Variant::Full)), (0, 0, 2));
}

#[test]
fn a_limit_that_leaves_no_cache_is_no_file_of_nothing() {
    let text = |limit: &str, span: &str, method: &str| {
        refused(&format!("memory = \"{limit}\"\nspan = \"{span}\"\nmethods = \"{method}\"\nthreads = 1"))
    };
    let none = text("64MiB", "0.5x", "jvm/pread");
    assert_eq!(
        none,
        "a memory limit of 64MiB leaves 0B of page cache next to a worker that takes about 64MiB, too little for a multiple \
         of it: write a larger limit"
    );
    assert!(text("4MiB", "0.01x", "pread").contains("too little for a multiple of it"));
    assert!(resolve_text("memory = \"128MiB\"\nspan = \"0.5x\"\nmethods = \"jvm/pread\"", dataset()).is_ok());
}

#[test]
fn each_sync_has_each_call_once() {
    let plan = |sync: &str, calls: &str| {
        let text = format!(
            "workload = \"append\"\nmethods = [\"pwrite\", \"mmap\"]\nfile_size = \"1MiB\"\n\
             sync = {sync}\nsync_call = {calls}\nthreads = [1]\n"
        );
        let plan = resolve_text(&text, dataset())?;
        let of = |cell: &Cell| (cell.conditions.work.to_string(), cell.method.to_string());
        let measured = plan.cells.iter().filter(|cell| cell.role == Role::Measured);
        anyhow::Ok(measured.map(of).map(|(work, method)| format!("{work} {method}")).collect::<Vec<_>>())
    };
    let cells = plan("[\"none\", \"every:4KiB\"]", "[\"usual\", \"fsync\"]").expect("a plan");
    let expected = [
        "100B,passes=1 pwrite",
        "100B,passes=1 mmap",
        "100B,passes=1,sync=every:4KiB pwrite",
        "100B,passes=1,sync=every:4KiB mmap",
        "100B,passes=1,sync=every:4KiB,sync-call=fsync pwrite",
        "100B,passes=1,sync=every:4KiB,sync-call=fsync mmap",
    ];
    assert_eq!(cells, expected);
    let phrase = plan("[\"none\"]", "[\"O_DSYNC\"]").expect_err("nothing is synced").to_string();
    assert!(phrase.starts_with("O_DSYNC syncs nothing without a time for it"), "{phrase}");
    let phrase = plan("[\"every:4KiB\"]", "[\"dsync\"]").expect_err("no call");
    let phrase = format!("{phrase:#}");
    assert!(phrase.contains("RWF_DSYNC, O_DSYNC, usual"), "{phrase}");
}

#[test]
fn several_threads_write_only_records_that_they_commit() {
    let of = |workload: &str, sync: &str| {
        let text = format!(
            "workload = \"{workload}\"\nmethods = [\"pwrite\"]\nthreads = [4]\nsync = [\"{sync}\"]\nfile_size = \"1MiB\"\n"
        );
        resolve_text(&text, dataset())
    };
    let plan = of("append", "commit").expect("group commit");
    let measured = plan.cells.iter().find(|cell| cell.role == Role::Measured).expect("a cell");
    assert_eq!((measured.conditions.threads, measured.conditions.fixed_operations()), (4, None));
    assert!(!measured.conditions.is_one_shot());
    let phrase = of("append", "end").expect_err("one thread").to_string();
    assert!(phrase.ends_with("; with --sync commit records of several threads share a sync"), "{phrase}");
    assert!(of("fill", "commit").expect_err("no records").to_string().starts_with("fill has no records"));
}

#[test]
fn the_ceiling_of_syncs_has_pieces_of_whole_blocks() {
    let ceilings = |sync: &str| -> Vec<String> {
        let text = format!(
            "workload = \"append\"\nmethods = [\"pwrite\"]\nrecord_size = \"200B\"\nsync = [\"{sync}\"]\nfile_size = \"1MiB\"\n"
        );
        let plan = resolve_text(&text, dataset()).expect("a plan");
        let ceilings = plan.cells.iter().filter(|cell| cell.role == Role::Ceiling);
        ceilings.map(|cell| format!("{} {}", cell.method, cell.conditions.work)).collect()
    };
    let memory = "anonymous 200B,passes=1";
    let flushes =
        |size: &str| format!("pwrite:direct+buffer={size} {size},passes=1,sync=commit,sync-call=fdatasync");
    assert_eq!(ceilings("end"), [memory]);
    assert_eq!(ceilings("every:64KiB"), [memory, &flushes("64KiB")]);
    assert_eq!(ceilings("commit"), [flushes("4KiB")]);
    assert_eq!(ceilings("every:2MiB"), [memory], "larger than the file");
}
