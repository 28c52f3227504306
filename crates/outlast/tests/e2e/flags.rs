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
    let bad: [(&[&str], &[&str]); 20] = [
        (&["--timeout", "30"], &["--timeout", "30s", "30ms"]),
        (&["--timeout=30"], &["--timeout", "30s"]),
        (&["--timeout", "soon"], &["--timeout", "soon", "5m"]),
        (&["--timeout", "0s"], &["--timeout"]),
        (&["--timeout", "-5s"], &["--timeout"]),
        (&["--timeout"], &["--timeout", "TIME"]),
        (&["--max", "off"], &["--max", "off"]),
        (&["--keep-alive", "1ms"], &["--keep-alive", "50ms"]),
        (&["--timout", "5s"], &["--timout", "--timeout"]),
        (&["--frobnicate"], &["--frobnicate", "--help"]),
        (&["-x"], &["-x", "--help"]),
        (&["--tool", "run"], &["--tool", "run", "run_*=timeout:5m"]),
        (&["--tool", "a[b]=timeout:5s"], &["--tool", "a[b]", "*"]),
        (&["--tool", "=timeout:5s"], &["--tool", "glob"]),
        (&["--tool", "x=timeout:5"], &["--tool", "timeout", "5s"]),
        (&["--tool", "x=colour:red"], &["--tool", "colour"]),
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
    assert!(line.contains(&format!("outlast -- {}", server.display())), "{line}");
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
        (&["-h"], "Usage:"),
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
