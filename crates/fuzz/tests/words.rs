//! Everything that is typed as a word: methods, sizes, times, lists, settings.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use pagewise_fuzz::{Campaign, lines};
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{
    Bytes, CacheState, Consume, Content, CpuList, Descriptor, DeviceCap, Method, Numa, Skew, Sync, Workload,
};

const DATA_BYTES: u64 = 32 << 20;

/// Words that are taken, and some that nearly are.
const WORDS: [&str; 46] = [
    "mmap",
    "mmap:random+prefetch=16",
    "mmap:in-place+hugepage",
    "mmap:prealloc+populate-write+buffer=64KiB",
    "mmap:pretouch=1MiB",
    "mmap,mmap:random,pread,uring:direct+depth=32",
    "pread:direct",
    "pread:random+dontcache",
    "read:buffer=64KiB",
    "pwrite:buffer=4KiB+prealloc",
    "uring:direct+depth=32+fixed",
    "jvm/filechannel:heap-buffer",
    "go/mmap:buffer=4KiB",
    "python/numpy-memmap",
    "mine/get:fast+depth=7",
    "anonymous",
    "4KiB",
    "1.5GiB",
    "17 B",
    "0.000000001TiB",
    "1536MiB",
    "8191TiB",
    "200ms",
    "1.5s",
    "50us",
    "2min",
    "0-3,8",
    "0-8191",
    "0-8191,0-8191,0-8191,0-8191,0-8191,0-8191,0-8191,0-8191",
    "read-iops=2000,read-bandwidth=50MiB/s",
    "microsd",
    "zipf:0.99",
    "uniform",
    "zipf:10",
    "every:1MiB",
    "end",
    "none",
    "same",
    "other",
    "3",
    "cold-start",
    "per-thread",
    "random-read",
    "touch",
    "lines",
    "1.5x",
];

/// Reads a word; what it means is printed as what is read again, and an error is one line.
#[track_caller]
fn check<T: FromStr + Display + Debug + PartialEq>(text: &str)
where
    T::Err: Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            assert!(printed.parse().is_ok_and(|again: T| again == value), "{text:?}: {value:?}: {printed:?}");
        }
        Err(error) => {
            let message = error.to_string();
            assert!(
                !message.is_empty() && (text.contains('\n') || !message.contains('\n')),
                "{text:?}: {message:?}"
            );
        }
    }
}

#[track_caller]
fn check_all(text: &str) {
    check::<Method>(text);
    check::<Bytes>(text);
    check::<CpuList>(text);
    check::<DeviceCap>(text);
    check::<Skew>(text);
    check::<Sync>(text);
    check::<Numa>(text);
    check::<CacheState>(text);
    check::<Consume>(text);
    check::<Content>(text);
    check::<Descriptor>(text);
    check::<Workload>(text);
    if let Ok(methods) = text.split(',').map(str::parse).collect::<Result<Vec<Method>, _>>() {
        assert_eq!(methods.len(), text.split(',').count());
    }
    if let Ok(ns) = parse_duration_ns(text) {
        assert!((1..=1_000_000_000_000_000).contains(&ns), "{text:?}: {ns}");
        assert_eq!(parse_duration_ns(&format!("{ns}ns")), Ok(ns));
    }
}

#[test]
fn changed_words_are_taken_or_refused() {
    let campaign =
        Campaign { test: "changed_words_are_taken_or_refused", target: "words", data_bytes: DATA_BYTES };
    campaign.run(|case| {
        let random = &mut case.random;
        let mut draw = || WORDS[random.below(WORDS.len() as u64) as usize];
        let (word, donor) = (draw(), draw());
        let text = match random.below(16) {
            // A list that is long for its meaning.
            0 => [word, ","].concat().repeat(1 + random.below(3000) as usize),
            1 => format!("{word},{donor}"),
            2 => format!("{word}:{donor}"),
            3 => format!("{word}+{donor}"),
            _ => lines::change_often(random, word, donor),
        };
        case.input(text.as_bytes());
        check_all(&text);
    });
}

#[test]
fn words_are_taken_as_they_stand() {
    WORDS.iter().for_each(|word| check_all(word));
}
