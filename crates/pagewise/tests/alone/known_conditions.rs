//! Conditions whose names are kept: reads that wait for each other, CPUs, and the node of the
//! pages.

use std::fs;

use crate::support::until::{
    Taken, each_has, expect_honest, judged_cell, my_turn, samples, take, take_all, valid,
};
use crate::support::{self, Place};
use pagewise_host::placement;
use pagewise_model::{Cell, Outcome};

const READ_BYTES: u64 = 16 << 10;

#[test]
fn dependent_reads_and_cpus_are_what_they_are_called() {
    let _turn = my_turn();
    let place = Place::new();
    let more = [
        "--methods=mmap,pread",
        "--dependent",
        "--cpus=0",
        "--cache=warm",
        "--file-size=16MiB",
        "--sample=20ms",
        "--no-ceilings",
    ];
    let taken = take(&place, &more, |run| each_has(run, 2));
    expect_honest(&taken.run);
    for (_, seen) in valid(&taken.run, |_| true) {
        assert_eq!(seen.cpus_allowed.as_deref(), Some("0"));
        assert_eq!(seen.expected_checksum, Some(seen.checksum));
    }
    for name in ["mmap", "pread"] {
        let cell = judged_cell(&taken.judged, "measured", name, READ_BYTES);
        assert_eq!(
            (&cell["status"], &cell["parameters"]["dependent"]),
            (&"ok".into(), &true.into()),
            "{cell}"
        );
        assert_eq!(cell["parameters"]["cpus"], "0", "{cell}");
    }
}

#[test]
fn pages_are_on_the_node_that_was_asked_for() {
    let _turn = my_turn();
    if fs::metadata("/dev/shm").is_err() || placement::describe().is_err() {
        return support::skipped("tmpfs", "there is no /dev/shm, or nodes are not shown");
    }
    // Pages of a file in memory can be moved; elsewhere they lie where they were brought in.
    let nodes = fs::read_dir("/sys/devices/system/node").map_or(1, |entries| {
        let is_node = |name: &str| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
        entries.flatten().filter(|entry| is_node(&entry.file_name().to_string_lossy())).count()
    });
    for place in [Place::on("/dev/shm".as_ref()), Place::new()] {
        let more = [
            "--methods=pread",
            "--numa=same,other",
            "--cache=warm",
            "--file-size=16MiB",
            "--sample=20ms",
            "--no-ceilings",
        ];
        let Taken { run, .. } = take_all(&place, &more);
        let of = |numa: &'static str| {
            move |cell: &Cell| {
                cell.conditions.host_settings.numa.is_some_and(|asked| asked.to_string() == numa)
            }
        };
        assert!(!valid(&run, of("same")).is_empty(), "{:?}", samples(&run, of("same")));
        for (_, seen) in valid(&run, of("same")) {
            let found = seen.placement.as_ref().expect("a placement");
            assert_eq!(found.worker_node, found.page_node);
            assert!(found.pages > 0 && found.pages_on_node == found.pages, "{found:?}");
        }
        if nodes == 1 {
            for sample in samples(&run, of("other")) {
                let Outcome::Unavailable { reason } = &sample.outcome else { panic!("{:?}", sample.outcome) };
                assert!(reason.contains("node"), "{reason}");
            }
        }
    }
}
