//! What is left alone: said in one line that names the file and the line, with exit code 1.

use crate::world::{CANARY, PLAIN, World, put, text};
use std::path::PathBuf;

/// Where the client of a file reads it.
fn place(world: &World, client: &str) -> PathBuf {
    world.home(match client {
        "codex" => ".codex/config.toml",
        "goose" => ".config/goose/config.yaml",
        "opencode" => ".config/opencode/opencode.json",
        _ => ".cursor/mcp.json",
    })
}

fn left_alone(client: &str, source: &str, parts: &[&str]) {
    let world = World::new();
    let file = place(&world, client);
    put(&file, source);
    let said = world.run(&["install", client, "--yes"]);
    assert_eq!(said.code, 1, "{source}: {said:?}");
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert!(said.err.contains("left alone") && said.err.contains("~/."), "{}", said.err);
    for part in parts {
        assert!(said.err.contains(part), "`{part}` is not in: {}", said.err);
    }
    assert_eq!(text(&file), source);
    assert!(!file.with_extension("json.outlast-backup").exists());
}

#[test]
fn a_file_that_is_not_understood_is_left_alone() {
    for (client, source, parts) in [
        ("cursor", "", &["line 1", "empty"][..]),
        ("cursor", "{\n  \"mcpServers\": {\n    'a': 1\n}}", &["line 3", "double quotes"]),
        ("cursor", "{\"mcpServers\": {\"a\": {\"command\": \"x\" \"env\": \"CANARY\"}}}", &["line 1", "`,`"]),
        ("cursor", "[]", &["not an object"]),
        ("cursor", "\n{\"mcpServers\": []}", &["line 2", "`mcpServers` is not an object"]),
        ("codex", "a = 1\nb = CANARY\n", &["line 2"]),
        ("codex", "a = 1\na = 2\n", &["line 2", "duplicate"]),
        ("codex", "mcp_servers = 3\n", &["line 1", "not a table"]),
        ("goose", "extensions: {a: {type: stdio, cmd: x}}\n", &["line 1", "line by line"]),
        ("goose", "a: 1\nextensions:\n- type: stdio\n  cmd: x\n", &["line 3", "is a list"]),
        ("goose", "extensions:\n  a:\n    type: stdio\n    cmd: x\n---\nb: 1\n", &["line 5", "document"]),
        ("goose", "extensions:\n  a:\n    type: stdio\n    cmd: x\nextensions:\n", &["line 5", "twice"]),
        ("goose", "extensions:\n  a:\n    type: stdio\n   cmd: x\n", &["line 4", "indented"]),
        ("goose", "extensions:\n    a:\n      type: stdio\n  b:\n    cmd: x\n", &["line 4", "indented"]),
        ("goose", "extensions:\n\ta:\n\t\tcmd: x\n", &["line 2", "tab"]),
        ("goose", "extensions:\n  a:\n    type: stdio\n    what is this\n", &["line 4", "name: value"]),
    ] {
        left_alone(client, source, parts);
    }
}

#[test]
fn a_server_that_is_not_understood_is_left_alone() {
    let json = |body: &str| format!("{{\"mcpServers\": {{\n\"a\": {body}}}}}");
    let goose = |body: &str| format!("extensions:\n  a:\n    type: stdio\n{body}");
    for (client, source, part) in [
        ("cursor", json(r#"{"command": "npx -y CANARY"}"#), "a line for a shell"),
        ("cursor", json(r#"{"command": "~/bin/x"}"#), "begins with ~"),
        ("cursor", json(r#"{"command": ""}"#), "empty"),
        ("cursor", json(r#"{"command": ["npx"]}"#), "not text"),
        ("cursor", json(r#"{"command": "\ud800"}"#), "not text"),
        ("cursor", json(r#"{"command": "x", "args": "CANARY"}"#), "not a list"),
        ("cursor", json(r#"{"command": "x", "command": "y"}"#), "twice"),
        ("cursor", json(r#"{"command": "x", "args": [], "args": []}"#), "twice"),
        ("cursor", json(r#"{"command": "x", "type": "sse"}"#), "not stdio"),
        ("cursor", json("7"), "not an object"),
        ("opencode", "{\"mcp\": {\n\"a\": {\"type\": \"local\", \"command\": \"x\"}}}".into(), "not a list"),
        ("opencode", "{\"mcp\": {\n\"a\": {\"type\": \"local\", \"command\": []}}}".into(), "empty"),
        ("codex", "\n[mcp_servers.a]\ncommand = 1\n".into(), "not text"),
        ("codex", "\n[mcp_servers.a]\ncommand = 'x'\nargs = 'CANARY'\n".into(), "not a list"),
        ("codex", "\nmcp_servers.a = 1\n".into(), "not a table"),
        ("codex", "\nmcp_servers = { a.command = 'x' }\n".into(), "dotted"),
        ("goose", goose("    cmd: |\n      x\n"), "not a plain or quoted text"),
        ("goose", goose("    cmd: *x\n"), "not a plain or quoted text"),
        ("goose", goose("    cmd: 7\n"), "not a plain or quoted text"),
        ("goose", goose("    cmd: x\n      y\n"), "not a plain or quoted text"),
        ("goose", goose("    cmd: x\n    cmd: y\n"), "twice"),
        ("goose", goose("    cmd: x\n    args:\n"), "write args: []"),
        ("goose", goose("    cmd: x\n    args: [CANARY,\n      b]\n"), "args are not"),
        ("goose", goose("    cmd: x\n    args: CANARY\n"), "args are not"),
        ("goose", goose("    cmd: x\n    args:\n    - a: b\n"), "args are not"),
        ("goose", goose("    cmd: x\n    args:\n    - a\n      CANARY\n"), "args are not"),
        ("goose", goose("    cmd: a,b\n    args: [c]\n"), "without quotes"),
        ("goose", "extensions:\n  a: {type: stdio, cmd: x}\n".into(), "line by line"),
        ("goose", "extensions:\n  a:\n    cmd: x\n".into(), "not stdio"),
    ] {
        left_alone(client, &source, &["line 2", "`a`", part]);
    }
}

#[test]
fn the_other_servers_of_the_file_are_changed_all_the_same() {
    let world = World::new();
    let file = world.home(".cursor/mcp.json");
    put(&file, r#"{"mcpServers": {"odd": {"command": "sh -c x"}, "good": {"command": "x", "args": ["y"]}}}"#);
    let said = world.run(&["install", "cursor", "--yes"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("`odd` is left alone"), "{}", said.err);
    let expected = r#"{"mcpServers": {"odd": {"command": "sh -c x"}, "good": {"command": "outlast", "args": ["--installed", "--", "x", "y"]}}}"#;
    assert_eq!(text(&file), expected);
}

#[test]
fn uninstall_leaves_alone_what_it_cannot_take_apart() {
    let world = World::new();
    let file = world.home(".cursor/mcp.json");
    for (body, part) in [
        (r#""args": ["timeout-mcp", "30", "npx"]"#, "no `--`"),
        (r#""args": ["--installed", "--"]"#, "no `--`"),
        (r#""args": ["--installed", "--", 1]"#, "no `--`"),
        (r#""env": {}"#, "no `--`"),
        ("\"args\": [\"--\", // CANARY\n \"npx\"]", "a comment"),
        ("\"args\": [\"--\", \"npx\", /* CANARY */ \"x\"]", "a comment"),
    ] {
        let source = format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"outlast\", {body}}}}}}}");
        put(&file, &source);
        let said = world.run(&["uninstall", "cursor", "--all", "--yes"]);
        assert_eq!(said.code, 1, "{source}");
        assert!(said.err.contains(part) && said.err.contains("line 1"), "{}", said.err);
        assert_eq!(text(&file), source);
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let world = World::new();
    let said = world.run(&["install", "cline", "--yes"]);
    assert_eq!(said.code, 1);
    for part in ["~/.cline/data/settings/cline_mcp_settings.json", "saoudrizwan.claude-dev"] {
        assert!(said.err.contains(part), "{}", said.err);
    }
    let said = world.run(&["uninstall", "cursor", "--scope", "project"]);
    assert!(said.code == 1 && said.err.contains(" .cursor/mcp.json"), "{}", said.err);
    let output = world.command(&["install", "cursor"]).env_remove("HOME").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("HOME is not set"));
}

#[test]
fn a_server_that_is_not_there_is_said_with_those_that_are() {
    let world = World::new();
    put(&world.home(".cursor/mcp.json"), PLAIN);
    let said = world.run(&["install", "cursor", "--server", "tine", "--yes"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert_eq!(said.err, "outlast: ~/.cursor/mcp.json: no server is called tine; it has: time\n");
    assert_eq!(text(&world.home(".cursor/mcp.json")), PLAIN);
}

#[test]
fn a_command_line_that_is_wrong_is_one_line_with_exit_code_2() {
    let world = World::new();
    for (arguments, part) in [
        (&["install", "curser"][..], "did you mean: outlast install cursor"),
        (&["install", "vs-code"], "did you mean: outlast install vscode"),
        (&["uninstall", "claudecode"], "did you mean: outlast uninstall claude-code"),
        (&["install", "emacs-with-everything"], "known are claude-code"),
        (&["uninstall"], "which client?"),
        (&["install", "--yes"], "which client?"),
        (&["install", "cursor", "vscode"], "--help"),
        (&["install", "cursor", "--force"], "--help"),
        (&["install", "cursor", "--scope", "world"], "project or user"),
        (&["install", "cursor", "--scope"], "--scope"),
        (&["install", "goose", "--scope", "project"], "goose has no project scope"),
    ] {
        let said = world.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}");
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(said.err.contains(part), "`{part}` is not in: {}", said.err);
    }
}

#[test]
fn a_listing_goes_on_after_a_file_that_is_not_understood() {
    let world = World::new();
    put(&world.home(".cursor/mcp.json"), format!("{{\n{CANARY}"));
    put(&world.home(".gemini/settings.json"), PLAIN);
    let said = world.run(&["install"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("~/.cursor/mcp.json: line 2"), "{}", said.err);
    assert!(said.out.contains("gemini (user)") && said.out.contains("stdio"), "{}", said.out);
}
