//! The manifest for Kubernetes that we ship, held against the schemas of the oldest version that it is for and of a new
//! one. Nothing is run.

use std::process::Command;

use anyhow::{Result, ensure};

use super::tally::Verdict;
use super::{Places, setup};
use crate::shell::root;

/// Versions of Kubernetes: `preStop` has known `sleep` since the first.
const VERSIONS: [&str; 2] = ["1.30", "1.37"];

const MANIFEST: &str = "packaging/replicas/kubernetes.yaml";

pub fn check(places: &Places) -> Verdict {
    validate(places).map_err(|error| vec![format!("{error:#}")])
}

fn validate(places: &Places) -> Result<String> {
    setup::install_python(places, "kubernetes", "requirements-kubernetes.txt")?;
    for version in VERSIONS {
        let mut validator = Command::new(places.installed.join("kubernetes/bin/kubernetes-validate"));
        validator.args(["--strict", "--kubernetes-version", version]).arg(root().join(MANIFEST));
        let done = validator.output()?;
        let said = String::from_utf8_lossy(&done.stderr) + String::from_utf8_lossy(&done.stdout);
        ensure!(done.status.success(), "Kubernetes {version} does not take {MANIFEST}: {said}");
    }
    Ok(format!("Kubernetes {} take {MANIFEST}", VERSIONS.join(" and ")))
}
