//! JMH: `bench/jmh`, built by Maven with the JDK that pagewise runs its worker on, and run with the same flags of the JVM.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};
use pagewise_host::toolchain::Language;
use serde_json::Value;

use super::{Contest, Harness, Inputs, Tools, folder, said};

/// pagewise's method and the benchmark's.
const METHODS: [(&str, &str); 5] = [
    ("jvm/mmap", "mmap"),
    ("jvm/pread", "pread"),
    ("jvm/filechannel:direct-buffer", "channelDirectBuffer"),
    ("jvm/filechannel:heap-buffer", "channelHeapBuffer"),
    ("jvm/pread:direct", "preadDirect"),
];
/// A fork: three iterations of a second to warm up, three that count.
const FORK: [&str; 8] = ["-wi", "3", "-w", "1s", "-i", "3", "-r", "1s"];
const QUICK_FORK: [&str; 8] = ["-wi", "1", "-w", "100ms", "-i", "1", "-r", "200ms"];

/// The jar and what runs it.
pub struct Jmh<'a> {
    inputs: Inputs<'a>,
    tools: Tools,
    jar: PathBuf,
}

impl<'a> Jmh<'a> {
    /// Builds the jar unless it is newer than its sources.
    pub fn new(inputs: Inputs<'a>, jdk: Option<&Path>) -> Result<Self> {
        let tools = Tools::of(Language::Jvm, jdk)?;
        let project = folder("jmh");
        let jar = project.join("target/benchmarks.jar");
        let source = project.join("src/main/java/reading/ReadStrategies.java");
        let changed = [project.join("pom.xml"), source].iter().map(|path| modified(path)).max().flatten();
        if modified(&jar).is_none_or(|built| Some(built) < changed) {
            let mut maven = Command::new("mvn");
            maven.args(["-q", "-B", "-f"]).arg(project.join("pom.xml")).arg("package");
            said(unset(maven.env("JAVA_HOME", &tools.found.home), &tools)).context("JMH is not built")?;
        }
        Ok(Self { inputs, tools, jar })
    }

    /// Flags of the worker's JVM, all that stands before its class path.
    fn flags(&self) -> String {
        let flags = self.tools.built.arguments.iter().take_while(|flag| *flag != "-cp");
        flags.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// The command without what would change the JVM behind its flags.
fn unset(command: &mut Command, tools: &Tools) -> Command {
    let mut clean = Command::new(command.get_program());
    clean.args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            clean.env(name, value);
        }
    }
    for name in tools.built.unset {
        clean.env_remove(name);
    }
    clean
}

impl Harness for Jmh<'_> {
    fn name(&self) -> String {
        format!("JMH on JDK {}, {}", self.tools.found.version, self.flags())
    }

    fn contests(&self) -> Vec<Contest> {
        Contest::all(&METHODS, &[1, 2])
    }

    fn rate(&self, contest: &Contest) -> Result<f64> {
        let results = self.inputs.scratch.path("jmh.json");
        let mut command = Command::new(&self.tools.built.program);
        command.arg("-jar").arg(&self.jar).arg(format!("ReadStrategies.{}$", contest.benchmark));
        command.args(["-f", "1", "-foe", "true", "-rf", "json", "-rff"]).arg(&results);
        command.args(if self.inputs.quick { QUICK_FORK } else { FORK });
        command.args(["-t", &contest.threads.to_string(), "-jvmArgs", &self.flags()]);
        command.arg("-p").arg(format!("file={}", self.inputs.dataset.path.canonicalize()?.display()));
        command.arg("-p").arg(format!("table={}", self.inputs.table.path.canonicalize()?.display()));
        let told = said(unset(&mut command, &self.tools))?;
        let text = std::fs::read(&results).with_context(|| format!("JMH left no results: {told}"))?;
        std::fs::remove_file(&results)?;
        let results: Value = serde_json::from_slice(&text)?;
        results[0]["primaryMetric"]["score"].as_f64().context("JMH tells no score")
    }
}
