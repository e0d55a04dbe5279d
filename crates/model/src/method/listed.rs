//! Every method, for people: from the tables of words and the registry of options.

use super::access_methods;
use super::options::Since;
use super::{Access, MethodOption, Worker};
use crate::groups::distinct;
use crate::work::Workload;

/// A word for an access in some workloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMethod {
    /// The worker.
    pub worker: Worker,
    /// The word before the options.
    pub word: &'static str,
    /// The access as the kernel sees it.
    pub access: Access,
    /// Effect, in a line.
    pub meaning: String,
    /// The system calls behind it in these workloads.
    pub calls: String,
    /// Accepted options in any of the workloads.
    pub options: Vec<MethodOption>,
}

/// The methods of all shipped workers that take one of `workloads`.
pub fn listed(workloads: &[Workload]) -> Vec<ListedMethod> {
    let mut listed = Vec::new();
    for worker in Worker::SHIPPED {
        for way in access_methods::of(&worker) {
            let taken: Vec<&[MethodOption]> =
                workloads.iter().filter_map(|workload| way.taken(*workload)).collect();
            if taken.is_empty() {
                continue;
            }
            let suited = workloads.iter().filter(|workload| way.taken(**workload).is_some());
            let accesses = suited.map(|workload| way.access.in_workload(*workload));
            let mut calls: Vec<&str> = accesses.map(Access::calls).collect();
            calls.dedup();
            let calls = calls.join(", ");
            let options: Vec<MethodOption> = distinct(taken.into_iter().flatten().copied());
            let meaning =
                if way.meaning.is_empty() { way.access.meaning() } else { &way.meaning }.to_string();
            listed.push(ListedMethod {
                worker: worker.clone(),
                word: way.word,
                access: way.access,
                meaning,
                calls,
                options,
            });
        }
    }
    listed
}

impl Access {
    /// Effect in the native worker, in a line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Access::Mmap => "a shared mapping: each page that is absent is a page fault",
            Access::Pread => "a call for each read, at its offset, through the C library",
            Access::Read => "a stream, front to back",
            Access::Pwrite => "a call for each record or buffer, at its offset, through the C library",
            Access::Write => "a stream, front to back",
            Access::Uring => "several reads or writes in flight, through a ring",
            Access::Anonymous => "copying memory: a ceiling",
            Access::Unknown => "known to its worker only",
        }
    }

    /// The system calls behind it.
    pub const fn calls(self) -> &'static str {
        match self {
            Access::Mmap => "mmap(2)",
            Access::Pread => "pread(2), preadv2(2)",
            Access::Read => "read(2)",
            Access::Pwrite => "pwrite(2)",
            Access::Write => "write(2)",
            Access::Uring => "io_uring_enter(2)",
            Access::Anonymous | Access::Unknown => "",
        }
    }

    /// The kernel it requires.
    pub const fn since(self) -> Since {
        match self {
            Access::Uring => Since::Refused("5.1"),
            _ => Since::Always,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_a_meaning_and_is_listed_where_it_is_taken() {
        let all = listed(Workload::ALL);
        for method in &all {
            assert!(!method.meaning.is_empty() && !method.calls.is_empty(), "{method:?}");
        }
        let words = |workload| -> Vec<String> {
            let of = listed(&[workload]).into_iter();
            of.filter(|method| method.worker == Worker::Native)
                .map(|method| method.word.to_string())
                .collect()
        };
        assert_eq!(words(Workload::RandomRead), ["mmap", "pread", "uring"]);
        assert_eq!(words(Workload::Append), ["mmap", "pwrite", "write", "uring"]);
        let bufio = |workload| {
            listed(&[workload]).into_iter().find(|method| method.word == "bufio").expect("of Go").calls
        };
        assert_eq!((&*bufio(Workload::Scan), &*bufio(Workload::Append)), ("read(2)", "write(2)"));
        // What a runtime calls by a name of its own is named so.
        let named = all.iter().find(|method| method.word == "filechannel").expect("of the JVM");
        assert!(named.meaning.contains("FileChannel.read"), "{named:?}");
        assert_eq!(named.calls, "pread(2), preadv2(2), pwrite(2)");
    }
}
