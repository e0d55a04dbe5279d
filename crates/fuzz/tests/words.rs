//! Everything that is typed as a word: methods, sizes, times, lists, settings.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use pagewise_fuzz::{Campaign, lines};
use pagewise_model::random::Random;
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

/// A size by its digits, and what it is by exact arithmetic.
fn size(random: &mut Random) -> (String, Option<u64>) {
    const UNITS: [(&str, u32); 5] = [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let (unit, shift) = UNITS[random.below(5) as usize];
    let whole = random.next_u64() >> random.below(64);
    let digits = random.below(10) as u32;
    let fraction = random.below(10u64.pow(digits));
    let space = if random.below(4) == 0 { " " } else { "" };
    let text = match digits {
        0 => format!("{whole}{space}{unit}"),
        _ => format!("{whole}.{fraction:0width$}{space}{unit}", width = digits as usize),
    };
    let scale = 10u128.pow(digits);
    let scaled = (u128::from(whole) * scale + u128::from(fraction)) << shift;
    let bytes = scaled.is_multiple_of(scale).then_some(scaled / scale);
    (text, bytes.and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| *bytes <= i64::MAX as u64))
}

/// A list of CPUs in the kernel's way of writing, with the numbers that it means.
fn cpus(random: &mut Random) -> (String, Vec<u32>) {
    let (mut parts, mut numbers) = (Vec::new(), Vec::new());
    for _ in 0..1 + random.below(6) {
        let first = random.below(8192) as u32;
        let last = (first + random.below(20) as u32).min(8191);
        parts.push(if first == last { first.to_string() } else { format!("{first}-{last}") });
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    (parts.join(","), numbers)
}

#[test]
fn typed_values_are_read_as_they_were_meant() {
    let campaign = Campaign {
        test: "typed_values_are_read_as_they_were_meant",
        target: "typed-words",
        data_bytes: DATA_BYTES,
    };
    campaign.run(|case| {
        let random = &mut case.random;
        match random.below(5) {
            0 | 1 => {
                let (text, wanted) = size(random);
                case.input(text.as_bytes());
                assert_eq!(text.parse::<Bytes>().ok(), wanted.map(Bytes), "{text}");
            }
            2 => {
                let (text, wanted) = cpus(random);
                case.input(text.as_bytes());
                let list: CpuList = text.parse().expect("a list");
                assert_eq!(list.numbers(), wanted, "{text}");
                assert_eq!(list.to_string().parse::<CpuList>().as_ref(), Ok(&list), "{text}");
            }
            3 => {
                let bandwidth = Bytes(1 + random.below(i64::MAX as u64));
                let cap = DeviceCap {
                    read_iops: Some(1 + (random.next_u64() >> random.below(64)).min(u64::MAX - 1)),
                    read_bytes_per_second: Some(bandwidth).filter(|_| random.below(2) == 0),
                };
                assert_eq!(cap.to_string().parse(), Ok(cap));
            }
            _ => {
                let theta_thousandths = 1 + random.below(10_000) as u32;
                let skew = Skew::Zipf { theta_thousandths };
                assert_eq!(skew.to_string().parse(), Ok(skew));
                let sync = Sync::Every(Bytes(1 + random.below(i64::MAX as u64)));
                assert_eq!(sync.to_string().parse(), Ok(sync));
            }
        }
    });
}
