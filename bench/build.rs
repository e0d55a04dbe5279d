//! Compiles the bare loops: those that are called, and the program that is a process of its own.

use std::env;
use std::path::PathBuf;

/// The program of its own.
const ONCE: &str = "src/once/bare.c";

fn main() {
    println!("cargo::rerun-if-changed=src/bare.c");
    cc::Build::new()
        .file("src/bare.c")
        .std("c11")
        .opt_level(3)
        // Elsewhere in a cache line than before, the loop over a mapping is 5 % faster or slower.
        .flag_if_supported("-falign-functions=64")
        .flag_if_supported("-falign-loops=64")
        .force_frame_pointer(false)
        .extra_warnings(true)
        .compile("bare");
    once();
}

/// As a user compiles it: -O2, for the processors that Rust's default target is for.
fn once() {
    println!("cargo::rerun-if-changed={ONCE}");
    let program = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("once");
    let compiler = cc::Build::new().opt_level(2).cargo_metadata(false).get_compiler();
    let status = std::process::Command::new(compiler.path())
        .args(["-O2", "-std=c11", "-Wall", "-Wextra", "-o"])
        .arg(&program)
        .arg(ONCE)
        .status()
        .expect("the C compiler starts");
    assert!(status.success(), "the C compiler: {status}");
    println!("cargo::rustc-env=BARE_ONCE={}", program.display());
}
