//! `outlast top` on a terminal, and without one.

use std::collections::BTreeMap;
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

const ROWS: u16 = 30;
const COLUMNS: u16 = 140;

/// What stands on a terminal: a program draws only what has changed.
#[derive(Default)]
struct Grid {
    cells: BTreeMap<(u16, u16), char>,
    at: (u16, u16),
    /// The beginning of something whose end has not come.
    rest: Vec<u8>,
}

impl Grid {
    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend(bytes);
        while let Some(taken) = self.take_one() {
            self.rest.drain(..taken);
        }
    }

    /// One character or one command; how many bytes that were.
    fn take_one(&mut self) -> Option<usize> {
        if self.rest.first() == Some(&0x1b) {
            let end = 2 + self.rest.get(2..)?.iter().position(|byte| (0x40..0x7f).contains(byte))?;
            let words = String::from_utf8_lossy(&self.rest[2..end]).into_owned();
            match (self.rest[end], words.split_once(';')) {
                (b'H', Some((row, column))) => {
                    self.at = (row.parse().expect("a row"), column.parse().expect("a column"));
                }
                (b'J', _) => self.cells.clear(),
                _ => {}
            }
            return Some(end + 1);
        }
        let long =
            (1..=4.min(self.rest.len())).find(|long| std::str::from_utf8(&self.rest[..*long]).is_ok())?;
        let c = std::str::from_utf8(&self.rest[..long]).ok()?.chars().next()?;
        self.cells.insert(self.at, c);
        self.at.1 += 1;
        Some(long)
    }

    fn text(&self) -> String {
        let line = |row: u16| -> String {
            (1..=COLUMNS).map(|column| self.cells.get(&(row, column)).copied().unwrap_or(' ')).collect()
        };
        (1..=ROWS).map(|row| line(row).trim_end().to_owned() + "\n").collect()
    }
}

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    keys: File,
    seen: Arc<Mutex<String>>,
    grid: Arc<Mutex<Grid>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    fn top(folder: &Path, more: &[&str]) -> Terminal {
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        let OpenptyResult { master, slave } = openpty(&size, None).expect("a terminal");
        let mut command = outlast();
        command.arg("top").arg("--state").arg(folder).args(more).env("TERM", "xterm");
        let end = || Stdio::from(slave.try_clone().expect("the other end"));
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("outlast runs");
        // With it goes our copy of the other end, so that reading ends with the process.
        drop((command, slave));
        let (seen, mut screen) = (Arc::new(Mutex::new(String::new())), File::from(master));
        let keys = screen.try_clone().expect("the keys");
        let grid: Arc<Mutex<Grid>> = Arc::default();
        let (shown, drawn) = (seen.clone(), grid.clone());
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal without another end is read to an error.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                shown.lock().expect("text").push_str(&String::from_utf8_lossy(&bytes[..count]));
                drawn.lock().expect("a screen").take(&bytes[..count]);
            }
        });
        Terminal { child, keys, seen, grid, reader }
    }

    /// Waits until the whole screen is so.
    fn shows(&self, what: &str, so: impl Fn(&str) -> bool) {
        let screen = || self.grid.lock().expect("a screen").text();
        assert!(wait_until(LIMIT, || so(&screen())), "not on the screen: {what}\n{}", screen());
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

/// Where the lines of these tools are, from above.
fn order(screen: &str, tools: [&str; 2]) -> Option<bool> {
    let line = |tool: &str| screen.lines().position(|line| line.contains(&format!(" {tool} ")));
    Some(line(tools[0])? < line(tools[1])?)
}

#[test]
fn keys_sort_filter_pause_tell_the_story_and_cancel() {
    let folder = TempDir::new().expect("a folder");
    let mut client = behind(folder.path(), &[]);
    let silent = client.begin("silent", &json!({"ms": 3_600_000}));
    let mut top = Terminal::top(folder.path(), &[]);
    top.shows("the first call", |screen| screen.contains(" silent "));
    let hang = client.begin("hang", &json!({}));
    let tools = ["silent", "hang"];
    top.shows("both calls, the oldest first", |screen| order(screen, tools) == Some(true));

    top.press("sss");
    top.shows("by tool", |screen| screen.contains("sorted by tool") && order(screen, tools) == Some(false));

    top.press("/SIL\r");
    let filtered = |screen: &str| screen.contains(" silent ") && !screen.contains(" hang ");
    top.shows("one line", filtered);
    top.press("/\x1b");
    top.shows("both again", |screen| order(screen, tools).is_some());

    top.press("p");
    top.shows("that it stands still", |screen| screen.contains("PAUSED"));
    client.cancel(&hang);
    let gone = || !printed(folder.path(), &["--once"]).contains(" hang ");
    assert!(wait_until(LIMIT, gone), "the call is still listed");
    top.shows("what was there before", |screen| order(screen, tools).is_some());
    top.press("p");
    top.shows("what is there now", filtered);

    top.press("\r");
    top.shows("the steps of the call", |screen| screen.contains("tools/call for `"));
    top.press("x");
    top.press("c");
    top.shows("the question", |screen| screen.contains("cancel call"));
    top.press("y");
    assert_eq!(client.answer(&silent)["error"]["code"], -31015);
    top.shows("no call", |screen| screen.contains("0 calls"));
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
