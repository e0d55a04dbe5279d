//! A worker that cheats or misbehaves in exactly one way, so that tests can see whether pagewise
//! notices.
//!
//! `cheating_worker KIND` speaks the line protocol over stdin and stdout, for `pread` and `mmap`.
//! It is written apart from the engine, so that `honest` is a second opinion on the protocol too:
//! threads are gone through one after another, and no latencies are taken. Kinds that concern the
//! job act on every method; a misbehaviour that ends the worker acts on `pread` only, so that a run
//! with `mmap` beside it shows that the rest goes on.

mod burners;
mod copies;
mod kinds;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use burners::Burners;
use copies::Copy;
use kinds::Kind;
use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::pieces::Masks;
use pagewise_model::random::mix;
use pagewise_model::{Access, Consume, Method, MethodOption, Workload, content};
use pagewise_protocol::{CallFailure, Go, Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply};
use pagewise_sys::{Advice, AnonymousMemory, FileMapping};

/// How often it looks at what the device has delivered.
const DEVICE_LOOK: Duration = Duration::from_millis(1);

/// The seed of the runs in which [`Kind::ComputesChecksum`] cheats, and what their first dataset is
/// made of.
const RUN_SEED: u64 = 7;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, path] = &words[..]
        && word == "keep-mapped"
    {
        return ended(keep_mapped(path));
    }
    let kind = words.first().and_then(|word| Kind::ALL.iter().find(|(known, _)| known == word));
    let Some((_, kind)) = kind else {
        let known: Vec<&str> = Kind::ALL.iter().map(|(word, _)| *word).collect();
        eprintln!("usage: cheating_worker KIND, one of {}", known.join(", "));
        return ExitCode::from(2);
    };
    ended(start(*kind).and_then(|()| converse(*kind)))
}

fn ended(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cheating_worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn say(reply: &Reply) -> io::Result<()> {
    say_text(&serde_json::to_string(reply)?)
}

fn say_text(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// What comes before `hello`.
fn start(kind: Kind) -> io::Result<()> {
    match kind {
        Kind::DiesAtStart => {
            eprintln!("libimaginary.so.1: cannot open shared object file");
            std::process::exit(3);
        }
        Kind::HangsAtStart => hang(),
        Kind::FloodsStderr | Kind::FloodsStderrAndDies => {
            let line = [b'.'; 4095];
            for _ in 0..1024 {
                io::stderr().write_all(&line)?;
                io::stderr().write_all(b"\n")?;
            }
            if kind == Kind::FloodsStderrAndDies {
                eprintln!("these are the last words");
                std::process::exit(3);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn converse(kind: Kind) -> io::Result<()> {
    let protocol = PROTOCOL_VERSION;
    let (worker, version) = ("cheating".to_string(), "1".to_string());
    let methods = "pread,mmap".to_string();
    say(&Reply::Hello(Hello {
        protocol,
        worker,
        version,
        offers: [(Workload::RandomRead, methods)].into(),
        ..Hello::default()
    }))?;
    let lines = io::stdin().lock().lines();
    let mut requests = lines.map(|line| serde_json::from_str::<Request>(&line?).map_err(io::Error::from));
    while let Some(Request::Open(job)) = requests.next().transpose()? {
        serve(kind, *job, &mut requests)?;
    }
    Ok(())
}

/// One job, to closed.
fn serve(kind: Kind, job: Job, requests: &mut impl Iterator<Item = io::Result<Request>>) -> io::Result<()> {
    let method: Method = serde_json::from_value(job.method.clone().into())?;
    // Misbehaviour that ends the worker is for `pread`; beside it the run must go on.
    let fault = if method.access() == Access::Pread { kind } else { Kind::Honest };
    if !matches!(method.access(), Access::Pread | Access::Mmap) {
        return say(&Reply::Failed(call_failure(&job, "it knows pread and mmap only", 1)));
    }
    let started = Instant::now();
    let mut reader = Reader::open(kind, job, method)?;
    say(&Reply::Opened { setup_ns: nanoseconds(started), ballast_ns: 0 })?;
    if fault == Kind::DiesAfterOpened {
        eprintln!("assertion failed: the worker is well");
        std::process::abort();
    }
    let started = Instant::now();
    reader.warm_page_tables();
    say(&Reply::Ready { warmup_ns: nanoseconds(started) })?;
    for request in requests {
        match request? {
            Request::Go(go) => say(&Reply::Sample(Box::new(reader.sample(&go)?)))?,
            Request::Verify(verify) => {
                reader.hand_over(&verify.offsets)?;
                say(&Reply::Verified { reads: verify.offsets.len() as u64 })?;
            }
            Request::Close => {
                drop(reader);
                say(&Reply::Closed { teardown_ns: 1, sync_ns: 0 })?;
                match fault {
                    Kind::Lingers => hang(),
                    _ => return Ok(()),
                }
            }
            Request::Open(_) | Request::Idle { .. } => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(())
}

fn call_failure(job: &Job, detail: &str, unavailable: u32) -> CallFailure {
    let detail = format!("cheating_worker: {detail}");
    CallFailure { call: "open".into(), errno: 1, path: job.path.clone(), offset: 0, detail, unavailable }
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

struct Reader {
    kind: Kind,
    job: Job,
    file: File,
    mapping: Option<FileMapping>,
    table: FileMapping,
    /// What it held before `go`.
    early_table: Vec<u64>,
    masks: Masks,
    buffer: AnonymousMemory,
    consumption: Consumption,
    burners: Option<Burners>,
    copy: Option<Copy>,
    sums: HashMap<u64, u64>,
}

impl Reader {
    fn open(kind: Kind, job: Job, method: Method) -> io::Result<Self> {
        let table = FileMapping::new(File::open(&job.table_path)?, job.table_reads as usize * 8, true)?;
        let early_table = if kind == Kind::ReadsTableEarly { table.words().to_vec() } else { Vec::new() };
        if kind == Kind::KeepsMapped {
            leave_a_mapper(&job.path)?;
        }
        if matches!(kind, Kind::WarmsFirst | Kind::DirectInName) {
            read_whole(&job.path)?;
        }
        let direct = method.is_direct() && kind != Kind::NotDirect;
        let flags = if direct { job.direct_flag } else { 0 };
        let file = File::options().read(true).custom_flags(flags as i32).open(&job.path)?;
        let populate = method.has(MethodOption::Populate) && kind != Kind::MapsAnew;
        let span = job.span_bytes as usize;
        let mapping = match method.access() {
            Access::Mmap => Some(FileMapping::new(&file, span, populate)?),
            _ => None,
        };
        if let Some(mapping) = &mapping
            && method.has(MethodOption::Random)
            && kind != Kind::NoAdvice
        {
            mapping.advise(0..span, Advice::Random)?;
        }
        if mapping.is_none() && method.has(MethodOption::Random) {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
        }
        let copy = match kind {
            Kind::CopiesFirst => Some(Copy::through_cache(&file)?),
            Kind::CopiesFirstDirect => Some(Copy::direct(&file)?),
            Kind::ReadsOnePlace => Some(Copy::through_mapping(&file)?),
            _ => None,
        };
        if kind == Kind::EvictsFirst {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
        let consume: Consume = job.consume.parse().map_err(io::Error::other)?;
        let consumption = Consumption {
            consume,
            page_bytes: job.page_bytes as usize,
            touch_at: 0,
            touch_last: job.touch_last == 1,
        };
        let buffer = AnonymousMemory::new(job.read_bytes as usize)?;
        let burners = matches!(kind, Kind::ExtraThreads | Kind::SpinsAndHalves).then(Burners::start);
        Ok(Self {
            kind,
            job,
            file,
            mapping,
            table,
            early_table,
            masks: Masks::default(),
            buffer,
            consumption,
            burners,
            copy,
            sums: HashMap::new(),
        })
    }

    fn warm_page_tables(&self) {
        if let Some(mapping) = self.mapping.as_ref().filter(|_| self.job.warm_page_tables == 1) {
            let pages = mapping.bytes().iter().step_by(self.job.page_bytes as usize);
            std::hint::black_box(pages.fold(0u8, |total, byte| total.wrapping_add(*byte)));
        }
    }

    /// One read; its checksum.
    fn read(&mut self, through: &File, offset: u64) -> io::Result<u64> {
        let len = self.job.read_bytes;
        let (offset, len) = match self.kind {
            Kind::WrongOffset if offset + 2 * len <= self.job.span_bytes => (offset + len, len),
            Kind::WrongOffset => (offset - len, len),
            Kind::ReadsHalf => (offset, len / 2),
            _ => (offset, len),
        };
        if let Some(sum) = self.sums.get(&offset).filter(|_| self.kind == Kind::RemembersSums) {
            return Ok(*sum);
        }
        let buffer = &mut self.buffer.bytes_mut()[..len as usize];
        if let Some(copy) = self.copy.as_ref().filter(|_| self.kind == Kind::ReadsOnePlace) {
            through.read_exact_at(buffer, 0)?;
            return Ok(self.consumption.of(copy.of(offset, len as usize)));
        }
        match &self.mapping {
            _ if self.kind == Kind::ComputesChecksum => content::fill(mix(RUN_SEED), offset, buffer),
            Some(mapping) => {
                buffer.copy_from_slice(&mapping.bytes()[offset as usize..][..len as usize]);
            }
            None => match &mut self.copy {
                Some(copy) if matches!(self.kind, Kind::CopiesFirst | Kind::CopiesFirstDirect) => {
                    copy.pretend(through, offset, buffer)?;
                }
                _ => through.read_exact_at(buffer, offset)?,
            },
        }
        if self.kind == Kind::ReadsTwice {
            through.read_exact_at(buffer, offset)?;
        }
        let sum = self.consumption.of(buffer);
        if self.kind == Kind::RemembersSums {
            self.sums.insert(offset, sum);
        }
        Ok(sum)
    }

    /// The offset of a read. Dependent ones are hidden behind the data of the `read_before` in
    /// their operation. Where it read other bytes than it should, it goes on in the span.
    fn offset(&self, entry: u64, read_before: bool) -> u64 {
        let last = self.job.span_bytes - self.job.read_bytes;
        let offset = match self.buffer.bytes().first_chunk::<8>() {
            _ if self.kind == Kind::IgnoresData => entry,
            Some(link) if self.job.dependent == 1 && read_before => entry ^ u64::from_le_bytes(*link),
            _ => entry,
        };
        if offset <= last { offset } else { offset % (last / self.job.page_bytes + 1) * self.job.page_bytes }
    }

    /// Threads one after another, no latencies.
    fn sample(&mut self, go: &Go) -> io::Result<SampleReply> {
        let through = match self.kind {
            Kind::DirectInName => File::open(&self.job.path)?,
            _ => self.file.try_clone()?,
        };
        self.consumption = self.consumption.touching(go.touch_at);
        let spinning = self.burners.as_ref().filter(|_| self.kind == Kind::SpinsAndHalves).map(Burners::spin);
        let started = Instant::now();
        let mut checksum = 0u64;
        let mut thread_operations = Vec::new();
        for thread in 0..self.job.threads {
            let (done, of_thread) = self.thread(&through, thread, go)?;
            checksum = checksum.wrapping_add(of_thread);
            thread_operations.push(done);
        }
        if let Some(copy) = self.copy.as_mut().filter(|_| self.kind == Kind::CopiesFirstDirect) {
            copy.settle(&through)?;
        }
        if self.kind == Kind::FillsCache {
            read_whole(&self.job.path)?;
        }
        drop(spinning);
        if let Some(burners) = self.burners.as_ref().filter(|_| self.kind == Kind::ExtraThreads)
            && !burners.burn(started)?
        {
            return Err(io::Error::other("the machine gives no more than one CPU"));
        }
        let operations: u64 = thread_operations.iter().sum();
        let mut reply = SampleReply {
            operations,
            elapsed_ns: nanoseconds(started),
            thread_operations,
            bytes: operations * u64::from(self.job.reads_per_op) * self.job.read_bytes,
            checksum: format!("{checksum:016x}"),
            ..SampleReply::default()
        };
        falsify(self.kind, &mut reply);
        Ok(reply)
    }

    /// The operations of one thread, and their checksum.
    fn thread(&mut self, through: &File, thread: u32, go: &Go) -> io::Result<(u64, u64)> {
        let reads_per_op = u64::from(self.job.reads_per_op);
        let part = self.job.table_reads / reads_per_op / u64::from(self.job.threads);
        let bounded = match (self.kind, self.job.bounds.max_thread_operations) {
            (Kind::BeyondTable, _) => part + 1,
            (Kind::MapsAnew, _) => 200,
            (_, 0) => u64::MAX,
            (_, most) => most,
        };
        if self.kind == Kind::ReadsNothing {
            std::thread::sleep(Duration::from_nanos(go.sample_ns));
            return Ok((bounded.min(1000), 0));
        }
        let fixed = matches!(self.kind, Kind::BeyondTable | Kind::MapsAnew);
        let device_end = match self.job.bounds.throughput_device_bytes {
            0 => u64::MAX,
            bytes => device_read_bytes()?.saturating_add(bytes / 3 * 2),
        };
        let started = Instant::now();
        let mut looked = started;
        let (mut done, mut checksum) = (0, 0u64);
        let piece = self.job.piece_reads.checked_div(reads_per_op).filter(|piece| *piece > 0).unwrap_or(part);
        let mut before_piece = 0u64;
        while done < bounded {
            let operation = u64::from(thread) * part + (go.first_operation + done) % part;
            let in_pass = done % part;
            if in_pass == 0 {
                (self.masks, before_piece) = (Masks::default(), checksum);
            } else if in_pass.is_multiple_of(piece) {
                self.masks.end_piece(checksum.wrapping_sub(before_piece));
                before_piece = checksum;
            }
            let of_piece = (piece - in_pass % piece).min(part - in_pass);
            if self.kind == Kind::MapsAnew {
                self.mapping = None;
                self.mapping = Some(FileMapping::new(through, self.job.span_bytes as usize, false)?);
            }
            if self.kind == Kind::SortsReads {
                let some = of_piece.min(part - (go.first_operation + done) % part).min(bounded - done);
                let places = operation * reads_per_op..(operation + some) * reads_per_op;
                checksum = checksum.wrapping_add(self.sorted(through, places)?);
                done += some - 1;
            } else if self.kind != Kind::SkipsOperations || done.is_multiple_of(2) {
                if self.kind == Kind::AsksAhead {
                    self.ask_ahead(through, (operation + 1) * reads_per_op, (of_piece - 1) * reads_per_op)?;
                }
                for read in operation * reads_per_op..(operation + 1) * reads_per_op {
                    let entry = self.entries()[read as usize] ^ self.masks.mask();
                    let offset = self.offset(entry, !read.is_multiple_of(reads_per_op));
                    let weight = if self.kind == Kind::CountsAlike { 1 } else { weight(read) };
                    checksum = checksum.wrapping_add(weight.wrapping_mul(self.read(through, offset)?));
                }
            }
            done += 1;
            let mut over = nanoseconds(started) >= go.sample_ns;
            if device_end < u64::MAX && looked.elapsed() >= DEVICE_LOOK {
                looked = Instant::now();
                over |= device_read_bytes()? >= device_end;
            }
            if over && !fixed {
                break;
            }
        }
        Ok((done, checksum))
    }

    /// The reads at these places, in the order of their offsets.
    fn sorted(&mut self, through: &File, places: std::ops::Range<u64>) -> io::Result<u64> {
        let mut reads: Vec<(u64, u64)> =
            places.map(|place| (self.entries()[place as usize] ^ self.masks.mask(), weight(place))).collect();
        reads.sort_unstable();
        reads.into_iter().try_fold(0u64, |total, (offset, weight)| {
            Ok(total.wrapping_add(weight.wrapping_mul(self.read(through, offset)?)))
        })
    }

    fn entries(&self) -> &[u64] {
        match self.kind {
            Kind::ReadsTableEarly => &self.early_table,
            _ => self.table.words(),
        }
    }

    /// Has the kernel bring in the reads of the next operations, of which so many are of this
    /// piece.
    fn ask_ahead(&self, through: &File, first: u64, of_piece: u64) -> io::Result<()> {
        let entries = self.entries();
        let end = (first + 4 * u64::from(self.job.reads_per_op)).min(entries.len() as u64);
        for (ahead, entry) in (0..).zip(&entries[first.min(end) as usize..end as usize]) {
            let len = std::num::NonZeroU64::new(self.job.read_bytes);
            let mask = if ahead < of_piece { self.masks.mask() } else { self.masks.next() };
            let offset = self.offset(entry ^ mask, false);
            rustix::fs::fadvise(through, offset, len, rustix::fs::Advice::WillNeed)?;
        }
        Ok(())
    }

    fn hand_over(&mut self, offsets: &[u64]) -> io::Result<()> {
        if self.kind == Kind::SkipsVerify {
            return Ok(());
        }
        let honest = match self.kind {
            Kind::ComputesChecksum => Kind::ComputesChecksum,
            _ => Kind::Honest,
        };
        let cheat = std::mem::replace(&mut self.kind, honest);
        let into = File::options().write(true).open(&self.job.handover_path)?;
        let file = self.file.try_clone()?;
        for (index, offset) in offsets.iter().enumerate() {
            self.read(&file, *offset)?;
            let bytes = self.buffer.bytes_mut();
            if cheat == Kind::DiffersAtVerify && index == 0 {
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
            }
            into.write_all_at(self.buffer.bytes(), index as u64 * self.job.read_bytes)?;
        }
        self.kind = cheat;
        Ok(())
    }
}

/// What is said otherwise than it was.
fn falsify(kind: Kind, reply: &mut SampleReply) {
    match kind {
        Kind::HalfTheTime | Kind::SpinsAndHalves => reply.elapsed_ns /= 2,
        Kind::ShiftsTime => {
            let quarter_ns = reply.elapsed_ns / 4;
            reply.elapsed_ns -= quarter_ns;
            reply.operations -= 1;
            (reply.latency_elapsed_ns, reply.latency_operations) = (quarter_ns, 1);
            (reply.latency_ns, reply.latency_counts) = (vec![quarter_ns], vec![1]);
        }
        Kind::TooMuchTime => reply.elapsed_ns *= 1000,
        Kind::LatenciesTooLong => {
            reply.latency_ns = vec![reply.elapsed_ns.saturating_mul(1000)];
            reply.latency_counts = vec![1];
        }
        Kind::LatenciesAlike => {
            reply.latency_ns = vec![reply.elapsed_ns / reply.operations.max(1)];
            reply.latency_counts = vec![reply.operations];
        }
        Kind::Miscounts => reply.operations += 1,
        Kind::MiscountsBytes => reply.bytes *= 2,
        Kind::MiscountsLatencies => {
            reply.latency_ns = vec![1];
            reply.latency_counts = vec![reply.operations + 1];
        }
        Kind::TooManyThreads => reply.thread_operations.push(0),
        Kind::HugeCounts => {
            reply.operations = u64::MAX;
            reply.latency_operations = u64::MAX;
            reply.latency_elapsed_ns = u64::MAX;
            reply.elapsed_ns = u64::MAX;
            reply.bytes = u64::MAX;
            reply.thread_operations = vec![u64::MAX; reply.thread_operations.len() + 1];
            reply.latency_ns = vec![u64::MAX; 3];
            reply.latency_counts = vec![u64::MAX; 3];
            reply.stalls = u64::MAX;
            reply.stall_longest_ns = u64::MAX;
        }
        Kind::ChecksumNoNumber => reply.checksum = "all is well".into(),
        _ => {}
    }
}

fn read_whole(path: &str) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; 1 << 20];
    while file.read(&mut piece)? > 0 {}
    Ok(())
}

fn device_read_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    Ok(line.and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Starts a process that maps the file, and waits until it has.
fn leave_a_mapper(path: &str) -> io::Result<()> {
    let mut mapper = Command::new(std::env::current_exe()?)
        .args(["keep-mapped", path])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(mapper.stdout.take().expect("piped above")).read_line(&mut line)?;
    Ok(())
}

/// Keeps a file mapped until it is removed, which is when a run has ended.
fn keep_mapped(path: &str) -> io::Result<()> {
    let file = File::open(path)?;
    let mapping = FileMapping::new(&file, file.metadata()?.len() as usize, true)?;
    println!("mapped");
    let started = Instant::now();
    while std::path::Path::new(path).exists() && started.elapsed() < Duration::from_secs(120) {
        std::hint::black_box(mapping.bytes()[0]);
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
