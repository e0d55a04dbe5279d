//! Counters of several kernels, and texts that are not counters.

use super::*;
use proptest::prelude::*;

const TICK_NS: u64 = 10_000_000;

/// A fixture holds the files of one kernel, each after a line `=== NAME`.
fn section<'a>(fixture: &'a str, name: &str) -> Option<&'a [u8]> {
    let (_, behind) = fixture.split_once(&format!("=== {name}\n"))?;
    Some(behind.split("=== ").next().unwrap_or_default().as_bytes())
}

fn parsed(fixture: &str, page_bytes: u64) -> HostCounters {
    let mut host = HostCounters::default();
    parse::stat(section(fixture, "stat").expect("stat"), TICK_NS, &mut host);
    parse::vmstat(section(fixture, "vmstat").expect("vmstat"), page_bytes, &mut host);
    parse::meminfo(section(fixture, "meminfo").expect("meminfo"), &mut host);
    host.tlb_shootdowns = parse::tlb_shootdowns(section(fixture, "interrupts").expect("interrupts"));
    if let Some(text) = section(fixture, "pressure/memory") {
        (host.memory_some_ns, host.memory_full_ns) = parse::pressure(text);
    }
    if let Some(text) = section(fixture, "pressure/io") {
        (host.io_some_ns, host.io_full_ns) = parse::pressure(text);
    }
    host
}

#[test]
fn linux_3_10_counts_reclaim_by_zone_and_knows_neither_refaults_nor_pressure() {
    let wanted = HostCounters {
        running: Some(2),
        blocked: Some(1),
        free_bytes: Some(764_932 << 10),
        buffer_bytes: Some(80_016 << 10),
        cached_bytes: Some((1_586_312 + 343_052) << 10),
        swapped_bytes: Some(97_148 << 10),
        dirty_bytes: Some(84 << 10),
        writeback_bytes: Some(4 << 10),
        swap_in_bytes: Some(1476 * 4096),
        swap_out_bytes: Some(35_045 * 4096),
        block_in_bytes: Some(7_344_136 << 10),
        block_out_bytes: Some(1_541_180_581 << 10),
        interrupts: Some(2_811_908_731),
        context_switches: Some(4_711_908_222),
        major_faults: Some(507_162),
        refaults: None,
        scanned_by_kswapd: Some(465_002),
        scanned_directly: Some(6767),
        reclaimed_by_kswapd: Some(332_001),
        reclaimed_directly: Some(6444),
        tlb_shootdowns: Some(724_690),
        user_ns: Some((8_123_456 + 2311) * TICK_NS),
        system_ns: Some((1_904_311 + 17 + 90_211) * TICK_NS),
        idle_ns: Some(901_234_567 * TICK_NS),
        wait_ns: Some(412_345 * TICK_NS),
        steal_ns: Some(0),
        memory_some_ns: None,
        memory_full_ns: None,
        io_some_ns: None,
        io_full_ns: None,
    };
    assert_eq!(parsed(include_str!("../../tests/fixtures/host-3.10.txt"), 4096), wanted);
}

#[test]
fn arm64_with_large_pages_has_no_shootdowns() {
    let host = parsed(include_str!("../../tests/fixtures/host-5.10-arm64.txt"), 65_536);
    assert_eq!(host.tlb_shootdowns, None);
    assert_eq!((host.swap_in_bytes, host.swap_out_bytes), (Some(35 * 65_536), Some(70 * 65_536)));
    assert_eq!(host.refaults, Some(811_908));
    assert_eq!((host.scanned_by_kswapd, host.scanned_directly), (Some(3_868_525), Some(1483)));
    assert_eq!((host.reclaimed_by_kswapd, host.reclaimed_directly), (Some(3_798_890), Some(1466)));
    assert_eq!((host.running, host.swapped_bytes), (Some(0), Some(256 << 10)));
    assert_eq!((host.memory_some_ns, host.io_full_ns), (None, None));
}

#[test]
fn linux_6_1_after_reading_64_mib_through_the_cache() {
    let host = parsed(include_str!("../../tests/fixtures/host-6.1.txt"), 4096);
    // Read once from the disk and written once to it: pgpgin and pgpgout are KiB.
    assert_eq!((host.block_in_bytes, host.block_out_bytes), (Some(65_585 << 10), Some(65_604 << 10)));
    assert_eq!((host.interrupts, host.context_switches), (Some(5414), Some(3076)));
    assert_eq!(host.tlb_shootdowns, Some(4));
    assert_eq!((host.user_ns, host.system_ns), (Some(16 * TICK_NS), Some(1027 * TICK_NS)));
    assert_eq!((host.memory_some_ns, host.memory_full_ns), (Some(0), Some(0)));
    assert_eq!((host.io_some_ns, host.io_full_ns), (Some(68_083_000), Some(54_061_000)));
    assert_eq!((host.refaults, host.swapped_bytes), (Some(0), Some(0)));
}

#[test]
fn linux_6_12_and_6_18_count_other_reclaim_apart() {
    let older = parsed(include_str!("../../tests/fixtures/host-6.12.txt"), 4096);
    assert_eq!((older.block_in_bytes, older.tlb_shootdowns), (Some(65_585 << 10), Some(14)));
    let host = parsed(include_str!("../../tests/fixtures/host-6.18.txt"), 4096);
    assert_eq!((host.scanned_by_kswapd, host.scanned_directly), (Some(2_127_304), Some(2314)));
    assert_eq!((host.reclaimed_by_kswapd, host.reclaimed_directly), (Some(2_127_299), Some(2314)));
    assert_eq!((host.refaults, host.major_faults), (Some(5_811_512), Some(291_007)));
    assert_eq!(host.tlb_shootdowns, Some(450_431 + 458_238));
    assert_eq!(host.cached_bytes, Some((5_304_544 + 526_260) << 10));
    assert_eq!((host.dirty_bytes, host.writeback_bytes), (Some(281_456 << 10), Some(0)));
    assert_eq!(host.steal_ns, Some(45_169 * TICK_NS));
    assert_eq!((host.memory_some_ns, host.io_some_ns), (Some(533_868_000), Some(711_340_677_000)));
}

#[test]
fn refaults_before_5_9_are_those_of_file_pages() {
    let mut host = HostCounters::default();
    parse::vmstat(b"workingset_refault 157066\nworkingset_activate 104270\n", 4096, &mut host);
    assert_eq!((host.refaults, host.scanned_directly), (Some(157_066), None));
}

#[test]
fn what_a_text_does_not_say_is_unknown() {
    let mut host = HostCounters::default();
    parse::stat(b"cpu  1 2 3 4 5 6 7\nintr\nctxt x\nprocs_running 0\n", TICK_NS, &mut host);
    parse::vmstat(b"pgpgin\npgmajfault -1\npswpin 99999999999999999999\n", 4096, &mut host);
    parse::meminfo(b"MemFree: 12\nCached: 5 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB\n", &mut host);
    // No steal before Linux 2.6.11; memory without its unit; cache without reclaimable slab.
    assert_eq!(host, HostCounters { running: Some(0), ..Default::default() });
    assert_eq!(parse::tlb_shootdowns(b" TLB:   TLB shootdowns\n"), None);
    assert_eq!(parse::pressure(b"some avg10=0.00 total=\nfull total=7\n"), (None, Some(7000)));
}

#[test]
fn a_share_of_steal_needs_time() {
    let ticks = |text: &str| CpuTicks::parse(text.as_bytes());
    assert_eq!(ticks("cpu  1 0 1 4 1 0 1 8 5 6\n").and_then(|ticks| ticks.steal_share()), Some(0.5));
    assert_eq!(ticks("cpu  0 0 0 0 0 0 0 0\n").and_then(|ticks| ticks.steal_share()), None);
    assert_eq!(ticks("cpu  1 2 3\n"), None);
    assert_eq!(ticks(""), None);
}

#[test]
fn totals_are_subtracted_and_gauges_are_the_later() {
    let total = |value| HostCounters { interrupts: Some(value), user_ns: Some(7), ..Default::default() };
    let before = HostCounters { running: Some(9), free_bytes: Some(100), refaults: Some(1), ..total(50) };
    let after = HostCounters { running: Some(1), dirty_bytes: Some(8), ..total(80) };
    let wanted = HostCounters {
        interrupts: Some(30),
        user_ns: Some(0),
        running: Some(1),
        dirty_bytes: Some(8),
        ..Default::default()
    };
    assert_eq!(HostCounters::difference(&before, &after), wanted);
    assert_eq!(HostCounters::difference(&total(80), &total(50)).interrupts, None);
}

#[test]
fn this_host_is_read_again_and_again() {
    let mut reader = HostReader::new();
    let before = reader.read();
    for _ in 0..20 {
        reader.read_often();
    }
    let after = reader.read();
    assert!(before.free_bytes.is_some() && before.context_switches.is_some(), "{before:?}");
    assert!(before.user_ns.is_some() && before.block_in_bytes.is_some(), "{before:?}");
    let done = HostCounters::difference(&before, &after);
    assert!(done.context_switches.is_some(), "{done:?}");
    assert_eq!(HostCounters::difference(&after, &host()).free_bytes.is_some(), after.free_bytes.is_some());
    match before.io_some_ns {
        Some(_) => assert!(done.io_some_ns.is_some(), "{done:?}"),
        None => println!("skipped: psi: this kernel has no pressure stall information"),
    }
}

#[test]
fn a_text_is_read_whole_or_not_at_all() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("text");
    let mut text = KernelText::open(path.to_str().expect("text"));
    assert_eq!(text.read(1 << 20), None);
    for len in [0, 1, 4095, 4096, 4097, 100_000] {
        let bytes = vec![b'x'; len];
        std::fs::write(&path, &bytes).expect("written");
        let mut text = KernelText::open(path.to_str().expect("text"));
        for _ in 0..2 {
            assert_eq!(text.read(1 << 20), Some(&bytes[..]), "{len}");
        }
        // Shorter than before: nothing of the longer text remains.
        std::fs::write(&path, b"short").expect("written");
        assert_eq!(text.read(1 << 20), Some(&b"short"[..]));
    }
    std::fs::write(&path, vec![b'x'; 100_000]).expect("written");
    let mut text = KernelText::open(path.to_str().expect("text"));
    assert_eq!(text.read(64 << 10), None);
}

#[test]
fn large_interrupts_are_left_out_where_they_are_read_often() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("interrupts");
    let many = "  7:  1  1  IO-APIC  some-device\n".repeat(4000);
    std::fs::write(&path, format!("{many}TLB:  3  4  TLB shootdowns\n")).expect("written");
    let mut reader = HostReader::new();
    reader.interrupts = KernelText::open(path.to_str().expect("text"));
    assert_eq!(reader.read_often().tlb_shootdowns, None);
    assert!(reader.interrupts_are_large);
    assert_eq!(reader.read().tlb_shootdowns, Some(7));
    assert_eq!(reader.read_often().tlb_shootdowns, None);
}

pub(crate) fn read_anything(text: &[u8]) -> HostCounters {
    let mut host = HostCounters::default();
    parse::stat(text, TICK_NS, &mut host);
    parse::vmstat(text, 4096, &mut host);
    parse::meminfo(text, &mut host);
    host.tlb_shootdowns = parse::tlb_shootdowns(text);
    (host.memory_some_ns, host.memory_full_ns) = parse::pressure(text);
    host
}

proptest! {
    #[test]
    fn nonsense_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_anything(&bytes);
    }

    /// Nonsense that looks like the kernel's: its words in any order, with the largest numbers.
    #[test]
    fn words_in_disorder_never_panic(
        words in proptest::collection::vec(
            prop_oneof![
                Just("cpu ".to_string()),
                Just("\n".to_string()),
                Just("kB".to_string()),
                Just("some total=18446744073709551615".to_string()),
                Just("\nTLB:".to_string()),
                prop_oneof![
                    Just("\nintr"), Just("\npgscan_direct"), Just("\npgsteal_kswapd_dma"), Just("\npswpin"),
                    Just("\nSwapTotal:"), Just("\nSwapFree:"), Just("\nCached:"), Just("\nSReclaimable:"),
                    Just("\nprocs_running"), Just("\ncpu "),
                ].prop_map(str::to_string),
                any::<u64>().prop_map(|number| number.to_string()),
                Just(u64::MAX.to_string()),
            ],
            0..60,
        )
    ) {
        let host = read_anything(words.join(" ").as_bytes());
        let _ = HostCounters::difference(&host, &HostCounters::default());
    }

    /// A truncated text gives no more than the whole one, and differs only in its last number.
    #[test]
    fn a_text_that_breaks_off_is_read_as_far_as_it_goes(cut in 0usize..9000) {
        let fixture = include_str!("../../tests/fixtures/host-6.18.txt");
        let vmstat = section(fixture, "vmstat").expect("vmstat");
        let whole = { let mut host = HostCounters::default(); parse::vmstat(vmstat, 4096, &mut host); host };
        let mut part = HostCounters::default();
        parse::vmstat(&vmstat[..cut.min(vmstat.len())], 4096, &mut part);
        let pairs = [(part.block_in_bytes, whole.block_in_bytes), (part.refaults, whole.refaults)];
        for (part, whole) in pairs {
            prop_assert!(part.is_none() || part <= whole);
        }
    }
}
