//! The sources of the shipped workers, as a part of the program.

/// A source file of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceFile {
    /// Name, without a folder.
    pub name: &'static str,
    /// Content.
    pub text: &'static str,
}

macro_rules! sources {
    ($folder:literal, $ending:literal: $($name:ident)+) => {
        &[$(SourceFile {
            name: concat!(stringify!($name), $ending),
            text: include_str!(concat!("../../workers/", $folder, "/", stringify!($name), $ending)),
        }),+]
    };
}

pub(super) const JVM: &[SourceFile] = sources!(
    "jvm/pagewise", ".java":
    CallFailure CommitSampling Commits JobThreads Failures Files FixedSampling Gaps Heap Heartbeats
    Histogram Job Json Libc Native Offers Part Pieces Policy Prefetcher Reader Readers Request Sampling Scanner
    Scanners Stalls Target TimedSampling Updates Words Work Worker Writers
);

pub(super) const GO: &[SourceFile] = sources!(
    "go", ".go":
    amount commit consume threads failure file heartbeat histogram main offers reads records scan stalls
    syncs table_pieces task timed updates writers
);

pub(super) const PYTHON: &[SourceFile] = sources!(
    "python", ".py":
    amount threads failures heartbeat histogram loops offers pieces records samples sources stalls
    target tasks updates worker
);

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
