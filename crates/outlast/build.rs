//! Takes the compiler's support library into the program, where there is one to take.
//!
//! Otherwise `libgcc_s` is loaded at every start, for nothing but the backtrace of a panic. That is a twelfth
//! of the time to the first answer, and a file that some small images do not have.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "this is how a build script speaks to cargo"
)]

use std::path::PathBuf;

const LIBRARY: &str = "libgcc_eh.a";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of_target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if of_target("OS") != "linux" || of_target("ENV") != "gnu" {
        return;
    }
    // Without it the program is linked as any other.
    if let Some(folder) = folder() {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle,+verbatim={LIBRARY}");
    }
}

/// Where the C compiler keeps the library: it gives the name back if it does not know.
fn folder() -> Option<PathBuf> {
    let mut compiler = cc::Build::new().cargo_metadata(false).try_get_compiler().ok()?.to_command();
    let output = compiler.arg(format!("-print-file-name={LIBRARY}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    if path.is_absolute() && path.is_file() { path.parent().map(PathBuf::from) } else { None }
}
