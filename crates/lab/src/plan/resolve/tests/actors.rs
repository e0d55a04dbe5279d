//! Plans with an actor.

use super::*;

fn measured(text: &str) -> Vec<Conditions> {
    let plan = resolve_text(text, dataset()).expect(text);
    let cells = plan.cells.into_iter().filter(|cell| cell.role == Role::Measured);
    cells.map(|cell| cell.conditions).collect()
}

const LIMITED: &str =
    "workload = \"random-read\"\nmethods = [\"pread\"]\nspan = \"0.75x\"\nmemory = \"256MiB\"\n";

#[test]
fn alone_and_beside_read_the_same_data_and_an_actor_fills_the_limit() {
    let all = measured(&format!("{LIMITED}beside = [\"none\", \"scan:pread,rate=800MiB/s\"]"));
    let [alone, beside] = &all[..] else { panic!("{all:?}") };
    assert_eq!(beside.beside.as_ref().and_then(Actor::own_file_bytes), Some(Bytes::gib(1)));
    assert_eq!((alone.file_bytes, alone.span_bytes), (beside.file_bytes, beside.span_bytes));
    let without = measured(LIMITED);
    assert!(alone.span_bytes < without[0].span_bytes, "the process of the actor takes some of the limit");
    assert!(alone.stays_in_memory() && alone.actor_bytes_before().0 == 0);
    assert_eq!((beside.stays_in_memory(), beside.actor_bytes_before()), (false, Bytes::gib(1)));
}

#[test]
fn ceilings_have_no_actor_and_its_file_counts() {
    let text = "workload = \"random-read\"\nmethods = [\"pread:direct\"]\nfile_size = \"64MiB\"\nbeside = ";
    let plan = resolve_text(&format!("{text}\"scan:pread,rate=max,file=32MiB\""), dataset()).expect("a plan");
    assert_eq!((plan.actor_files(false), plan.dataset_bytes()), (vec![Bytes::mib(32)], Bytes::mib(96)));
    let ceilings: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.role == Role::Ceiling).collect();
    assert!(!ceilings.is_empty() && ceilings.iter().all(|cell| cell.conditions.beside.is_none()));
    let cell = plan.cells.iter().find(|cell| cell.conditions.beside.is_some()).expect("a cell");
    assert_eq!(plan.phases_ns(cell, 5).0, 250_000_000, "each tenth of it is long enough to see an actor in");
}

#[test]
fn an_actor_that_cannot_be_at_work_as_asked_is_refused() {
    let scan = "beside = \"scan:pread,rate=10MiB/s\"";
    for (text, reason) in [
        (format!("{LIMITED}{scan}"), "write a rate of 52MiB/s or more"),
        (format!("{scan}\nthreads = 4"), "4 threads and an actor need 5 CPUs, and there are 4"),
        (format!("{scan}\ncpus = \"2\""), "1 thread and an actor need 2 CPUs, and there is 1"),
        (
            format!("{scan}\ncache = \"cold-start\""),
            "a cold start has no actor beside it: leave --beside or --victim out",
        ),
        (format!("{scan}\ndevice_cap = \"emmc\""), "leave these out, or --beside or --victim"),
        (
            format!("workload = \"scan\"\nmemory = \"256MiB\"\nspan = \"0.5x\"\ncache = \"warm\"\n{scan}"),
            "how long it has been at work before a scan: use --cache cold",
        ),
        ("beside = \"scan:pread\"".to_string(), "it has no rate"),
        ("beside = \"scan:jvm/pread,rate=max\"".to_string(), "by the native worker"),
        ("beside = \"scan:pread,rate=max,file=512KiB\"".to_string(), "reads 1MiB of a file of 512KiB"),
        ("beside = \"scan:pread,rate=max,file=same\"\ncache = \"cold\"".to_string(), "write --cache warm"),
    ] {
        let error = format!("{:#}", resolve_text(&text, dataset()).expect_err(&text));
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn beside_a_file_of_ones_own_only_that_of_the_actor_is_made() {
    let plan = resolve_text("beside = \"scan:pread,rate=10MiB/s,file=32MiB\"", file(false)).expect("a plan");
    assert_eq!((plan.actor_files(false), plan.dataset_bytes()), (vec![Bytes::mib(32)], Bytes::mib(32)));
}

#[test]
fn no_file_is_made_for_an_actor_that_reads_the_measured_one() {
    let text = "beside = [\"none\", \"scan:pread,rate=10MiB/s,file=same\"]\ncache = \"warm\"";
    let plan = resolve_text(text, file(false)).expect("a plan");
    assert_eq!((plan.actor_files(false), plan.dataset_bytes()), (vec![], Bytes(0)));
    let made = resolve_text(&format!("{text}\nfile_size = \"64MiB\""), dataset()).expect("a plan");
    assert_eq!((made.actor_files(false), made.dataset_bytes()), (vec![], Bytes::mib(64)));
}

#[test]
fn samples_alone_are_as_long_as_those_beside_an_actor() {
    let text =
        "workload = \"random-read\"\nfile_size = \"64MiB\"\nbeside = [\"none\", \"scan:pread,rate=max\"]";
    let environment = environment();
    let of = |sample_ns: Option<u64>| {
        let chosen = Layer { sampling: Sampling { sample_ns, ..Sampling::default() }, ..Layer::default() };
        let parsed = text::parse("test", text)?;
        resolve(&parsed, Variant::Standard, &chosen, dataset(), &machine(&environment))
    };
    let plan = of(None).expect("a plan");
    let measured = plan.cells.iter().filter(|cell| cell.role == Role::Measured);
    assert!(
        measured.clone().count() > 1 && measured.clone().all(|cell| plan.phases_ns(cell, 5).0 == 250_000_000)
    );
    let unpinned = shorten::Unpinned::beside(&[&Layer::default()], None);
    let least_ns = shorten::least_ns(&plan, unpinned);
    let short = shorten::within(plan.clone(), least_ns, unpinned).expect("it pays");
    assert!(short.cells.iter().all(|cell| short.phases_ns(cell, 5).0 >= 250_000_000), "nor a short run's");
    let by_hand = Plan { sample_ns: 1_000_000, ..plan };
    assert!(by_hand.check_limits().expect_err("too short").contains("beside an actor"));
    let error = of(Some(50_000_000)).expect_err("too short").to_string();
    assert!(error.contains("write --sample 250ms or more"), "{error}");
}
