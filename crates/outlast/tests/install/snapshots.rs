//! Every client's file, as people and programs write them: before, after, and back.

use crate::world::{PROGRAMS, World, put, text};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of `fixtures`, the client, the scope, and where the client reads the file.
pub const FILES: &[(&str, &str, &str, &str)] = &[
    ("claude-code-project", "claude-code", "project", ".mcp.json"),
    ("claude-code-user", "claude-code", "user", ".claude.json"),
    ("claude-desktop-user", "claude-desktop", "user", "PROGRAMS/Claude/claude_desktop_config.json"),
    ("cursor-project", "cursor", "project", ".cursor/mcp.json"),
    ("cursor-user", "cursor", "user", ".cursor/mcp.json"),
    ("vscode-project", "vscode", "project", ".vscode/mcp.json"),
    ("vscode-user", "vscode", "user", "PROGRAMS/Code/User/mcp.json"),
    ("codex-project", "codex", "project", ".codex/config.toml"),
    ("codex-user", "codex", "user", ".codex/config.toml"),
    ("gemini-project", "gemini", "project", ".gemini/settings.json"),
    ("gemini-user", "gemini", "user", ".gemini/settings.json"),
    ("cline-user", "cline", "user", ".cline/data/settings/cline_mcp_settings.json"),
    (
        "cline-globalstorage",
        "cline",
        "user",
        "PROGRAMS/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    ("windsurf-user", "windsurf", "user", ".codeium/windsurf/mcp_config.json"),
    ("opencode-project", "opencode", "project", "opencode.jsonc"),
    ("opencode-user", "opencode", "user", ".config/opencode/opencode.json"),
    ("goose-user", "goose", "user", ".config/goose/config.yaml"),
    ("goose-crlf", "goose", "user", ".config/goose/config.yaml"),
];

pub struct Fixture {
    folder: PathBuf,
    pub world: World,
    pub file: PathBuf,
    pub before: String,
    after: String,
    shown: String,
}

pub fn fixture(folder: &str, scope: &str, place: &str) -> Fixture {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/install/fixtures").join(folder);
    let named = |name: &str| {
        let mut entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        text(&entries.find(|path| path.file_stem().unwrap() == name).unwrap())
    };
    let world = World::new();
    let place = place.replace("PROGRAMS", PROGRAMS);
    let file = if scope == "project" { world.project(&place) } else { world.home(&place) };
    let (before, after, shown) = (named("before"), named("after"), named("shown"));
    put(&file, &before);
    Fixture {
        folder,
        world,
        file,
        before,
        after,
        shown: shown.replace("~/.config/C", &format!("~/{PROGRAMS}/C")),
    }
}

impl Fixture {
    /// Takes what is there now for what is right: a row of the table of clients has changed.
    fn bless(&self, shown: &str) {
        let mut after = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path());
        let after = after.find(|path| path.file_stem().unwrap() == "after").unwrap();
        fs::copy(&self.file, after).unwrap();
        fs::write(self.folder.join("shown.txt"), shown.replace(&format!("~/{PROGRAMS}/C"), "~/.config/C"))
            .unwrap();
    }
}

#[test]
fn every_client_s_file_becomes_what_is_expected_and_comes_back_to_the_byte() {
    for (folder, client, scope, place) in FILES {
        let fixture = fixture(folder, scope, place);
        let run = |aim: &str| fixture.world.run(&[aim, client, "--scope", scope, "--yes"]);

        let said = run("install");
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{folder}");
        if std::env::var_os("BLESS").is_some() {
            fixture.bless(&said.out);
            continue;
        }
        assert_eq!(said.out, fixture.shown, "{folder}: if this is right, run the test with BLESS=1");
        assert_eq!(text(&fixture.file), fixture.after, "{folder}");

        let said = run("install");
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{folder}");
        assert!(said.out.contains("nothing to do"), "{folder}: {}", said.out);
        assert_eq!(text(&fixture.file), fixture.after, "{folder}");

        let said = run("uninstall");
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{folder}");
        assert!(text(&fixture.file) == fixture.before, "{folder}:\n{}", text(&fixture.file));
        assert!(run("uninstall").out.contains("nothing to do"), "{folder}");
    }
}

#[test]
fn one_server_by_name_leaves_the_others_as_they_are() {
    let fixture = fixture("cursor-user", "user", ".cursor/mcp.json");
    let said = fixture.world.run(&["install", "cursor", "--server", "lapras", "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("@@ lapras") && !said.out.contains("@@ time"), "{}", said.out);
    assert_eq!(text(&fixture.file).matches("outlast").count(), 1);

    let both = ["install", "cursor", "--server", "time", "--server=alone", "--yes"];
    assert_eq!(fixture.world.run(&both).code, 0);
    assert_eq!(text(&fixture.file).matches("outlast").count(), 3);
    assert_eq!(fixture.world.run(&["uninstall", "cursor", "--server", "lapras", "--yes"]).code, 0);
    assert_eq!(text(&fixture.file).matches("outlast").count(), 2);
    assert_eq!(fixture.world.run(&["uninstall", "cursor", "--yes"]).code, 0);
    assert_eq!(text(&fixture.file), fixture.before);
}

#[test]
fn every_file_that_a_client_reads_is_changed() {
    let world = World::new();
    let places = [
        ".cline/data/settings/cline_mcp_settings.json".to_owned(),
        format!("{PROGRAMS}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    ];
    for place in &places {
        put(&world.home(place), crate::world::PLAIN);
    }
    assert_eq!(world.run(&["install", "cline", "--yes"]).code, 0);
    for place in &places {
        assert!(text(&world.home(place)).contains("\"--installed\""), "{}", text(&world.home(place)));
    }
}

/// Clients that were told to keep their files elsewhere are found there.
#[test]
fn variables_that_move_a_client_s_file_are_heeded() {
    for (client, variable, file) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", "elsewhere/.claude.json"),
        ("opencode", "XDG_CONFIG_HOME", "elsewhere/opencode/opencode.json"),
    ] {
        let world = World::new();
        let plain = r#"{"mcpServers": {"a": {"command": "x"}}, "mcp": {"a": {"command": ["x"]}}}"#;
        put(&world.home(file), plain);
        let run = |folder: &Path| {
            let output = world.command(&["install", client, "--yes"]).env(variable, folder).output();
            output.unwrap().status.code()
        };
        assert_eq!(run(Path::new("elsewhere")), Some(1), "a relative folder is nobody's: {client}");
        assert_eq!(run(&world.home("elsewhere")), Some(0), "{client}");
        assert!(text(&world.home(file)).contains("outlast"), "{client}");
    }
    let world = World::new();
    put(&world.home("codex/config.toml"), "mcp_servers.a.command = 'x'");
    let mut command = world.command(&["install", "codex", "--yes"]);
    assert!(command.env("CODEX_HOME", world.home("codex")).output().unwrap().status.success());
    assert!(text(&world.home("codex/config.toml")).contains("outlast"));
}

/// What a person edited after install is kept; our words and our flags go.
#[test]
fn uninstall_takes_flags_and_keeps_what_was_edited() {
    let world = World::new();
    let file = world.home(".cursor/mcp.json");
    for (edited, expected) in [
        (
            r#"{"mcpServers": {"a": {"command": "/opt/outlast", "args": ["--installed", "--timeout", "5m", "--", "npx", "-y"]}}}"#,
            r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y"]}}}"#,
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"outlast\", \"args\": [\n  \"--installed\",\n  \"--\",\n  \"npx\",\n]}}}",
            "{\"mcpServers\": {\"a\": {\"command\": \"npx\", \"args\": [\n  \n]}}}",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "outlast", "args": ["--installed", "--", "npx", "--", "x"]}}}"#,
            r#"{"mcpServers": {"a": {"command": "npx", "args": ["--", "x"]}}}"#,
        ),
    ] {
        put(&file, edited);
        assert_eq!(world.run(&["uninstall", "cursor", "--yes"]).code, 0, "{edited}");
        assert_eq!(text(&file), expected);
    }
    let file = world.home(".config/goose/config.yaml");
    put(
        &file,
        "extensions:\n  a:\n    type: stdio\n    cmd: outlast\n    args:\n      - --installed\n      - --max\n      - 1h\n      - --\n      - npx\n",
    );
    assert_eq!(world.run(&["uninstall", "goose", "--yes"]).code, 0, "{}", text(&file));
    assert_eq!(text(&file), "extensions:\n  a:\n    type: stdio\n    cmd: npx\n    args: []\n");
}

/// A list that was empty stays, one that was not there goes again.
#[test]
fn an_empty_list_and_none_are_told_apart() {
    let world = World::new();
    let file = world.home(".cursor/mcp.json");
    for before in [
        r#"{"mcpServers": {"a": {"command": "x", "args": []}}}"#,
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
    ] {
        put(&file, before);
        assert_eq!(world.run(&["install", "cursor", "--yes"]).code, 0);
        assert_eq!(world.run(&["uninstall", "cursor", "--yes"]).code, 0);
        assert_eq!(text(&file), before);
    }
}

/// What somebody wrote by hand stays as it is, also when install adds to it; only `--all` takes it away.
#[test]
fn what_was_wrapped_by_hand_is_kept_and_comes_back_to_the_byte() {
    let world = World::new();
    let file = world.home(".cursor/mcp.json");
    let before = r#"{"mcpServers": {"a": {"command": "outlast", "args": ["--timeout", "5m", "--header", "X: CANARY", "--", "npx", "-y"]}, "b": {"command": "x"}}}"#;
    put(&file, before);
    let flags = ["install", "cursor", "--yes", "--", "--timeout", "10m", "--client-cap=60s"];
    let said = world.run(&flags);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let after = r#"{"mcpServers": {"a": {"command": "outlast", "args": ["--installed=1", "--client-cap=60s", "--timeout", "5m", "--header", "X: CANARY", "--", "npx", "-y"]}, "b": {"command": "outlast", "args": ["--installed", "--timeout", "10m", "--client-cap=60s", "--", "x"]}}}"#;
    assert_eq!(text(&file), after);
    assert!(world.run(&flags).out.contains("nothing to do"));
    assert_eq!(world.run(&["uninstall", "cursor", "--yes"]).code, 0);
    assert_eq!(text(&file), before);
    let said = world.run(&["uninstall", "cursor", "--yes"]);
    assert!(
        said.out.contains("`a` was put behind outlast by hand and stays so; --all takes it out too"),
        "{}",
        said.out
    );
    assert_eq!(world.run(&["uninstall", "cursor", "--all", "--yes"]).code, 0);
    assert_eq!(
        text(&file),
        r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y"]}, "b": {"command": "x"}}}"#
    );
}
