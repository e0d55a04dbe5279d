//! Choice of the toolchain, and the notes about skipped candidates.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::tmpfs::text;
use super::*;
use pagewise_host::Availability;

const JDKS: &str = "system/usr/lib/jvm";

#[test]
fn a_jdk_too_old_is_named_with_its_place() {
    let mut fakes = Fakes::new();
    let old = fakes.jdk(&format!("{JDKS}/java-17"), "17.0.15");
    symlink(old.join("bin/java"), fakes.path("bin/java")).expect("link");
    let oldest = fakes.jdk("home/.jdks/jdk-8", "1.8.0_392");
    let home = fakes.jdk("elsewhere", "21.0.2");
    fakes.set("JAVA_HOME", &home);
    let said = fakes.missing(&jvm::RECIPE);
    assert_says(
        &said,
        &[
            "no JDK of version 22 or newer with its compiler was found: ",
            &format!("JAVA_HOME: 21.0.2 (Fake) at {} is too old", home.display()),
            &format!("java on PATH: 17.0.15 (Fake) at {} is too old", old.display()),
            &format!("usual folders: 1.8.0_392 (Fake) at {} is too old", oldest.display()),
            "none is in /usr/lib/jvm/*/bin, /usr/lib64/jvm/*/bin, ",
            "name one with --jdk DIR",
        ],
    );
    assert_eq!(said.matches("17.0.15").count(), 1, "each is named once: {said}");
}

#[test]
fn a_runtime_without_the_compiler_will_not_do() {
    let fakes = Fakes::new();
    let home = fakes.jre(&format!("{JDKS}/jre-25"), "25.0.1");
    let said = fakes.missing(&jvm::RECIPE);
    let wanted =
        format!("25.0.1 (Fake) at {} has no bin/javac: a runtime without the compiler", home.display());
    assert_says(&said, &[&wanted, "JAVA_HOME is not set", "java is not on PATH"]);
}

#[test]
fn a_broken_java_home_is_a_note_where_another_will_do() {
    let mut fakes = Fakes::new();
    let good = fakes.jdk(&format!("{JDKS}/jdk-25"), "25.0.1");
    fakes.set("JAVA_HOME", "/nowhere/jdk");
    let found = fakes.found(&jvm::RECIPE);
    assert_eq!((&found.home, &*found.version), (&good, "25.0.1 (Fake)"));
    assert_eq!(found.notes, ["JAVA_HOME: /nowhere/jdk is not a folder"]);
    let empty = fakes.path("empty");
    fs::create_dir(&empty).expect("folder");
    fakes.set("JAVA_HOME", &empty);
    let notes = fakes.found(&jvm::RECIPE).notes;
    assert_eq!(notes, [format!("JAVA_HOME: {} has no bin/java", empty.display())]);
    fakes.set("JAVA_HOME", "");
    assert!(fakes.found(&jvm::RECIPE).notes.is_empty());
}

#[test]
fn a_broken_program_on_the_path_is_a_note_where_another_will_do() {
    let fakes = Fakes::new();
    fakes.jdk(&format!("{JDKS}/jdk-25"), "25.0.1");
    let broken = fakes.program("bin/java", "exit 7");
    let notes = fakes.found(&jvm::RECIPE).notes;
    let wanted = format!("java on PATH: {} does not say its version: ", broken.display());
    assert!(notes.len() == 1 && notes[0].starts_with(&wanted), "{notes:?}");
}

#[test]
fn java_home_comes_first_then_path_then_the_newest() {
    let mut fakes = Fakes::new();
    let newest = fakes.jdk("home/.sdkman/candidates/java/25.0.10-tem", "25.0.10");
    fakes.jdk(&format!("{JDKS}/jdk-25"), "25.0.9");
    fakes.jdk("system/opt/jdk-24", "24");
    fakes.jre("system/usr/java/jre-26", "26");
    symlink(&newest, fakes.path("home/.sdkman/candidates/java/current")).expect("link");
    assert_eq!(fakes.found(&jvm::RECIPE).home, newest, "the newest that has a compiler");
    let on_path = fakes.jdk("anywhere/jdk", "23.0.1");
    symlink(on_path.join("bin/java"), fakes.path("middle")).expect("link");
    symlink(fakes.path("middle"), fakes.path("bin/java")).expect("link");
    assert_eq!(fakes.found(&jvm::RECIPE).home, on_path.canonicalize().expect("path"), "behind two links");
    let chosen = fakes.jdk("chosen", "22");
    fakes.set("JAVA_HOME", &chosen);
    assert_eq!(fakes.found(&jvm::RECIPE).home, chosen);
}

#[test]
fn the_jdk_that_is_named_is_the_only_one() {
    let mut fakes = Fakes::new();
    let good = fakes.jdk("good", "25");
    fakes.set("JAVA_HOME", &good);
    let old = fakes.jdk("old", "11.0.2");
    let named = |jdk: &Path| fakes.toolchain_variables.find(&jvm::RECIPE, &chosen("jdk", text(jdk)));
    let said = named(&old).expect_err("too old");
    let shown = old.display();
    assert_eq!(
        said,
        format!(
            "--jdk {shown}: 11.0.2 (Fake) at {shown} is too old; a JDK of version 22 or newer with its compiler is needed"
        )
    );
    assert_says(&named(Path::new("/nowhere")).expect_err("nothing there"), &["/nowhere is not a folder"]);
    assert_eq!(named(&good).expect("good").home, good);
}

#[test]
fn a_script_on_path_is_asked_for_its_home() {
    let fakes = Fakes::new();
    let home = fakes.jdk("managed/jdk", "25");
    fakes.program("bin/java", &properties(&home, "25"));
    assert_eq!(fakes.found(&jvm::RECIPE).home, home);
    fakes.program("bin/java", "echo no version is set >&2; exit 126");
    assert_says(
        &fakes.missing(&jvm::RECIPE),
        &["java on PATH: ", "bin/java does not say its version: exit status: 126: no version is set"],
    );
}

#[test]
fn a_jdk_that_does_not_run_is_passed_over() {
    let mut fakes = Fakes::new();
    fakes.toolchain_variables.answer_within = Duration::from_millis(200);
    let broken = fakes.jdk(&format!("{JDKS}/jdk-26"), "26");
    fakes.program(&format!("{JDKS}/jdk-26/bin/java"), "exec /bin/sleep 600");
    let said = fakes.missing(&jvm::RECIPE);
    assert_says(
        &said,
        &[
            &format!("{}/bin/java does not say its version: did not end within", broken.display()),
            "was killed",
        ],
    );
    fakes.toolchain_variables.answer_within = Duration::from_secs(60);
    let good = fakes.jdk(&format!("{JDKS}/jdk-25"), "25");
    fakes.program(&format!("{JDKS}/jdk-26/bin/java"), "echo cannot execute >&2; exit 1");
    assert_eq!(fakes.found(&jvm::RECIPE).home, good);
}

#[test]
fn go_is_looked_for_on_path_and_beside_it() {
    let fakes = Fakes::new();
    let said = fakes.missing(&go::RECIPE);
    assert_says(
        &said,
        &["no Go 1.21 or newer was found: go is not on PATH", "/usr/local/go/bin, ~/go/bin, ~/sdk/go*/bin"],
    );
    let old = fakes.go("old", "1.20.14");
    symlink(&old, fakes.path("bin/go")).expect("link");
    assert_says(&fakes.missing(&go::RECIPE), &["go on PATH: 1.20.14 at ", "/old is too old"]);
    fakes.go("home/sdk/go1.9.7", "1.9.7");
    let newest = fakes.go("home/sdk/go1.26.1", "1.26.1");
    fakes.go("home/sdk/go1.22.3", "1.22.3");
    let found = fakes.found(&go::RECIPE);
    assert_eq!((&found.program, &*found.version), (&newest, "1.26.1"));
    let system = fakes.go("system/usr/local/go", "1.21");
    assert_eq!(fakes.found(&go::RECIPE).program, system);
}

#[test]
fn python_says_whether_it_has_numpy() {
    let fakes = Fakes::new();
    assert_eq!(
        fakes.missing(&python::RECIPE),
        "no Python 3.8 or newer was found: python3 is not on PATH; python is not on PATH"
    );
    fakes.python("bin/python3", "3.7.17", "without numpy");
    assert_says(&fakes.missing(&python::RECIPE), &["3.7.17 at ", "bin/python3 is too old; python is not on"]);
    let python = fakes.python("bin/python", "3.11.7", "without numpy");
    let found = fakes.found(&python::RECIPE);
    assert_eq!((&found.program, &*found.version), (&python, "3.11.7, without numpy"));
    fakes.python("bin/python3", "3.12.1", "numpy 2.1.0");
    assert_eq!(fakes.found(&python::RECIPE).version, "3.12.1, numpy 2.1.0");
    fakes.program("bin/python3", "echo 'python3: command not found' >&2; exit 127");
    assert_eq!(fakes.found(&python::RECIPE).program, python);
}

#[test]
fn what_prints_without_end_is_bounded_and_ended() {
    let mut fakes = Fakes::new();
    fakes.toolchain_variables.answer_within = Duration::from_millis(300);
    fakes.program("bin/python3", "while :; do echo nonsense; echo nonsense >&2; done");
    assert_says(
        &fakes.missing(&python::RECIPE),
        &["bin/python3 does not say its version: did not end within"],
    );
    // One that leaves a descendant behind that holds its output.
    let mut fakes = Fakes::new();
    fakes.toolchain_variables.answer_within = Duration::from_secs(60);
    fakes.program("bin/python3", "/bin/sleep 3 & echo pagewise version 3.11.7");
    assert_eq!(fakes.found(&python::RECIPE).version, "3.11.7, without numpy");
}

#[test]
fn the_doctor_has_a_line_for_each() {
    let mut fakes = Fakes::new();
    fakes.set("JAVA_HOME", "/nowhere/jdk");
    let home = fakes.jdk(&format!("{JDKS}/jdk-25"), "25.0.1");
    let lines: Vec<_> = RECIPES
        .into_iter()
        .map(|recipe| fakes.toolchain_variables.capability(recipe, &WorkerChoices::default()))
        .collect();
    assert_eq!(
        lines.iter().map(|line| line.name).collect::<Vec<_>>(),
        ["worker jvm", "worker go", "worker python"]
    );
    assert!(lines[0].is_available() && !lines[1].is_available() && !lines[2].is_available());
    let detail = format!("25.0.1 (Fake) at {}; JAVA_HOME: /nowhere/jdk is not a folder", home.display());
    assert_eq!(lines[0].detail, detail);
    assert!(lines[1].reason().is_some_and(|reason| reason.contains("go is not on PATH")), "{}", lines[1]);
    assert_eq!(names(&fakes.path("home")), Vec::<String>::new(), "nothing is built");
    fakes.toolchain_variables.variables.remove(std::ffi::OsStr::new("HOME"));
    let line = fakes.toolchain_variables.capability(&jvm::RECIPE, &WorkerChoices::default());
    let Availability::Unavailable { reason } = &line.state else { panic!("{line}") };
    assert_says(reason, &["neither XDG_CACHE_HOME nor HOME is set"]);
}
