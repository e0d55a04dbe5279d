//! Inspections of observations that are made up.

use pagewise_model::trace::AccessKind;
use pagewise_model::watched::{
    AdviceSubject, Call, DescriptorBinding, DiskOf, Missing, Observation, ObservationKind, Pages, Position,
    ReadOrder, Tally, Transfer, WatchedFile, What,
};

use pagewise_analysis::inspect::findings;
use pagewise_model::inspection::{By, Calls, InspectedFile, Inspection, Subject, Waits};

use super::Accounts;

const PAGE: u64 = 4096;
const DEVICE: (u32, u32) = (254, 1);

fn file(inode: u64) -> WatchedFile {
    WatchedFile { device: DEVICE, inode, path: format!("/data/{inode}") }
}

fn bound(descriptor: i32, inode: u64) -> What {
    What::Bound {
        descriptor,
        to: DescriptorBinding::File { file: file(inode), len: 1 << 20, direct: false },
        anew: true,
    }
}

fn read(descriptor: i32, at: Position) -> What {
    What::Called(Call::Read(Transfer { descriptor, at }))
}

fn pages(inode: u64, first: u64, count: u64) -> Pages {
    Pages { device: DEVICE, inode, first, count }
}

fn subject() -> Subject {
    Subject { command: "program".into(), process: 1, ..Subject::default() }
}

/// What thread 1 of process 1 did, a microsecond after the other.
fn inspected(observations: Vec<What>) -> Inspection {
    inspected_with(observations, &[], Vec::new())
}

fn inspected_with(observations: Vec<What>, missing: &[Missing], tallies: Vec<Tally>) -> Inspection {
    let mut accounts = Accounts::new(PAGE);
    let end = observations.len() as u64 * 1000;
    for (index, what) in observations.into_iter().enumerate() {
        accounts.add(Observation { time_ns: index as u64 * 1000, process: 1, thread: 1, what });
    }
    accounts.inspection(subject(), (0, end), missing, (tallies, 0))
}

fn only(inspection: &Inspection) -> &InspectedFile {
    let [file] = &inspection.files[..] else { panic!("one file: {:?}", inspection.files) };
    file
}

/// A request of a mapping ends with it, and other advice is named once.
#[test]
fn requests_to_read_ahead_are_those_of_their_files() {
    let mut accounts = Accounts::new(PAGE);
    let start = 1 << 20;
    let mut made = |what| accounts.add(Observation { time_ns: 7, process: 1, thread: 1, what });
    made(bound(3, 7));
    made(What::Mapped { start, len: 4 * PAGE, file: Some((file(8), PAGE)), executable: false });
    let mut called = |call, result| {
        made(What::Called(call));
        made(What::Returned(result)).map(|access| (access.file, access.offset, access.len, access.kind))
    };
    let (by_descriptor, by_mapping) =
        (AccessKind::ReadAhead { mapped: false }, AccessKind::ReadAhead { mapped: true });
    let ahead = |offset, len| Call::ReadAhead { descriptor: 3, offset, len };
    assert_eq!(called(ahead(100, 50), 0), Some((0, 100, 50, by_descriptor)));
    assert_eq!(called(ahead(100, 0), 0), Some((0, 100, i64::MAX as u64 - 100, by_descriptor)));
    assert_eq!(called(ahead(100, 50), -22), None, "it was refused");
    assert_eq!(called(ahead(u64::MAX, 50), 0), None);
    let mapped = |address, len| Call::ReadAheadMapped { address, len };
    assert_eq!(called(mapped(start + PAGE, 1), 0), Some((1, 2 * PAGE, PAGE, by_mapping)));
    assert_eq!(called(mapped(start - PAGE, PAGE), 0), None, "nothing is mapped there");
    let of_mapped_part = called(mapped(start + 3 * PAGE, 9 * PAGE), -12);
    assert_eq!(of_mapped_part, Some((1, 4 * PAGE, PAGE, by_mapping)), "it read what is mapped");
    assert_eq!(called(mapped(start, PAGE), -22), None, "it was refused");
    assert_eq!(called(mapped(start + PAGE, u64::MAX), 0), None);
    assert_eq!(called(mapped(start, 100 * PAGE), 0), Some((1, PAGE, 4 * PAGE, by_mapping)));
    let otherwise = |on| Call::AdviseOtherwise { on, advice: "ADVICE" };
    for on in [
        AdviceSubject::Descriptor(3),
        AdviceSubject::Descriptor(3),
        AdviceSubject::Mapping(start),
        AdviceSubject::Descriptor(9),
    ] {
        called(otherwise(on), 0);
    }
    for order in [ReadOrder::Random, ReadOrder::Random, ReadOrder::Normal] {
        called(Call::Expect { descriptor: 3, order }, 0);
    }
    let inspection = accounts.inspection(subject(), (0, 9), &[], (Vec::new(), 0));
    let mut advice: Vec<_> =
        inspection.files.iter().map(|file| (file.identity.2, &file.other_advice[..])).collect();
    advice.sort_unstable();
    let (of_seven, of_eight) = (
        ["ADVICE".to_string(), "an order of reads that was announced before another one".to_string()],
        [
            "MADV_WILLNEED beyond the mapping in which it begins".to_string(),
            "MADV_WILLNEED of a range that is not mapped all through".to_string(),
            "ADVICE".to_string(),
        ],
    );
    assert_eq!(advice, [(7, &of_seven[..]), (8, &of_eight[..])]);
}

/// A child has its parent's descriptors until it executes its program.
#[test]
fn a_file_is_read_directly_if_a_call_uses_such_a_descriptor_or_opens_it() {
    let found = |descriptor, direct, anew| What::Bound {
        descriptor,
        to: DescriptorBinding::File { file: file(7), len: 1 << 20, direct },
        anew,
    };
    let read_by = |descriptor| [read(descriptor, Position::Offset(0)), What::Returned(4096)];
    let is_direct = |first: Vec<What>, descriptor| {
        only(&inspected(first.into_iter().chain(read_by(descriptor)).collect())).direct
    };
    assert!(!is_direct(vec![found(3, true, false), found(4, false, true)], 4));
    assert!(is_direct(vec![found(3, true, false), found(4, false, true)], 3));
    assert!(is_direct(vec![found(3, true, true), found(4, false, true)], 4));
}

#[test]
fn reads_are_in_order_where_they_begin_at_the_end_of_the_one_before() {
    let mut all = vec![bound(3, 7)];
    let offsets = [0u64, 4096, 8192, 0, 4096];
    for offset in offsets {
        all.extend([read(3, Position::Offset(offset)), What::Returned(4096)]);
    }
    // The position of the descriptor is a matter of its own: it begins at 0, moves with each read,
    // and with a seek.
    all.extend([
        read(3, Position::Current),
        What::Returned(100),
        read(3, Position::Current),
        What::Returned(0),
    ]);
    all.extend([What::Called(Call::Seek { descriptor: 3 }), What::Returned(100)]);
    // A second look at it changes nothing.
    all.push(What::Bound {
        descriptor: 3,
        to: DescriptorBinding::File { file: file(7), len: 1 << 20, direct: false },
        anew: false,
    });
    all.extend([
        read(3, Position::Current),
        What::Returned(50),
        read(3, Position::Offset(9)),
        What::Returned(-5),
    ]);
    let inspection = inspected(all);
    let reads = only(&inspection).reads.as_ref().expect("reads");
    assert_eq!((reads.count, reads.failed, reads.bytes), (9, 1, 5 * 4096 + 150));
    // Of 4096 bytes: at 4096, 8192 and 4096 again; the first has none before it. At 100, after a
    // seek that moved nothing.
    assert_eq!((reads.located, reads.in_order), (6, 4));
    assert_eq!(reads.sizes, [(4096, 5), (50, 1), (100, 1)]);
    assert_eq!(reads.waits.count, 0);
    assert_eq!(only(&inspection).file_bytes, Some(1 << 20));
}

#[test]
fn a_call_waits_while_its_thread_is_blocked_and_not_while_others_have_its_cpu() {
    let blocked = |preempted| [What::Left { preempted, instruction: None }, What::Resumed];
    let mut all = vec![bound(3, 7), read(3, Position::Offset(0))];
    all.extend(blocked(false));
    all.extend(blocked(true));
    all.push(What::Returned(4096));
    all.extend(blocked(false));
    let inspection = inspected(all);
    let reads = only(&inspection).reads.as_ref().expect("reads");
    assert_eq!((reads.waits.count, reads.waits.total_ns), (1, 1000));
    let thread = &inspection.threads[0];
    assert_eq!((thread.waited_ns(), thread.blocked_elsewhere_ns, thread.preempted_ns), (1000, 1000, 1000));
    assert_eq!(thread.watched_ns, 8000);
    let found = findings(&inspection);
    assert_eq!((found.len(), found[0].by, found[0].file, found[0].most), (1, By::Reads, 0, 0.125));
}

#[test]
fn calls_have_their_time_and_what_they_asked_the_device_of_their_file_for() {
    let write = What::Called(Call::Write(Transfer { descriptor: 3, at: Position::Offset(100) }));
    let asked = |device, bytes| What::AskedDevice { device, bytes };
    let mut all = vec![bound(3, 7), asked(DEVICE, 1)];
    // The device below that of the file is asked for the same.
    all.extend([write.clone(), asked(DEVICE, 4096), asked((8, 0), 4096), What::Returned(10)]);
    all.extend([read(3, Position::Offset(0)), asked(DEVICE, 65_536), What::Returned(4096)]);
    let inspection = inspected(all.clone());
    let of = |calls: &Option<Calls>| calls.as_ref().map(|calls| (calls.in_calls_ns, calls.device_read_bytes));
    assert_eq!(of(&only(&inspection).writes), Some((Some(3000), Some(4096))));
    assert_eq!(of(&only(&inspection).reads), Some((Some(2000), Some(65_536))));
    let missing = [Missing { kind: ObservationKind::PageCache, reason: "closed".into() }];
    let blind = inspected_with(all.clone(), &missing, Vec::new());
    assert_eq!(of(&only(&blind).writes), Some((Some(3000), None)));
    // Requests name the disk of a partition, and some filesystems have no disk.
    let disks: [(DiskOf, Option<u64>); 2] = [(|_| Some((8, 0)), Some(4096)), (|_| None, None)];
    for (disk_of, expected) in disks {
        let mut accounts = Accounts::new(PAGE).with_disks(disk_of);
        for what in all.clone() {
            accounts.add(Observation { time_ns: 0, process: 1, thread: 1, what });
        }
        let seen = accounts.inspection(subject(), (0, 1), &[], (Vec::new(), 0));
        assert_eq!(of(&only(&seen).writes).map(|(_, bytes)| bytes), Some(expected));
    }
}

#[test]
fn a_fault_waits_for_the_last_time_that_its_thread_was_blocked() {
    let mapped = |start, file| What::Mapped { start, len: 64 * PAGE, file, executable: false };
    let fault = |page: u64, major| What::Faulted {
        address: (1 << 20) + page * PAGE + 5,
        major,
        window: None,
        instruction: None,
    };
    let inspection = inspected(vec![
        mapped(1 << 20, Some((file(7), 2 * PAGE))),
        // A sleep, and then the fault.
        What::Left { preempted: false, instruction: None },
        What::Resumed,
        What::Left { preempted: false, instruction: None },
        What::Resumed,
        fault(0, true),
        fault(1, false),
        fault(40, false),
        fault(40, false),
        // Nothing was blocked since the fault before.
        fault(3, true),
        mapped(1 << 20, None),
        fault(5, false),
    ]);
    let mapping = only(&inspection).mapping.as_ref().expect("a mapping");
    assert_eq!((mapping.major_faults, mapping.minor_faults, mapping.faulted_pages), (2, 3, 4));
    assert_eq!(mapping.in_order, 1);
    assert_eq!(
        (mapping.waits.count, mapping.waits.total_ns, mapping.waits.longest_ns),
        (1, 1000, Some(1000))
    );
    assert_eq!(inspection.memory_faults, 1);
    let thread = &inspection.threads[0];
    assert_eq!((thread.waited_ns(), thread.blocked_elsewhere_ns), (1000, 1000));
}

#[test]
fn a_fault_within_a_call_is_the_mappings_and_not_the_calls() {
    let inspection = inspected(vec![
        What::Mapped { start: 0, len: PAGE, file: Some((file(8), 0)), executable: false },
        bound(3, 7),
        What::Called(Call::Write(Transfer { descriptor: 3, at: Position::Current })),
        What::Left { preempted: false, instruction: None },
        What::Resumed,
        What::Faulted { address: 0, major: true, window: None, instruction: None },
        What::Returned(10),
    ]);
    let of =
        |path: &str| inspection.files.iter().find(|file| file.path.as_deref() == Some(path)).expect("a file");
    assert_eq!(of("/data/7").writes.as_ref().expect("writes").waits.count, 0);
    assert_eq!(of("/data/8").mapping.as_ref().expect("a mapping").waits.total_ns, 1000);
}

/// Behind readahead a page is there and its read still in flight: the kernel counts the fault as
/// minor, and the thread waits.
#[test]
fn a_minor_fault_waits_if_its_thread_was_blocked_at_the_instruction_that_faulted() {
    let map = || What::Mapped { start: 0, len: 64 * PAGE, file: Some((file(7), 0)), executable: false };
    let blocked = |instruction| [What::Left { preempted: false, instruction }, What::Resumed];
    let fault = |page: u64, major, instruction| What::Faulted {
        address: page * PAGE,
        major,
        window: None,
        instruction,
    };
    let waits = |all: Vec<What>| {
        let inspection = inspected([map()].into_iter().chain(all).collect());
        let thread = &inspection.threads[0];
        (thread.waited_ns(), thread.blocked_elsewhere_ns)
    };
    let (load, behind_sleep) = (Some(0x40_1000), Some(0x40_2000));
    // Blocked twice in one fault: for a free request, and for the page.
    let twice = || blocked(load).into_iter().chain(blocked(load));
    for major in [false, true] {
        assert_eq!(waits(twice().chain([fault(0, major, load)]).collect()), (2000, 0));
        // A sleep in a call that is not watched is none of the fault's.
        let slept = blocked(behind_sleep).into_iter().chain([fault(0, major, load)]);
        assert_eq!(waits(slept.collect()), (0, 1000));
        let both = blocked(behind_sleep).into_iter().chain(blocked(load)).chain([fault(0, major, load)]);
        assert_eq!(waits(both.collect()), (1000, 1000));
    }
    // The next fault of the same instruction has its own waits.
    let next = twice().chain([fault(0, false, load), fault(1, false, load)]);
    assert_eq!(waits(next.collect()), (2000, 0));
    // A fault that a call took, or without an instruction: it is not known where the thread was
    // blocked.
    for (blocked_at, faulted_at) in [(load, None), (None, load), (None, None)] {
        let slept = |major| blocked(blocked_at).into_iter().chain([fault(0, major, faulted_at)]).collect();
        assert_eq!((waits(slept(false)), waits(slept(true))), ((0, 1000), (1000, 0)));
    }
}

#[test]
fn a_pass_over_large_pages_is_in_order() {
    let map = || What::Mapped { start: 0, len: 2048 * PAGE, file: Some((file(7), 0)), executable: false };
    let fault =
        |page: u64| What::Faulted { address: page * PAGE, major: false, window: None, instruction: None };
    let in_order = |first: What| {
        let inspection = inspected(vec![map(), first, fault(0), fault(512), fault(1000), fault(1016)]);
        let mapping = only(&inspection).mapping.clone().expect("a mapping");
        (mapping.in_order, mapping.in_order_pages)
    };
    assert_eq!(in_order(What::BroughtIn(pages(7, 0, 512))), (3, 1016));
    assert_eq!(in_order(What::BroughtIn(pages(7, 0, 16))), (1, 16));
}

/// A read that waits for the device, into memory that is new: the fault is the memory's, the wait
/// the read's.
#[test]
fn a_minor_fault_within_a_call_takes_nothing_from_it() {
    let inspection = inspected(vec![
        bound(3, 7),
        read(3, Position::Offset(0)),
        What::Left { preempted: false, instruction: Some(1) },
        What::Resumed,
        What::Faulted { address: 1 << 30, major: false, window: None, instruction: None },
        What::Returned(4096),
    ]);
    assert_eq!(only(&inspection).reads.as_ref().expect("reads").waits.total_ns, 1000);
    let thread = &inspection.threads[0];
    assert_eq!((thread.waited_ns(), thread.blocked_elsewhere_ns), (1000, 0));
}

#[test]
fn a_copy_is_a_read_of_one_file_and_a_write_of_another() {
    let moved = |descriptor| Transfer { descriptor, at: Position::Current };
    let inspection = inspected(vec![
        bound(3, 7),
        bound(4, 8),
        What::Called(Call::Copy { from: moved(3), to: moved(4) }),
        What::BroughtIn(pages(7, 0, 1)),
        What::Left { preempted: false, instruction: None },
        What::Resumed,
        What::BroughtIn(pages(8, 0, 1)),
        What::Returned(4096),
    ]);
    let of = |inode| inspection.files.iter().find(|file| file.identity.2 == inode).expect("a file");
    let (from, to) = (of(7), of(8));
    let (reads, writes) = (from.reads.as_ref().expect("reads"), to.writes.as_ref().expect("writes"));
    assert_eq!((reads.count, reads.bytes, reads.waits.count), (1, 4096, 1));
    assert_eq!((writes.count, writes.bytes, writes.waits.count), (1, 4096, 0));
    assert!(from.writes.is_none() && to.reads.is_none());
    let brought_in = |file: &InspectedFile| file.brought_in.as_ref().map_or(0, |brought| brought.bytes);
    assert_eq!((brought_in(from), brought_in(to)), (PAGE, 0), "a write brings nothing in");
}

#[test]
fn prefaults_and_syncs_of_a_mapping_are_those_of_its_file() {
    let map = |start| What::Mapped { start, len: 4 * PAGE, file: Some((file(7), 0)), executable: false };
    let call = |call, result| {
        [
            What::Called(call),
            What::Left { preempted: false, instruction: None },
            What::Resumed,
            What::Returned(result),
        ]
    };
    let mut all = vec![What::Called(Call::Populate { address: None }), map(1 << 20)];
    all.extend([What::Left { preempted: false, instruction: None }, What::Resumed, What::Returned(1 << 20)]);
    all.extend(call(Call::Populate { address: Some((1 << 20) + PAGE) }, 0));
    all.extend(call(Call::SyncMapped { address: 1 << 20 }, 0));
    // Not of a file; and a call that failed.
    all.extend(call(Call::Populate { address: Some(1 << 30) }, 0));
    all.extend(call(Call::Populate { address: None }, -12));
    let inspection = inspected(all);
    let waits = |waits: &Option<Waits>| waits.map(|waits| (waits.count, waits.total_ns));
    let file = only(&inspection);
    assert_eq!((waits(&file.prefaults), waits(&file.syncs)), (Some((2, 2000)), Some((1, 1000))));
    let thread = &inspection.threads[0];
    let by: Vec<By> = thread.waits.iter().map(|wait| wait.by).collect();
    assert_eq!((by, thread.blocked_elsewhere_ns), (vec![By::Prefaults, By::Syncs], 2000));
}

#[test]
fn what_was_never_touched_is_an_interval() {
    let map = || What::Mapped { start: 0, len: 1000 * PAGE, file: Some((file(7), 0)), executable: false };
    let mut all = vec![map()];
    all.extend([
        What::BroughtIn(pages(7, 0, 100)),
        What::Faulted { address: 0, major: true, window: None, instruction: None },
    ]);
    all.push(What::MappedAround(pages(7, 0, 16)));
    let brought = |inspection: &Inspection| only(inspection).brought_in.clone().expect("pages");
    let found = brought(&inspected(all.clone()));
    assert_eq!((found.by_faults_bytes, found.by_calls_bytes, found.again_bytes), (100 * PAGE, 0, 0));
    assert_eq!((found.untouched_at_least, found.untouched_at_most), (Some(0.84), Some(0.99)));
    assert_eq!(found.per_faulted, Some(100.0));

    // Pages that came in twice, and those of a write, which come from nowhere.
    let mut again = all.clone();
    again.extend([What::BroughtIn(pages(7, 90, 20)), bound(3, 7)]);
    again.push(What::Called(Call::Write(Transfer { descriptor: 3, at: Position::Current })));
    again.extend([What::BroughtIn(pages(7, 500, 1)), What::Returned(1)]);
    let found = brought(&inspected(again));
    assert_eq!((found.bytes, found.again_bytes), (120 * PAGE, 10 * PAGE));

    // A read may use pages that a fault brought in, large pages are mapped unseen, and so are those
    // that are populated.
    let others: [Vec<What>; 3] = [
        vec![bound(3, 7), read(3, Position::Offset(0)), What::Returned(1)],
        vec![What::BroughtIn(pages(7, 512, 512))],
        vec![What::Called(Call::Populate { address: None }), What::Returned(0)],
    ];
    for more in others {
        let found = brought(&inspected(all.iter().cloned().chain(more).collect()));
        assert_eq!(found.untouched_at_least, None);
        assert!(found.untouched_at_most.expect("a bound") >= 0.99);
    }
    let missing = [Missing { kind: ObservationKind::MappedAround, reason: "an older kernel".into() }];
    let found = brought(&inspected_with(all, &missing, Vec::new()));
    assert_eq!((found.untouched_at_least, found.untouched_at_most), (None, Some(0.99)));
}

#[test]
fn a_page_that_was_evicted_and_read_again_is_no_waste() {
    let map = What::Mapped { start: 0, len: 1000 * PAGE, file: Some((file(7), 0)), executable: false };
    let fault = |major| What::Faulted { address: 0, major, window: None, instruction: None };
    let mut all = vec![map];
    for _ in 0..4 {
        all.extend([What::BroughtIn(pages(7, 0, 1)), fault(true)]);
    }
    // Found in the cache, as by another process.
    all.push(fault(false));
    let found = only(&inspected(all)).brought_in.clone().expect("pages");
    assert_eq!((found.by_faults_bytes, found.again_bytes), (4 * PAGE, 3 * PAGE));
    assert_eq!(found.per_faulted, Some(1.0));
}

#[test]
fn what_calls_brought_in_is_compared_with_what_they_returned() {
    let inspection = inspected(vec![
        bound(3, 7),
        read(3, Position::Offset(0)),
        What::BroughtIn(pages(7, 0, 1)),
        What::Returned(4096),
        read(3, Position::Offset(0)),
        What::Returned(4096),
    ]);
    let brought = only(&inspection).brought_in.clone().expect("pages");
    assert_eq!((brought.by_calls_bytes, brought.per_read, brought.per_faulted), (PAGE, Some(0.5), None));
    assert_eq!((brought.untouched_at_least, brought.untouched_at_most), (None, None));
}

#[test]
fn what_was_not_seen_is_missing() {
    let lacking = |kind| Missing { kind, reason: "closed".into() };
    let all =
        || vec![What::BroughtIn(pages(7, 0, 1)), bound(3, 8), read(3, Position::Current), What::Returned(1)];
    let whole = inspected(all());
    assert_eq!(whole.files.iter().filter(|file| file.brought_in.is_some()).count(), 1);
    assert!(whole.files.iter().any(|file| file.path.is_none()), "nobody saw the file of these pages opened");
    assert_eq!(whole.ring_requests, Some(0));
    let blind = inspected_with(
        all(),
        &[lacking(ObservationKind::Calls), lacking(ObservationKind::PageCache)],
        Vec::new(),
    );
    assert!(blind.files.iter().all(|file| file.brought_in.is_none()));
    assert_eq!((blind.ring_requests, blind.no_file, blind.unknown), (None, None, None));
}

#[test]
fn without_all_records_there_is_no_verdict() {
    let tally = |counted, recorded, lost| Tally { event: "calls".into(), counted, recorded, lost };
    let all = || {
        let wait = [What::Left { preempted: false, instruction: None }, What::Resumed, What::Returned(1)];
        [bound(3, 7), read(3, Position::Current)].into_iter().chain(wait).collect::<Vec<_>>()
    };
    let with = |tallies: Vec<Tally>| inspected_with(all(), &[], tallies);
    let whole = with(vec![tally(5, 5, Some(0)), tally(0, 0, None)]);
    assert!(whole.complete && findings(&whole).len() == 1);
    for tallies in [vec![tally(5, 4, Some(1))], vec![tally(5, 4, None)], vec![tally(5, 4, Some(0))]] {
        let torn = with(tallies);
        assert!(!torn.complete && findings(&torn).is_empty());
    }
}

#[test]
fn descriptors_are_those_of_their_process_and_of_its_children() {
    let mut accounts = Accounts::new(PAGE);
    let mut time_ns = 0;
    let mut add = |process: u32, what: What| {
        time_ns += 1000;
        accounts.add(Observation { time_ns, process, thread: process, what });
    };
    add(1, bound(3, 7));
    add(2, What::Began { parent: 1 });
    add(1, What::Called(Call::Close { descriptor: 3 }));
    add(1, What::Returned(0));
    for process in [1, 2, 5] {
        add(process, read(3, Position::Offset(0)));
        add(process, What::Returned(10));
    }
    add(2, What::Bound { descriptor: 4, to: DescriptorBinding::NoFile, anew: false });
    add(2, read(4, Position::Current));
    add(2, What::Returned(3));
    let inspection = accounts.inspection(subject(), (0, time_ns), &[], (Vec::new(), 0));
    assert_eq!(only(&inspection).reads.as_ref().map(|reads| reads.count), Some(1));
    let unknown = inspection.unknown.expect("calls are seen");
    assert_eq!((unknown.calls, unknown.bytes), (2, 20));
    assert_eq!(inspection.no_file.map(|other| (other.calls, other.bytes)), Some((1, 3)));
    assert_eq!(inspection.processes, 3);
}

#[test]
fn a_program_that_ends_without_a_fault_was_not_watched() {
    let named = || What::Named { name: "program".into(), executed: true };
    let fault = What::Faulted { address: 1, major: false, window: None, instruction: None };
    assert_eq!(inspected(vec![named(), What::Ended]).cut_processes, 1);
    assert_eq!(inspected(vec![named(), fault, What::Ended]).cut_processes, 0);
    assert_eq!(inspected(vec![named()]).cut_processes, 0, "it goes on");
}

/// A descriptor that was seen when it was opened stays what it was, if a later look comes too late.
#[test]
fn a_look_that_comes_too_late_finds_nothing() {
    let read = || What::Called(Call::Read(Transfer { descriptor: 3, at: Position::Current }));
    let late = What::Bound { descriptor: 3, to: DescriptorBinding::Unknown, anew: false };
    let inspection =
        inspected(vec![bound(3, 7), read(), What::Returned(10), late, read(), What::Returned(20)]);
    assert_eq!(inspection.unknown.map(|unknown| unknown.bytes), Some(0));
    assert_eq!(inspection.files[0].reads.as_ref().map(|reads| (reads.count, reads.bytes)), Some((2, 30)));
}
