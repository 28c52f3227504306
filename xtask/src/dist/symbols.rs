//! On which C libraries does a program start? Its symbols say which versions it wants.

use super::output;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// CentOS 7 and manylinux2014 have this one; Debian 10 has 2.28.
pub const OLDEST: (u32, u32) = (2, 17);

/// What every Linux with glibc has, all of it from glibc itself.
const LIBRARIES: [&str; 7] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// An error if the program needs a newer C library, or another library.
pub fn check(program: &Path) -> Result<String> {
    let versions = output(Command::new("readelf").args(["--version-info", "--wide"]).arg(program))?;
    let newest = newest(&versions).context("the program names no version of glibc")?;
    ensure!(newest <= OLDEST, "{} needs glibc {}.{}", program.display(), newest.0, newest.1);
    let dynamic = output(Command::new("readelf").args(["--dynamic", "--wide"]).arg(program))?;
    for library in needed(&dynamic) {
        ensure!(LIBRARIES.contains(&library), "{} needs {library}", program.display());
    }
    Ok(format!("glibc {}.{}, {}", newest.0, newest.1, needed(&dynamic).join(" ")))
}

/// The highest `GLIBC_x.y` in a text.
fn newest(text: &str) -> Option<(u32, u32)> {
    let versions = text.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let mut numbers = rest[..end].split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    versions.max()
}

/// The libraries that are loaded at the start.
fn needed(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.contains("(NEEDED)"));
    lines.filter_map(|line| line.split('[').nth(1)?.split(']').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts() {
        let text = "Name: GLIBC_2.3.4  Flags: none\n Name: GLIBC_2.17  Flags: none\n Name: GLIBC_2.9 \n";
        assert_eq!(newest(text), Some((2, 17)));
        assert_eq!(newest("GLIBC_2.34 GLIBC_2.2.5"), Some((2, 34)));
        assert_eq!(newest("GLIBC_PRIVATE"), None);
    }

    #[test]
    fn libraries_are_named() {
        let text = " 0x01 (NEEDED)  Shared library: [libgcc_s.so.1]\n 0x0c (INIT) 0x1000\n";
        assert_eq!(needed(text), ["libgcc_s.so.1"]);
    }

    /// Whatever built these tests is newer than 2.17, or links more: the check can fail.
    #[test]
    fn a_program_that_needs_more_is_refused() {
        let own = std::env::current_exe().unwrap();
        if cfg!(all(target_os = "linux", target_env = "gnu")) {
            assert!(check(&own).is_err());
        }
    }
}
