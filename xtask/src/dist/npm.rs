//! The npm packages: one that everybody names, and one with the program for each platform.
//!
//! The first holds a shell script and names the others as `optionalDependencies`: npm installs the one that fits,
//! by its `os`, `cpu` and `libc`. Nothing is downloaded by a script.

use super::Dist;
use super::archive::copy;
use super::platform::Platform;
use crate::shell::{self, root};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

pub fn pack(dist: &Dist, platforms: &[&Platform]) -> Result<()> {
    for platform in platforms {
        pack_platform(dist, platform)?;
    }
    let folder = dist.empty("work/npm")?;
    fs::create_dir(folder.join("bin"))?;
    copy(&root().join("packaging/npm/outlast.sh"), &folder.join("bin/outlast"))?;
    copy(&root().join("packaging/npm/README.md"), &folder.join("README.md"))?;
    let others: Map<String, Value> =
        platforms.iter().map(|platform| (name(platform), json!(dist.version))).collect();
    let manifest = json!({
        "name": "outlast",
        "version": dist.version,
        "description": "Keeps MCP calls alive between a client and its server",
        "keywords": ["mcp", "model-context-protocol", "timeout", "proxy"],
        "license": "MIT OR Apache-2.0",
        "os": ["linux", "darwin"],
        "bin": { "outlast": "bin/outlast" },
        "files": ["bin"],
        "optionalDependencies": others,
    });
    finish(dist, &folder, &manifest)
}

/// `outlast-linux-x64`.
fn name(platform: &Platform) -> String {
    format!("outlast-{}-{}", platform.node.0, platform.node.1)
}

fn pack_platform(dist: &Dist, platform: &Platform) -> Result<()> {
    let folder = dist.empty("work/npm-platform")?;
    fs::create_dir(folder.join("bin"))?;
    copy(&platform.program(dist), &folder.join("bin/outlast"))?;
    let mut manifest = json!({
        "name": name(platform),
        "version": dist.version,
        "description": format!("The program of outlast for {}", platform.target),
        "license": "MIT OR Apache-2.0",
        "os": [platform.node.0],
        "cpu": [platform.node.1],
        // It is started by path, also where packages are otherwise read from archives.
        "preferUnplugged": true,
        "files": ["bin"],
    });
    if platform.target.ends_with("gnu") {
        manifest["libc"] = json!(["glibc"]);
    }
    finish(dist, &folder, &manifest)
}

fn finish(dist: &Dist, folder: &Path, manifest: &Value) -> Result<()> {
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(name), &folder.join(name))?;
    }
    fs::write(folder.join("package.json"), format!("{manifest:#}\n"))?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--ignore-scripts", "--silent", "--pack-destination"]).arg(dist.out.join("packages"));
    npm.current_dir(folder);
    shell::run(npm)
}
