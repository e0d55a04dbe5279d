//! Trials of append and fill: what was written is read back and compared byte for byte.

use pagewise_host::{FileKey, ReadBack};
use pagewise_model::random::mix;
use pagewise_model::sample::Written;
use pagewise_model::{
    Access, Append, Bytes, Conditions, Fill, Method, RecordRing, Sync, Work, Workload, content,
};
use pagewise_protocol::claims::Asked;
use pagewise_protocol::{ConversationError, Go, Job, SampleReply};

use super::examiner::{Examiner, Part, Visit};
use super::ground::{Removed, descriptor_path, memory_of};
use super::meaning::Watch;

/// How long the records may take.
const RECORDS_NS: u64 = 20_000_000_000;

/// One way to write.
struct Writing {
    what: &'static str,
    file_bytes: u64,
    record_bytes: u64,
    laps: u64,
    sync: Sync,
}

/// Some bytes are left behind the last slot, and the buffers that workers have hold no whole number of records.
const APPENDING: [Writing; 3] = [
    Writing {
        what: "records of 100 B, twice round a ring that they do not fill",
        file_bytes: (1 << 20) + 77,
        record_bytes: 100,
        laps: 2,
        sync: Sync::None,
    },
    Writing {
        what: "records of 4 KiB, sync at the end",
        file_bytes: 1 << 20,
        record_bytes: 4096,
        laps: 3,
        sync: Sync::End,
    },
    Writing {
        what: "records of 300 B, sync every 64 KiB",
        file_bytes: (256 << 10) + 5,
        record_bytes: 300,
        laps: 2,
        sync: Sync::Every(Bytes::kib(64)),
    },
];

const FILLING: [Writing; 2] = [
    Writing {
        what: "blocks of 64 KiB",
        file_bytes: 2 << 20,
        record_bytes: 64 << 10,
        laps: 1,
        sync: Sync::None,
    },
    Writing {
        what: "blocks of 12 KiB that do not fill the file, sync at the end",
        file_bytes: (1 << 20) + 5000,
        record_bytes: 12 << 10,
        laps: 1,
        sync: Sync::End,
    },
];

/// Tries one method.
pub fn examine(examiner: &mut Examiner<'_>, workload: Workload, text: &str, method: &Method) {
    let subject = format!("{workload} {text}");
    let all: &[Writing] = if workload == Workload::Append { &APPENDING } else { &FILLING };
    for (index, writing) in all.iter().enumerate() {
        let titled = format!("{subject}: {}", writing.what);
        let work = work(workload, writing);
        if let Some(reason) = method.refuses(&work, examiner.ground.alignment()) {
            examiner.steps.not_tried(titled, reason);
            continue;
        }
        let mut visit = if index == 0 { Visit::detailed(&subject) } else { Visit::brief(titled) };
        let outcome = visit_writing(examiner, workload, writing, text, method, &mut visit);
        if let Err(broken) = outcome
            && examiner.break_off(&mut visit, broken)
            && index == 0
        {
            return;
        }
        visit.end(&mut examiner.steps);
    }
}

fn work(workload: Workload, writing: &Writing) -> Work {
    let (size, sync) = (Bytes(writing.record_bytes), writing.sync);
    match workload {
        Workload::Fill => Work::Fill(Fill { block_bytes: size, sync }),
        _ => Work::Append(Append { record_bytes: size, laps: writing.laps as u32, sync }),
    }
}

fn visit_writing(
    examiner: &mut Examiner<'_>,
    workload: Workload,
    writing: &Writing,
    text: &str,
    method: &Method,
    visit: &mut Visit,
) -> Part<()> {
    let lack = |error: String| ("a file to write", ConversationError::lack(error));
    let conditions = Conditions::of(work(workload, writing), Bytes(writing.file_bytes));
    let ring = conditions.ring().expect("only writes are tried here");
    let new = examiner.ground.new_file(writing.file_bytes).map_err(|error| lack(format!("{error:#}")))?;
    let new = Removed(new);
    let key = FileKey::of(new.file()).map_err(|error| lack(error.to_string()))?;
    let mut held = vec![0; ring.source_bytes() as usize];
    content::fill(mix(examiner.ground.seed), 0, &mut held);
    let source = memory_of(&held).map_err(|error| lack(error.to_string()))?;
    let job = Job {
        max_thread_operations: ring.records(),
        source_path: descriptor_path(source.file()),
        gap_seed: mix(examiner.ground.seed),
        ..examiner.ground.job(text, &conditions, descriptor_path(new.file()))
    };
    examiner.open(&job, false, visit, &key)?;
    let watch = Watch::start(examiner.worker().map_err(|trouble| ("the worker", trouble))?.pid());
    let gone = examiner.go(Go { first_operation: 0, sample_ns: RECORDS_NS, latency_ns: 0 }, false)?;
    let dirty = new.0.dirty_bytes();
    let asked = Asked::of(&conditions, method.depth());
    let checked = gone.check(&asked).and_then(|()| no_checksum(&gone.sample));
    visit.tell(&mut examiner.steps, &format!("go and sample, {}", writing.what), checked);
    if method.access() != Access::Unknown {
        let worker = examiner.worker().map_err(|trouble| ("the worker", trouble))?;
        let meant = watch.check(worker, &key, method, workload, gone.sample.bytes);
        visit.tell(&mut examiner.steps, "does what its name says", meant);
    }
    // While it has the file open: what stays in a buffer of its own is not in the file.
    let written = read_back(&new, &ring, &held, ReadBack::Pread);
    visit.tell(&mut examiner.steps, "every record is in the file at sample", written);
    examiner.close(visit, &key)?;
    let written = read_back(&new, &ring, &held, ReadBack::Mapping);
    visit.tell(&mut examiner.steps, "every record is in the file after closed", written);
    let after = new.0.dirty_bytes();
    let synced = match writing.sync {
        Sync::None => Ok(()),
        Sync::End => clean(after, writing, examiner.ground.page_bytes, "after closed"),
        Sync::Every(_) => clean(dirty, writing, examiner.ground.page_bytes, "at sample"),
    };
    visit.tell(&mut examiner.steps, "syncs", synced);
    Ok(())
}

fn no_checksum(sample: &SampleReply) -> Result<(), String> {
    match sample.checksum()? {
        0 => Ok(()),
        _ => Err(format!("checksum is '{}', of append and fill it is 16 zeros", sample.checksum)),
    }
}

/// Whether all is where it belongs.
fn read_back(new: &Removed, ring: &RecordRing, source: &[u8], way: ReadBack) -> Result<(), String> {
    let mut written = Written::default();
    new.0
        .read_back(ring, source, ring.records(), way, &mut written)
        .map_err(|error| format!("the file cannot be read back: {error}"))?;
    let Written { missing_bytes, first_missing_at, foreign_bytes, expected_bytes, .. } = written;
    if missing_bytes > 0 {
        return Err(format!(
            "{missing_bytes} of {expected_bytes} bytes are not there, the first record that misses some begins at {}: record \
             i lies at i mod floor(file_bytes / record_bytes) * record_bytes, and buffers are empty when sample is sent",
            first_missing_at.unwrap_or(0)
        ));
    }
    if foreign_bytes > 0 {
        return Err(format!(
            "{foreign_bytes} bytes behind the last slot were written, or the file grew: leave them as they are"
        ));
    }
    Ok(())
}

/// Whether nothing of the file waits to be written back: cachestat(2), Linux 6.5. A file in memory is never dirty, so there
/// a sync that was left out is not seen.
fn clean(dirty: Option<u64>, writing: &Writing, page_bytes: u64, when: &str) -> Result<(), String> {
    match dirty.filter(|dirty| *dirty > page_bytes) {
        None => Ok(()),
        Some(dirty) => Err(format!(
            "{dirty} bytes of the file were still dirty {when}, sync is {}: msync(MS_SYNC) the mapping, or fdatasync",
            writing.sync
        )),
    }
}
