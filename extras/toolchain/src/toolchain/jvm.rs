//! The JDK, and the worker that its `javac` builds.

use std::path::Path;
use std::process::Command;

use pagewise_lab::worker_door::WorkerOption;
use pagewise_model::WorkerChoices;
use pagewise_model::shell_words::split_words;
use pagewise_protocol::inherited_path;
use rustix::fs::{MemfdFlags, memfd_create};

use super::Found;
use super::child::Said;
use super::recipe::{Build, Flags, Recipe};
use super::sources::JVM;

/// A heap of fixed size and a collector without threads of its own, to reduce variation.
const JVM_ARGS: [&str; 4] = ["-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:-UsePerfData"];
/// Always set, whatever the user chose. Without native access the JVM prints a warning at the first
/// foreign call, and later versions refuse it; a full heap must end the worker, with its message
/// outside of the protocol.
const ALWAYS: [&str; 3] =
    ["-XX:+ExitOnOutOfMemoryError", "-XX:+DisplayVMOutputToStderr", "--enable-native-access=ALL-UNNAMED"];
/// Flags of a JVM that decide what it runs, which the user may not choose.
const NOT_TO_CHOOSE: &str =
    "-cp -classpath --class-path -jar -m --module --source -version --version -help --help -h -? -X";

pub(super) const JDK: &str = "jdk";
const ARGUMENTS: &str = "jvm_args";

/// Options of the worker.
pub const OPTIONS: &[WorkerOption] = &[
    WorkerOption {
        name: JDK,
        value: "DIR",
        is_path: true,
        help: "The JDK of the jvm worker, 22 or newer [default: JAVA_HOME, java on PATH, the usual folders]",
        help_of_doctor: Some("Examine only this JDK"),
        worker: RECIPE.name,
        called: "a JDK and its arguments",
    },
    WorkerOption {
        name: ARGUMENTS,
        value: "ARGS",
        is_path: false,
        help: "Arguments of the JVM instead of pagewise's own, as in '-Xms1g -Xmx1g -XX:+UseZGC'",
        help_of_doctor: None,
        worker: RECIPE.name,
        called: "a JDK and its arguments",
    },
];

pub(super) const RECIPE: Recipe = Recipe {
    name: "jvm",
    capability: "worker jvm",
    sources: JVM,
    wanted: "JDK of version 22 or newer with its compiler",
    // JEP 454: the foreign-function and memory API is final in JDK 22.
    oldest: &[22],
    home: Some("JAVA_HOME"),
    programs: &["java"],
    folders: &[
        "/usr/lib/jvm/*/bin",
        "/usr/lib64/jvm/*/bin",
        "/usr/java/*/bin",
        "/opt/java/*/bin",
        "/opt/*jdk*/bin",
        "~/.sdkman/candidates/java/*/bin",
        "~/.jdks/*/bin",
        "~/.asdf/installs/java/*/bin",
    ],
    remedy: "; name one with --jdk DIR",
    question: &["-XshowSettings:properties", "-version"],
    answer,
    set: &[],
    // A JVM or a compiler reads each as more flags; CLASSPATH adds classes if there is no `-cp`.
    unset: &["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JDK_JAVAC_OPTIONS", "CLASSPATH"],
    instead: "; --jvm-args sets its flags",
    compiler: Some("bin/javac"),
    build_flags: &["-J-XX:-UsePerfData", "-encoding", "UTF-8", "-proc:none", "-nowarn"],
    compile,
    unsuitable,
    flags,
    start,
};

/// Properties of the JVM, on stderr. Its vendor is the word in
/// `java.vendor.version = Temurin-25.0.3+9` if that begins with one, else `java.vendor = Debian`.
fn answer(said: &Said, _: &Path) -> Option<Found> {
    let property = |name: &str| said.value(&format!("{name} = ")).filter(|value| *value != "N/A");
    let version = property("java.version")?;
    let word = property("java.vendor.version").and_then(|build| build.split('-').next());
    let word = word.filter(|word| word.chars().all(char::is_alphabetic));
    let release = match word.or(property("java.vendor")) {
        Some(vendor) => format!("{version} ({vendor})"),
        None => version.to_string(),
    };
    let home = Path::new(property("java.home")?);
    Some(Found::new(&RECIPE, home, home.join("bin/java"), release))
}

fn compile(command: &mut Command, build: &Build<'_>) -> Result<(), String> {
    let product = build.workshop.product();
    command.arg("-cp").arg(&product).arg("-d").arg(&product);
    command.args(build.sources.iter().map(|source| source.name));
    Ok(())
}

fn unsuitable(folder: &Path) -> Option<String> {
    let shown = folder.display();
    folder
        .to_string_lossy()
        .contains(':')
        .then(|| format!("a JVM cannot take classes from {shown}, which holds a ':'; set XDG_CACHE_HOME"))
}

fn start(found: &Found, flags: &[String], folder: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    [&[text(&found.program)], flags, &["-cp".to_string(), text(folder), "pagewise.Worker".to_string()]]
        .concat()
}

/// The flags of the JVM: pagewise's own or the user's, and those that are always set.
fn flags(choices: &WorkerChoices) -> Result<Flags, String> {
    let mut words = match choices.option(ARGUMENTS) {
        None => JVM_ARGS.map(str::to_string).to_vec(),
        Some(text) => split_words(text).map_err(|error| format!("--jvm-args: {error}"))?,
    };
    if let Some(first) = words.first()
        && !first.starts_with(['-', '@'])
    {
        return Err(format!("--jvm-args: '{first}' is not a flag of a JVM: flags begin with '-'"));
    }
    let decides = |flag: &&String| NOT_TO_CHOOSE.split(' ').any(|name| flag.split('=').next() == Some(name));
    if let Some(flag) = words.iter().find(decides) {
        return Err(format!("--jvm-args: '{flag}' would run something else than the worker"));
    }
    words.extend(ALWAYS.map(str::to_string));
    if choices.heartbeat_ns == 0 {
        return Ok(Flags { words, log: None });
    }
    // Safepoints are logged where the worker reads them.
    let log = memfd_create("pagewise-safepoints", MemfdFlags::empty())
        .map_err(|errno| format!("memory for the log of safepoints cannot be had: {errno}"))?;
    let path = inherited_path(&log);
    let logged = format!("-Xlog:safepoint=info:file={path}:uptimenanos:filecount=0");
    words.splice(0..0, [logged, format!("-Dpagewise.safepoint-log={path}")]);
    Ok(Flags { words, log: Some(log) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::recipe::numbers;
    use crate::toolchain::tests::chosen;

    fn said(stderr: &str) -> Said {
        Said { status: Default::default(), stdout: String::new(), stderr: stderr.to_string() }
    }

    #[test]
    fn the_properties_name_version_vendor_and_home() {
        let table = [
            (
                "java.vendor = Eclipse Adoptium\n java.vendor.version = Temurin-25.0.3+9\n java.version = 25.0.3",
                "25.0.3 (Temurin)",
            ),
            (
                "java.vendor = Debian\n java.version = 17.0.15\n java.version.date = 2025-04-15",
                "17.0.15 (Debian)",
            ),
            (
                "java.vendor = Azul Systems, Inc.\n java.vendor.version = Zulu25.28+85-CA\n java.version = 25",
                "25 (Azul Systems, Inc.)",
            ),
            ("java.vendor = N/A\n java.version = 22-ea", "22-ea"),
        ];
        for (properties, release) in table {
            let text = format!(
                "Picked up _JAVA_OPTIONS: -Xmx1g\nProperty settings:\n java.home = /jdk\n {properties}\n"
            );
            let found = answer(&said(&text), Path::new("/usr/bin/java")).expect(properties);
            assert_eq!((&*found.release, found.program), (release, "/jdk/bin/java".into()));
        }
        assert_eq!(numbers("1.8.0_392"), [1, 8, 0]);
        assert_eq!(numbers("25-ea"), [25]);
        assert!(answer(&said("java.home = /jdk\n"), Path::new("/usr/bin/java")).is_none());
        assert!(answer(&said("no such program"), Path::new("/usr/bin/java")).is_none());
    }

    #[test]
    fn flags_are_replaced_and_native_access_stays() {
        let chosen = |text: &str| chosen(ARGUMENTS, text);
        let standard = flags(&WorkerChoices::default()).expect("flags").words.join(" ");
        assert!(
            standard.starts_with("-Xms256m -Xmx256m") && standard.ends_with(&ALWAYS.join(" ")),
            "{standard}"
        );
        let Flags { words: own, log } = flags(&chosen("-Xmx1g  '-Da=b c'")).expect("flags");
        assert_eq!(own[..2], ["-Xmx1g", "-Da=b c"]);
        assert_eq!(own[2..], ALWAYS);
        assert!(log.is_none());
        assert_eq!(flags(&chosen("")).expect("flags").words, ALWAYS);
        let beating = WorkerChoices { heartbeat_ns: 1, ..chosen("-Xmx1g") };
        let Flags { words: own, log } = flags(&beating).expect("flags");
        let path = inherited_path(&log.expect("memory for the log"));
        assert!(own[0].contains(&path) && own[1].ends_with(&path) && own[2] == "-Xmx1g", "{own:?}");
        for (text, sentence) in [
            ("-Xmx1g \"-Da", "--jvm-args: '-Xmx1g \"-Da' has an unclosed \""),
            ("Xmx1g", "'Xmx1g' is not a flag of a JVM"),
            ("-Xmx1g -jar x.jar", "'-jar' would run something else"),
        ] {
            let refused = flags(&chosen(text)).expect_err(text);
            assert!(refused.contains(sentence), "{refused}");
        }
    }
}
