//! Compiles the bare loops.

fn main() {
    println!("cargo::rerun-if-changed=src/bare.c");
    cc::Build::new()
        .file("src/bare.c")
        .std("c11")
        .opt_level(3)
        .force_frame_pointer(false)
        .extra_warnings(true)
        .compile("bare");
}
