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

#[cfg(test)]
mod tests {
    use super::super::platform::PLATFORMS;
    use super::*;

    #[test]
    fn the_script_knows_every_platform() {
        let script = fs::read_to_string(root().join("packaging/npm/outlast.sh")).unwrap();
        for platform in &PLATFORMS {
            assert!(script.contains(&format!("platform={} ", name(platform))), "{}", name(platform));
        }
    }

    /// npm, pnpm and yarn link to the script; in a folder with a blank, beside the package or inside it.
    #[test]
    fn the_script_finds_the_program_and_passes_every_word() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = std::env::temp_dir().join(format!("outlast npm {}", std::process::id()));
        let platform = PLATFORMS.iter().find(|platform| platform.is_ours()).unwrap();
        for place in ["", "outlast/node_modules/"] {
            let program = folder.join(format!("{place}{}/bin/outlast", name(platform)));
            fs::create_dir_all(program.parent().unwrap()).unwrap();
            fs::create_dir_all(folder.join("outlast/bin")).unwrap();
            copy(&root().join("packaging/npm/outlast.sh"), &folder.join("outlast/bin/outlast")).unwrap();
            fs::write(&program, "#!/bin/sh\nprintf '%s|' \"$@\"\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            symlink("outlast/bin/outlast", folder.join("link")).unwrap();
            let output = Command::new(folder.join("link")).args(["--", "a b", ""]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), "--|a b||");
            fs::remove_dir_all(&folder).unwrap();
        }
    }
}
