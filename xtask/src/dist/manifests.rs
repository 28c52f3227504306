//! The files that other managers read: Homebrew's formula, Scoop's manifest. Checksums are filled in.

use super::Dist;
use super::archive::sha256;
use crate::shell::root;
use anyhow::Result;
use std::fs;

const FILES: [&str; 2] = ["homebrew/outlast.rb", "scoop/outlast.json"];

/// What stands for the checksum of an archive that was not packed here. No archive has it.
const UNKNOWN: &str = "0000000000000000000000000000000000000000000000000000000000000000";

pub fn write(dist: &mut Dist) -> Result<()> {
    for file in FILES {
        let template = fs::read_to_string(root().join("packaging").join(file))?;
        let text = template
            .replace("@VERSION@", &dist.version)
            .replace("@URL@", dist.url.trim_end_matches('/'))
            .replace("@HOMEPAGE@", homepage(&dist.url));
        let text = fill(dist, &text)?;
        let name = file.rsplit('/').next().unwrap_or(file);
        fs::write(dist.out.join("packages").join(name), text)?;
    }
    Ok(())
}

/// Releases lie below the page of the project.
fn homepage(url: &str) -> &str {
    url.split("/releases/").next().unwrap_or(url)
}

/// Replaces every `@SHA256:FILE@`.
fn fill(dist: &mut Dist, text: &str) -> Result<String> {
    let mut parts = text.split("@SHA256:");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (file, rest) = part.split_once('@').unwrap_or((part, ""));
        let path = dist.out.join("packages").join(file);
        if path.is_file() {
            filled += &sha256(&path)?;
        } else {
            dist.leave_out(format!("the checksum of {file}: it is not built on this machine"));
            filled += UNKNOWN;
        }
        filled += rest;
    }
    Ok(filled)
}
