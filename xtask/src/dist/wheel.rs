//! The wheels: a program in the folder that pip copies to `bin/`, and its description.

use super::archive::copy;
use super::platform::Platform;
use super::{Dist, tools};
use crate::shell::{self, root};
use anyhow::Result;
use std::fs;
use std::process::Command;

/// `outlast-0.1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl`.
pub fn pack(dist: &Dist, platform: &Platform) -> Result<()> {
    let folder = dist.empty("work/wheel")?;
    let name = format!("outlast-{}", dist.version);
    let (information, scripts) =
        (folder.join(format!("{name}.dist-info")), folder.join(format!("{name}.data/scripts")));
    fs::create_dir_all(information.join("licenses"))?;
    fs::create_dir_all(&scripts)?;
    copy(&platform.program(dist), &scripts.join("outlast"))?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(name), &information.join("licenses").join(name))?;
    }
    fs::write(information.join("METADATA"), metadata(dist)?)?;
    fs::write(information.join("WHEEL"), tags(platform))?;
    // It writes the list of files with their checksums, and names the wheel by its tags.
    let mut wheel = Command::new(tools::python_tool(dist, "wheel"));
    wheel.arg("pack").arg("--dest-dir").arg(dist.out.join("packages")).arg(&folder);
    dist.dated(&mut wheel);
    shell::run(wheel)
}

fn tags(platform: &Platform) -> String {
    let lines = platform.wheel.split('.').map(|tag| format!("Tag: py3-none-{tag}\n"));
    format!("Wheel-Version: 1.0\nGenerator: outlast\nRoot-Is-Purelib: false\n{}", lines.collect::<String>())
}

fn metadata(dist: &Dist) -> Result<String> {
    Ok(format!(
        "Metadata-Version: 2.4
Name: outlast
Version: {}
Summary: Keeps MCP calls alive between a client and its server
Keywords: mcp,model-context-protocol,timeout,proxy
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{}",
        dist.version,
        fs::read_to_string(root().join("README.md"))?
    ))
}
