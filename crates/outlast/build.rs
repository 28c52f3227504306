//! Tells the program what it was built from, and takes the compiler's support library into it.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "this is how a build script speaks to cargo"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Otherwise `libgcc_s` is loaded at every start, for nothing but the backtrace of a panic. That is a twelfth
/// of the time to the first answer, and a file that some small images do not have.
const LIBRARY: &str = "libgcc_eh.a";

/// Which functions lie together.
const SCRIPT: &str = "first.ld";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=BUILT_FOR={}", variable("TARGET"));
    println!("cargo::rustc-env=BUILT_FROM={}", commit().unwrap_or_default());
    link_support_library();
    lay_together_what_starts();
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// The commit that is built, as far as anybody knows: whoever builds says it, a packed crate carries it, and in
/// the repository git knows. Only for release builds: otherwise every commit would compile the program again.
fn commit() -> Option<String> {
    println!("cargo::rerun-if-env-changed=OUTLAST_COMMIT");
    let given = variable("OUTLAST_COMMIT");
    if !given.is_empty() {
        return Some(given);
    }
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    packed(&folder).or_else(|| if variable("PROFILE") == "release" { of_repository(&folder) } else { None })
}

/// `cargo package` writes the commit into the crate: `"sha1": "…"`.
fn packed(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(".cargo_vcs_info.json")).ok()?;
    let commit = text.split("\"sha1\"").nth(1)?.split('"').nth(1)?;
    commit.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| commit.to_owned())
}

/// With `-modified` behind it if the sources are not those of the commit.
fn of_repository(folder: &Path) -> Option<String> {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).current_dir(folder).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // A repository that merely holds a copy of ours is not ours.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // It moves with every commit and every checkout.
    println!(
        "cargo::rerun-if-changed={}",
        folder.join(git(&["rev-parse", "--git-path", "logs/HEAD"])?).display()
    );
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../engine/src");
    let modified = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(git(&["rev-parse", "HEAD"])? + if modified { "-modified" } else { "" })
}

fn link_support_library() {
    if variable("CARGO_CFG_TARGET_OS") != "linux" || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        return;
    }
    // A linker that somebody chose may be for an older C library than the compiler's support library needs.
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    if !variable("RUSTC_LINKER").is_empty() {
        return;
    }
    // Without it the program is linked as any other.
    if let Some(folder) = folder_of_library() {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle,+verbatim={LIBRARY}");
    }
}

/// What runs at every start lies side by side in the program (`cargo xtask order`): less of it has to be brought in.
/// For release builds, with linkers that are known to read the script.
fn lay_together_what_starts() {
    let gnu = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    println!("cargo::rerun-if-changed={SCRIPT}");
    if gnu && variable("PROFILE") == "release" && !has_linker_of_its_own() {
        let script = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join(SCRIPT);
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}

/// Whether somebody chose a linker, by a setting or a flag.
fn has_linker_of_its_own() -> bool {
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    !variable("RUSTC_LINKER").is_empty() || ["fuse-ld", "linker"].iter().any(|word| flags.contains(word))
}

/// Where the C compiler keeps the library: it gives the name back if it does not know.
fn folder_of_library() -> Option<PathBuf> {
    let mut compiler = cc::Build::new().cargo_metadata(false).try_get_compiler().ok()?.to_command();
    let output = compiler.arg(format!("-print-file-name={LIBRARY}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    if path.is_absolute() && path.is_file() { path.parent().map(PathBuf::from) } else { None }
}
