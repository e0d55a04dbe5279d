//! The cases of one target, in a separate process: an abort, an endless loop or an excessive
//! allocation ends that process, and the test reports the case.
//!
//! The process is this test program again, with one test to run. It writes the number of each case
//! into a file before it begins, and limits its own data to what it had plus
//! [`Campaign::data_bytes`] (RLIMIT_DATA counts private writable memory since Linux 4.7), so code
//! that allocates by a number in the input is aborted.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pagewise_model::random::Random;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Default number of cases over all targets: a quarter of a minute of CPU time in a plain build,
/// and a million in a soak.
const USUAL_CASES: u64 = 4_000;

/// The targets with their share of the cases in thousandths, weighing the risk of each against the
/// cost of a case.
pub const TARGETS: [(&str, u64); 9] = [
    ("run-files", 60),
    ("verdicts", 20),
    ("plans", 120),
    ("command-lines", 60),
    ("words", 390),
    ("worker-lines", 100),
    ("judged-samples", 50),
    ("kernel-texts", 150),
    ("traces", 50),
];

/// Time limit of a case. Usual cases take milliseconds at most, so this holds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Interval of checks of the process.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of a failed process's output that are shown, from its end.
const SHOWN_BYTES: usize = 4000;

/// In a process of cases: the file for the number of the current case.
const MARK: &str = "PAGEWISE_FUZZ_MARK";
/// The file for the input of a repeated case.
const KEEP: &str = "PAGEWISE_FUZZ_KEEP";
const CASES: &str = "PAGEWISE_FUZZ_CASES";
const SEED: &str = "PAGEWISE_FUZZ_SEED";
const ONLY: &str = "PAGEWISE_FUZZ_ONLY";

/// All cases of one target.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The test's full name, as the test program knows it.
    pub test: &'static str,
    /// One of [`TARGETS`].
    pub target: &'static str,
    /// Memory that the cases may take beyond that in use when they begin.
    pub data_bytes: u64,
}

/// One case.
pub struct FuzzCase {
    /// Source of its random choices.
    pub random: Random,
    keep: Option<PathBuf>,
}

impl FuzzCase {
    /// Declare the input before it is parsed, so that a failing case can be examined.
    pub fn input(&self, bytes: &[u8]) {
        if let Some(path) = &self.keep {
            fs::write(path, bytes).expect("the input is kept");
        }
    }
}

/// End of a process of cases.
enum Ended {
    Well(String),
    Badly { how: String, case: u64, output: String },
}

impl Campaign {
    /// Run every case in a separate process; the test fails with the first failing case.
    ///
    /// # Panics
    /// If a case panics, aborts, hangs or takes too much memory, with its number and the path of
    /// its input.
    #[track_caller]
    pub fn run(&self, each: impl Fn(&mut FuzzCase)) {
        if let Some(mark) = std::env::var_os(MARK) {
            return self.run_here(Path::new(&mark), each);
        }
        match self.run_apart(None) {
            Ended::Well(said) => println!("{said}"),
            Ended::Badly { how, case, output } => {
                let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz");
                fs::create_dir_all(&directory).expect("a directory for inputs that failed");
                let input = directory.join(format!("{}-{}-{case}", self.target, seed()));
                self.run_apart(Some((case, &input)));
                panic!(
                    "{}: case {case} of seed {} {how}; its input is {}; repeat it with {SEED}={} {ONLY}={case}\n{output}",
                    self.target,
                    seed(),
                    input.display(),
                    seed(),
                );
            }
        }
    }

    /// Number of cases.
    fn cases(&self) -> u64 {
        let all = number(CASES).unwrap_or(USUAL_CASES);
        let share = TARGETS.iter().find(|(name, _)| *name == self.target).expect("a target of the list").1;
        (u128::from(all) * u128::from(share)).div_ceil(1000) as u64
    }

    fn run_here(&self, mark: &Path, each: impl Fn(&mut FuzzCase)) {
        self.limit();
        let mark = File::options().write(true).open(mark).expect("the mark");
        let (seed, only) = (seed(), number(ONLY));
        let cases = only.map_or(0..self.cases(), |only| only..only + 1);
        let stream = Random::for_purpose(seed, self.target).next_u64();
        let count = cases.end - cases.start;
        let began = cpu_time();
        let mut slowest = (Duration::ZERO, 0);
        for number in cases {
            mark.write_all_at(&number.to_le_bytes(), 0).expect("the mark");
            let keep = std::env::var_os(KEEP).filter(|_| only.is_some()).map(PathBuf::from);
            let mut case =
                FuzzCase { random: Random::new(stream ^ pagewise_model::random::mix(number)), keep };
            let started = cpu_time();
            each(&mut case);
            slowest = slowest.max((cpu_time().saturating_sub(started), number));
        }
        println!(
            "{MARK}: {}: {count} cases of seed {seed} in {:.1} s of CPU time, the slowest {:.1} ms (case {})",
            self.target,
            cpu_time().saturating_sub(began).as_secs_f64(),
            slowest.0.as_secs_f64() * 1e3,
            slowest.1
        );
    }

    /// Limit the data of this process, and disable core dumps.
    fn limit(&self) {
        let status = fs::read_to_string("/proc/self/status").expect("/proc");
        let kib = status.lines().find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix(" kB"));
        let now = kib.and_then(|kib| kib.trim().parse::<u64>().ok()).expect("VmData") * 1024;
        let bound = |resource, current| {
            let maximum = getrlimit(resource).maximum;
            setrlimit(resource, Rlimit { current: Some(current), maximum }).expect("setrlimit");
        };
        bound(Resource::Data, now + self.data_bytes);
        bound(Resource::Core, 0);
    }

    /// Start this program again for the cases, or for one of them, and wait for its end.
    fn run_apart(&self, only: Option<(u64, &Path)>) -> Ended {
        let mark = tempfile::NamedTempFile::new().expect("a mark");
        let output = tempfile::tempfile().expect("a file for what is printed");
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args([self.test, "--exact", "--nocapture", "--test-threads=1"])
            .env(MARK, mark.path())
            // A backtrace takes more memory than available.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("the file"))
            .stderr(output.try_clone().expect("the file"));
        if let Some((case, input)) = only {
            command.env(ONLY, case.to_string()).env(KEEP, input);
        }
        let mut child = command.spawn().expect("this program is started again");
        let status = wait(&mut child, mark.as_file());
        let output = text_of(&output);
        let said =
            output.lines().find_map(|line| line.split_once(&format!("{MARK}: "))).map(|(_, said)| said);
        match (&status, said) {
            (Some(status), Some(said)) if status.success() => Ended::Well(format!("fuzzed {said}")),
            _ => {
                let case = marked(mark.as_file());
                Ended::Badly { how: how(status, self.data_bytes), case, output: last(&output).to_string() }
            }
        }
    }
}

/// Wait for the end; `None`: a case took too long, and the process was killed.
fn wait(child: &mut Child, mark: &File) -> Option<ExitStatus> {
    let mut at = (marked(mark), Instant::now());
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            return Some(status);
        }
        let now = marked(mark);
        if now != at.0 {
            at = (now, Instant::now());
        } else if at.1.elapsed() > PATIENCE {
            let _ = child.kill();
            child.wait().expect("wait");
            return None;
        }
        std::thread::sleep(LOOK);
    }
}

fn how(status: Option<ExitStatus>, data_bytes: u64) -> String {
    match status {
        None => format!("takes longer than {} s", PATIENCE.as_secs()),
        Some(status) if status.signal() == Some(rustix::process::Signal::ABORT.as_raw()) => {
            format!("aborts: it may take {} MiB, or it overflows the stack", data_bytes >> 20)
        }
        Some(status) => format!("fails ({status})"),
    }
}

fn marked(mark: &File) -> u64 {
    let mut bytes = [0; 8];
    mark.read_exact_at(&mut bytes, 0).map_or(0, |()| u64::from_le_bytes(bytes))
}

fn text_of(file: &File) -> String {
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let mut text = vec![0; bytes as usize];
    let _ = file.read_exact_at(&mut text, 0);
    String::from_utf8_lossy(&text).into_owned()
}

fn last(text: &str) -> &str {
    let mut start = text.len().saturating_sub(SHOWN_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// CPU time of this process, which other work on the machine does not change.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn seed() -> u64 {
    number(SEED).unwrap_or(1)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}: write a whole number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Assert that a campaign that fails in `each` reports the case.
    #[track_caller]
    fn expect_found(test: &'static str, text: &str, each: impl Fn(&mut FuzzCase)) {
        let campaign = Campaign { test, target: "words", data_bytes: 32 << 20 };
        if std::env::var_os(MARK).is_some() {
            return campaign.run(each);
        }
        match campaign.run_apart(None) {
            Ended::Well(said) => panic!("it went well: {said}"),
            Ended::Badly { how, case, output } => {
                assert!(how.contains(text) && case == 7, "case {case} {how}: {output}");
            }
        }
    }

    /// The case of the number 7, known by its first draw.
    fn is_seventh(case: &mut FuzzCase) -> bool {
        let stream = Random::for_purpose(seed(), "words").next_u64();
        let mut seventh = Random::new(stream ^ pagewise_model::random::mix(7));
        case.random.next_u64() == seventh.next_u64()
    }

    #[test]
    fn a_case_that_panics_is_named() {
        expect_found("campaign::tests::a_case_that_panics_is_named", "fails", |case| {
            assert!(!is_seventh(case), "the seventh");
        });
    }

    #[test]
    fn a_case_that_asks_for_too_much_memory_is_named() {
        expect_found("campaign::tests::a_case_that_asks_for_too_much_memory_is_named", "aborts", |case| {
            let bytes = if is_seventh(case) { 1 << 30 } else { 1 << 20 };
            assert_eq!(std::hint::black_box(vec![1u8; bytes]).len(), bytes);
        });
    }

    #[test]
    fn a_stack_that_overflows_is_named() {
        fn deep(depth: u64) -> u64 {
            if depth == 0 { 0 } else { std::hint::black_box(deep(depth - 1)) + 1 }
        }
        expect_found("campaign::tests::a_stack_that_overflows_is_named", "aborts", |case| {
            let depth = if is_seventh(case) { 1 << 40 } else { 10 };
            assert_eq!(deep(std::hint::black_box(depth)), depth);
        });
    }

    #[test]
    fn shares_of_the_targets_are_thousandths() {
        assert_eq!(TARGETS.iter().map(|(_, share)| share).sum::<u64>(), 1000);
    }
}
