//! Names that people bring from other programs, and misspelt ones: the methods that they probably
//! mean here.

use super::access_methods;
use super::options::OptionEntry;
use super::{Access, MethodOption, Worker};
use crate::misspelt::nearest;

/// A name elsewhere, and the methods that do the same; capitals and underscores do not count.
pub const BROUGHT: &[(&str, &[&str])] = &[
    ("BufferedReader", &["jvm/buffered-reader"]),
    ("BufferedWriter", &["python/buffered-writer"]),
    ("DirectIODirectory", &["jvm/pread:direct"]),
    ("FileChannel", &["jvm/filechannel:direct-buffer", "jvm/filechannel:heap-buffer"]),
    ("MMapDirectory", &["jvm/mmap", "jvm/mmap:random"]),
    ("MappedByteBuffer", &["jvm/mapped-byte-buffer", "jvm/mmap"]),
    ("MemorySegment", &["jvm/mmap"]),
    ("NIOFSDirectory", &["jvm/filechannel:heap-buffer"]),
    ("fallocate", &["mmap:prealloc", "pwrite:prealloc"]),
    ("fread", &["read"]),
    ("fwrite", &["write:buffer=4KiB"]),
    ("io_uring", &["uring"]),
    ("libaio", &["uring:direct"]),
    ("liburing", &["uring"]),
    ("madvise", &["mmap:random", "mmap:sequential", "mmap:willneed"]),
    ("mlock", &["mmap:lock"]),
    ("os.pread", &["python/pread"]),
    ("os.write", &["python/write"]),
    ("posix_fadvise", &["pread:random", "pread:sequential", "pread:willneed"]),
    ("pread64", &["pread"]),
    ("preadv", &["pread"]),
    ("preadv2", &["pread"]),
    ("psync", &["pread", "pwrite"]),
    ("pwrite64", &["pwrite"]),
    ("pwritev", &["pwrite"]),
    ("readahead", &["pread:willneed"]),
    ("readv", &["read"]),
    ("sync", &["read", "write"]),
    ("writev", &["write"]),
];

/// Names of languages before the slash, and the worker of each.
const LANGUAGES: &[(&str, Worker)] = &[
    ("c", Worker::Native),
    ("golang", Worker::Go),
    ("java", Worker::Jvm),
    ("kotlin", Worker::Jvm),
    ("py", Worker::Python),
    ("python3", Worker::Python),
    ("rust", Worker::Native),
    ("scala", Worker::Jvm),
];

fn folded(name: &str) -> String {
    name.chars().filter(|letter| !"_-. ()".contains(*letter)).collect::<String>().to_ascii_lowercase()
}

/// The worker that a language has.
pub fn worker_of(language: &str) -> Option<&'static Worker> {
    LANGUAGES.iter().find(|(name, _)| *name == language).map(|(_, worker)| worker)
}

/// The methods that a name from elsewhere stands for; flags of the kernel are those that the
/// options name.
pub fn methods_of(name: &str) -> Vec<String> {
    let brought = BROUGHT.iter().find(|(known, _)| folded(known) == folded(name));
    if let Some((_, methods)) = brought {
        return methods.iter().map(|method| method.to_string()).collect();
    }
    let flag = name.to_ascii_uppercase();
    if !flag.contains('_') {
        return Vec::new();
    }
    let names = |entry: &&OptionEntry| {
        entry
            .meaning
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .any(|word| word == flag)
    };
    let of_mapping = flag.starts_with("MADV_") || flag.starts_with("MAP_");
    let accesses = |entry: &OptionEntry| {
        let all = [entry.reads, entry.scans, entry.writes].concat();
        let fitting = all.into_iter().find(|access| (*access == Access::Mmap) == of_mapping);
        fitting.map(|access| format!("{}:{}", access.name(), entry.option.usage()))
    };
    let mut methods: Vec<String> = MethodOption::TABLE.iter().filter(names).filter_map(accesses).collect();
    methods.dedup();
    methods
}

/// Suggestion for an unknown word of `worker`, as the end of a message; empty if nothing is known.
pub(super) fn of_unknown(worker: &Worker, word: &str) -> String {
    let methods = methods_of(word);
    if !methods.is_empty() {
        return format!("; '{word}' is called {} here", methods.join(" or "));
    }
    let words = access_methods::of(worker).iter().map(|way| way.word);
    nearest(word, words).map_or_else(String::new, |word| format!("; did you mean '{word}'?"))
}

/// Suggestion for an unknown option, as the end of a message.
pub(super) fn of_unknown_option(option: &str, accepted: &str) -> String {
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_string();
    let accepted: Vec<String> = accepted.split(", ").map(name).collect();
    nearest(&name(option), accepted.iter().map(String::as_str))
        .map_or_else(String::new, |word| format!("; did you mean '{word}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Method;

    #[test]
    fn names_from_elsewhere_lead_to_methods_that_exist() {
        for (name, methods) in BROUGHT {
            assert!(name.parse::<Method>().is_err(), "{name} is a method of ours");
            for method in *methods {
                assert!(method.parse::<Method>().is_ok(), "{name}: {method}");
            }
        }
        for (name, method) in [
            ("MMapDirectory", "jvm/mmap"),
            ("mmapdirectory", "jvm/mmap"),
            ("IO_URING", "uring"),
            ("MADV_RANDOM", "mmap:random"),
            ("madv_populate_read", "mmap:populate-read"),
            ("POSIX_FADV_NOREUSE", "pread:noreuse"),
            ("MAP_POPULATE", "mmap:populate"),
            ("O_DIRECT", "pread:direct"),
            ("RWF_DONTCACHE", "pread:dontcache"),
        ] {
            assert_eq!(methods_of(name).first().map(String::as_str), Some(method), "{name}");
        }
        assert!(methods_of("walk").is_empty() && methods_of("MADV").is_empty());
    }

    #[test]
    fn a_message_ends_with_what_was_probably_meant() {
        let phrase = |text: &str| text.parse::<Method>().expect_err(text).to_string();
        for (text, end) in [
            ("NIOFSDirectory", "; 'NIOFSDirectory' is called jvm/filechannel:heap-buffer here"),
            ("fread", "; 'fread' is called read here"),
            ("posix_fadvise", "is called pread:random or pread:sequential or pread:willneed here"),
            ("mmapp", "; did you mean 'mmap'?"),
            ("mmap:rndom", "; did you mean 'random'?"),
            ("uring:depht=4", "; did you mean 'depth'?"),
            ("jvm/preads", "; did you mean 'pread'?"),
            ("walk", "the methods are mmap, pread, read, pwrite, write, uring"),
        ] {
            assert!(phrase(text).ends_with(end), "{}", phrase(text));
        }
    }
}
