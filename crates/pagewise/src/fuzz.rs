//! Fuzzed plans and command lines: parsed, resolved on machines of several kinds and printed, or
//! refused with one sentence.

use clap::Parser;
use pagewise_fuzz::{Campaign, lines};
use pagewise_lab::plan::machine::Machine;
use pagewise_lab::plan::resolve::{Variant, resolve};
use pagewise_lab::plan::{Layer, QUESTIONS, Size, Threads, estimate, text};
use pagewise_lab::planned::document;
use pagewise_model::plan::FileIdentity;
use pagewise_model::random::Random;
use pagewise_model::{Bytes, CpuList, Environment, Plan, Source, WorkerChoices};

use crate::arguments::{Arguments, Command};
use crate::extras::WORKERS;

/// Memory for one plan: 5,000 cells take a few MiB.
const DATA_BYTES: u64 = 96 << 20;
/// Cells of one run, without ceilings and controls.
const MOST_CELLS: usize = 5_000;

/// Plans with features that the shipped ones do not use.
const PLANS: [&str; 4] = [
    "workload = [\"random-read\", \"append\"]\nmethods = [\"mmap\", \"pwrite\"]\nthreads = [1, \"cpus\"]\n\
     read_size = [\"4KiB\", \"16KiB\"]\nreads_per_op = [1, 16]\nalign = \"1B\"\nrecord_size = \"100B\"\npasses = 2\n\
     sync = [\"none\", \"every:1MiB\"]\nrounds = 11\nsample = \"150ms\"\nseed = 7\n",
    "[random-read]\nmethods = [\"mmap:random+prefetch=4\", \"pread\"]\nmemory = [\"64MiB\", \"none\"]\nspan = [\"0.5x\", \"2x\"]\n\
     skew = [\"uniform\", \"zipf:0.99\"]\ndependent = [true, false]\ncache = [\"warm\", \"cold-start\"]\n\
     [quick]\nrounds = 7\n[full]\nrounds = 33\n[also]\nworkload = \"scan\"\n",
    "device_cap = [\"microsd\", \"read-iops=2000,read-bandwidth=50MiB/s\"]\nreadahead = [\"128KiB\", \"none\"]\n\
     cpus = [\"0-1\", \"3\"]\nnuma = [\"same\", \"0\"]\ndescriptor = [\"shared\", \"per-thread\"]\n\
     consume = [\"touch\", \"sum\"]\nfile_size = [\"1GiB\", \"64MiB\"]\nceilings = false\n",
    "workload = \"fill\"\nin_memory = true\nblock_size = [\"128B\", \"4KiB\"]\nfile_size = \"8191TiB\"\nthreads = 1\n",
];

/// Command lines, one a line.
const COMMAND_LINES: &str = "\
--quick --dir /data --budget 60s --json
scan app.log --budget 90s --cache warm,cold
cliff /data --memory 64m --quick
read --read-size 4k,64K --file-size 1g
run read --quick --dir /data --cache cold,warm --threads 1,cpus --json
run read --file index.bin --evict --methods mmap:random+prefetch,pread --read-size 4KiB,64KiB
run scan --full --dry-run --consume lines,sum --rounds 11 --sample 200ms --seed 3
run append --record-size 100B,1KiB --passes 2 --sync none,end,every:1MiB --no-ceilings
run fill --block-size 128B --file-size 1GiB --memory 64MiB
run cliff --memory 256MiB --span 0.5x,2x --skew zipf:0.99 --dependent --drop-caches
run plan.toml --device-cap microsd --readahead 128KiB,8MiB --cpus 0-3 --numa same --descriptor per-thread
run --resume --out big.jsonl --worker mine='./reader --fast' --jdk /opt/jdk --jvm-args -Xmx1g --stall
report one.jsonl two.jsonl --csv=samples --out out.csv
report one.jsonl --markdown
report one.jsonl --vmstat
doctor --dir /data --json
conformance --dir /data --json -- ./reader --its-flags
clean";

struct Ground {
    environment: Environment,
    workers: WorkerChoices,
    random: Random,
}

impl Ground {
    /// Draw a machine.
    fn draw(random: &mut Random) -> Self {
        let size = |random: &mut Random| Bytes((1 << 20) << random.below(24));
        let environment = Environment {
            cpus: 1 << random.below(8),
            page_bytes: 4096 << (random.below(3) * 2),
            memory_bytes: (random.below(4) > 0).then(|| size(random)),
            memory_available_bytes: (random.below(4) > 0).then(|| size(random)),
            last_level_cache_bytes: (random.below(4) > 0).then(|| size(random)),
            direct_alignment_bytes: (random.below(2) > 0).then_some(512),
            ..Environment::default()
        };
        let mut workers = WorkerChoices::default();
        if random.below(4) == 0 {
            workers.commands.insert("mine".into(), "./reader".into());
        }
        Self { environment, workers, random: random.clone() }
    }

    fn machine(&mut self) -> Machine<'_> {
        let cpus = (0..self.environment.cpus).collect();
        Machine {
            replay: None,
            environment: &self.environment,
            free_bytes: self.random.next_u64() >> self.random.below(64),
            write_pace: (self.random.below(2) == 0).then(|| self.random.next_u64() >> 30),
            fresh_seed: 9,
            online_cpus: CpuList::new(cpus).expect("a CPU"),
            numa_nodes: vec![0],
            least_memory_bytes: 4 << 20,
            no_device: (self.random.below(2) == 0).then(|| "it lies in memory".to_string()),
            drop_caches: false,
            workers: &self.workers,
            offered: WORKERS,
        }
    }

    fn source(&mut self) -> Source {
        if self.random.below(4) > 0 {
            return Source::Dataset { directory: "/data".into() };
        }
        let file_bytes = Bytes(self.random.next_u64() >> (1 + self.random.below(63)));
        let identity = FileIdentity { device: 1, inode: 2, file_bytes, modified_ns: 3 };
        Source::File {
            path: "/data/file".into(),
            evict: self.random.below(2) == 0,
            identity,
            directory: None,
            others: Vec::new(),
        }
    }
}

/// Check the properties of every plan that is run.
#[track_caller]
fn check(plan: &Plan, typed: &str) {
    assert!(!plan.cells.is_empty() && plan.cells.len() <= 20 * MOST_CELLS, "{typed}");
    let stored = serde_json::to_string(plan).expect("json");
    assert_eq!(serde_json::from_str::<Plan>(&stored).ok().as_ref(), Some(plan), "{typed}");
    for cell in &plan.cells {
        let conditions = &cell.conditions;
        assert!(conditions.span_bytes <= conditions.file_bytes && conditions.file_bytes.0 > 0, "{typed}");
        assert!(conditions.threads > 0 && conditions.op_bytes() > 0, "{typed}");
    }
    estimate::duration_ns(plan);
    assert!(!document(plan, &[]).lines(80).is_empty(), "{typed}");
}

/// Check that an error is one sentence, whatever was typed.
#[track_caller]
fn check_refusal(error: &anyhow::Error) {
    assert!(!format!("{error:#}").is_empty());
}

#[test]
fn changed_plans_are_resolved_or_refused() {
    let plans: Vec<&str> = QUESTIONS.iter().map(|(_, text)| *text).chain(PLANS).collect();
    let campaign = Campaign {
        test: "fuzz::changed_plans_are_resolved_or_refused",
        target: "plans",
        data_bytes: DATA_BYTES,
    };
    campaign.run(|case| {
        let random = &mut case.random;
        let mut draw = || plans[random.below(plans.len() as u64) as usize];
        let (plan, donor) = (draw(), draw());
        let typed = match random.below(40) {
            0 => long_lists(random),
            _ => lines::change_often(random, plan, donor),
        };
        case.input(typed.as_bytes());
        let parsed = match text::parse("test", &typed) {
            Ok(parsed) => parsed,
            Err(error) => return check_refusal(&error),
        };
        let variants = [Variant::Standard, Variant::Quick, Variant::Full];
        let variant = variants[case.random.below(3) as usize];
        let mut ground = Ground::draw(&mut case.random);
        let source = ground.source();
        let parsed = if matches!(source, Source::File { .. }) { parsed.for_own_file() } else { parsed };
        match resolve(&parsed, variant, &Layer::default(), source, &ground.machine()) {
            Ok(plan) => check(&plan, &typed),
            Err(error) => check_refusal(&error),
        }
    });
}

/// Axes of plausible length each, whose product no machine can hold.
fn long_lists(random: &mut Random) -> String {
    let list = |from: u64, count: u64, unit: &str| {
        let items: Vec<String> = (from..from + count).map(|item| format!("\"{item}{unit}\"")).collect();
        format!("[{}]", items.join(","))
    };
    let count = 2 + random.below(400);
    let workload = ["random-read", "append", "fill"][random.below(3) as usize];
    format!(
        "workload = \"{workload}\"\nread_size = {}\nreads_per_op = {}\nalign = {}\nrecord_size = {}\nblock_size = {}\nsync = {}\n\
         memory = {}\nreadahead = {}\nfile_size = {}\nspan = {}\n",
        list(1, count, "B"),
        list(1, count, "").replace('"', ""),
        list(1, count, "B"),
        list(1, count, "B"),
        list(1, count, "B"),
        list(1, count, "KiB").replace("[\"", "[\"every:").replace(",\"", ",\"every:"),
        list(64, count, "MiB"),
        list(1, count, "MiB"),
        list(100, count, "MiB"),
        list(1, count, "MiB"),
    )
}

#[test]
fn changed_command_lines_are_taken_or_refused() {
    let typed: Vec<&str> = COMMAND_LINES.lines().collect();
    let campaign = Campaign {
        test: "fuzz::changed_command_lines_are_taken_or_refused",
        target: "command-lines",
        data_bytes: DATA_BYTES,
    };
    campaign.run(|case| {
        let random = &mut case.random;
        let mut draw = || typed[random.below(typed.len() as u64) as usize];
        let (line, donor) = (draw(), draw());
        let line = if random.below(8) == 0 {
            format!("{line} {}", donor.split_once(' ').map_or("", |(_, rest)| rest))
        } else {
            lines::change_often(random, line, donor)
        };
        case.input(line.as_bytes());
        for word in line.split(' ') {
            let _ = word.parse::<Threads>();
            if let Ok(Size::Times(thousandths)) = word.parse::<Size>() {
                assert!((1..=1_000_000).contains(&thousandths), "{word}");
            }
        }
        match Arguments::try_parse_from(std::iter::once("pagewise").chain(line.split(' '))) {
            Ok(Arguments { command: Some(Command::Measure(question)), .. }) => {
                let plan = text::parse("test", QUESTIONS[0].1).expect("a shipped question");
                let mut ground = Ground::draw(&mut case.random);
                let source = ground.source();
                match resolve(
                    &plan,
                    Variant::Standard,
                    &question.arguments().layer(),
                    source,
                    &ground.machine(),
                ) {
                    Ok(plan) => check(&plan, &line),
                    Err(error) => check_refusal(&error),
                }
            }
            Ok(_) => {}
            Err(error) => assert!(!error.render().to_string().is_empty()),
        }
    });
}
