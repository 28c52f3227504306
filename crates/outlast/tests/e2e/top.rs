//! `outlast top` on a terminal, and without one.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nix::pty::{OpenptyResult, Winsize, openpty};
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, from_str, json};
use tempfile::TempDir;

use crate::world::{connect, outlast};

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    keys: File,
    seen: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    fn top(folder: &Path, more: &[&str]) -> Terminal {
        let size = Winsize { ws_row: 30, ws_col: 140, ws_xpixel: 0, ws_ypixel: 0 };
        let OpenptyResult { master, slave } = openpty(&size, None).expect("a terminal");
        let mut command = outlast();
        command.arg("top").arg("--state").arg(folder).args(more).env("TERM", "xterm");
        let end = || Stdio::from(slave.try_clone().expect("the other end"));
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("outlast runs");
        // With it goes our copy of the other end, so that reading ends with the process.
        drop((command, slave));
        let (seen, mut screen) = (Arc::new(Mutex::new(String::new())), File::from(master));
        let keys = screen.try_clone().expect("the keys");
        let shown = seen.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal without another end is read to an error.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                shown.lock().expect("text").push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Terminal { child, keys, seen, reader }
    }

    /// Waits until a word is drawn that was not there when a key was pressed last.
    fn sees(&self, word: &str) {
        let there = wait_until(LIMIT, || self.seen.lock().expect("text").contains(word));
        assert!(there, "`{word}` is not on the screen: {:?}", self.seen.lock());
    }

    fn press(&mut self, keys: &str) {
        self.seen.lock().expect("text").clear();
        self.keys.write_all(keys.as_bytes()).expect("a terminal takes keys");
    }

    /// Leaves, and the terminal is as it was.
    fn leave(mut self) {
        self.press("q");
        self.sees("\x1b[?1049l");
        assert!(self.child.wait().expect("it ends").success());
        self.reader.join().expect("it is read");
    }
}

fn behind(folder: &Path, more: &[&str]) -> Peer {
    let state = folder.to_str().expect("text");
    connect(&[&["--state", state], more].concat(), &[])
}

fn printed(folder: &Path, words: &[&str]) -> String {
    let output = outlast().arg("top").args(words).arg("--state").arg(folder).output().expect("outlast runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_call_is_approved_on_the_screen() {
    let folder = TempDir::new().expect("a folder");
    let mut client = behind(folder.path(), &["--tool", "echo=hold:true"]);
    let id = client.begin("echo", &json!({"text": "\u{1b}[2J\u{202e}"}));
    let mut top = Terminal::top(folder.path(), &[]);
    top.sees("approve");
    top.sees("echo");
    assert!(!top.seen.lock().expect("text").contains('\u{202e}'), "arguments steer the terminal");
    top.press("a");
    assert!(client.answer(&id)["result"].is_object());
    top.sees("approved");
    top.leave();
}

#[test]
fn without_a_terminal_it_is_printed_once() {
    let folder = TempDir::new().expect("a folder");
    assert_eq!(printed(folder.path(), &["--once"]), "no call is open\n");
    let mut client = behind(folder.path(), &["--tool", "echo=hold:true"]);
    let id = client.begin("echo", &json!({}));
    let shown = wait_until(LIMIT, || printed(folder.path(), &["--once"]).contains("approve 1?"));
    assert!(shown, "the hold is not listed");
    let state: Value = from_str(&printed(folder.path(), &["--json"])).expect("JSON");
    assert_eq!((&state["version"], &state["holds"][0]["tool"]), (&json!(1), &json!("echo")));
    client.cancel(&id);
}
