//! What a person sees, and is asked.

use crate::world::{CANARY, OUTLAST, PLAIN, Said, WRAPPED, World, names, put, text};
use nix::pty::openpty;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};

/// Runs with a terminal as stdin; when it asks, `meanwhile` happens and then the answer is typed.
fn asked(world: &World, arguments: &[&str], meanwhile: impl FnOnce(), answer: &str) -> Said {
    let terminal = openpty(None, None).unwrap();
    let mut command = world.command(arguments);
    command.stdin(terminal.slave).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"[y/N] ") {
        let mut byte = [0];
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "it did not ask: {}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
    meanwhile();
    File::from(terminal.master.try_clone().unwrap()).write_all(answer.as_bytes()).unwrap();
    stdout.read_to_end(&mut seen).unwrap();
    let rest = child.wait_with_output().unwrap();
    Said::new(world, &Output { stdout: seen, ..rest })
}

fn cursor() -> (World, std::path::PathBuf) {
    let world = World::new();
    let file = world.home(".cursor/mcp.json");
    put(&file, PLAIN);
    (world, file)
}

#[test]
fn a_person_is_asked_and_only_yes_means_yes() {
    for (answer, code, expected) in
        [("y\n", 0, WRAPPED), ("Yes\n", 0, WRAPPED), ("n\n", 1, PLAIN), ("\n", 1, PLAIN)]
    {
        let (world, file) = cursor();
        let said = asked(&world, &["install", "cursor"], || {}, answer);
        assert_eq!((said.code, text(&file).as_str()), (code, expected), "{answer:?}: {said:?}");
        let at = |part: &str| said.out.find(part).unwrap_or_else(|| panic!("{part} is not in {}", said.out));
        assert!(at("+{…: {\"command\": \"outlast\"") < at("Change this file?"), "{}", said.out);
        let backup = names(&world.home(".cursor")).contains(&"mcp.json.outlast-backup".to_owned());
        assert_eq!(backup, code == 0);
    }
}

#[test]
fn a_file_that_changes_while_a_person_thinks_is_left_alone() {
    let (world, file) = cursor();
    let theirs = PLAIN.replace("time", "clock");
    let said = asked(&world, &["install", "cursor"], || fs::write(&file, &theirs).unwrap(), "y\n");
    assert_eq!(said.code, 1);
    assert!(said.err.contains("~/.cursor/mcp.json: changed in the meantime"), "{}", said.err);
    assert_eq!(text(&file), theirs);
    assert_eq!(names(&world.home(".cursor")), ["mcp.json"]);
}

#[test]
fn without_a_terminal_nothing_is_changed_unless_told_so() {
    let (world, file) = cursor();
    let said = world.run(&["install", "cursor"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("+{…"), "{}", said.out);
    assert!(said.err.contains("nothing was changed") && said.err.contains("--yes"), "{}", said.err);
    assert_eq!(text(&file), PLAIN);
    assert_eq!(world.run(&["install", "cursor", "-y"]).code, 0);
    assert_eq!(text(&file), WRAPPED);
}

#[test]
fn a_dry_run_shows_the_same_and_changes_nothing() {
    let (world, file) = cursor();
    for aim in ["install", "uninstall"] {
        let before = text(&file);
        let folder = names(&world.home(".cursor"));
        let dry = world.run(&[aim, "cursor", "--dry-run", "--yes"]);
        assert_eq!(dry.code, 0);
        assert_eq!(text(&file), before);
        assert_eq!(names(&world.home(".cursor")), folder);
        let real = world.run(&[aim, "cursor", "--yes"]);
        let lines = |said: &Said| said.out.lines().take(4).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&dry), lines(&real));
        assert!(dry.out.contains("Nothing was changed"), "{}", dry.out);
    }
}

#[test]
fn install_alone_lists_what_is_there() {
    let world = World::new();
    let said = world.run(&["install"]);
    assert_eq!(said.code, 0);
    assert!(
        said.out.contains("Looked at") && said.out.contains("~/.codeium/windsurf/mcp_config.json"),
        "{}",
        said.out
    );

    put(&world.project(".mcp.json"), PLAIN);
    put(
        &world.home(".cursor/mcp.json"),
        format!(
            r#"{{"mcpServers": {{"a": {{"command": "/x/outlast", "args": ["--", "b"]}}, "r": {{"url": "https://{CANARY}"}}, "odd": {{"command": 1}}}}}}"#
        ),
    );
    put(&world.home(".codex/config.toml"), "model = 'x'\n");
    put(&world.home(".config/goose/config.yaml"), "extensions:\n  developer:\n    type: builtin\n");
    let said = world.run(&["install"]);
    let expected = "\
claude-code (project): .mcp.json
  time                     stdio
cursor (user): ~/.cursor/mcp.json
  a                        through outlast
  r                        remote
  odd                      not understood: its command is not text
codex (user): ~/.codex/config.toml
  no servers
goose (user): ~/.config/goose/config.yaml
  developer                starts no program
";
    assert_eq!((said.out.as_str(), said.err.as_str(), said.code), (expected, "", 0));
}

#[test]
fn the_program_is_written_so_that_a_client_finds_this_one() {
    let run = |world: &World, path: &str| {
        put(&world.home(".cursor/mcp.json"), PLAIN);
        let status =
            world.command(&["install", "cursor", "--yes"]).env("PATH", path).output().unwrap().status;
        assert!(status.success());
        let new: serde_json::Value = serde_json::from_str(&text(&world.home(".cursor/mcp.json"))).unwrap();
        new["mcpServers"]["time"]["command"].as_str().unwrap().to_owned()
    };
    let world = World::new();
    let here = Path::new(OUTLAST).parent().unwrap().to_str().unwrap();
    assert_eq!(run(&world, here), "outlast");
    assert_eq!(run(&world, "/nowhere"), OUTLAST);

    // Another program of that name comes first: the name would mean that one.
    let other = world.home("bin/outlast");
    put(&other, "#!/bin/sh\n");
    assert_eq!(
        run(&world, &format!("{}:{here}", world.home("bin").display())),
        "outlast",
        "it cannot be run"
    );
    fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(run(&world, &format!("{}:{here}", world.home("bin").display())), OUTLAST);

    // A link to this program is this program.
    fs::remove_file(&other).unwrap();
    std::os::unix::fs::symlink(OUTLAST, &other).unwrap();
    assert_eq!(run(&world, world.home("bin").to_str().unwrap()), "outlast");
}

/// A second install by a program of another name must not put it in front twice.
#[test]
fn a_renamed_program_knows_itself() {
    let world = World::new();
    let program = world.home("bin/keeper");
    fs::create_dir(world.home("bin")).unwrap();
    // By a process of its own: a file that any process has open for writing cannot be run, and what another
    // test starts at this moment would have it open for us.
    let copied = std::process::Command::new("cp").arg(OUTLAST).arg(&program).status();
    assert!(copied.unwrap().success());
    put(&world.home(".cursor/mcp.json"), PLAIN);
    for _ in 0..2 {
        let mut command = std::process::Command::new(&program);
        command.args(["install", "cursor", "--yes"]).env_clear().env("HOME", world.home(""));
        assert!(command.current_dir(world.project("")).output().unwrap().status.success());
    }
    let new = text(&world.home(".cursor/mcp.json"));
    assert_eq!((new.matches("keeper").count(), new.matches("\"--\"").count()), (1, 1), "{new}");
}

#[test]
fn what_a_file_says_cannot_move_the_cursor() {
    let world = World::new();
    let file = world.project(".mcp.json");
    put(&file, "{\"mcpServers\": {\"a\\u001b[2J\\u202e\": {\"command\": \"/b\u{202e}c\"}}}");
    for arguments in [&["install"][..], &["install", "claude-code", "--scope", "project", "--dry-run"]] {
        let said = world.run(arguments);
        assert_eq!(said.code, 0);
        assert!(!said.out.contains(['\u{1b}', '\u{202e}']), "{}", said.out);
        assert!(said.out.contains(r"a\u{1b}[2J\u{202e}"), "{}", said.out);
    }
}

/// Whoever stands in the home directory has no project there whose file is their own.
#[test]
fn in_the_home_directory_the_own_file_is_not_the_project_s() {
    let world = World::new();
    put(&world.home(".cursor/mcp.json"), PLAIN);
    let at_home = |arguments: &[&str]| {
        Said::new(&world, &world.command(arguments).current_dir(world.home("")).output().unwrap())
    };
    let said = at_home(&["install", "cursor", "--dry-run"]);
    assert!(!said.out.contains("This project"), "{}", said.out);
    let said = at_home(&["install"]);
    assert!(said.out.contains("cursor (user)") && !said.out.contains("project"), "{}", said.out);
    let said = at_home(&["install", "cursor", "--scope", "project", "--yes"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert_eq!(text(&world.home(".cursor/mcp.json")), PLAIN);
}

#[test]
fn a_project_s_file_is_only_mentioned() {
    let (world, _) = cursor();
    put(&world.project(".cursor/mcp.json"), PLAIN);
    let said = world.run(&["install", "cursor", "--yes"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains(".cursor/mcp.json too: add --scope project"), "{}", said.out);
    assert_eq!(text(&world.project(".cursor/mcp.json")), PLAIN);
}

#[test]
fn help_tells_every_client_and_the_exit_codes() {
    let said = World::new().run(&["install", "--help"]);
    for part in ["claude-code", "goose", "--dry-run", "--scope", "0 if everything", "1 if something", "2 for"]
    {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    assert_eq!(said.code, 0);
}
