//! The calls that concern files: one line each.

use std::sync::LazyLock;

use pagewise_model::watched::{AdviceSubject, Call, Position, ReadOrder, Transfer};
use syscalls::Sysno;

/// The arguments of a call.
type Arguments = [u64; 6];

/// MAP_POPULATE on all architectures but alpha, mips, parisc and xtensa.
const MAP_POPULATE: u64 = 0x8000;
const CLONE_FILES: u64 = 0x400;
/// MADV_POPULATE_READ and MADV_POPULATE_WRITE.
const POPULATING: [u64; 2] = [22, 23];

/// POSIX_FADV_NORMAL, POSIX_FADV_RANDOM and POSIX_FADV_SEQUENTIAL, whose numbers are those of
/// MADV_NORMAL and so on.
const READ_ORDERS: [ReadOrder; 3] = [ReadOrder::Normal, ReadOrder::Random, ReadOrder::Sequential];

/// POSIX_FADV_WILLNEED, whose number is that of MADV_WILLNEED.
const WILL_NEED: u64 = 3;
/// Other advice that changes what is cached of a file. MADV_DONTNEED leaves its pages in the page
/// cache.
const OF_FILES: [(u64, &str); 2] = [(4, "POSIX_FADV_DONTNEED"), (5, "POSIX_FADV_NOREUSE")];
const OF_MAPPINGS: [(u64, &str); 5] = [
    (9, "MADV_REMOVE"),
    (14, "MADV_HUGEPAGE"),
    (20, "MADV_COLD"),
    (21, "MADV_PAGEOUT"),
    (25, "MADV_COLLAPSE"),
];

/// The meaning of a call with these arguments.
type Meaning = fn(&Arguments) -> Call;

/// A call: its name in tracefs, and its meaning.
pub(super) type WatchedCall = (&'static str, Meaning);

/// Not all architectures have all of them.
#[rustfmt::skip]
pub(super) const CALLS: &[WatchedCall] = &[
    ("read", |arguments| Call::Read(at(arguments, Position::Current))),
    ("readv", |arguments| Call::Read(at(arguments, Position::Current))),
    ("pread64", |arguments| Call::Read(at(arguments, Position::Offset(arguments[3])))),
    ("preadv", |arguments| Call::Read(at(arguments, Position::Offset(arguments[3])))),
    ("preadv2", |arguments| Call::Read(at(arguments, offset_or_current(arguments[3])))),
    ("sendfile64", |arguments| Call::Copy {
        from: Transfer { descriptor: arguments[1] as i32, at: hidden_or_current(arguments[2]) },
        to: at(arguments, Position::Current),
    }),
    ("copy_file_range", copied),
    ("splice", copied),
    ("write", |arguments| Call::Write(at(arguments, Position::Current))),
    ("writev", |arguments| Call::Write(at(arguments, Position::Current))),
    ("pwrite64", |arguments| Call::Write(at(arguments, Position::Offset(arguments[3])))),
    ("pwritev", |arguments| Call::Write(at(arguments, Position::Offset(arguments[3])))),
    ("pwritev2", |arguments| Call::Write(at(arguments, offset_or_current(arguments[3])))),
    ("lseek", |arguments| Call::Seek { descriptor: arguments[0] as i32 }),
    ("open", |_| Call::Open),
    ("openat", |_| Call::Open),
    ("openat2", |_| Call::Open),
    ("creat", |_| Call::Open),
    ("close", |arguments| Call::Close { descriptor: arguments[0] as i32 }),
    ("dup", |_| Call::Duplicate),
    ("dup2", |_| Call::Duplicate),
    ("dup3", |_| Call::Duplicate),
    ("fsync", |arguments| Call::Sync { descriptor: arguments[0] as i32 }),
    ("fdatasync", |arguments| Call::Sync { descriptor: arguments[0] as i32 }),
    ("syncfs", |arguments| Call::Sync { descriptor: arguments[0] as i32 }),
    ("sync_file_range", |arguments| Call::Sync { descriptor: arguments[0] as i32 }),
    ("msync", |arguments| Call::SyncMapped { address: arguments[0] }),
    ("mmap", |arguments| if arguments[3] & MAP_POPULATE != 0 { Call::Populate { address: None } } else { Call::Other }),
    ("mremap", |arguments| Call::Remap { from: arguments[0], from_len: arguments[1], to_len: arguments[2] }),
    ("unshare", |arguments| if arguments[0] & CLONE_FILES != 0 { Call::OwnDescriptors } else { Call::Other }),
    ("madvise", |arguments| match READ_ORDERS.get(arguments[2] as usize) {
        Some(order) => Call::ExpectMapped { address: arguments[0], order: *order },
        None if POPULATING.contains(&arguments[2]) => populate(arguments),
        None if arguments[2] == WILL_NEED => Call::ReadAheadMapped { address: arguments[0], len: arguments[1] },
        None => otherwise(&OF_MAPPINGS, arguments[2], AdviceSubject::Mapping(arguments[0])),
    }),
    ("mlock", populate),
    ("mlock2", populate),
    ("mlockall", |_| Call::Populate { address: None }),
    ("fadvise64", |arguments| match READ_ORDERS.get(arguments[3] as usize) {
        Some(order) => Call::Expect { descriptor: arguments[0] as i32, order: *order },
        None if arguments[3] == WILL_NEED => read_ahead(arguments),
        None => otherwise(&OF_FILES, arguments[3], AdviceSubject::Descriptor(arguments[0] as i32)),
    }),
    ("readahead", read_ahead),
    ("io_uring_enter", |arguments| Call::Ring { submitted: arguments[1] as u32 }),
];

/// The arguments of readahead(2), with which those of posix_fadvise(2) begin.
fn read_ahead(arguments: &Arguments) -> Call {
    let [descriptor, offset, len, ..] = *arguments;
    Call::ReadAhead { descriptor: descriptor as i32, offset, len }
}

fn otherwise(known: &[(u64, &'static str)], number: u64, on: AdviceSubject) -> Call {
    let found = known.iter().find(|(advice, _)| *advice == number);
    found.map_or(Call::Other, |(_, advice)| Call::AdviseOtherwise { on, advice })
}

/// Each descriptor of splice(2) and copy_file_range(2) has the address of its offset behind it.
fn copied(arguments: &Arguments) -> Call {
    let to = Transfer { descriptor: arguments[2] as i32, at: hidden_or_current(arguments[3]) };
    Call::Copy { from: at(arguments, hidden_or_current(arguments[1])), to }
}

fn populate(arguments: &Arguments) -> Call {
    Call::Populate { address: Some(arguments[0]) }
}

fn at(arguments: &Arguments, at: Position) -> Transfer {
    Transfer { descriptor: arguments[0] as i32, at }
}

/// An offset of -1 stands for the current position (preadv2(2)).
fn offset_or_current(offset: u64) -> Position {
    if offset == u64::MAX { Position::Current } else { Position::Offset(offset) }
}

/// The offset is in the program's memory; without an address there, the descriptor's position.
fn hidden_or_current(address: u64) -> Position {
    if address == 0 { Position::Current } else { Position::Hidden }
}

/// True if the result of a call may be a descriptor that it binds.
pub(super) fn binds((_, meaning): &WatchedCall) -> bool {
    matches!(meaning(&Arguments::default()), Call::Open | Call::Duplicate)
}

/// The number of a call; `None`: this architecture does not have it.
pub(super) fn number((name, _): &WatchedCall) -> Option<i32> {
    // The kernel's function has another name there.
    let name = if *name == "sendfile64" { "sendfile" } else { name };
    name.parse::<Sysno>().ok().map(|call| call.id())
}

/// The meaning of the call of a record, by its number; `None`: it is no call of these.
pub(super) fn called(raw: &[u8]) -> Option<Call> {
    static BY_NUMBER: LazyLock<Vec<Option<Meaning>>> = LazyLock::new(by_number);
    // The tracepoint of one call has no more of a word than its first half.
    let number = i32::from_ne_bytes(*raw.get(8..)?.first_chunk()?);
    let meaning = BY_NUMBER.get(usize::try_from(number).ok()?).copied().flatten()?;
    Some(meaning(&arguments(raw)))
}

/// The meanings of calls at their numbers, which are small: each record of a call is looked up.
fn by_number() -> Vec<Option<Meaning>> {
    let mut meanings = Vec::new();
    for call in CALLS {
        let Some(number) = number(call).and_then(|number| usize::try_from(number).ok()) else { continue };
        meanings.resize(meanings.len().max(number + 1), None);
        meanings[number] = Some(call.1);
    }
    meanings
}

/// The arguments in the record of a call's tracepoint: words from byte 16 on, as many as the call
/// has.
fn arguments(raw: &[u8]) -> Arguments {
    let mut arguments = Arguments::default();
    let words = raw.get(16..).unwrap_or_default().chunks_exact(8);
    for (argument, word) in arguments.iter_mut().zip(words) {
        *argument = word.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
    }
    arguments
}

/// The result of a call, in the record of its tracepoint.
pub(super) fn returned(raw: &[u8]) -> Option<i64> {
    Some(i64::from_ne_bytes(*raw.get(16..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str, words: &[u64]) -> Call {
        let call = CALLS.iter().find(|(known, _)| *known == name).expect("a call");
        let raw = record(number(call).expect("its number"), words);
        super::called(&raw).expect("a call of these")
    }

    /// The record of a call with this number.
    fn record(number: i32, words: &[u64]) -> Vec<u8> {
        let mut raw: Vec<u8> = [0, 0].iter().chain(words).flat_map(|word: &u64| word.to_ne_bytes()).collect();
        raw[8..12].copy_from_slice(&number.to_ne_bytes());
        raw
    }

    #[test]
    fn arguments_are_where_the_call_has_them() {
        let read = |at| Call::Read(Transfer { descriptor: 3, at });
        assert_eq!(called("pread64", &[3, 0x7f00, 4096, 8192]), read(Position::Offset(8192)));
        assert_eq!(called("preadv2", &[3, 0, 1, u64::MAX, 0, 0]), read(Position::Current));
        let moved = |from, to| Call::Copy {
            from: Transfer { descriptor: 3, at: from },
            to: Transfer { descriptor: 9, at: to },
        };
        let (hidden, current) = (Position::Hidden, Position::Current);
        assert_eq!(called("sendfile64", &[9, 3, 0, 10]), moved(current, current));
        assert_eq!(called("sendfile64", &[9, 3, 0x7f00, 10]), moved(hidden, current));
        assert_eq!(called("copy_file_range", &[3, 0, 9, 0x7f00, 10]), moved(current, hidden));
        assert_eq!(called("splice", &[3, 0x7f00, 9, 0, 10]), moved(hidden, current));
        let expected = Call::Expect { descriptor: 3, order: ReadOrder::Random };
        assert_eq!(
            (called("fadvise64", &[3, 0, 0, 1]), called("fadvise64", &[3, 0, 0, 9])),
            (expected, Call::Other)
        );
        assert_eq!(called("close", &[u64::from(u32::MAX)]), Call::Close { descriptor: -1 });
        let populated = [called("mmap", &[0, 4096, 1, MAP_POPULATE]), called("madvise", &[0x7000, 4096, 22])];
        assert_eq!(populated, [None, Some(0x7000)].map(|address| Call::Populate { address }));
        assert_eq!(called("mmap", &[0x7000, 4096, 1, 2]), Call::Other);
        let ahead = Call::ReadAhead { descriptor: 3, offset: 4096, len: 100 };
        assert_eq!(
            [called("readahead", &[3, 4096, 100]), called("fadvise64", &[3, 4096, 100, 3])],
            [ahead; 2]
        );
        let mapped = Call::ReadAheadMapped { address: 0x7000, len: 100 };
        assert_eq!(called("madvise", &[0x7000, 100, 3]), mapped);
        let (file, mapping) = (AdviceSubject::Descriptor(3), AdviceSubject::Mapping(0x7000));
        for (found, on, advice) in [
            (called("fadvise64", &[3, 0, 0, 4]), file, "POSIX_FADV_DONTNEED"),
            (called("madvise", &[0x7000, 100, 21]), mapping, "MADV_PAGEOUT"),
        ] {
            assert_eq!(found, Call::AdviseOtherwise { on, advice });
        }
        assert_eq!(called("madvise", &[0x7000, 100, 4]), Call::Other, "pages stay in the page cache");
        assert_eq!(called("io_uring_enter", &[3, 32, 0, 0, 0, 0]), Call::Ring { submitted: 32 });
        assert_eq!([-1, 100_000].map(|number| super::called(&record(number, &[3]))), [None, None]);
        assert_eq!(super::called(&[0; 11]), None);
        assert_eq!(returned(&[0xff; 24]), Some(-1));
        assert_eq!(returned(&[0xff; 20]), None);
    }
}
