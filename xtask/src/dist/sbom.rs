//! The bill of materials, in CycloneDX: every crate that is linked into the program, with its licence and checksum.

use super::{Dist, output};
use crate::shell::{cargo_command, root};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// What is linked on Linux, where most run it.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

pub fn write(dist: &Dist) -> Result<()> {
    let words = ["metadata", "--format-version", "1", "--filter-platform", PLATFORM];
    let metadata: Value = serde_json::from_str(&output(&mut cargo_command(&words))?)?;
    let bill = bill(dist, &metadata, &checksums()?)?;
    Ok(fs::write(dist.out.join("packages/outlast.cdx.json"), format!("{bill:#}\n"))?)
}

fn bill(dist: &Dist, metadata: &Value, checksums: &BTreeMap<String, String>) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<String, BTreeSet<String>> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), linked(node))).collect();
    let root =
        packages.iter().find(|(_, package)| package["name"] == "outlast").context("no package outlast")?.0;
    let needed = reachable(root, &nodes);
    let reference = |id: &String| purl(&packages[id]);
    let components: Vec<Value> =
        needed.iter().filter(|id| *id != root).map(|id| component(&packages[id], checksums)).collect();
    let dependencies: Vec<Value> = needed
        .iter()
        .map(|id| json!({ "ref": reference(id), "dependsOn": nodes[id].iter().map(reference).collect::<Vec<_>>() }))
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": component(&packages[root], checksums),
            "properties": [{ "name": "commit", "value": dist.commit }, { "name": "target", "value": PLATFORM }],
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The dependencies of a package that are linked: neither for its build script nor for its tests.
fn linked(node: &Value) -> BTreeSet<String> {
    let dependencies = node["deps"].as_array().cloned().unwrap_or_default();
    let normal = |dependency: &&Value| {
        dependency["dep_kinds"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
    };
    dependencies.iter().filter(normal).map(|dependency| text(&dependency["pkg"])).collect()
}

fn reachable(root: &str, nodes: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![root.to_owned()]);
    while let Some(id) = open.pop() {
        if found.insert(id.clone()) {
            open.extend(nodes.get(&id).into_iter().flatten().cloned());
        }
    }
    found
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
}

fn component(package: &Value, checksums: &BTreeMap<String, String>) -> Value {
    let purl = purl(package);
    let kind = if package["name"] == "outlast" { "application" } else { "library" };
    let mut component = json!({
        "type": kind,
        "bom-ref": purl,
        "name": package["name"],
        "version": package["version"],
        "purl": purl,
        "licenses": [{ "expression": text(&package["license"]).replace('/', " OR ") }],
    });
    if let Some(sum) = checksums.get(&purl) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// The checksums of the lock file, by package.
fn checksums() -> Result<BTreeMap<String, String>> {
    let lock = fs::read_to_string(root().join("Cargo.lock"))?;
    let field = |entry: &str, name: &str| {
        let line = entry.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")))?;
        Some(line.trim_matches('"').to_owned())
    };
    let entries = lock.split("[[package]]").skip(1);
    Ok(entries
        .filter_map(|entry| {
            let purl = format!("pkg:cargo/{}@{}", field(entry, "name")?, field(entry, "version")?);
            Some((purl, field(entry, "checksum")?))
        })
        .collect())
}
