//! What the program prints for packages and programs: its version, completions, the manual page.

use std::process::{Command, Stdio};

use crate::world::outlast;

fn printed(words: &[&str]) -> String {
    let output = outlast().args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_can_read_the_version() {
    let text = printed(&["--version", "--json"]);
    assert_eq!(text.lines().count(), 1);
    let version: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(printed(&["--version"]), format!("outlast {}\n", env!("CARGO_PKG_VERSION")));
    let commit = &version["commit"];
    assert!(commit.is_null() || commit.as_str().unwrap().len() >= 40, "{commit}");
    assert!(version["features"].as_array().unwrap().contains(&"http".into()));
    assert!(version["target"].as_str().unwrap().contains(std::env::consts::ARCH));
    assert_eq!(outlast().args(["--version", "--yaml"]).output().unwrap().status.code(), Some(2));
}

/// What bash would offer for a line that ends with its last word.
fn offered(line: &str) -> Vec<String> {
    let script = format!(
        "source /dev/stdin; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _outlast; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let mut bash = Command::new("bash");
    let mut bash =
        bash.args(["--norc", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let completions = printed(&["completions", "bash"]);
    std::io::Write::write_all(&mut bash.stdin.take().unwrap(), completions.as_bytes()).unwrap();
    let said = bash.wait_with_output().unwrap().stdout;
    String::from_utf8(said).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_flags_commands_and_what_follows_them() {
    assert_eq!(offered("outlast --client-c"), ["--client-cap"]);
    assert_eq!(offered("outlast unin"), ["uninstall"]);
    assert_eq!(offered("outlast tasks res"), ["result"]);
    assert_eq!(offered("outlast expl"), ["explain"]);
    assert_eq!(offered("outlast serve --conf"), ["--config"]);
    for before in ["outlast check", "outlast serve --config"] {
        assert_eq!(offered(&format!("{before} /dev/nul")), ["/dev/null"]);
    }
    assert_eq!(offered("outlast install clin"), ["cline"]);
    assert_eq!(offered("outlast --log inf"), ["info"]);
    assert_eq!(offered("outlast tasks list --p"), ["--page"]);
    assert_eq!(offered("outlast holds approve 3 --r"), ["--reason"]);
    assert_eq!(offered("outlast help exit"), ["exit-codes"]);
    assert!(offered("outlast --timeout 5s -- bas").contains(&"bash".to_owned()), "the command of a server");
}

#[test]
fn there_are_completions_for_four_shells_and_a_manual_page() {
    for shell in ["bash", "fish", "powershell", "zsh"] {
        assert!(printed(&["completions", shell]).contains("idempotency-key"), "{shell}");
    }
    assert!(printed(&["man"]).starts_with(".TH OUTLAST 1 "));
    let wrong = outlast().args(["completions", "tcsh"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("bash|fish|powershell|zsh"));
}
