//! Tells the program what it is built for, which `relayout --version` says.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=RELAYOUT_TARGET={target}");
}
