//! Tells the program which compiler built it, so that `throng bench --json` can say so.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Only the program asks; without it nothing is run.
    if std::env::var_os("CARGO_FEATURE_CLI").is_none() {
        return;
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    if let Ok(version) = version
        && let Ok(version) = String::from_utf8(version.stdout)
    {
        println!("cargo::rustc-env=THRONG_RUSTC={}", version.trim());
    }
}
