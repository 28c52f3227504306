//! `outlast import`: the files of several clients become one, which `check` takes and a gateway runs on.

use crate::world::{OUTLAST, fake_server};
use outlast_testkit::peer::Peer;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOOLS: &str = "echo tell_environment tell_arguments";

/// Clients' own files with the fake server in them, as each client writes them; secrets in plain text, as people do.
fn files(home: &Path) {
    let server = fake_server().display().to_string();
    let put = |path: &str, text: String| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put(
        ".cursor/mcp.json",
        format!(
            r#"{{ // mine
  "mcpServers": {{
    "my notes": {{"command": "{server}", "args": [], "env": {{"NOTES_KEY": "s3cret-1", "FAKE_TOOLS": "{TOOLS}"}},}},
    "wrapped": {{"command": "outlast", "args": ["--installed", "--tool", "hang=timeout:50ms", "--", "{server}"],
      "env": {{"FAKE_TOOLS": "{TOOLS} hang"}}}}
  }}
}}"#
        ),
    );
    put(
        ".codex/config.toml",
        format!(
            "model = \"gpt\"\n[mcp_servers.files]\ncommand = '{server}'\n\
             env = {{ TOKEN = \"s3cret-2\", FAKE_TOOLS = \"{TOOLS}\" }}\nstartup_timeout_sec = 20.0\n"
        ),
    );
    put(
        ".config/Code/User/mcp.json",
        format!(
            r#"{{"inputs": [{{"id": "key", "type": "promptString", "password": true}}],
  "servers": {{"asks": {{"type": "stdio", "command": "{server}", "env": {{"KEY": "${{input:key}}", "FAKE_TOOLS": "{TOOLS}"}}}}}}}}"#
        ),
    );
}

/// Outlast of a person with this home, and nothing else.
fn outlast(home: &Path) -> Command {
    let mut command = Command::new(OUTLAST);
    command.env_clear().env("HOME", home).env("PATH", Path::new(OUTLAST).parent().unwrap());
    command.env("OUTLAST_STATE", "none");
    command
}

struct Imported {
    _home: tempfile::TempDir,
    home: PathBuf,
    file: PathBuf,
    told: String,
}

fn imported() -> Imported {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_path_buf();
    files(&home);
    let file = home.join("team.toml");
    let output =
        outlast(&home).args(["import", "cursor", "codex", "vscode", "--output"]).arg(&file).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    Imported { _home: folder, home, file, told }
}

#[test]
#[cfg(target_os = "linux")]
fn files_of_clients_become_one_that_runs() {
    let Imported { home, file, told, .. } = &imported();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(!text.contains("s3cret") && !told.contains("s3cret"), "{text}\n{told}");
    let variables =
        [("NOTES_KEY", "s3cret-1"), ("TOKEN", "s3cret-2"), ("ASKS_KEY", "s3cret-3"), ("FAKE_TOOLS", TOOLS)];
    for (variable, _) in variables {
        assert!(told.contains(&format!("set {variable} before outlast starts")), "{variable}: {told}");
    }
    // Without them the file says which are missing, and where.
    let missing = outlast(home).arg("check").arg(file).output().unwrap();
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(!missing.status.success() && said.contains("the variable NOTES_KEY is not set"), "{said}");

    let mut command = outlast(home);
    command.arg("--config").arg(file).envs(variables).env("WRAPPED_FAKE_TOOLS", format!("{TOOLS} hang"));
    let mut client = Peer::start(&mut command);
    client.handshake();
    let mut env = |server: &str, name: &str| {
        client.value_of(&format!("{server}__tell_environment"), &json!({}))[name].clone()
    };
    assert_eq!(env("my-notes", "NOTES_KEY"), "s3cret-1");
    assert_eq!(env("files", "TOKEN"), "s3cret-2");
    assert_eq!(env("asks", "KEY"), "s3cret-3");
    // The flags of one that ran through outlast are settings now.
    let limited = client.call("wrapped__hang", &json!({}));
    assert_eq!(limited["error"]["data"]["outlast"]["kind"], "timeout", "{limited}");
    assert!(
        limited["error"]["message"]
            .as_str()
            .unwrap()
            .contains("[servers.wrapped.tools.\"hang\"] in team.toml")
    );
}

#[test]
#[cfg(target_os = "linux")]
fn what_is_there_already_is_not_overwritten() {
    let Imported { home, file, .. } = &imported();
    let before = std::fs::read(file).unwrap();
    let again = outlast(home).args(["import", "cursor", "--output"]).arg(file).output().unwrap();
    let told = String::from_utf8(again.stderr).unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(told.contains("it is there already"), "{told}");
    assert_eq!(std::fs::read(file).unwrap(), before);
}
