//! The JDK, and the worker that its `javac` builds.
//!
//! Candidates: only `--jdk` if given; else JAVA_HOME, `java` on PATH, and the newest in the usual folders. A home is
//! suitable if it has a `bin/java` that runs, a `bin/javac`, and a version in which the foreign-function API is final.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pagewise_model::WorkerChoices;

use super::child::{self, Said};
use super::shell_words::split_words;
use super::store::{BuildError, WorkerStore};
use super::variables::{ToolchainVariables, entries, is_program, numbers};
use super::{Built, Found, Language, SourceFile, ToolchainError};

/// JEP 454: the foreign-function and memory API is final in JDK 22.
const MIN_VERSION: u64 = 22;
const WANTED: &str = "JDK of version 22 or newer with its compiler";
const MAIN_CLASS: &str = "pagewise.Worker";
/// A heap of fixed size and a collector without threads of its own, to reduce variation.
const JVM_ARGS: [&str; 4] = ["-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:-UsePerfData"];
/// Always set, whatever the user chose. Without native access the JVM prints a warning at the first foreign call, and
/// later versions refuse it; a full heap must end the worker, with its message outside of the protocol.
const ALWAYS: [&str; 3] =
    ["-XX:+ExitOnOutOfMemoryError", "-XX:+DisplayVMOutputToStderr", "--enable-native-access=ALL-UNNAMED"];
/// Flags of a JVM that decide what it runs, which the user may not choose.
const NOT_TO_CHOOSE: [&str; 14] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-jar",
    "-m",
    "--module",
    "--source",
    "-version",
    "--version",
    "-help",
    "--help",
    "-h",
    "-?",
    "-X",
];
pub(super) const BUILD_FLAGS: [&str; 5] =
    ["-J-XX:-UsePerfData", "-encoding", "UTF-8", "-proc:none", "-nowarn"];
/// A JVM or a compiler reads each as more flags; CLASSPATH adds classes if there is no `-cp`.
const UNSET: [&str; 5] =
    ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JDK_JAVAC_OPTIONS", "CLASSPATH"];
/// Folders of the system that may hold JDKs.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/lib/jvm", "/usr/lib64/jvm", "/usr/java", "/opt/java"];
/// Folders below the user's home that may hold JDKs.
const USER_FOLDERS: [&str; 3] = [".sdkman/candidates/java", ".jdks", ".asdf/installs/java"];

pub(super) fn find(
    toolchain_variables: &ToolchainVariables,
    choices: &WorkerChoices,
) -> Result<Found, ToolchainError> {
    if let Some(jdk) = &choices.jdk {
        let home = std::path::absolute(jdk).unwrap_or_else(|_| jdk.into());
        return check(toolchain_variables, &home)
            .map_err(|why| ToolchainError(format!("--jdk {jdk}: {why}; a {WANTED} is needed")));
    }
    let mut search = JdkSearch { toolchain_variables, seen: BTreeSet::new(), passed: Vec::new() };
    let found = search.of_environment().or_else(|| search.on_path()).or_else(|| search.in_usual_folders());
    found.ok_or_else(|| search.missing())
}

/// Goes through the candidates and remembers their faults.
struct JdkSearch<'a> {
    toolchain_variables: &'a ToolchainVariables,
    seen: BTreeSet<PathBuf>,
    passed: Vec<String>,
}

impl JdkSearch<'_> {
    fn of_environment(&mut self) -> Option<Found> {
        let Some(home) = self.toolchain_variables.variable("JAVA_HOME").map(PathBuf::from) else {
            self.passed.push("JAVA_HOME is not set".to_string());
            return None;
        };
        self.try_home("JAVA_HOME", &std::path::absolute(&home).unwrap_or(home))
    }

    fn on_path(&mut self) -> Option<Found> {
        let programs = self.toolchain_variables.on_path("java");
        if programs.is_empty() {
            self.passed.push("java is not on PATH".to_string());
        }
        programs.iter().find_map(|java| match home_of(self.toolchain_variables, java) {
            Ok(home) => self.try_home("java on PATH", &home),
            Err(why) => {
                self.passed.push(format!("java on PATH: {why}"));
                None
            }
        })
    }

    fn in_usual_folders(&mut self) -> Option<Found> {
        let mut homes: Vec<(Vec<u64>, PathBuf)> = usual_homes(self.toolchain_variables)
            .into_iter()
            .map(|home| (release(&home).map_or_else(Vec::new, |release| numbers(&release.version)), home))
            .collect();
        // Of equal ones the first by name: the sort is stable.
        homes.sort_by(|one, other| other.0.cmp(&one.0));
        homes.iter().find_map(|(_, home)| self.try_home("usual folders", home))
    }

    /// Try a home that was not tried before.
    fn try_home(&mut self, place: &str, home: &Path) -> Option<Found> {
        if !self.seen.insert(home.canonicalize().unwrap_or_else(|_| home.to_path_buf())) {
            return None;
        }
        match check(self.toolchain_variables, home) {
            Ok(mut found) => {
                // If there is another, only candidates that the user has set deserve a note.
                found.notes.extend(self.passed.iter().filter(|why| why.starts_with("JAVA_HOME: ")).cloned());
                Some(found)
            }
            Err(why) => {
                self.passed.push(format!("{place}: {why}"));
                None
            }
        }
    }

    fn missing(self) -> ToolchainError {
        let below_home = USER_FOLDERS.map(|folder| format!("~/{folder}"));
        let folders = SYSTEM_FOLDERS
            .into_iter()
            .chain(["/opt"])
            .chain(below_home.iter().map(String::as_str))
            .collect::<Vec<_>>();
        ToolchainError(format!(
            "no {} was found: {}; none is in {}; name one with --jdk DIR",
            WANTED,
            self.passed.join("; "),
            folders.join(", ")
        ))
    }
}

/// Homes with a `bin/java` in the usual folders.
fn usual_homes(toolchain_variables: &ToolchainVariables) -> Vec<PathBuf> {
    let user =
        toolchain_variables.home().into_iter().flat_map(|home| USER_FOLDERS.map(|folder| home.join(folder)));
    let in_opt = entries(&toolchain_variables.system("/opt"))
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("jdk")));
    let folders = SYSTEM_FOLDERS.map(|folder| toolchain_variables.system(folder)).into_iter().chain(user);
    let homes = folders.flat_map(|folder| entries(&folder)).chain(in_opt);
    homes.filter(|home| is_program(&home.join("bin/java"))).collect()
}

/// The home of a `java` on PATH: that of the file behind its symbolic links, or the one it reports itself if it is a
/// script of a version manager.
fn home_of(toolchain_variables: &ToolchainVariables, java: &Path) -> Result<PathBuf, String> {
    let program = java.canonicalize().map_err(|error| format!("{}: {error}", java.display()))?;
    if let Some(home) = program.parent().and_then(Path::parent)
        && release(home).is_some()
    {
        return Ok(home.to_path_buf());
    }
    let said = ask(toolchain_variables, &program, &["-XshowSettings:properties", "-version"])?;
    let named = said.stderr.lines().find_map(|line| line.trim().strip_prefix("java.home = "));
    match named {
        Some(home) => Ok(PathBuf::from(home)),
        None => Err(format!("{} does not report its home", program.display())),
    }
}

/// Check a home; the error is its fault.
fn check(toolchain_variables: &ToolchainVariables, home: &Path) -> Result<Found, String> {
    let shown = home.display();
    let program = home.join("bin/java");
    if !home.is_dir() {
        return Err(format!("{shown} is not a folder"));
    }
    if !is_program(&program) {
        return Err(format!("{shown} has no bin/java"));
    }
    let release = match release(home) {
        Some(release) => release,
        None => asked_release(toolchain_variables, &program)?,
    };
    let version = release.text();
    if numbers(&release.version).first().is_none_or(|feature| *feature < MIN_VERSION) {
        return Err(format!("{version} at {shown} is too old"));
    }
    if !is_program(&home.join("bin/javac")) {
        return Err(format!("{version} at {shown} has no bin/javac: a runtime without the compiler"));
    }
    // The file may describe another processor or a broken copy: the program must run.
    asked_release(toolchain_variables, &program)?;
    Ok(Found {
        language: Language::Jvm,
        home: home.to_path_buf(),
        program,
        release: version.clone(),
        version,
        notes: Vec::new(),
    })
}

/// Content of the `release` file of a home.
struct Release {
    version: String,
    vendor: Option<String>,
}

impl Release {
    fn text(&self) -> String {
        match &self.vendor {
            Some(vendor) => format!("{} ({vendor})", self.version),
            None => self.version.clone(),
        }
    }
}

fn release(home: &Path) -> Option<Release> {
    parse_release(&fs::read_to_string(home.join("release")).ok()?)
}

/// `JAVA_VERSION="25.0.3"`; the vendor from `IMPLEMENTOR_VERSION="Temurin-25.0.3+9"` if that begins with a word, else
/// from `IMPLEMENTOR="Debian"`.
fn parse_release(text: &str) -> Option<Release> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(line.trim().trim_matches('"').to_string()).filter(|value| !value.is_empty() && value != "N/A")
    };
    let build = value("IMPLEMENTOR_VERSION").and_then(|build| {
        let word = build.split('-').next()?;
        word.chars().all(char::is_alphabetic).then(|| word.to_string())
    });
    Some(Release { version: value("JAVA_VERSION")?, vendor: build.or(value("IMPLEMENTOR")) })
}

/// `openjdk version "17.0.15" 2025-04-15`, on stderr.
fn parse_version(text: &str) -> Option<Release> {
    let rest = text.lines().find_map(|line| line.split_once(" version \""))?.1;
    Some(Release { version: rest.split('"').next()?.to_string(), vendor: None })
}

fn asked_release(toolchain_variables: &ToolchainVariables, java: &Path) -> Result<Release, String> {
    let said = ask(toolchain_variables, java, &["-version"])?;
    parse_version(&said.stderr).ok_or_else(|| format!("{} -version names no version", java.display()))
}

fn ask(toolchain_variables: &ToolchainVariables, java: &Path, arguments: &[&str]) -> Result<Said, String> {
    let mut command = toolchain_variables.command(java);
    UNSET.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.args(arguments);
    let said = child::run(&mut command, toolchain_variables.answer_within, &AtomicBool::new(false));
    said.and_then(Said::well).map_err(|why| format!("{} -version: {why}", java.display()))
}

pub(super) fn build(
    toolchain_variables: &ToolchainVariables,
    store: &WorkerStore,
    found: &Found,
    choices: &WorkerChoices,
    sources: &[SourceFile],
    stop: &AtomicBool,
) -> Result<Built, ToolchainError> {
    let flags = flags(choices)?;
    let folder = super::folder(store, found, sources);
    if folder.to_string_lossy().contains(':') {
        let shown = folder.display();
        return Err(ToolchainError(format!(
            "a JVM cannot take classes from {shown}, which holds a ':'; set XDG_CACHE_HOME"
        )));
    }
    let folder = store.worker(Language::Jvm, folder, stop, |workshop| {
        let paths = workshop.write_all(&workshop.work(), sources)?;
        let javac = found.home.join("bin/javac");
        let mut command = toolchain_variables.command(&javac);
        UNSET.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.args(BUILD_FLAGS).arg("-cp").arg(workshop.product()).arg("-d").arg(workshop.product());
        command.args(&paths).current_dir(workshop.work()).stdin(workshop.lock_as_stdin()?);
        let said = child::run(&mut command, toolchain_variables.built_within, stop).and_then(Said::well);
        said.map(drop).map_err(|why| {
            BuildError::said(format!("{} in {}: {why}", javac.display(), workshop.work().display()))
        })
    })?;
    let mut built = Built::of(found, folder, &UNSET, |folder| start(found, &flags, folder));
    let set = UNSET.iter().filter(|name| toolchain_variables.variable(name).is_some());
    built.notes.extend(
        set.map(|name| format!("{name} is set and is kept from the jvm worker; --jvm-args sets its flags")),
    );
    Ok(built)
}

fn start(found: &Found, flags: &[String], folder: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    [&[text(&found.program)], flags, &["-cp".to_string(), text(folder), MAIN_CLASS.to_string()]].concat()
}

/// The flags of the JVM: pagewise's own or the user's, and native access.
fn flags(choices: &WorkerChoices) -> Result<Vec<String>, ToolchainError> {
    let mut flags = match &choices.jvm_args {
        None => JVM_ARGS.map(str::to_string).to_vec(),
        Some(text) => split_words(text).map_err(|error| ToolchainError(format!("--jvm-args: {error}")))?,
    };
    if let Some(first) = flags.first()
        && !first.starts_with(['-', '@'])
    {
        return Err(ToolchainError(format!(
            "--jvm-args: '{first}' is not a flag of a JVM: flags begin with '-'"
        )));
    }
    let named = |flag: &&String| NOT_TO_CHOOSE.contains(&flag.split('=').next().unwrap_or_default());
    if let Some(flag) = flags.iter().find(named) {
        return Err(ToolchainError(format!("--jvm-args: '{flag}' would run something else than the worker")));
    }
    flags.extend(ALWAYS.map(str::to_string));
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_file_names_version_and_vendor() {
        let table = [
            (
                "IMPLEMENTOR=\"Eclipse Adoptium\"\nIMPLEMENTOR_VERSION=\"Temurin-25.0.3+9\"\nJAVA_VERSION=\"25.0.3\"\n",
                "25.0.3 (Temurin)",
            ),
            (
                "IMPLEMENTOR=\"Debian\"\nJAVA_RUNTIME_VERSION=\"17.0.15+6-Debian\"\nJAVA_VERSION=\"17.0.15\"\n",
                "17.0.15 (Debian)",
            ),
            (
                "IMPLEMENTOR=\"Azul Systems, Inc.\"\nIMPLEMENTOR_VERSION=\"Zulu25.28+85-CA\"\nJAVA_VERSION=\"25\"\n",
                "25 (Azul Systems, Inc.)",
            ),
            ("IMPLEMENTOR=\"N/A\"\nJAVA_VERSION=\"22-ea\"\n", "22-ea"),
        ];
        for (text, wanted) in table {
            assert_eq!(parse_release(text).expect(text).text(), wanted);
        }
        assert!(parse_release("IMPLEMENTOR=\"Debian\"\n").is_none());
    }

    #[test]
    fn a_version_is_found_in_what_java_prints() {
        let text = "Picked up _JAVA_OPTIONS: -Xmx1g\njava version \"1.8.0_392\"\nJava(TM) SE Runtime\n";
        assert_eq!(parse_version(text).expect("a version").version, "1.8.0_392");
        assert_eq!(numbers("1.8.0_392"), [1, 8, 0]);
        assert_eq!(numbers("25-ea"), [25]);
        assert!(parse_version("no such program").is_none());
    }

    #[test]
    fn flags_are_replaced_and_native_access_stays() {
        let chosen =
            |text: &str| WorkerChoices { jvm_args: Some(text.to_string()), ..WorkerChoices::default() };
        let standard = flags(&WorkerChoices::default()).expect("flags").join(" ");
        assert!(
            standard.starts_with("-Xms256m -Xmx256m") && standard.ends_with(&ALWAYS.join(" ")),
            "{standard}"
        );
        let own = flags(&chosen("-Xmx1g  '-Da=b c'")).expect("flags");
        assert_eq!(own[..2], ["-Xmx1g", "-Da=b c"]);
        assert_eq!(own[2..], ALWAYS);
        assert_eq!(flags(&chosen("")).expect("flags"), ALWAYS);
        for (text, sentence) in [
            ("-Xmx1g \"-Da", "--jvm-args: '-Xmx1g \"-Da' has an unclosed \""),
            ("Xmx1g", "'Xmx1g' is not a flag of a JVM"),
            ("-Xmx1g -jar x.jar", "'-jar' would run something else"),
        ] {
            let refused = flags(&chosen(text)).expect_err(text).to_string();
            assert!(refused.contains(sentence), "{refused}");
        }
    }
}
