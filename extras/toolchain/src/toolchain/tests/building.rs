//! Building, keeping and rebuilding workers, and the messages if that is impossible.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::thread;

use rustix::fs::FlockOperation;

use super::tmpfs::{Tmpfs, text};
use super::*;

const ALWAYS: &str =
    "-XX:+ExitOnOutOfMemoryError -XX:+DisplayVMOutputToStderr --enable-native-access=ALL-UNNAMED";

const CLASS: &str = "pagewise/Worker.class";
/// Content of the folder of a JVM worker.
const BUILT: [&str; 2] = ["complete", "pagewise"];

fn with_jdk(javac: &str) -> (Fakes, Found) {
    let fakes = Fakes::new();
    fakes.jdk_with("system/usr/lib/jvm/jdk-25", "25.0.1", javac);
    let found = fakes.found(&jvm::RECIPE);
    (fakes, found)
}

#[test]
fn a_jvm_worker_is_built_once() {
    let (fakes, found) = with_jdk(JAVAC);
    let built = fakes.build(&found).expect("built");
    let flags = format!("-Xms256m -Xmx256m -XX:+UseSerialGC -XX:-UsePerfData {ALWAYS}");
    let (java, folder) = (found.home.join("bin/java"), folder_of(&built));
    let command = format!("{} {flags} -cp {} pagewise.Worker", java.display(), folder.display());
    assert_eq!(built.program.command().join(" "), command);
    assert_eq!((&*built.version, &*built.notes), ("25.0.1 (Fake)", &[] as &[String]));
    assert_eq!(names(&fakes.workers()), [folder_of(&built).file_name().expect("name").to_string_lossy()]);
    assert_eq!(names(&folder_of(&built)), BUILT);
    assert_eq!(fs::metadata(fakes.workers()).expect("stat").mode() & 0o777, 0o700);
    assert_eq!(fakes.build(&found).expect("built before").program.command(), built.program.command());
    assert_eq!(fakes.builds(), 1);
}

#[test]
fn another_source_or_version_is_another_folder() {
    let (fakes, found) = with_jdk(JAVAC);
    let first = folder_of(&fakes.build(&found).expect("built"));
    let newer = Found { release: "25.0.2 (Fake)".to_string(), ..found.clone() };
    assert_ne!(folder_of(&fakes.build(&newer).expect("built")), first);
    let stop = AtomicBool::new(false);
    let another = [SourceFile { name: "worker.py", text: "another source\n" }];
    let other = fakes.toolchain_variables.build(&found, &WorkerChoices::default(), &another, &stop);
    assert_ne!(folder_of(&other.expect("built")), first);
    assert_eq!((names(&fakes.workers()).len(), fakes.builds()), (3, 3));
    // The flags of the run do not require another build.
    let chosen = chosen("jvm_args", "-Xmx1g");
    let built = fakes.toolchain_variables.build(&found, &chosen, SOURCES, &stop).expect("built");
    assert_eq!(folder_of(&built), first);
    assert!(
        built.program.command().join(" ").contains(&format!("/bin/java -Xmx1g {ALWAYS} -cp ")),
        "{:?}",
        built.program.command()
    );
    assert_eq!(fakes.builds(), 3);
}

#[test]
fn a_truncated_product_is_built_anew() {
    let (fakes, found) = with_jdk(JAVAC);
    let folder = folder_of(&fakes.build(&found).expect("built"));
    let damage: [&dyn Fn(); 4] = [
        &|| {
            File::options()
                .write(true)
                .open(folder.join(CLASS))
                .and_then(|file| file.set_len(3))
                .expect("cut")
        },
        &|| fs::remove_file(folder.join(CLASS)).expect("remove"),
        &|| fs::remove_file(folder.join("complete")).expect("remove"),
        &|| fs::write(folder.join("complete"), "").expect("write"),
    ];
    for (index, damage) in damage.iter().enumerate() {
        damage();
        assert_eq!(folder_of(&fakes.build(&found).expect("built")), folder);
        assert_eq!(fakes.builds(), index + 2);
        assert_eq!(names(&folder), BUILT);
    }
    assert_eq!(names(&fakes.workers()).len(), 1);
}

#[test]
fn many_at_once_build_one() {
    let (fakes, found) = with_jdk(JAVAC);
    let start = Barrier::new(8);
    thread::scope(|scope| {
        let builders: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    folder_of(&fakes.build(&found).expect("built"))
                })
            })
            .collect();
        for builder in builders {
            assert_eq!(names(&builder.join().expect("no panic")), BUILT);
        }
    });
    assert_eq!((names(&fakes.workers()).len(), fakes.builds()), (1, 1));
}

#[test]
fn what_a_killed_build_left_is_swept() {
    let (fakes, found) = with_jdk(JAVAC);
    let left = fakes.workers().join(".tmp-1/product");
    fs::create_dir_all(&left).expect("folder");
    fs::write(left.join("half"), "half").expect("write");
    fakes.build(&found).expect("built");
    assert_eq!(names(&fakes.workers()).len(), 1);
}

#[test]
fn what_a_dying_compiler_still_writes_is_swept() {
    // Removal may succeed by chance between two files: not five times.
    for _ in 0..5 {
        let (fakes, found) = with_jdk(JAVAC);
        let left = fakes.workers().join(".tmp-1/product");
        fs::create_dir_all(&left).expect("folder");
        let (began, begins) = std::sync::mpsc::channel();
        let compiler = std::thread::spawn(move || {
            // Until the folder is gone, or for so many files.
            for number in 0..3000 {
                if fs::write(left.join(number.to_string()), "half").is_err() {
                    return;
                }
                let _ = began.send(());
            }
        });
        begins.recv().expect("a first file");
        fakes.build(&found).expect("built");
        compiler.join().expect("no panic");
        assert_eq!(names(&fakes.workers()).len(), 1);
    }
}

#[test]
fn who_builds_is_waited_for() {
    let (mut fakes, found) = with_jdk(JAVAC);
    let live = fakes.workers().join(".tmp-1");
    fs::create_dir_all(&live).expect("folder");
    let lock = File::create(fakes.workers().join(".lock")).expect("create");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).expect("lock");
    fakes.toolchain_variables.built_within = Duration::from_millis(100);
    assert_says(&fakes.unbuilt(&found), &["another process has held ", "/.lock for "]);
    let stop = AtomicBool::new(true);
    let said = fakes
        .toolchain_variables
        .build(&found, &WorkerChoices::default(), SOURCES, &stop)
        .expect_err("stopped");
    assert_says(&said, &["the jvm worker cannot be built: it was stopped"]);
    assert!(live.is_dir(), "it is not swept while its owner lives");
    drop(lock);
    fakes.toolchain_variables.built_within = Duration::from_secs(60);
    fakes.build(&found).expect("built");
    assert!(!live.exists());
}

#[test]
fn the_compiler_holds_the_lock_too() {
    // A compiler that outlives a killed pagewise is waited for, rather than swept away.
    let (fakes, found) = with_jdk(&format!("/bin/readlink /proc/$$/fd/0 > \"$HOME/stdin\"\n{JAVAC}"));
    fakes.build(&found).expect("built");
    let stdin = fs::read_to_string(fakes.path("home/stdin")).expect("read");
    assert_eq!(Path::new(stdin.trim()), fakes.workers().canonicalize().expect("path").join(".lock"));
}

#[test]
fn a_compiler_that_fails_is_quoted() {
    let (fakes, found) = with_jdk("echo 'Worker.java:1: error: no' >&2; echo more >&2; exit 1");
    let said = fakes.unbuilt(&found);
    let javac = found.home.join("bin/javac");
    assert_says(
        &said,
        &[
            &format!("the jvm worker cannot be built: {} in {}", javac.display(), fakes.workers().display()),
            ": exit status: 1: Worker.java:1: error: no; more",
        ],
    );
    assert!(!said.contains("XDG_CACHE_HOME"), "{said}");
    assert_eq!(names(&fakes.workers()), Vec::<String>::new());
    let (fakes, found) = with_jdk("exit 0");
    assert_says(&fakes.unbuilt(&found), &["made no file"]);
    let (fakes, found) = with_jdk("kill -9 $$");
    assert_says(&fakes.unbuilt(&found), &["signal: 9"]);
    assert_eq!(names(&fakes.workers()), Vec::<String>::new());
}

#[test]
fn a_compiler_that_hangs_is_killed_with_its_group() {
    let hanging = "/bin/sleep 600 & echo $! > \"$HOME/sleeper\"; echo $$ > \"$HOME/javac\"; wait";
    let (mut fakes, found) = with_jdk(hanging);
    fakes.toolchain_variables.built_within = Duration::from_millis(500);
    assert_says(&fakes.unbuilt(&found), &["bin/javac in ", "did not end within", "was killed"]);
    assert_eq!(names(&fakes.workers()), Vec::<String>::new());
    // A stop ends it too, long before its time limit.
    fakes.toolchain_variables.built_within = Duration::from_secs(3600);
    let _ = fs::remove_file(fakes.path("home/javac"));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let build = scope
            .spawn(|| fakes.toolchain_variables.build(&found, &WorkerChoices::default(), SOURCES, &stop));
        while fs::read_to_string(fakes.path("home/javac")).unwrap_or_default().is_empty() {
            assert!(!build.is_finished(), "it ended by itself");
            thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
        let said = build.join().expect("no panic").expect_err("stopped");
        assert_says(&said, &["was stopped"]);
    });
    let sleeper = fs::read_to_string(fakes.path("home/sleeper")).expect("its id");
    // A killed process may stay for a moment, as a zombie that runs no program.
    let runs = || fs::read(format!("/proc/{}/cmdline", sleeper.trim())).is_ok_and(|line| !line.is_empty());
    while runs() {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(names(&fakes.workers()), Vec::<String>::new());
}

#[test]
fn a_go_worker_is_built_without_settings_of_the_user() {
    let mut fakes = Fakes::new();
    for (name, value) in
        [("GOFLAGS", "-mod=mod"), ("GOOS", "plan9"), ("GOPROXY", "https://nowhere"), ("GOGC", "50")]
    {
        fakes.set(name, value);
    }
    fakes.go("system/usr/local/go", "1.26.8");
    let found = fakes.found(&go::RECIPE);
    let built = fakes.build(&found).expect("built");
    let program = folder_of(&built).join("worker");
    assert_eq!((&*built.program.command(), &*built.version), (&[text(&program).to_string()][..], "1.26.8"));
    // The fake writes its environment, and the module, into the program.
    let said = fs::read_to_string(&program).expect("read");
    let wanted = [
        "CGO_ENABLED='0'",
        "GOPROXY='off'",
        "GOTOOLCHAIN='local'",
        "GOFLAGS=''",
        "GOENV='off'",
        "\ngo 1.26\n",
    ];
    assert_says(&said, &wanted);
    assert!(!said.contains("plan9") && !said.contains("GOGC"), "{said}");
    assert_says(&said, &[&format!("GOCACHE='{}'", fakes.path("home/.cache/go-build").display())]);
}

#[test]
fn a_python_worker_is_its_script() {
    let fakes = Fakes::new();
    fakes.python("bin/python3", "3.11.7", "without numpy");
    let found = fakes.found(&python::RECIPE);
    let built = fakes.build(&found).expect("built");
    let script = folder_of(&built).join("worker.py");
    assert_eq!(fs::read_to_string(&script).expect("read"), SOURCE);
    assert_eq!(built.program.command(), [text(&fakes.path("bin/python3")), "-u", "-B", text(&script)]);
    // numpy is not part of the script: the folder is the same with it.
    let numpy = Found { version: "3.11.7, numpy 2.1.0".to_string(), ..found };
    assert_eq!(folder_of(&fakes.build(&numpy).expect("built")), folder_of(&built));
}

#[test]
fn settings_that_would_change_the_jvm_are_noted() {
    let (mut fakes, _) = with_jdk(JAVAC);
    fakes.set("JAVA_TOOL_OPTIONS", "-Xmx64m");
    fakes.set("XDG_CACHE_HOME", "relative");
    let built = fakes.build(&fakes.found(&jvm::RECIPE)).expect("built");
    assert!(built.program.unset.contains(&"JAVA_TOOL_OPTIONS"));
    assert_eq!(built.notes.len(), 2, "{:?}", built.notes);
    assert_says(&built.notes[0], &["JAVA_TOOL_OPTIONS is set and is kept from the jvm worker"]);
    assert_says(&built.notes[1], &["XDG_CACHE_HOME is relative, which is not absolute"]);
    assert!(folder_of(&built).starts_with(fakes.workers()));
}

#[test]
fn a_place_that_is_no_place_is_named() {
    let (mut fakes, found) = with_jdk(JAVAC);
    fs::write(fakes.path("file"), "").expect("write");
    fakes.set("XDG_CACHE_HOME", fakes.path("file"));
    let said = fakes.unbuilt(&found);
    assert_says(
        &said,
        &["open ", "/file: Not a directory (os error 20)", "; set XDG_CACHE_HOME to a writable folder"],
    );
    fakes.set("XDG_CACHE_HOME", fakes.path("with:colon"));
    assert_says(&fakes.unbuilt(&found), &["which holds a ':'; set XDG_CACHE_HOME"]);
    fakes.set("XDG_CACHE_HOME", "");
    fakes.toolchain_variables.variables.remove(std::ffi::OsStr::new("HOME"));
    assert_says(&fakes.unbuilt(&found), &["neither XDG_CACHE_HOME nor HOME is set", "set XDG_CACHE_HOME"]);
}

#[test]
fn a_folder_that_others_write_is_refused() {
    let (fakes, found) = with_jdk(JAVAC);
    fakes.build(&found).expect("built");
    fs::set_permissions(fakes.workers(), fs::Permissions::from_mode(0o777)).expect("chmod");
    assert_says(&fakes.unbuilt(&found), &["/workers can be written by others", "set XDG_CACHE_HOME"]);
    fs::set_permissions(fakes.workers(), fs::Permissions::from_mode(0o700)).expect("chmod");
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: root: only root can give a folder away");
    }
    std::os::unix::fs::chown(fakes.workers(), Some(65_534), None).expect("chown");
    assert_says(&fakes.unbuilt(&found), &["/workers belongs to user 65534, not to user 0"]);
}

/// A tmpfs in place of the cache folder.
fn mount(fakes: &mut Fakes, options: &str) -> Option<Tmpfs> {
    let point = fakes.path("cache");
    fs::create_dir_all(&point).expect("folder");
    fakes.set("XDG_CACHE_HOME", &point);
    Tmpfs::mount(&point, options)
}

#[test]
fn a_read_only_cache_folder_is_named() {
    let (mut fakes, found) = with_jdk(JAVAC);
    let Some(mounted) = mount(&mut fakes, "size=1m") else { return };
    mounted.remount("ro");
    let said = fakes.unbuilt(&found);
    let wanted =
        format!("mkdir {}/pagewise: Read-only file system (os error 30)", fakes.path("cache").display());
    assert_says(&said, &[&wanted, "; set XDG_CACHE_HOME to a writable folder"]);
    let line = fakes.toolchain_variables.capability(&jvm::RECIPE, &WorkerChoices::default());
    assert!(line.reason().is_some_and(|reason| reason.contains("Read-only file system")), "{line}");
    // The worker built before is used.
    mounted.remount("rw");
    let built = fakes.build(&found).expect("built");
    mounted.remount("ro");
    assert_eq!(fakes.build(&found).expect("built before").program.command(), built.program.command());
}

#[test]
fn a_full_cache_folder_is_named_and_left_empty() {
    let (mut fakes, found) = with_jdk(
        "while [ $# -gt 0 ]; do [ \"$1\" = -d ] && out=$2; shift; done\n\
         exec /bin/dd if=/dev/zero of=\"$out/Worker.class\" bs=64k count=64",
    );
    let Some(_mounted) = mount(&mut fakes, "size=512k") else { return };
    let workers = fakes.path("cache/pagewise/workers");
    let said = fakes.unbuilt(&found);
    assert_says(
        &said,
        &["bin/javac in ", "No space left on device", "; set XDG_CACHE_HOME to a writable folder"],
    );
    assert_eq!(names(&workers), Vec::<String>::new());
    let large = [SourceFile { name: "Large.java", text: "x".repeat(1 << 20).leak() }];
    let stop = AtomicBool::new(false);
    let said =
        fakes.toolchain_variables.build(&found, &WorkerChoices::default(), &large, &stop).expect_err("full");
    assert_says(&said, &["write ", "Large.java: No space left on device (os error 28); set XDG_CACHE_HOME"]);
    assert_eq!(names(&workers), Vec::<String>::new());
}

#[test]
fn a_program_is_not_built_where_none_may_be_run() {
    let mut fakes = Fakes::new();
    fakes.go("system/usr/local/go", "1.26.8");
    let Some(_mounted) = mount(&mut fakes, "size=1m,noexec") else { return };
    assert_says(&fakes.unbuilt(&fakes.found(&go::RECIPE)), &["it is mounted noexec; set XDG_CACHE_HOME"]);
    let line = fakes.toolchain_variables.capability(&go::RECIPE, &WorkerChoices::default());
    assert!(line.reason().is_some_and(|reason| reason.contains("it is mounted noexec")), "{line}");
}
