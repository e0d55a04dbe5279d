//! Fuzzed texts of the kernel: torn, reordered, with extreme numbers and lines of other kernels. No
//! parser may panic or overflow, and texts made from typed values must be parsed to the same
//! values.

use pagewise_fuzz::{Campaign, lines};
use pagewise_model::random::Random;

use crate::{cgroup, counters, device, environment, files, kernel_files, memory, mounts, process};

const DATA_BYTES: u64 = 32 << 20;

/// Texts of several kernels, and short ones of the kinds that have no fixture.
const TEXTS: [&str; 20] = [
    include_str!("../tests/fixtures/host-3.10.txt"),
    include_str!("../tests/fixtures/host-5.10-arm64.txt"),
    include_str!("../tests/fixtures/host-6.1.txt"),
    include_str!("../tests/fixtures/host-6.18.txt"),
    include_str!("../tests/fixtures/memory-stat-v1-6.18.txt"),
    include_str!("../tests/fixtures/memory-stat-v2-6.12.txt"),
    include_str!("../tests/fixtures/mountinfo-laptop.txt"),
    include_str!("../tests/fixtures/smaps-3.10.txt"),
    include_str!("../tests/fixtures/smaps-6.18.txt"),
    include_str!("../tests/fixtures/cpuinfo-x86.txt"),
    include_str!("../tests/fixtures/cpuinfo-arm64.txt"),
    "rchar: 6976\nwchar: 77\nsyscr: 10\nsyscw: 3\nread_bytes: 4096\nwrite_bytes: 0\ncancelled_write_bytes: 0\n",
    "7 (a) b (c) S 1 7 7 0 -1 4194304 101 7 3 9 11 12 0 0 20 0 2 0 138501 3133440 407\n",
    "100 20 3\n",
    "Name:\tx\nVmHWM:\t 1780 kB\nCpus_allowed_list:\t0-3,8\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n",
    "   58249  7571 7227074 64734 9046 12084 3946936 26177 0 17792 93504 3854 3 2676384 2573 862 19\n",
    "pos:\t0\nflags:\t0140000\nmnt_id:\t24\n",
    "254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n254:0 rbps=max wbps=max riops=2000 wiops=max\n",
    "254:0 Read 4096\n254:0 Write 0\n254:0 Total 4096\nTotal 4096\n254:0 2000\n",
    "0-3,8\n36608K\n32M\nalways [madvise] never\n254:0\n0x0007\n",
];

/// Pass a text to every parser.
fn read(text: &str, key: &files::FileKey) {
    counters::read_anything(text.as_bytes());
    process::read_anything(text, key);
    cgroup::read_anything(text);
    environment::read_anything(text);
    for mount in mounts::parse(text) {
        mount.kind();
        mount.has_option("compress");
        crate::overlay::read_anything(&mount.options);
    }
    memory::Memory::parse(text);
    let counted: Vec<_> = text.lines().filter_map(device::DeviceCounters::parse).collect();
    for pair in counted.windows(2) {
        device::DeviceCounters::difference(&pair[0], &pair[1]);
    }
    for line in text.lines() {
        kernel_files::device_number(line);
        kernel_files::chosen(line);
    }
    kernel_files::kib_field(text, "VmHWM");
}

fn key() -> files::FileKey {
    let device = rustix::fs::makedev(0xfe, 0);
    files::FileKey { device, inode: 3_366_913, path: "/var/tmp/pagewise data".into() }
}

#[test]
fn changed_texts_of_the_kernel_are_read() {
    let key = key();
    let campaign = Campaign {
        test: "fuzz::changed_texts_of_the_kernel_are_read",
        target: "kernel-texts",
        data_bytes: DATA_BYTES,
    };
    campaign.run(|case| {
        let random = &mut case.random;
        if random.below(8) == 0 {
            return written_values(random);
        }
        let mut draw = || TEXTS[random.below(TEXTS.len() as u64) as usize];
        let (text, donor) = (draw(), draw());
        let part = section(random, text);
        let text = lines::change_often(random, part, donor);
        case.input(text.as_bytes());
        read(&text, &key);
    });
}

/// Some lines of a text, so that a change falls into the parsed part.
fn section<'a>(random: &mut Random, text: &'a str) -> &'a str {
    const MOST_BYTES: u64 = 1000;
    let bound = |at: u64| {
        let at = (at as usize).min(text.len());
        text[..at].rfind('\n').map_or(0, |end| end + 1)
    };
    let from = bound(random.below(text.len() as u64));
    let to = bound(from as u64 + 200 + random.below(MOST_BYTES)).max(from);
    if to > from { &text[from..to] } else { text }
}

/// Check that texts made from values are parsed to those values.
#[track_caller]
fn written_values(random: &mut Random) {
    let mut any = || random.next_u64() >> random.below(64);
    let fields = [any(), any(), any(), any()];
    process::expect_stat(fields, &any().to_string());
    let [requests, read, _, written] = fields.map(|field| field >> 10);
    let text = format!("  {requests} 1 {read} 2 3 4 {written} 5 6");
    let counters = device::DeviceCounters::parse(&text).expect("a stat file");
    assert_eq!((counters.read_requests, counters.read_bytes), (requests, read * 512), "{text}");
    assert_eq!(counters.written_bytes, written * 512, "{text}");
    // A path with characters that mountinfo escapes.
    let path: String = (0..random.below(20))
        .map(|_| ["a", " ", "\t", "\n", "\\", "/", "é"][random.below(7) as usize])
        .collect();
    let escaped: String = path
        .chars()
        .map(|letter| match letter {
            ' ' | '\t' | '\n' | '\\' => format!("\\{:03o}", letter as u32),
            other => other.to_string(),
        })
        .collect();
    assert_eq!(mounts::unescape(&escaped), std::ffi::OsString::from(&path), "{escaped}");
}

#[test]
fn texts_are_read_as_they_stand() {
    TEXTS.iter().for_each(|text| read(text, &key()));
}
