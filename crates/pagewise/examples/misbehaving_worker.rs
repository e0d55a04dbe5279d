//! The native worker with one thing wrong in what it says or does, so that tests can see whether
//! `pagewise conformance` names that very thing.
//!
//! `misbehaving_worker KIND` bends the lines that come to the engine's worker or go from it; what
//! is between them is honest.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

/// Every kind, with what is wrong.
const KINDS: &[(&str, &str)] = &[
    ("honest", "nothing"),
    // Before the first job.
    ("silent", "says nothing"),
    ("dies", "ends with a message on stderr"),
    ("no-newline", "does not end its first line"),
    ("late-hello", "says hello after 3 s"),
    ("other-protocol", "speaks another version"),
    ("no-method", "has no method"),
    ("no-version", "has no version"),
    ("other-sync", "offers a sync call that there is none of"),
    // What it says.
    ("stray-line", "prints something else to stdout"),
    ("wrong-checksum", "adds 1 to each checksum"),
    ("short-checksum", "leaves zeros out of it"),
    ("no-thread-operations", "leaves them out"),
    ("one-thread-operation", "reports those of the first thread only"),
    ("one-phase", "counts the bytes of the throughput phase only"),
    ("too-many-latencies", "counts one latency twice"),
    ("uncounted-bucket", "leaves out a count"),
    ("unsorted-latencies", "has its buckets in descending order"),
    ("no-latencies", "has no latency phase"),
    ("fewer-syncs", "reports one sync of many"),
    ("too-much-time", "reports twice the time"),
    ("half-the-time", "reports half of it"),
    ("long-setup", "reports a thousand times the set-up"),
    ("late-sample", "sends each sample 4 s late"),
    ("overflow", "sends a number that 64 bits do not hold"),
    ("uncalled-beats", "reports heartbeats that nobody asked for"),
    ("missed-beats", "reports none of its beats"),
    ("no-errno", "leaves out why a call failed"),
    ("unavailable", "says of every failure that it is not offered"),
    // What it does.
    ("ignores-first", "begins every go at 0"),
    ("ignores-bound", "does more operations than it may"),
    ("ignores-span", "maps the whole file"),
    ("ignores-last", "does not touch last words"),
    ("ignores-verify", "says verified and reads nothing"),
    ("keeps-file", "reads the first job's file in every job"),
    ("maps-not", "reads by calls what it should map"),
    ("calls-not", "maps what it should read by calls"),
    ("no-advice", "leaves madvise out"),
    ("keeps-mapping", "keeps a mapping after closed"),
    ("keeps-descriptor", "keeps a descriptor after closed"),
    ("loses-record", "leaves out the last record"),
    ("ignores-sync", "never syncs"),
    ("takes-any-method", "takes a method that it does not know"),
    ("dislikes-fields", "ends at a field that it does not know"),
    // How it ends.
    ("status", "ends with status 3"),
    ("stays", "does not end"),
    ("leaves-process", "leaves a process behind"),
];

fn main() -> ExitCode {
    let kind = std::env::args().nth(1).unwrap_or_default();
    if !KINDS.iter().any(|(known, _)| *known == kind) {
        let known: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
        eprintln!("usage: misbehaving_worker KIND, one of {}", known.join(", "));
        return ExitCode::from(2);
    }
    match kind.as_str() {
        "silent" => stay(),
        "late-hello" => std::thread::sleep(Duration::from_secs(3)),
        "dies" => {
            eprintln!(
                "Exception in thread \"main\" java.lang.IllegalStateException\n\tat Reader.main(Reader.java:7)"
            );
            return ExitCode::from(3);
        }
        _ => {}
    }
    let bent = Rc::new(RefCell::new(Bent { kind, ..Bent::default() }));
    let requests = Requests { bent: bent.clone(), line: Vec::new(), at: 0 };
    let replies = Replies { bent: bent.clone(), line: Vec::new() };
    if let Err(error) = pagewise_engine::worker::converse(requests, replies) {
        eprintln!("misbehaving_worker: {error}");
        return ExitCode::FAILURE;
    }
    match bent.borrow().kind.as_str() {
        "status" => return ExitCode::from(3),
        "stays" => stay(),
        "leaves-process" => {
            let mut sleep = Command::new("sleep");
            sleep.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = sleep.spawn();
        }
        _ => {}
    }
    ExitCode::SUCCESS
}

fn stay() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// What is wrong, and what must be remembered for it.
#[derive(Default)]
struct Bent {
    kind: String,
    first_path: Option<Value>,
    /// The last open.
    job: Value,
    kept: Option<File>,
}

impl Bent {
    fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// What the engine gets instead of a request; `None`: nothing, it was answered.
    fn request(&mut self, mut request: Value) -> io::Result<Option<Value>> {
        if self.is("dislikes-fields") && request.get("added_later").is_some() {
            return Err(io::Error::other("unknown field 'added_later'"));
        }
        match request["type"].as_str() {
            Some("open") => self.open(&mut request)?,
            Some("go") if self.is("ignores-first") => request["first_operation"] = json!(0),
            Some("go") if self.is("no-latencies") => request["latency_ns"] = json!(0),
            Some("verify") if self.is("ignores-verify") => {
                let reads = request["offsets"].as_array().map_or(0, Vec::len);
                print_line(&json!({"type": "verified", "reads": reads}))?;
                return Ok(None);
            }
            Some("close") => self.close()?,
            _ => {}
        }
        Ok(Some(request))
    }

    fn open(&mut self, job: &mut Value) -> io::Result<()> {
        let first = self.first_path.get_or_insert_with(|| job["path"].clone()).clone();
        let method = job["method"].as_str().unwrap_or_default().to_string();
        match self.kind.as_str() {
            "ignores-bound" => {
                job["max_thread_operations"] = json!(0);
                job["throughput_operations"] = json!(0);
            }
            "ignores-span" => job["span_bytes"] = job["file_bytes"].clone(),
            "ignores-last" => job["touch_last"] = json!(0),
            "ignores-sync" => job["sync"] = json!("none"),
            "keeps-file" if job["workload"] == "random-read" => job["path"] = first,
            "maps-not" if method == "mmap" && job["workload"] == "random-read" => {
                job["method"] = json!("pread")
            }
            "calls-not" if method == "pread" => job["method"] = json!("mmap"),
            "no-advice" if method == "mmap:random" => job["method"] = json!("mmap"),
            "takes-any-method" if method == "no-such-method" => job["method"] = json!("pread"),
            "loses-record" => {
                job["records"] = json!(job["records"].as_u64().unwrap_or(0).saturating_sub(1));
            }
            "stray-line" => println!("WARNING: a deprecated method has been called"),
            _ => {}
        }
        self.job = job.clone();
        Ok(())
    }

    /// Keeps something of the file, in a mapping or a descriptor.
    fn close(&mut self) -> io::Result<()> {
        let path = self.job["path"].as_str().unwrap_or_default();
        match self.kind.as_str() {
            "keeps-descriptor" => self.kept = Some(File::open(path)?),
            "keeps-mapping" => {
                let mapping = pagewise_sys::FileMapping::new(&File::open(path)?, 4096, false)?;
                std::mem::forget(mapping);
            }
            _ => {}
        }
        Ok(())
    }

    /// What is said instead of a reply.
    fn reply(&self, mut reply: Value) -> io::Result<()> {
        match reply["type"].as_str() {
            Some("hello") => {
                self.hello(&mut reply);
                if self.is("no-newline") {
                    print!("{reply}");
                    return io::stdout().flush();
                }
            }
            Some("opened") if self.is("long-setup") => {
                reply["setup_ns"] = json!(reply["setup_ns"].as_u64().unwrap_or(1) * 1000 + 1_000_000_000);
            }
            Some("sample") if self.is("overflow") => {
                let text = reply.to_string();
                let operations = reply["operations"].to_string();
                println!(
                    "{}",
                    text.replace(
                        &format!("\"operations\":{operations}"),
                        "\"operations\":18446744073709551616"
                    )
                );
                return io::stdout().flush();
            }
            Some("sample") if self.is("late-sample") => std::thread::sleep(Duration::from_secs(4)),
            Some("sample") => self.sample(&mut reply),
            Some("idled") if self.is("missed-beats") => unbeaten(&mut reply),
            Some("failed") if self.is("no-errno") => reply["errno"] = json!(0),
            Some("failed") if self.is("unavailable") => reply["unavailable"] = json!(1),
            _ => {}
        }
        print_line(&reply)
    }

    /// Few methods, so that a trial is short.
    fn hello(&self, hello: &mut Value) {
        hello["random-read"] = json!("mmap,pread");
        hello["sequential-read"] = json!("");
        hello["scan"] = json!("pread");
        hello["append"] = json!("pwrite");
        hello["fill"] = json!("");
        hello["replay"] = json!("");
        hello["update"] = json!("");
        match self.kind.as_str() {
            "no-advice" => hello["random-read"] = json!("mmap:random"),
            "other-protocol" => hello["protocol"] = json!(3),
            "no-version" => hello["version"] = json!(""),
            "other-sync" => hello["sync_calls"] = json!("fdatasync,sync"),
            "no-method" => {
                for workload in ["random-read", "scan", "append"] {
                    hello[workload] = json!("");
                }
            }
            _ => {}
        }
    }

    fn sample(&self, sample: &mut Value) {
        let number = |name: &str| sample[name].as_u64().unwrap_or(0);
        let elapsed = number("elapsed_ns");
        let checksum = u64::from_str_radix(sample["checksum"].as_str().unwrap_or_default(), 16).unwrap_or(0);
        let (bytes, operations) = (number("bytes"), number("operations"));
        let all = operations + number("latency_operations");
        match self.kind.as_str() {
            "wrong-checksum" => sample["checksum"] = json!(format!("{:016x}", checksum.wrapping_add(1))),
            "short-checksum" => sample["checksum"] = json!(format!("{checksum:x}")),
            "no-thread-operations" => {
                sample.as_object_mut().expect("a sample").remove("thread_operations");
            }
            "one-thread-operation" => {
                if let Some(threads) = sample["thread_operations"].as_array_mut() {
                    threads.truncate(1);
                }
            }
            "one-phase" => sample["bytes"] = json!(bytes / all.max(1) * operations),
            "fewer-syncs" => bend(sample, "sync_duration_counts", |counts| {
                counts.iter_mut().skip(1).for_each(|count| *count = json!(0));
                counts.iter_mut().take(1).for_each(|count| *count = json!(1));
            }),
            "too-many-latencies" => bend(sample, "latency_counts", |counts| {
                counts[0] = json!(counts[0].as_u64().unwrap_or(0) + 1);
            }),
            "uncounted-bucket" => bend(sample, "latency_counts", |counts| {
                counts.pop();
            }),
            "unsorted-latencies" => bend(sample, "latency_ns", |ends| ends.reverse()),
            "too-much-time" => sample["elapsed_ns"] = json!(elapsed * 2 + 1_000_000_000),
            "half-the-time" => {
                sample["elapsed_ns"] = json!(elapsed / 2);
                // Half of the time must hold them.
                sample["stalls"] = json!(0);
                sample["stall_longest_ns"] = json!(0);
            }
            "uncalled-beats" if self.job["heartbeat_ns"] == 0 => {
                sample["heartbeat_kinds"] = json!("thread");
                sample["heartbeat_buckets"] = json!([1]);
                sample["heartbeat_ns"] = json!([1000]);
                sample["heartbeat_counts"] = json!([7]);
            }
            "missed-beats" => unbeaten(sample),
            "loses-record" if self.job["workload"] == "append" => {
                let record = self.job["record_bytes"].as_u64().unwrap_or(0);
                sample["operations"] = json!(operations + 1);
                sample["thread_operations"] = json!([operations + 1]);
                sample["bytes"] = json!(bytes + record);
            }
            _ => {}
        }
    }
}

/// Changes a list that is not empty.
fn bend(sample: &mut Value, name: &str, change: impl FnOnce(&mut Vec<Value>)) {
    if let Some(list) = sample.get_mut(name).and_then(Value::as_array_mut).filter(|list| !list.is_empty()) {
        change(list);
    }
}

fn unbeaten(reply: &mut Value) {
    bend(reply, "heartbeat_counts", |counts| counts.iter_mut().for_each(|count| *count = json!(0)));
}

fn print_line(value: &Value) -> io::Result<()> {
    println!("{value}");
    io::stdout().flush()
}

/// What comes to the engine.
struct Requests {
    bent: Rc<RefCell<Bent>>,
    line: Vec<u8>,
    at: usize,
}

impl BufRead for Requests {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.at == self.line.len() {
            let mut line = String::new();
            if io::stdin().read_line(&mut line)? == 0 {
                return Ok(&[]);
            }
            if let Some(bent) = self.bent.borrow_mut().request(serde_json::from_str(&line)?)? {
                self.line = format!("{bent}\n").into_bytes();
                self.at = 0;
            }
        }
        Ok(&self.line[self.at..])
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount;
    }
}

impl Read for Requests {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let len = available.read(into)?;
        self.consume(len);
        Ok(len)
    }
}

/// What comes from it.
struct Replies {
    bent: Rc<RefCell<Bent>>,
    line: Vec<u8>,
}

impl Write for Replies {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.bent.borrow().reply(serde_json::from_slice(&line)?)
    }
}
