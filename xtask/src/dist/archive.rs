//! Archives of the bare program, what lies beside it in every package, and the checksums.

use super::platform::{self, Platform};
use super::{Dist, output};
use crate::shell::root;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The manual page and the completions, made by the program that runs here; they do not depend on the platform.
pub fn share(dist: &Dist) -> Result<()> {
    let built = platform::built(dist);
    let ours =
        built.iter().find(|platform| platform.is_ours()).context("no program for this machine was built")?;
    let share = dist.empty("share")?;
    let files: [(&str, &[&str]); 5] = [
        ("outlast.1", &["man"]),
        ("outlast.bash", &["completions", "bash"]),
        ("outlast.fish", &["completions", "fish"]),
        ("_outlast", &["completions", "zsh"]),
        ("outlast.ps1", &["completions", "powershell"]),
    ];
    for (name, words) in files {
        let text = output(Command::new(ours.program(dist)).args(words))?;
        fs::write(share.join(name), text + "\n")?;
    }
    Ok(())
}

/// `outlast-0.1.0-x86_64-unknown-linux-gnu.tar.gz`.
pub fn pack(dist: &Dist, platform: &Platform) -> Result<()> {
    let folder = dist.empty("work/archive")?;
    copy(&platform.program(dist), &folder.join("outlast"))?;
    fs::create_dir(folder.join("completions"))?;
    for name in ["outlast.bash", "outlast.fish", "_outlast", "outlast.ps1"] {
        copy(&dist.out.join("share").join(name), &folder.join("completions").join(name))?;
    }
    copy(&dist.out.join("share/outlast.1"), &folder.join("outlast.1"))?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(name), &folder.join(name))?;
    }
    let name = format!("outlast-{}-{}.tar", dist.version, platform.target);
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go=rX,u+rw,a-s"]);
    tar.arg(format!("--mtime=@{}", dist.epoch))
        .arg("--create")
        .arg("--file")
        .arg(dist.out.join("packages").join(&name));
    tar.arg(".").current_dir(&folder);
    output(&mut tar)?;
    output(
        Command::new("gzip")
            .args(["--no-name", "--best", "--force"])
            .arg(dist.out.join("packages").join(name)),
    )?;
    Ok(())
}

/// `outlast-0.1.0-x86_64-pc-windows-msvc.zip`, if its program was brought here.
pub fn pack_windows(dist: &Dist) -> Result<()> {
    const TARGET: &str = "x86_64-pc-windows-msvc";
    let program = dist.out.join("bin").join(TARGET).join("outlast.exe");
    if !program.is_file() {
        return Ok(());
    }
    let folder = dist.empty("work/zip")?;
    copy(&program, &folder.join("outlast.exe"))?;
    for name in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(name), &folder.join(name))?;
    }
    let zip = dist.out.join("packages").join(format!("outlast-{}-{TARGET}", dist.version));
    let script = "import shutil, sys; shutil.make_archive(sys.argv[1], 'zip', sys.argv[2])";
    output(Command::new("python3").args(["-c", script]).arg(zip).arg(&folder))?;
    Ok(())
}

pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// The SHA-256 of a file, as `sha256sum` prints it.
pub fn sha256(path: &Path) -> Result<String> {
    let line = output(Command::new("sha256sum").arg(path))?;
    Ok(line.split(' ').next().context("sha256sum prints nothing")?.trim_start_matches('\\').to_owned())
}

/// `SHA256SUMS` of everything that was packed; `sha256sum --check` reads it.
pub fn sums(dist: &Dist) -> Result<()> {
    let folder = dist.out.join("packages");
    let mut names: Vec<String> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.sort();
    let mut sums = String::new();
    for name in names {
        let path = folder.join(&name);
        let sum = sha256(&path)?;
        println!("{:>10}  {name}", fs::metadata(&path)?.len());
        sums += &format!("{sum}  {name}\n");
    }
    Ok(fs::write(folder.join("SHA256SUMS"), sums)?)
}
