//! Commands as a shell meets them: pipes that close, full disks, no home, exit codes, terminals.

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::pty::{Winsize, openpty};
use serde_json::{Value, from_slice};

use crate::world::outlast;

/// Commands that print something wherever they run.
const PRINTS: [&[&str]; 11] = [
    &["--help"],
    &["help", "settings"],
    &["clients"],
    &["clients", "--json"],
    &["clients", "learn"],
    &["install"],
    &["keep", "list"],
    &["tasks", "list"],
    &["audit"],
    &["man"],
    &["completions", "bash"],
];

/// outlast in an empty home, and nothing of whoever runs the tests.
fn at_home(home: &Path, words: &[&str]) -> Command {
    let mut command = outlast();
    command.args(words).env_remove("OUTLAST_STATE").env("HOME", home).current_dir(home);
    for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let home = home();
    for words in PRINTS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = at_home(home.path(), words).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_said_and_fails() {
    let home = home();
    for words in PRINTS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = at_home(home.path(), words).stdout(full).output().unwrap();
        let said = err(&output);
        assert!(said.contains("cannot write to stdout: No space left"), "{words:?}: {said}");
        assert!(!output.status.success(), "{words:?}");
    }
    // A token whose line is nowhere is of no use, so it is not shown.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let said = err(&at_home(home.path(), &["token", "new", "x"]).stdout(full).output().unwrap());
    assert!(!said.contains("outlast_"), "{said}");
}

/// A file is changed although nobody reads what is said about it: that was asked for.
#[test]
fn install_goes_on_when_nobody_reads() {
    let home = home();
    let file = home.path().join(".cursor/mcp.json");
    fs::create_dir(home.path().join(".cursor")).unwrap();
    fs::write(&file, r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = at_home(home.path(), &["install", "cursor", "--yes"]).stdout(writer).status().unwrap();
    assert!(status.success() && fs::read_to_string(&file).unwrap().contains("--installed"));
}

#[test]
fn a_full_disk_leaves_no_half_of_a_file() {
    let home = home();
    let folder = home.path().join(".cursor");
    fs::create_dir(&folder).unwrap();
    let text = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    fs::write(folder.join("mcp.json"), text).unwrap();
    for words in ["import cursor", "install cursor --yes"] {
        // Not one byte may be written to a file.
        let script = format!("trap '' XFSZ; ulimit -f 0; exec {} {words}", crate::world::OUTLAST);
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", &script]).env_clear().env("HOME", home.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {}", err(&output));
        assert!(err(&output).contains("File too large"), "{words}: {}", err(&output));
    }
    assert!(!home.path().join(".config/outlast/outlast.toml").exists());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no backup of what is there");
    assert_eq!(fs::read_to_string(folder.join("mcp.json")).unwrap(), text);
}

#[test]
fn without_a_home_it_is_said_what_is_missing() {
    let home = home();
    for (words, code, part) in [
        (
            &["tasks", "list"][..],
            2,
            "HOME is not set, so the state folder is not known; name it with --state DIR",
        ),
        (&["holds"], 2, "--state DIR"),
        (&["audit"], 2, "--state DIR"),
        (&["check"], 2, "HOME is not set"),
        (&["explain", "a", "b"], 2, "HOME is not set"),
        (&["import", "cursor"], 2, "HOME is not set"),
        (&["serve"], 2, "HOME is not set"),
        (&["install", "cursor", "--yes"], 1, "HOME is not set"),
        (&["install", "all", "--yes"], 1, "HOME is not set"),
        (&["--keep", "--", "true"], 2, "--state DIR"),
    ] {
        let output = at_home(home.path(), words).env_remove("HOME").output().unwrap();
        let said = err(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
    // A server needs no home.
    let server = ["--", "sh", "-c", "cat > /dev/null"];
    let output = at_home(home.path(), &server).env_remove("HOME").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
}

/// What can be said of a home that may not be entered names the folder. Root may enter every home.
#[test]
fn a_home_that_may_not_be_entered_is_named() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let home = home();
    fs::set_permissions(home.path(), Permissions::from_mode(0o700)).unwrap();
    for (words, code) in [
        (&["tasks", "list"][..], 4),
        (&["holds"], 4),
        (&["audit"], 4),
        (&["keep", "list"], 1),
        (&["clients", "learn", "x"], 1),
        (&["cache", "clear"], 1),
        (&["check"], 1),
        (&["explain", "a", "b"], 1),
        (&["import", "cursor", "-o", "-"], 1),
        (&["install", "cursor", "--yes"], 1),
    ] {
        let mut command = at_home(home.path(), words);
        let output = command.current_dir("/").uid(65534).gid(65534).output().unwrap();
        let said = err(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        let named = said.contains(&home.path().display().to_string());
        assert!(named && said.contains("Permission denied"), "{words:?}: {said}");
    }
}

#[test]
fn a_token_file_without_an_end_is_refused() {
    let home = home();
    let words = ["serve", "--listen", "127.0.0.1:0", "--token-file", "/dev/zero", "--", "true"];
    let output = at_home(home.path(), &words).output().unwrap();
    assert!(err(&output).contains("`/dev/zero` is longer than"), "{}", err(&output));
    assert_eq!(output.status.code(), Some(2));
}

/// What is no ordinary file is never read: a pipe has no end, and neither has /dev/zero.
#[test]
fn files_without_an_end_are_not_read() {
    let home = home();
    let file = home.path().join(".cursor/mcp.json");
    fs::create_dir(home.path().join(".cursor")).unwrap();
    for endless in ["/dev/zero", "pipe"] {
        let _ = fs::remove_file(&file);
        if endless == "pipe" {
            nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        } else {
            symlink(endless, &file).unwrap();
        }
        let path = file.to_str().unwrap();
        for words in [
            &["import", "cursor", "-o", "-"][..],
            &["install"],
            &["install", "cursor", "--yes"],
            &["check", path],
            &["explain", "a", "b", "--config", path],
            &["serve", "--config", path],
        ] {
            let output = at_home(home.path(), words).output().unwrap();
            let said = err(&output);
            assert!(said.contains("is not a regular file"), "{words:?}: {said}");
            assert!(!output.status.success(), "{words:?}");
        }
    }
}

#[test]
fn what_is_listed_can_be_read_by_a_program() {
    let home = home();
    fs::create_dir(home.path().join(".cursor")).unwrap();
    fs::write(home.path().join(".cursor/mcp.json"), r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
    let file = home.path().join("outlast.toml");
    fs::write(&file, "[servers.a]\ncommand = 'x'\ntimeout = '5'\n").unwrap();
    let read = |words: &[&str], code: i32| -> Value {
        let output = at_home(home.path(), words).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", err(&output));
        from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
    };
    let listed = read(&["install", "--json"], 0);
    assert_eq!(listed["files"][0]["servers"][0]["state"], "stdio", "{listed}");
    let checked = read(&["check", "--json", file.to_str().unwrap()], 1);
    let mistake = &checked["mistakes"][0];
    assert_eq!(
        (&checked["usable"], &mistake["line"], &mistake["severity"]),
        (&false.into(), &3.into(), &"error".into())
    );
    assert_eq!(read(&["keep", "list", "--json"], 0), serde_json::json!([]));
    assert!(read(&["tasks", "list", "--json"], 0)["tasks"].is_array());
    assert!(read(&["holds", "--json"], 0)["holds"].is_array());
    assert!(read(&["clients", "--json"], 0)["clients"][0]["capMs"].is_u64());
    assert!(read(&["clients", "learn", "--json"], 0)["learned"].is_array());
    assert!(read(&["--version", "--json"], 0)["features"].is_array());
}

/// `outlast help exit-codes`, sentence by sentence, of what needs no call.
#[test]
fn it_ends_with_the_codes_that_it_names() {
    let home = home();
    fs::write(home.path().join("bad.toml"), "nonsense = 1\n").unwrap();
    fs::write(home.path().join("good.toml"), "[servers.a]\ncommand = 'true'\n").unwrap();
    fs::write(home.path().join("text"), "").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (words, code) in [
        (&["--", "sh", "-c", "exit 3"][..], 3),
        (&["--", "sh", "-c", "cat > /dev/null; exit 5"], 5),
        (&["--", "sh", "-c", "kill -9 $$"], 137),
        (&["--", "./text"], 126),
        (&["--", "/no/such/program"], 127),
        (&["--keep", "--", "/no/such/program"], 127),
        (&["http://127.0.0.1:1/mcp"], 0),
        (&["--config", "good.toml"], 0),
        (&["serve", "--listen", &taken, "--", "true"], 1),
        (&["serve", "--listen", "127.0.0.1:0", "--", "./text"], 126),
        (&["serve", "--listen", "127.0.0.1:0", "--", "/no/such/program"], 127),
        (&["check", "good.toml"], 0),
        (&["check", "bad.toml"], 1),
        (&["explain", "a", "b", "--config", "good.toml"], 0),
        (&["explain", "z", "b", "--config", "good.toml"], 1),
        (&["import", "cursor"], 1),
        (&["doctor", "--", "./text"], 126),
        (&["doctor", "--", "/no/such/program"], 127),
        (&["install", "cursor"], 1),
        (&["uninstall", "all", "--yes"], 1),
        (&["clients", "forget", "nobody"], 1),
        (&["tasks", "show", "abc"], 2),
        (&["holds", "approve", "7"], 2),
        (&["keep", "stop"], 0),
        (&["keep", "stop", "nobody"], 1),
        (&["nonsense"], 2),
    ] {
        let output = at_home(home.path(), words).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", err(&output));
    }
}

/// What a command writes to a terminal that is its stdout and stderr.
fn on_a_terminal(command: &mut Command) -> String {
    on_a_terminal_of(80, command)
}

fn on_a_terminal_of(columns: u16, command: &mut Command) -> String {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(Some(&size), None).unwrap();
    let slave = terminal.slave;
    command.stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // The child has the terminal's end alone, so that reading it comes to an end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut master = File::from(terminal.master);
    let mut seen = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count) = master.read(&mut part)
        && count > 0
    {
        seen.extend_from_slice(&part[..count]);
    }
    assert!(child.wait().is_ok());
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let home = home();
    fs::write(home.path().join("bad.toml"), "nonsense = 1\n").unwrap();
    let check = || at_home(home.path(), &["check", "bad.toml"]);
    assert!(on_a_terminal(check().env("TERM", "xterm")).contains("\u{1b}[31merror\u{1b}[0m:"));
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let seen = on_a_terminal(check().env("TERM", "xterm").env(name, value));
        assert!(seen.contains("error: ") && !seen.contains('\u{1b}'), "{name}: {seen}");
    }
    assert!(
        !err(&check().env("TERM", "xterm").output().unwrap()).contains('\u{1b}'),
        "a pipe is no terminal"
    );
}

#[test]
fn a_person_sees_what_a_slow_command_waits_for() {
    let home = home();
    let program = env!("CARGO_BIN_EXE_outlast");
    let script = format!("sleep 1.5; exec {program} demo-server");
    let doctor = || at_home(home.path(), &["doctor", "--", "sh", "-c", &script]);
    let seen = on_a_terminal(doctor().env("TERM", "xterm"));
    assert!(seen.contains("the server starts and is asked") && seen.contains("(1 s)"), "{seen}");
    let end = seen.rfind("(1 s)").unwrap();
    assert!(seen[end..].contains("\r\u{1b}[K"), "the line is removed: {seen}");
    assert!(seen.contains("Nothing is odd."), "{seen}");
    assert!(!on_a_terminal(doctor().env("TERM", "dumb")).contains("is asked as clients"));
    assert!(doctor().output().unwrap().stderr.is_empty());
}

#[test]
fn a_table_that_does_not_fit_a_terminal_is_folded() {
    let home = home();
    let clients = || {
        let mut clients = at_home(home.path(), &["clients"]);
        clients.env("TERM", "xterm");
        clients
    };
    let narrow = on_a_terminal_of(80, &mut clients());
    assert!(narrow.contains("Codex CLI\r\n  calls itself: codex-mcp-client\r\n"), "{narrow}");
    let wide = on_a_terminal_of(200, &mut clients());
    assert!(wide.starts_with("CLIENT "), "{wide}");
}
