//! For whom programs are made, and what each package manager calls them.

use super::Dist;
use std::path::PathBuf;

/// One kind of machine.
pub struct Platform {
    /// As rustc calls it.
    pub target: &'static str,
    /// npm's words for system and processor.
    pub node: (&'static str, &'static str),
    /// The tag of its wheels.
    pub wheel: &'static str,
    /// Debian's word for the processor; empty where there is no Debian.
    pub debian: &'static str,
}

/// Those that `cargo xtask dist build` makes; the others come from machines of their own.
pub const LINUX: usize = 2;

pub const PLATFORMS: [Platform; 4] = [
    Platform {
        target: "x86_64-unknown-linux-gnu",
        node: ("linux", "x64"),
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64",
        debian: "amd64",
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        node: ("linux", "arm64"),
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64",
        debian: "arm64",
    },
    Platform {
        target: "x86_64-apple-darwin",
        node: ("darwin", "x64"),
        wheel: "macosx_10_12_x86_64",
        debian: "",
    },
    Platform {
        target: "aarch64-apple-darwin",
        node: ("darwin", "arm64"),
        wheel: "macosx_11_0_arm64",
        debian: "",
    },
];

impl Platform {
    /// Where its program is, once it is built.
    pub fn program(&self, dist: &Dist) -> PathBuf {
        dist.out.join("bin").join(self.target).join("outlast")
    }

    /// Can this machine run its programs?
    pub fn is_ours(&self) -> bool {
        let system = if std::env::consts::OS == "macos" { "apple" } else { std::env::consts::OS };
        self.target.starts_with(std::env::consts::ARCH) && self.target.contains(system)
    }
}

/// Those whose program is there.
pub fn built(dist: &Dist) -> Vec<&'static Platform> {
    PLATFORMS.iter().filter(|platform| platform.program(dist).is_file()).collect()
}
