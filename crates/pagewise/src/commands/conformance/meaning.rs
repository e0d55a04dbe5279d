//! Check that a method with a name of pagewise's own performs the accesses of that name, as far as a small cached file shows.

use pagewise_analysis::proof::missing_advice;
use pagewise_host::{FileKey, ProcessCounters, process};
use pagewise_model::{Access, Method, Worker, Workload};
use pagewise_protocol::Hello;

use super::examiner::Examiner;

/// The method as pagewise parses it: a known one of a shipped worker, otherwise a name of the user's own.
pub fn of(hello: &Hello, method: &str) -> Result<Method, String> {
    let shipped = Worker::of_name(&hello.worker).filter(|worker| !matches!(worker, Worker::Other(_)));
    let as_shipped = shipped.and_then(|worker| format!("{worker}/{method}").parse().ok());
    match as_shipped {
        Some(known) => Ok(known),
        None => format!("own/{method}").parse::<Method>().map_err(|error| error.to_string()),
    }
}

/// Bytes that a runtime may read by calls for itself, such as its classes.
const OWN_CALL_BYTES: u64 = 2 << 20;

/// Counters of the worker before the accesses to a file.
pub struct CountersBefore {
    pid: u32,
    counters: ProcessCounters,
}

impl CountersBefore {
    /// Read them.
    pub fn of(pid: u32) -> Self {
        Self { pid, counters: process::totals(pid) }
    }

    /// Record whether the accesses to `bytes` of the file contradict the method's name. An unknown name claims nothing.
    pub fn record(
        &self,
        examiner: &mut Examiner<'_>,
        key: &FileKey,
        method: &Method,
        workload: Workload,
        bytes: u64,
    ) {
        if method.access() != Access::Unknown {
            examiner.record("does what its name says", self.check(key, method, workload, bytes));
        }
    }

    fn check(&self, key: &FileKey, method: &Method, workload: Workload, bytes: u64) -> Result<(), String> {
        let pid = self.pid;
        let done = ProcessCounters::difference(&self.counters, &process::totals(pid));
        let writes = !workload.is_reading();
        let called = if writes { done.write_call_bytes } else { done.read_call_bytes };
        let calls = if writes { "write calls" } else { "read calls" };
        match method.access() {
            Access::Pread | Access::Read | Access::Pwrite | Access::Write => {
                if let Some(called) = called.filter(|called| *called < bytes) {
                    return Err(format!(
                        "{called} bytes went through {calls} (/proc/PID/io), {bytes} were claimed: '{method}' moves its \
                         bytes through {calls}; choose another name if yours does not"
                    ));
                }
            }
            Access::Mmap => {
                if let Some(called) = called.filter(|called| *called >= bytes.max(OWN_CALL_BYTES)) {
                    return Err(format!(
                        "{called} bytes went through {calls} (/proc/PID/io), {bytes} were claimed: '{method}' moves its \
                         bytes through a mapping; choose another name if yours does not"
                    ));
                }
                mapped(pid, key, method)?;
            }
            Access::Uring | Access::Anonymous | Access::Unknown => {}
        }
        if method.is_direct() && process::descriptor_direct(pid, key) == Some(false) {
            return Err(format!(
                "its descriptor has no O_DIRECT (/proc/PID/fdinfo): '{method}' opens with it"
            ));
        }
        Ok(())
    }
}

/// Fail unless the file is mapped with the advice in the method's name.
fn mapped(pid: u32, key: &FileKey, method: &Method) -> Result<(), String> {
    let Ok(mapping) = process::mapping(pid, key) else { return Ok(()) };
    let Some(mapping) = mapping else {
        return Err(format!("it has no mapping of the file (/proc/PID/maps): '{method}' maps it"));
    };
    mapping.vm_flags.and_then(|flags| missing_advice(method, &flags)).map_or(Ok(()), Err)
}

/// Fail if a mapping extends beyond the span.
pub fn check_span(pid: u32, key: &FileKey, span_bytes: u64, page_bytes: u64) -> Result<(), String> {
    match process::mapping(pid, key) {
        Ok(Some(mapping)) if mapping.mapped_bytes > span_bytes.next_multiple_of(page_bytes) => Err(format!(
            "{} bytes of the file are mapped, the span has {span_bytes}: map and advise the span only",
            mapping.mapped_bytes
        )),
        _ => Ok(()),
    }
}
