//! The sources of the shipped workers, as a part of the program.

use super::Language;

/// A source file of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name, without a folder.
    pub name: &'static str,
    /// Its content.
    pub text: &'static str,
}

macro_rules! sources {
    ($folder:literal, $($name:literal)+) => {
        &[$(SourceFile { name: $name, text: include_str!(concat!("../../../../workers/", $folder, "/", $name)) }),+]
    };
}

const JVM: &[SourceFile] = sources!(
    "jvm/pagewise",
    "CallFailure.java"
    "CommitSampling.java"
    "Commits.java"
    "JobThreads.java"
    "Failures.java"
    "Files.java"
    "FixedSampling.java"
    "Gaps.java"
    "Heap.java"
    "Heartbeats.java"
    "Histogram.java"
    "Job.java"
    "Json.java"
    "Libc.java"
    "Native.java"
    "Offers.java"
    "Part.java"
    "Pieces.java"
    "Prefetcher.java"
    "Reader.java"
    "Readers.java"
    "Request.java"
    "Sampling.java"
    "Scanner.java"
    "Scanners.java"
    "Stalls.java"
    "Target.java"
    "TimedSampling.java"
    "Words.java"
    "Work.java"
    "Worker.java"
    "Writers.java"
);

const GO: &[SourceFile] = sources!(
    "go",
    "amount.go"
    "commit.go"
    "consume.go"
    "threads.go"
    "failure.go"
    "file.go"
    "heartbeat.go"
    "histogram.go"
    "main.go"
    "offers.go"
    "reads.go"
    "records.go"
    "scan.go"
    "stalls.go"
    "syncs.go"
    "table_pieces.go"
    "task.go"
    "timed.go"
    "writers.go"
);

const PYTHON: &[SourceFile] = sources!(
    "python",
    "amount.py"
    "threads.py"
    "failures.py"
    "heartbeat.py"
    "histogram.py"
    "loops.py"
    "offers.py"
    "pieces.py"
    "records.py"
    "samples.py"
    "sources.py"
    "stalls.py"
    "target.py"
    "tasks.py"
    "worker.py"
);

/// The files of a language's worker.
pub(super) const fn of(language: Language) -> &'static [SourceFile] {
    match language {
        Language::Jvm => JVM,
        Language::Go => GO,
        Language::Python => PYTHON,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_a_worker_is_carried() {
        for (folder, ending, carried) in
            [("jvm/pagewise", ".java", JVM), ("go", ".go", GO), ("python", ".py", PYTHON)]
        {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workers").join(folder);
            let names = std::fs::read_dir(&folder)
                .expect("the folder")
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
            // Tests are not part of the worker.
            let there: BTreeSet<String> = names
                .filter(|name| name.ends_with(ending) && !name.ends_with("_test.go") && name != "vectors.py")
                .collect();
            let carried: BTreeSet<String> = carried.iter().map(|source| source.name.to_string()).collect();
            assert_eq!(carried, there, "{}", folder.display());
        }
    }
}
