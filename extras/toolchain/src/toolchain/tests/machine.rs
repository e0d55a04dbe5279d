//! The machine's own toolchains, if it has them, and the shipped sources.

use std::fs;
use std::process::Command;

use super::*;

/// The machine with a separate cache folder; Go keeps its cache of compiled packages.
fn machine(cache: &Path) -> ToolchainVariables {
    let mut machine = ToolchainVariables::here();
    if let (None, Ok(before)) = (machine.variable("GOCACHE"), machine.cache()) {
        machine.variables.insert("GOCACHE".into(), before.join("go-build").into());
    }
    machine.variables.insert("XDG_CACHE_HOME".into(), cache.into());
    machine
}

/// Find the toolchain, or print the reason that the test is skipped.
fn found(machine: &ToolchainVariables, recipe: &'static Recipe) -> Option<Found> {
    let found = machine.find(recipe, &WorkerChoices::default());
    found.inspect_err(|missing| println!("skipped: {}: {missing}", recipe.name)).ok()
}

/// Build a program in the language and run it.
fn hello(recipe: &'static Recipe, name: &'static str, text: &'static str) {
    let folder = tempfile::tempdir().expect("folder");
    let machine = machine(folder.path());
    let Some(found) = found(&machine, recipe) else { return };
    let stop = AtomicBool::new(false);
    let built =
        machine.build(&found, &WorkerChoices::default(), &[SourceFile { name, text }], &stop).expect("built");
    println!("{built:?}");
    let mut command = Command::new(&built.program.program);
    built.program.unset.iter().for_each(|name| {
        command.env_remove(name);
    });
    let output = command.args(&built.program.arguments).output().expect("start");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n", "{output:?}");
    let again = machine
        .build(&found, &WorkerChoices::default(), &[SourceFile { name, text }], &stop)
        .expect("built before");
    assert_eq!(again.program.command(), built.program.command());
    let broken = [SourceFile { name, text: "no program at all(\n" }];
    let broken = machine.build(&found, &WorkerChoices::default(), &broken, &stop);
    if recipe.compiler.is_some() {
        let said = broken.expect_err("no program");
        println!("{said}");
        assert!(said.contains("exit status: 1: ") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_java_program_is_built_and_runs() {
    let source = "package pagewise;\n\npublic class Worker {\n    public static void main(String[] arguments) {\n        \
                  System.out.println(\"hello\");\n    }\n}\n";
    hello(&jvm::RECIPE, "Worker.java", source);
}

#[test]
fn a_go_program_is_built_and_runs() {
    let source = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n";
    hello(&go::RECIPE, "main.go", source);
}

#[test]
fn a_python_program_runs() {
    hello(&python::RECIPE, "worker.py", "print('hello')\n");
}

#[test]
fn a_newer_jdk_is_found_beside_the_one_on_path() {
    let folder = tempfile::tempdir().expect("folder");
    let mut machine = machine(folder.path());
    machine.variables.remove(std::ffi::OsStr::new("JAVA_HOME"));
    let Some(found) = found(&machine, &jvm::RECIPE) else { return };
    let first: u64 = found.version.split('.').next().and_then(|text| text.parse().ok()).expect("a version");
    assert!(first >= 22, "{found:?}");
    for recipe in RECIPES {
        println!("{}", machine.capability(recipe, &WorkerChoices::default()));
    }
    assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 0);
}

#[test]
fn a_go_program_that_does_not_fit_leaves_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let point = folder.path().join("mounted");
    fs::create_dir(&point).expect("folder");
    let machine = machine(&point);
    let Some(found) = found(&machine, &go::RECIPE) else { return };
    let Some(_mounted) = tmpfs::Tmpfs::mount(&point, "size=512k") else { return };
    let source = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n";
    let source = [SourceFile { name: "main.go", text: source }];
    let said = machine.build(&found, &WorkerChoices::default(), &source, &AtomicBool::new(false));
    let said = said.expect_err("full");
    println!("{said}");
    assert_says(
        &said,
        &["bin/go in ", "no space left on device", "; set XDG_CACHE_HOME to a writable folder"],
    );
    assert_eq!(names(&point.join("pagewise/workers")), Vec::<String>::new());
}

#[test]
fn the_shipped_sources_build() {
    let folder = tempfile::tempdir().expect("folder");
    let machine = machine(folder.path());
    for recipe in RECIPES {
        let Some(found) = found(&machine, recipe) else { continue };
        let stop = AtomicBool::new(false);
        let built = machine.build(&found, &WorkerChoices::default(), recipe.sources, &stop);
        println!("{:?}", built.expect("the worker builds"));
    }
}

#[test]
fn the_shipped_python_worker_imports_from_the_folder_that_was_looked_at() {
    let cache = tempfile::tempdir().expect("folder");
    let machine = machine(cache.path());
    let Some(found) = found(&machine, &python::RECIPE) else { return };
    let sources = python::RECIPE.sources;
    let built =
        machine.build(&found, &WorkerChoices::default(), sources, &AtomicBool::new(false)).expect("built");
    // Whatever has its name by now.
    let folder = folder_of(&built);
    fs::rename(&folder, folder.with_extension("old")).expect("rename");
    fs::create_dir(&folder).expect("folder");
    for source in sources {
        fs::write(folder.join(source.name), "raise SystemExit('evil')\n").expect("write");
    }
    for (name, value) in [("PYTHONSAFEPATH", ""), ("PYTHONSAFEPATH", "1")] {
        let mut command = Command::new(&built.program.program);
        let output = command
            .args(&built.program.arguments)
            .env(name, value)
            .stdin(Stdio::null())
            .output()
            .expect("start");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("\"hello\""), "{name}={value}: {output:?}");
    }
}
