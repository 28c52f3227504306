//! The limit that a person set in a client's file, all clients at once, and answers for programs.

use crate::world::{CANARY, PLAIN, World, put, text};
use serde_json::{Value, json};

/// A file, where it is, the flags that its server gets, and what is said.
#[test]
fn the_limit_in_a_client_s_file_becomes_the_fitting_flag() {
    for (client, place, before, flags, says) in [
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.a]\ncommand = \"x\"\ntool_timeout_sec = 120\n",
            "args = [\"--installed\", \"--client-cap\", \"2m\",",
            "In codex: answers are handed off after 1m55s (its limit is set to 2m)",
        ),
        (
            "cline",
            ".cline/data/settings/cline_mcp_settings.json",
            r#"{"mcpServers": {"a": {"command": "x", "timeout": 30}}}"#,
            r#""args": ["--installed", "--client-cap", "30s","#,
            "In cline: answers are handed off after 27s (its limit is set to 30s)",
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            r#"{"mcp": {"a": {"type": "local", "command": ["x"], "timeout": 15000}}}"#,
            r#"["outlast", "--installed", "--keep-alive", "5s","#,
            "In opencode: progress helps: sent every 5s (its limit is set to 15s)",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            "extensions:\n  a:\n    type: stdio\n    cmd: x\n    timeout: 90\n    args: []\n",
            r#"args: ["--installed","--client-cap","1m30s","#,
            "In goose: answers are handed off after 1m25s (its limit is set to 1m30s)",
        ),
    ] {
        let world = World::new();
        let file = world.home(place);
        put(&file, before);
        let said = world.run(&["install", client, "--yes"]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{client}");
        assert!(text(&file).contains(flags), "{client}: {}", text(&file));
        assert!(said.out.contains(says), "{client}: {}", said.out);
        assert_eq!(world.run(&["uninstall", client, "--yes"]).code, 0);
        assert_eq!(text(&file), before, "{client}");
    }
}

#[test]
fn a_flag_that_a_person_writes_wins_over_the_one_that_fits() {
    let world = World::new();
    let file = world.home(".cline/data/settings/cline_mcp_settings.json");
    put(&file, r#"{"mcpServers": {"a": {"command": "x", "timeout": 30}}}"#);
    assert_eq!(world.run(&["install", "cline", "--yes", "--", "--client-cap", "off"]).code, 0);
    assert!(text(&file).contains(r#""--client-cap", "off", "--", "x"]"#), "{}", text(&file));
    assert_eq!(text(&file).matches("--client-cap").count(), 1);
}

#[test]
fn flags_are_checked_before_anything_is_changed() {
    let world = World::new();
    let file = world.home(".cursor/mcp.json");
    put(&file, PLAIN);
    for (flags, why) in [
        (&["--timeout", "10"][..], "`10` has no unit"),
        (&["--timout", "10m"], "did you mean --timeout?"),
        (&["npx"], "behind `--` stand flags of outlast"),
    ] {
        let said = world.run(&[&["install", "cursor", "--yes", "--"], flags].concat());
        assert_eq!(said.code, 2, "{flags:?}");
        assert!(said.err.contains(why), "{}", said.err);
        assert_eq!(text(&file), PLAIN);
    }
    assert_eq!(world.run(&["uninstall", "cursor", "--yes", "--", "--timeout", "1m"]).code, 2);
}

#[test]
fn all_means_every_client_that_has_a_file_here() {
    let world = World::new();
    let files = [world.home(".cursor/mcp.json"), world.home(".gemini/settings.json")];
    files.iter().for_each(|file| put(file, PLAIN));
    let said = world.run(&["install", "all", "--yes"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains("In cursor: ") && said.out.contains("In gemini: "), "{}", said.out);
    assert!(files.iter().all(|file| text(file).contains("--installed")));
    assert_eq!(world.run(&["uninstall", "all", "--yes"]).code, 0);
    assert!(files.iter().all(|file| text(file) == PLAIN));
}

#[test]
fn a_program_gets_one_object() {
    let world = World::new();
    let file = world.home(".cline/data/settings/cline_mcp_settings.json");
    let entry =
        |name: &str, more: &str| format!(r#""{name}": {{"command": "x", "env": {{"K": "{CANARY}"}}{more}}}"#);
    let odd = r#""odd": {"command": 1}"#;
    put(
        &file,
        format!(r#"{{"mcpServers": {{{}, {}, {odd}}}}}"#, entry("a", ""), entry("b", r#", "timeout": 30"#)),
    );
    assert_eq!(world.run(&["install", "cline", "--json"]).code, 2, "nobody could be asked");
    let said = world.run(&["install", "cline", "--json", "--yes"]);
    assert_eq!(said.code, 1);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["done"], false);
    let one = &report["files"][0];
    assert_eq!(
        (&one["client"], &one["scope"], &one["changed"]),
        (&json!("cline"), &json!("user"), &json!(true))
    );
    assert_eq!(one["servers"][1]["server"], "b");
    let flags = &one["servers"][1]["flags"];
    assert_eq!((&flags[0], &flags[1]), (&json!("--client-cap"), &json!("30s")), "{one}");
    assert_eq!(one["leftAlone"][0]["server"], "odd");
}
