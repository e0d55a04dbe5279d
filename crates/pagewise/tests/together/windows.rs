//! `pagewise record --windows` of programs whose touches of mapped pages are known, and of ones
//! that a tracer could disturb.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use pagewise_model::trace::{AccessKind, Trace};
use rustix::process::{Pid, Signal, kill_process};

use crate::inspect::data;
use crate::support::{
    PAGEWISE, Place, expect_message, expect_refused, is_root, load_trace, skipped, wait_for,
};

const PAGE: u64 = 4096;
const TOUCHES: &str = "60000";

fn known_touches() -> String {
    let directory = Path::new(PAGEWISE).parent().expect("a directory");
    directory.join("examples/known_touches").display().to_string()
}

/// The reason if this kernel or user can have no windows; a test that needs them says so.
fn has_windows() -> bool {
    let reason = pagewise_host::windows::refusal();
    if let Some(reason) = &reason {
        skipped("windows", reason);
    }
    reason.is_none()
}

/// The pages of each window, in the order of their first touches.
fn windows(trace: &Trace, path: &str) -> Vec<Vec<u32>> {
    let number = trace.trailer.files.iter().position(|file| file.path == path).expect("the file") as u32;
    let mut windows = vec![Vec::new()];
    for access in &trace.accesses {
        let AccessKind::Touch { opens_window } = access.kind else { continue };
        if opens_window {
            windows.push(Vec::new());
        }
        if access.file == number {
            let pages = access.offset / PAGE..(access.offset + access.len).div_ceil(PAGE);
            windows.last_mut().expect("one").extend(pages.map(|page| page as u32));
        }
    }
    windows.retain(|window| !window.is_empty());
    windows
}

/// Touches of the known order that the windows do not hold, and pages of the windows that were not
/// touched then.
fn missed_and_invented(order: &[u32], windows: &[Vec<u32>]) -> (usize, usize) {
    let (mut window, mut at, mut missed, mut found) = (0, 0, 0, 0);
    let mut seen = HashSet::new();
    let first = |window: usize| windows.get(window).map(|pages| pages[0]);
    for page in order {
        let pages = windows.get(window).map_or(&[][..], Vec::as_slice);
        if at == pages.len() && first(window + 1) == Some(*page) {
            (window, at) = (window + 1, 0);
            seen.clear();
        }
        let pages = windows.get(window).map_or(&[][..], Vec::as_slice);
        if pages.get(at) == Some(page) {
            at += 1;
            found += 1;
            seen.insert(*page);
        } else if !seen.contains(page) {
            missed += 1;
        }
    }
    (missed, windows.iter().map(Vec::len).sum::<usize>() - found)
}

#[test]
fn touches_of_a_known_program_are_given_back() {
    if !is_root() || !has_windows() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    // What a user without privileges may see is the same.
    place.give_to(65_534);
    // In order, a second pass could be in the window of the first.
    for (order, count) in [("uniform", TOUCHES), ("zipf", TOUCHES), ("sequential", "8192")] {
        let (out, list) = (format!("{order}.trace"), format!("{order}.list"));
        let words = ["record", "--windows", "-o", &out, "--", &known_touches(), &path, order, count, &list];
        let Some(mut command) = place.command_as(65_534, &words) else { return };
        let finished = place.finish(command.spawn().expect("start")).expect_code(0);
        assert!(finished.stderr.contains("a replay keeps no gaps between its reads"), "{finished:?}");
        let trace = load_trace(&place.file(&out));
        let tally = trace.trailer.windows.clone().expect("windows");
        assert!(trace.trailer.complete && tally.windows >= 2, "{order}: {finished:?}");
        assert_eq!((tally.proven, &tally.left_out), (tally.windows, &vec![]), "{order}: {finished:?}");
        let touched = fs::read(place.file(&list)).expect("the list");
        let touched: Vec<u32> =
            touched.chunks_exact(4).map(|page| u32::from_ne_bytes(page.try_into().expect("four"))).collect();
        let windows = windows(&trace, &path);
        let (missed, invented) = missed_and_invented(&touched, &windows);
        let recorded: usize = windows.iter().map(Vec::len).sum();
        assert!(
            missed * 100 <= touched.len() && invented * 100 <= recorded,
            "{order}: {missed} missed, {invented} invented of {recorded}"
        );
    }
}

#[test]
fn a_traced_program_lives_as_without_a_tracer() {
    if !has_windows() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let words = ["record", "--windows", "-o", "l.trace", "--", &known_touches(), &path, "lives", "report"];
    let finished = place.run(&words).expect_code(0);
    assert_eq!(fs::read_to_string(place.file("report")).expect("report"), "right", "{finished:?}");
    let trace = load_trace(&place.file("l.trace"));
    let tally = trace.trailer.windows.expect("windows");
    assert!(tally.windows > 1 && tally.proven * 100 >= tally.windows * 99, "{tally:?}");
    place.expect_no_process();
}

/// A program that maps the file of its first argument for reading only, as `m`, with the pages of
/// `p`.
const MAPS: &str = "import ctypes,mmap,os,signal,sys
f=open(sys.argv[1],'rb')
m=mmap.mmap(f.fileno(),0,mmap.MAP_SHARED,mmap.PROT_READ)
p=range(0,len(m),4096)
c=ctypes.CDLL(None,use_errno=True)
a=c.mmap
a.restype=ctypes.c_void_p
def map():
  return a(None,ctypes.c_size_t(len(m)),1,1,f.fileno(),ctypes.c_long(0))
";

/// The recording of such a program in windows, and what was printed of it. It ends with `code`.
#[track_caller]
fn recorded(place: &Place, path: &str, program: &str, code: i32) -> (Trace, String) {
    let _ = fs::remove_file(place.file("p.trace"));
    let program = format!("{MAPS}{program}");
    let words = ["record", "--windows", "-o", "p.trace", "--", "python3", "-c", &program, path];
    let finished = place.run(&words);
    assert_eq!(finished.code(), code, "{finished:?}");
    let trace = load_trace(&place.file("p.trace"));
    (trace, finished.stderr)
}

#[test]
fn a_child_that_ends_ends_no_window_of_its_parent() {
    if !has_windows() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let program = "for again in range(2):
  for i in p:
    m[i]
    if i%(1500*4096)==0:
      if os.fork()==0: os._exit(m[0]&0)
      os.wait()
";
    let (trace, shown) = recorded(&place, &path, program, 0);
    let file = trace.trailer.files.iter().find(|file| file.path == path).expect("the file");
    assert!(file.touched_pages >= 2 * 8192, "{} pages: {shown}", file.touched_pages);
    let tally = trace.trailer.windows.expect("windows");
    assert_eq!((tally.proven, tally.unseen_pages), (tally.windows, 0), "{shown}");
}

/// Pages that are in place without a fault are touched unseen, and so may be those of a process
/// that is killed.
#[test]
fn windows_in_which_something_was_not_seen_are_not_proven() {
    if !has_windows() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let cases = [
        (
            "x=map();c.madvise(ctypes.c_void_p(x),len(m),22);c.munmap(ctypes.c_void_p(x),len(m))",
            0,
            8192,
            false,
        ),
        ("m[0];m[4096*100];os.kill(os.getpid(),signal.SIGKILL)", 137, 0, false),
        (
            "m[0];m[4096*100];signal.signal(signal.SIGTERM,signal.SIG_DFL);os.kill(os.getpid(),signal.SIGTERM)",
            143,
            0,
            true,
        ),
        ("m[0];m[4096*100];os.abort()", 134, 0, true),
    ];
    for (program, code, unseen, is_proven) in cases {
        let (trace, shown) = recorded(&place, &path, program, code);
        let tally = trace.trailer.windows.expect("windows");
        assert_eq!(
            (tally.proven == tally.windows, tally.unseen_pages),
            (is_proven, unseen),
            "{program}: {shown}"
        );
        assert!(tally.windows > 0, "{program}: {shown}");
        if !is_proven {
            let words = ["run", "replay", "--trace=p.trace", "--evict", "--rounds=5", "--file", &path];
            expect_refused(&place.run(&words), "does not stand for the program");
        }
    }
}

/// The mapping of one file is moved to where another was mapped, and made longer there.
#[test]
fn touches_of_a_mapping_that_is_moved_are_of_its_file() {
    if !is_root() || !has_windows() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    fs::copy(&path, place.file("other.bin")).expect("copy");
    place.give_to(65_534);
    let program = format!(
        "{MAPS}
g=open('other.bin','rb')
x=a(None,ctypes.c_size_t(len(m)),1,1,g.fileno(),ctypes.c_long(0))
ctypes.string_at(x,1)
y=a(None,ctypes.c_size_t(40960),1,1,f.fileno(),ctypes.c_long(0))
c.munmap(ctypes.c_void_p(x),ctypes.c_size_t(len(m)))
c.mremap.restype=ctypes.c_void_p
z=c.mremap(ctypes.c_void_p(y),ctypes.c_size_t(40960),ctypes.c_size_t(len(m)),3,ctypes.c_void_p(x))
assert z==x
for i in p: ctypes.string_at(z+i,1)
"
    );
    // A user without privileges does not see calls, where tracefs is closed.
    for user in [0, 65_534] {
        let out = format!("{user}.trace");
        let words = ["record", "--windows", "-o", &out, "--", "python3", "-c", &program, &path];
        let Some(mut command) = place.command_as(user, &words) else { return };
        let finished = place.finish(command.spawn().expect("start")).expect_code(0);
        let trace = load_trace(&place.file(&out));
        let pages = |name: &str| {
            let file = trace.trailer.files.iter().find(|file| file.path.ends_with(name));
            file.map_or(0, |file| file.touched_pages)
        };
        assert!(trace.trailer.complete, "{finished:?}");
        assert_eq!((pages("known.bin"), pages("other.bin")), (8192, 1), "{finished:?}");
    }
}

/// The tracer makes a shared mapping a private one, which nobody may write to either.
#[test]
fn a_mapping_for_reading_only_stays_one() {
    if !has_windows() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let program = "x=map();print(c.mprotect(ctypes.c_void_p(x),4096,3),ctypes.get_errno(),file=sys.stderr)";
    let (_, shown) = recorded(&place, &path, program, 0);
    assert!(shown.contains("-1 13"), "{shown}");
}

fn is_known_touches(process: u32) -> bool {
    fs::read(format!("/proc/{process}/cmdline"))
        .is_ok_and(|words| words.starts_with(known_touches().as_bytes()))
}

#[test]
fn a_tracer_that_is_killed_leaves_the_program_right() {
    if !has_windows() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    for kill in 0..8 {
        let (out, report) = (format!("{kill}.trace"), format!("{kill}.report"));
        let words = ["record", "--windows", "-o", &out, "--", &known_touches(), &path, "lives", &report];
        let mut child = place.command(&words).stdout(Stdio::null()).spawn().expect("start");
        wait_for("the program begins", || {
            place.processes().into_iter().find(|process| is_known_touches(*process))
        });
        thread::sleep(Duration::from_millis(kill * 80));
        kill_process(Pid::from_child(&child), Signal::KILL).expect("kill");
        child.wait().expect("wait");
        let text = wait_for("the program ends", || {
            fs::read_to_string(place.file(&report)).ok().filter(|text| !text.is_empty())
        });
        assert_eq!(text, "right", "kill {kill}");
    }
}

#[test]
fn windows_that_cannot_be_had_are_refused_before_the_command_is_started() {
    if !has_windows() {
        return;
    }
    let place = Place::new();
    let finished = place.run(&["record", "--windows", "--", "/nowhere/program"]);
    expect_message(&finished, 127, "/nowhere/program: there is no such command");
    assert_eq!(place.entries().len(), 0, "{:?}", place.entries());
}
