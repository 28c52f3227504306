//! The command line: what is wrong with it is said in one line that shows the right form.

use outlast_testkit::peer::Peer;

use crate::world::{fake_server, outlast};

/// Runs a command line that cannot be understood; the one line that it says.
fn complaint(words: &[&str], variables: &[(&str, &str)]) -> String {
    let mut client = Peer::start(outlast().args(words).envs(variables.iter().copied()));
    assert_eq!(client.end().code(), Some(2), "{words:?} {variables:?}");
    assert!(client.rest().is_empty(), "stdout is for messages");
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn a_bad_flag_is_one_line_that_shows_the_right_form() {
    let bad: [(&[&str], &[&str]); 26] = [
        (&["--timeout", "30"], &["--timeout", "30s", "30ms"]),
        (&["--timeout=30"], &["--timeout", "30s"]),
        (&["--timeout", "soon"], &["--timeout", "soon", "5m"]),
        (&["--timeout", "0s"], &["--timeout"]),
        (&["--timeout", "-5s"], &["--timeout"]),
        (&["--timeout"], &["--timeout", "TIME"]),
        (&["--drain", "off"], &["--drain", "off"]),
        (&["--keep-alive", "1ms"], &["--keep-alive", "50ms"]),
        (&["--timout", "5s"], &["--timout", "--timeout"]),
        (&["--frobnicate"], &["--frobnicate", "--help"]),
        (&["-x"], &["-x", "--help"]),
        (&["--tool", "run"], &["--tool", "run", "run_*=timeout:5m"]),
        (&["--tool", "a[b]=timeout:5s"], &["--tool", "a[b]", "*"]),
        (&["--tool", "=timeout:5s"], &["--tool", "glob"]),
        (&["--tool", "x=timeout:5"], &["--tool", "timeout", "5s"]),
        (&["--tool", "x=colour:red"], &["--tool", "colour", "keep-alive"]),
        (&["--tool", "x=timout:5m,max:1h"], &["--tool", "'x=timeout:5m,max:1h'"]),
        (&["--tool", "x=drain:5s"], &["--tool", "--drain"]),
        // What has no effect here is for another mode.
        (&["--listen", "127.0.0.1:0"], &["--listen", "outlast -- COMMAND", "outlast serve"]),
        (&["--header", "a: b"], &["--header", "outlast -- COMMAND", "outlast URL"]),
        (&["--share", "all"], &["--share", "outlast serve", "--keep"]),
        (&["--keep", "--instant"], &["--instant", "outlast --keep -- COMMAND", "outlast -- COMMAND"]),
        (&["--method", "resources/*"], &["--method", "resources/*=timeout:10s"]),
        (&["--max-message", "5"], &["--max-message", "10MiB"]),
        (&["--log", "loud"], &["--log", "loud", "debug"]),
        (&["--signs", "cpu"], &["--signs", "cpu", "call+server"]),
    ];
    for (words, parts) in bad {
        let line = complaint(&[words, &["--", "true"]].concat(), &[]);
        for part in parts {
            assert!(line.contains(part), "`{part}` is not in: {line}");
        }
    }
}

#[test]
fn a_bad_variable_is_named() {
    let line = complaint(&["--", "true"], &[("OUTLAST_TIMEOUT", "30")]);
    assert!(line.contains("OUTLAST_TIMEOUT") && line.contains("30s"), "{line}");
    let line = complaint(&["--", "true"], &[("OUTLAST_TOOL", "x=timeout:5m;y")]);
    assert!(line.contains("OUTLAST_TOOL") && line.contains("`y`"), "{line}");
}

#[test]
fn a_missing_command_is_one_line_that_shows_the_right_form() {
    for words in [&[][..], &["--"], &["--timeout", "5s"], &["--timeout", "5s", "--"]] {
        assert!(complaint(words, &[]).contains("outlast -- npx -y some-server"), "{words:?}");
    }
}

#[test]
fn a_command_without_its_dashes_is_recognised() {
    let server = fake_server();
    let line = complaint(&["--timeout", "5s", server.to_str().unwrap()], &[]);
    assert!(line.contains(&format!("outlast --timeout 5s -- {}", server.display())), "{line}");
}

#[test]
fn an_option_of_another_mode_is_refused_everywhere() {
    let url = "http://127.0.0.1:9/mcp";
    for (words, part) in [
        (&["--instant", url][..], "`outlast URL`; it is for `outlast -- COMMAND`"),
        (&["--token-file", "x", url], "`outlast URL`; it is for `outlast serve`"),
        (&["serve", "--listen", "127.0.0.1:0", "--instant", "--", "true"], "`outlast serve -- COMMAND`"),
        (&["serve", "--listen", "127.0.0.1:0", "--header", "a: b", "--", "true"], "it is for `outlast URL`"),
        (&["--keep", url], "outlast --keep -- npx -y some-server"),
    ] {
        let line = complaint(words, &[]);
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
    // A variable may be meant for other processes.
    let mut client = Peer::start(outlast().env("OUTLAST_LISTEN", "127.0.0.1:0").args(["--", "true"]));
    client.end();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert!(!stderr.contains("LISTEN") && !stderr.contains("listen"), "{stderr}");
}

#[test]
fn a_mistyped_command_is_suggested_with_all_its_arguments() {
    for (words, line) in [
        (&["isntall", "cursor", "--dry-run"][..], "outlast install cursor --dry-run"),
        (&["doctr", "--json", "--", "npx", "a b"], "outlast doctor --json -- npx 'a b'"),
        (&["--state", "/x", "taks", "list"], "outlast tasks list --state /x"),
        (&["tasks", "resutl", "c0ffee", "--json"], "outlast tasks result c0ffee --json"),
        (&["tasks", "--json", "lsit"], "outlast tasks --json list"),
        (&["keep", "lsit", "--json"], "outlast keep list --json"),
        (&["clients", "lern", "my agent"], "outlast clients learn 'my agent'"),
        (&["cache", "claer"], "outlast cache clear"),
        (&["token", "nwe", "ann"], "outlast token new ann"),
        (&["completions", "bahs"], "outlast completions bash"),
        (&["doctor", "clinet"], "outlast doctor client"),
        (&["install", "crusor", "--dry-run"], "outlast install cursor --dry-run"),
        (&["uninstall", "cluade-code", "--yes"], "outlast uninstall claude-code --yes"),
        (&["install", "codx", "--", "--timeout", "10m"], "outlast install codex -- --timeout 10m"),
        (&["help", "timout"], "outlast help timeout"),
        (&["version"], "outlast --version"),
        (&["some-server", "--port", "1"], "outlast -- some-server --port 1"),
    ] {
        let said = complaint(words, &[]);
        assert!(said.contains(&format!(": {line}\n")), "`{line}` is not in: {said}");
    }
}

/// The dashes are what people forget.
#[test]
fn a_server_without_its_dashes_is_suggested_with_them() {
    for (words, line) in [
        (
            &["doctor", "--json", "npx", "-y", "some-server"][..],
            "outlast doctor --json -- npx -y some-server",
        ),
        (&["serve", "--listen", ":1", "npx", "-y", "it"], "outlast serve --listen :1 -- npx -y it"),
        (&["--keep", "npx", "-y", "some-server"], "outlast --keep -- npx -y some-server"),
    ] {
        let said = complaint(words, &[]);
        assert!(said.contains(&format!(": {line}\n")), "`{line}` is not in: {said}");
    }
}

/// A command would not heed them, and nobody would notice.
#[test]
fn a_mistyped_option_of_a_command_is_suggested_with_all_its_arguments() {
    for (words, suggested) in [
        (&["tasks", "list", "--jsn"][..], "outlast tasks list --json"),
        (&["tasks", "--stat=/x y", "list"], "outlast tasks '--state=/x y' list"),
        (&["audit", "--lst", "3"], "outlast audit --last 3"),
        (
            &["install", "cursor", "--sope", "user", "--", "--max", "1h"],
            "outlast install cursor --scope user -- --max 1h",
        ),
        (&["import", "cursor", "--ouput", "x"], "outlast import cursor --output x"),
        (&["doctor", "--jsn", "--", "x", "--jsn"], "outlast doctor --json -- x --jsn"),
        (&["check", "--jso", "a"], "outlast check --json a"),
        (&["keep", "list", "--jon"], "outlast keep list --json"),
        (&["help", "--al"], "outlast help --all"),
    ] {
        let said = complaint(words, &[]);
        assert!(said.trim_end().ends_with(&format!("did you mean: {suggested}")), "{words:?}: {said}");
    }
    for words in [&["tasks", "list", "--frobnicate"][..], &["audit", "-x"], &["explain", "a", "b", "--y"]] {
        let said = complaint(words, &[]);
        assert!(said.contains("unknown option `-") && said.contains("--help"), "{words:?}: {said}");
    }
}

#[test]
fn options_before_a_command_are_refused() {
    for (words, line) in [
        (&["--state", "/x", "tasks", "list"][..], "outlast tasks list --state /x"),
        (&["--json=true", "keep", "list"], "outlast --help"),
        (&["--config", "/x.toml", "explain", "a", "b"], "outlast explain a b --config /x.toml"),
        (&["--timeout", "5s", "doctor", "--", "npx"], "outlast doctor --timeout 5s -- npx"),
    ] {
        let said = complaint(words, &[]);
        assert!(said.contains(line), "`{line}` is not in: {said}");
    }
}

#[test]
fn a_url_behind_the_dashes_is_suggested_without_them() {
    for (words, line) in [
        (&["--timeout", "5s", "--", "https://host/mcp"][..], "outlast --timeout 5s https://host/mcp"),
        (&["serve", "--listen", ":1", "--", "http://host/mcp"], "outlast serve --listen :1 http://host/mcp"),
        (&["doctor", "--", "http://host/mcp"], "outlast --trace-messages - URL"),
        (&["install", "cursor", "--timeout", "10m"], "outlast install cursor -- --timeout 10m"),
    ] {
        let said = complaint(words, &[]);
        assert!(said.contains(&format!(": {line}\n")), "`{line}` is not in: {said}");
    }
    let said = complaint(&["serve"], &[("HOME", "/no/such/home"), ("XDG_CONFIG_HOME", "")]);
    assert!(said.contains("which server?") && said.contains("outlast.toml"), "{said}");
}

/// Each with its line of the file, as a person reads it.
#[test]
fn mistakes_of_a_file_are_shown_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("outlast.toml");
    std::fs::write(&file, "[defaults]\ntimeot = \"5m\"\n\u{1b}[31m = 1\n").unwrap();
    let mut client = Peer::start(outlast().arg("--config").arg(&file));
    assert_eq!(client.end().code(), Some(2));
    let said = String::from_utf8(client.all_stderr()).unwrap();
    assert!(said.starts_with("outlast: ") && said.lines().count() > 3, "{said}");
    assert!(!said.contains("\\u{a}") && !said.contains('\u{1b}'), "{said}");
}

/// Otherwise every server of the client would fail at its next start.
#[test]
fn install_refuses_flags_that_do_nothing_in_front_of_a_command() {
    for (flags, parts) in [
        (&["--listen", "127.0.0.1:0"][..], ["--listen", "outlast serve"]),
        (&["--keep", "--instant"], ["--instant", "outlast -- COMMAND"]),
        (&["--share", "all"], ["--share", "--keep"]),
    ] {
        let said = complaint(&[&["install", "cursor", "--yes", "--"], flags].concat(), &[]);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

/// A client that knows nothing of `off` would never end; a server that answers shows that it was understood.
#[test]
fn the_hard_cap_can_be_switched_off() {
    let mut client = crate::world::connect(&["--max", "off"], &[]);
    assert_eq!(client.value_of("echo", &serde_json::json!({"a": 1})), serde_json::json!({"a": 1}));
    client.hang_up();
    assert!(client.all_stderr().is_empty());
}

#[test]
fn a_record_that_cannot_be_written_is_said_at_once() {
    let line = complaint(&["--trace-messages", "/no/such/directory/file", "--", "true"], &[]);
    assert!(line.contains("/no/such/directory/file"), "{line}");
}

#[test]
fn help_and_version_go_to_stdout() {
    for (words, part) in [
        (&["--help"][..], "--keep-alive TIME"),
        (&["--help", "--all"], "--max-connections-per-address N"),
        (&["--all", "--help"], "--max-connections-per-address N"),
        (&["help", "--all"], "--max-connections-per-address N"),
        (&["-h"], "Usage:"),
        (&["help"], "Usage:"),
        (&["help", "doctor"], "outlast doctor client"),
        (&["help", "--listen"], "OUTLAST_LISTEN"),
        (&["help", "-31002"], "-31002: the server went away"),
        (&["help", "errors"], "-31013: superseded"),
        (&["help", "topics"], "exit-codes"),
        (&["help", "exit-codes"], "126 if the command cannot be executed"),
        (&["help", "output"], "NO_COLOR"),
        (&["help", "files"], "clients.json"),
        (&["help", "file"], "[servers.NAME]:"),
        (&["help", "hand-off"], "- `cap`: how long the client waits"),
        (&["completions", "--help"], "Usage: outlast completions"),
        (&["install", "--help"], "--dry-run"),
        (&["uninstall", "-h"], "--dry-run"),
        (&["doctor", "--help"], "--json"),
        (&["serve", "--help"], "--token-file"),
        (&["tasks", "--help"], "TICKET"),
        (&["keep", "--help"], "stop NAME"),
        (&["demo", "--help"], "Usage:"),
        (&["demo-server", "--help"], "Usage:"),
        (&["token", "--help"], "token new NAME"),
        (&["cache", "--help"], "cache clear"),
        (&["help", "--help"], "outlast help CODE"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["help", "settings"], "OUTLAST_KEEP_ALIVE"),
        (&["timeout-mcp", "--help"], "SECONDS"),
        // What stands behind the dashes is the server's.
        (&["--help", "--", "x", "--version"], "Usage:"),
    ] {
        let mut client = Peer::start(outlast().args(words));
        let text: Vec<String> = client.rest().iter().map(|line| line.text()).collect();
        assert!(text.join("\n").contains(part), "{words:?}: {text:?}");
        assert_eq!(client.end().code(), Some(0));
        assert!(client.all_stderr().is_empty());
    }
}
