//! Faked toolchains in temporary folders, and the workers found and built with them; then the
//! machine's own.

mod building;
mod exchanged;
mod finding;
mod machine;
mod tmpfs;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pagewise_model::WorkerChoices;
use tempfile::TempDir;

use super::variables::ToolchainVariables;
use super::{Found, RECIPES, ReadyWorker, Recipe, SourceFile, go, jvm, python};

const SOURCE: &str = "the source of a worker\n";
/// The fake compilers ignore names, and Python is started with this one.
const SOURCES: &[SourceFile] = &[SourceFile { name: "worker.py", text: SOURCE }];
/// A compiler that makes a class and records that it did.
const JAVAC: &str = r#"echo built >> "$HOME/built"
while [ $# -gt 0 ]; do [ "$1" = -d ] && out=$2; shift; done
/bin/mkdir -p "$out/pagewise"; echo class of $$ > "$out/pagewise/Worker.class""#;

/// A fake system, home and PATH.
struct Fakes {
    folder: TempDir,
    toolchain_variables: ToolchainVariables,
}

impl Fakes {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["home", "bin", "system"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let variable = |name: &str, below: &str| (name.into(), folder.path().join(below).into_os_string());
        let toolchain_variables = ToolchainVariables {
            variables: [variable("HOME", "home"), variable("PATH", "bin")].into(),
            another_home: None,
            root: folder.path().join("system"),
            answer_within: Duration::from_secs(60),
            built_within: Duration::from_secs(60),
        };
        Self { folder, toolchain_variables }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn set(&mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) {
        self.toolchain_variables.variables.insert(name.into(), value.as_ref().into());
    }

    /// A program. It is written by a child: a file that this process has open for writing could not
    /// be executed, and a child that another test is starting would hold it open too.
    fn program(&self, below: &str, script: &str) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let mut writer = Command::new("/bin/sh")
            .args(["-c", "/bin/cat > \"$0\" && /bin/chmod 755 \"$0\""])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh");
        let mut stdin = writer.stdin.take().expect("piped");
        write!(stdin, "#!/bin/sh\n{script}\n").expect("write");
        drop(stdin);
        assert!(writer.wait().expect("wait").success());
        path
    }

    /// A runtime without the compiler.
    fn jre(&self, below: &str, version: &str) -> PathBuf {
        let home = self.path(below);
        self.program(&format!("{below}/bin/java"), &properties(&home, version));
        home
    }

    fn jdk(&self, below: &str, version: &str) -> PathBuf {
        self.jdk_with(below, version, JAVAC)
    }

    fn jdk_with(&self, below: &str, version: &str, javac: &str) -> PathBuf {
        self.program(&format!("{below}/bin/javac"), javac);
        self.jre(below, version)
    }

    /// A Go whose folder has this path.
    fn go(&self, below: &str, version: &str) -> PathBuf {
        let root = self.path(below);
        let script = format!(
            "case \"$*\" in 'env GOVERSION GOROOT') echo go{version}; echo {root} ;; \
             build*) while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done; \
             set > \"$out\"; /bin/cat go.mod >> \"$out\" ;; *) exit 2 ;; esac",
            root = root.display()
        );
        self.program(&format!("{below}/bin/go"), &script)
    }

    fn python(&self, below: &str, version: &str, numpy: &str) -> PathBuf {
        let path = self.path(below);
        let script = format!(
            "echo a start-up file prints\necho pagewise version {version}\necho pagewise program {}\n\
             echo pagewise numpy {numpy}",
            path.display()
        );
        self.program(below, &script)
    }

    fn find(&self, recipe: &'static Recipe) -> Result<Found, String> {
        self.toolchain_variables.find(recipe, &WorkerChoices::default())
    }

    #[track_caller]
    fn found(&self, recipe: &'static Recipe) -> Found {
        self.find(recipe).expect("one that will do")
    }

    /// Reason that there is none.
    #[track_caller]
    fn missing(&self, recipe: &'static Recipe) -> String {
        let sentence = self.find(recipe).expect_err("none will do");
        println!("{sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        sentence
    }

    fn build(&self, found: &Found) -> Result<ReadyWorker, String> {
        self.toolchain_variables.build(found, &WorkerChoices::default(), SOURCES, &AtomicBool::new(false))
    }

    /// Reason that it cannot be built.
    #[track_caller]
    fn unbuilt(&self, found: &Found) -> String {
        let sentence = self.build(found).expect_err("it cannot be built");
        println!("{sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        sentence
    }

    fn workers(&self) -> PathBuf {
        self.path("home/.cache/pagewise/workers")
    }

    /// Number of runs of the fake compiler.
    fn builds(&self) -> usize {
        fs::read_to_string(self.path("home/built")).map_or(0, |text| text.lines().count())
    }
}

/// The folder of a worker: that of its classes, or of its program or script.
fn folder_of(built: &ReadyWorker) -> PathBuf {
    let command = built.program.command();
    let classes = command.iter().position(|word| word == "-cp").map(|at| PathBuf::from(&command[at + 1]));
    let file = Path::new(command.last().expect("a program"));
    classes.unwrap_or_else(|| file.parent().expect("a folder").to_path_buf())
}

/// Choices with one option.
pub(super) fn chosen(name: &str, value: &str) -> WorkerChoices {
    WorkerChoices { options: [(name.to_string(), value.to_string())].into(), ..WorkerChoices::default() }
}

/// A `java` that describes itself.
fn properties(home: &Path, version: &str) -> String {
    let home = home.display();
    format!("echo '    java.home = {home}\n    java.vendor = Fake\n    java.version = {version}' >&2")
}

/// Names in a folder, including hidden ones but not the lock.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name != ".lock").collect();
    names.sort();
    names
}

#[track_caller]
fn assert_says(sentence: &str, parts: &[&str]) {
    for part in parts {
        assert!(sentence.contains(part), "'{part}' is not in: {sentence}");
    }
}
