//! Gives the shared library the name under which the loader of a C program looks for it.
//!
//! The file that Cargo builds is `librelayout_capi`, for `librelayout` is the Rust library of this workspace. `install.sh` installs it
//! under the name that is set here.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = |part: &str| var(format!("CARGO_PKG_VERSION_{part}")).expect("Cargo sets it");
    let (major, minor, patch) = (version("MAJOR"), version("MINOR"), version("PATCH"));
    // Before 1.0 a minor version may break callers, as everywhere in Cargo.
    let abi = if major == "0" { format!("0.{minor}") } else { major.clone() };
    let system = var("CARGO_CFG_TARGET_OS").expect("Cargo sets it");
    let arguments = match system.as_str() {
        "linux" | "freebsd" | "netbsd" | "openbsd" | "dragonfly" => format!("-Wl,-soname,librelayout.so.{abi}"),
        "macos" | "ios" => format!(
            "-Wl,-install_name,@rpath/librelayout.{abi}.dylib,-current_version,{major}.{minor}.{patch},-compatibility_version,{abi}"
        ),
        // Elsewhere a library is found by the name of its file.
        _ => return,
    };
    println!("cargo::rustc-cdylib-link-arg={arguments}");
}
