//! `outlast import` on every client's file, as people and programs write them: what comes out is a file that `check`
//! takes, without a secret in it.

use crate::snapshots::{FILES, fixture};
use crate::world::{CANARY, Said, text};

/// The variables that a person is told to set.
fn variables(told: &str) -> Vec<&str> {
    let lines = told.lines().filter_map(|line| line.split_once(" before outlast starts"));
    lines.filter_map(|(before, _)| before.rsplit_once("set ")).map(|(_, name)| name).collect()
}

#[test]
fn every_clients_file_becomes_one_that_outlast_takes() {
    for (folder, client, scope, place) in FILES {
        let fixture = fixture(folder, scope, place);
        let arguments = ["import", client, "--scope", scope, "--output", "outlast.toml"];
        // Where a variable is set already nobody is told of it; one that only its client knows is.
        let mut command = fixture.world.command(&arguments);
        command.env("CANARY_TOKEN", "x");
        let said = Said::new(&fixture.world, &command.output().unwrap());
        assert_eq!(said.code, 0, "{folder}: {}", said.err);
        let written = text(&fixture.world.project("outlast.toml"));
        // What stands there may always be one; of arguments and addresses only what looks like one is taken for it.
        let secret =
            |line: &&str| line.starts_with("env =") || line.starts_with("headers =") || line.contains("oken");
        let shown = written.lines().filter(secret).find(|line| line.contains(&format!("{CANARY}-")));
        assert_eq!(shown, None, "{folder}: a secret is in\n{written}");
        assert_eq!(text(&fixture.file), fixture.before, "{folder}: the client's file has changed");
        let mut check = fixture.world.command(&["check", "outlast.toml"]);
        check.env("CANARY_TOKEN", "x").envs(variables(&said.err).into_iter().map(|name| (name, "x")));
        let output = check.output().unwrap();
        let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{folder}: {wrong}\n{written}\n{}", said.err);
    }
}
