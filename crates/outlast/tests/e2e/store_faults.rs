//! A store that cannot be used: whatever is wrong with it, plain calls do not notice, a call that asks for a
//! task gets one or a plain answer, and the log says what is wrong and what to do.
//!
//! Two ways to go on: a store that cannot be opened is replaced by memory; one that fails later fails what is
//! given to it just then, and is tried again with the next thing.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use nix::unistd::Uid;
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{connect, outlast, wrapping};

const FLAGS: [&str; 3] = ["--tasks", "--log", "warn"];

fn flags(folder: &Path) -> Vec<&str> {
    [&FLAGS[..], &["--state", folder.to_str().expect("text")]].concat()
}

fn client(folder: &Path) -> Peer {
    connect(&flags(folder), &[])
}

fn file(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

/// Asks for a task; what is answered.
fn ask(client: &mut Peer, tool: &str, arguments: &Value) -> Value {
    let id = client.request("tools/call", &json!({"name": tool, "arguments": arguments, "task": {}}));
    client.answer(&id)
}

fn ticket(answer: &Value) -> String {
    answer["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {answer}")).to_owned()
}

fn about(client: &mut Peer, method: &str, ticket: &str) -> Value {
    let id = client.request(method, &json!({"taskId": ticket}));
    client.answer(&id)
}

/// A task from its beginning to its end, and a plain call.
fn tasks_work(client: &mut Peer) {
    let task = ticket(&ask(client, "echo", &json!({"n": 7})));
    assert_eq!(about(client, "tasks/result", &task)["result"]["structuredContent"], json!({"n": 7}));
    assert_eq!(about(client, "tasks/get", &task)["result"]["status"], "completed");
    let id = client.request("tasks/list", &json!({}));
    assert_eq!(client.answer(&id)["result"]["tasks"][0]["taskId"], json!(task));
    plain_calls_work(client);
}

fn plain_calls_work(client: &mut Peer) {
    assert_eq!(client.value_of("echo", &json!({"n": 8})), json!({"n": 8}));
}

/// Without the store tasks live in memory, and the log says once why.
fn goes_on_in_memory(client: &mut Peer, why: &str) {
    tasks_work(client);
    tasks_work(client);
    let log = client.stderr_where(|log| log.contains(why));
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("until outlast is started again, or with another --state, it keeps"), "{log}");
}

/// What is not in memory may still be in the file: nobody is told that it does not exist.
fn does_not_deny(client: &mut Peer, ticket: &str) {
    let answer = about(client, "tasks/result", ticket);
    let text = "Internal error: the store does not answer; the log of outlast says why";
    assert_eq!(answer["error"], json!({"code": -32603, "message": text}));
}

/// A store that could be opened and does not take what it is given: the call is answered plainly, and the log
/// says why.
fn answers_plainly(client: &mut Peer, why: &str) {
    for n in 0..3 {
        let answer = ask(client, "echo", &json!({"n": n}));
        assert_eq!(answer["result"], json!({"content": [], "structuredContent": {"n": n}}));
    }
    plain_calls_work(client);
    let log = client.stderr_where(|log| log.contains(why));
    assert_eq!(log.matches("could not be stored").count(), 1, "{log}");
    assert!(log.contains("meanwhile calls that ask for a task are answered plainly"), "{log}");
}

fn list(folder: &Path) -> Output {
    outlast().args(["tasks", "list", "--state"]).arg(folder).output().expect("outlast runs")
}

/// `outlast tasks list` says the same, and ends with the status of a broken store.
fn list_says(folder: &Path, why: &str) {
    let list = list(folder);
    let said = String::from_utf8_lossy(&list.stderr);
    assert_eq!((list.status.code(), list.stdout.len()), (Some(4), 0), "{said}");
    assert!(said.contains(why), "{said}");
    assert!(!said.contains("in memory"), "{said}");
}

/// A folder with a store that holds one task; its ticket.
fn with_one_task() -> (TempDir, String) {
    let folder = TempDir::new().expect("a folder");
    let mut client = client(folder.path());
    let task = ticket(&ask(&mut client, "echo", &json!({"n": 1})));
    about(&mut client, "tasks/result", &task);
    client.hang_up();
    // A process may end before its reader has closed the file; the last one to close it leaves one file.
    let last = Connection::open(file(folder.path())).unwrap();
    last.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(last);
    assert!(!folder.path().join("store.db-wal").exists(), "there is more than one file");
    (folder, task)
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).expect("the file");
    file.seek(SeekFrom::Start(at)).expect("a place");
    file.write_all(bytes).expect("written");
}

#[test]
fn a_file_of_a_newer_version_is_left_as_it_is() {
    let (folder, task) = with_one_task();
    Connection::open(file(folder.path())).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(file(folder.path())).unwrap();
    let why = "was written by a newer outlast (format 99, this one knows ";
    let mut client = client(folder.path());
    goes_on_in_memory(&mut client, why);
    does_not_deny(&mut client, &task);
    list_says(folder.path(), why);
    assert!(before == fs::read(file(folder.path())).unwrap(), "it was changed");
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let (folder, task) = with_one_task();
    overwrite(&file(folder.path()), 0, &[0x5a; 4096]);
    let before = fs::read(file(folder.path())).unwrap();
    let mut client = client(folder.path());
    goes_on_in_memory(&mut client, "is damaged (file is not a database); move it away to start anew");
    does_not_deny(&mut client, &task);
    list_says(folder.path(), "is damaged");
    assert!(before == fs::read(file(folder.path())).unwrap(), "it was changed");
}

#[test]
fn a_database_of_another_program_is_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    Connection::open(file(folder.path())).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    goes_on_in_memory(&mut client(folder.path()), "is a database of another program");
    list_says(folder.path(), "is a database of another program");
}

/// The schema is read when a file is opened.
#[test]
fn a_file_whose_pages_are_garbage_is_found_to_be_damaged() {
    let (folder, task) = with_one_task();
    let path = file(folder.path());
    let size = fs::metadata(&path).unwrap().len() as usize;
    overwrite(&path, 4096, &vec![0x5a; size - 4096]);
    let mut client = client(folder.path());
    goes_on_in_memory(&mut client, "is damaged (database disk image is malformed); move it away");
    does_not_deny(&mut client, &task);
    list_says(folder.path(), "is damaged");
}

#[test]
fn a_file_that_was_cut_off_is_found_to_be_damaged() {
    let (folder, task) = with_one_task();
    let path = file(folder.path());
    let pages = fs::metadata(&path).unwrap().len() / 4096;
    File::options().write(true).open(&path).unwrap().set_len(pages / 2 * 4096).unwrap();
    let mut client = client(folder.path());
    goes_on_in_memory(&mut client, "is damaged (database disk image is malformed); move it away");
    does_not_deny(&mut client, &task);
    list_says(folder.path(), "is damaged");
}

/// Nobody reads all of a file to open it: what is damaged elsewhere is found when it is needed.
#[test]
fn a_damaged_page_fails_what_needs_it() {
    let (folder, task) = with_one_task();
    let path = file(folder.path());
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'records'";
    let page: u32 = Connection::open(&path).unwrap().query_row(root, [], |row| row.get(0)).unwrap();
    overwrite(&path, u64::from(page - 1) * 4096, &[0x5a; 4096]);
    let mut client = client(folder.path());
    answers_plainly(&mut client, "it is damaged; move it away to start anew");
    does_not_deny(&mut client, &task);
    list_says(folder.path(), "it is damaged; move it away to start anew");

    // What the log advises helps, also while outlast runs.
    fs::rename(&path, folder.path().join("damaged.db")).unwrap();
    for name in ["store.db-wal", "store.db-shm"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    ask(&mut client, "echo", &json!({}));
    client.stderr_where(|log| log.contains("was removed or replaced"));
    tasks_work(&mut client);
    assert_eq!(list(folder.path()).status.code(), Some(0));
}

/// After a kill the log has what the file has not.
#[test]
fn a_damaged_log_is_not_taken_for_an_empty_one() {
    let folder = TempDir::new().unwrap();
    let mut killed = client(folder.path());
    let task = ticket(&ask(&mut killed, "echo", &json!({})));
    about(&mut killed, "tasks/result", &task);
    killed.signal(Signal::SIGKILL);
    killed.end();
    overwrite(&folder.path().join("store.db-wal"), 0, &[0x5a; 32]);
    let mut client = client(folder.path());
    goes_on_in_memory(&mut client, "store.db-wal` is damaged (it is not a log of SQLite); move it away");
    does_not_deny(&mut client, &task);
    list_says(folder.path(), "store.db-wal` is damaged");
}

/// A command that runs another one.
fn running_in(mut outer: Command, command: &Command) -> Command {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// The same command, run by somebody whom mode bits stop: root loses the right to pass them over.
fn obeying_modes(command: Command) -> Command {
    if !Uid::effective().is_root() {
        return command;
    }
    let mut outer = Command::new("setpriv");
    outer.args(["--bounding-set=-dac_override,-dac_read_search,-fowner", "--"]);
    running_in(outer, &command)
}

fn greeted(mut command: Command) -> Peer {
    let mut client = Peer::start(&mut command);
    client.handshake();
    client
}

#[test]
fn a_file_that_may_only_be_read() {
    let (folder, task) = with_one_task();
    fs::set_permissions(file(folder.path()), Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
    let mut client = greeted(obeying_modes(wrapping(&flags(folder.path()), &[])));
    goes_on_in_memory(&mut client, "store.db` cannot be written, only read");
    does_not_deny(&mut client, &task);
    let mut list = outlast();
    list.args(["tasks", "list", "--state"]).arg(folder.path());
    let list = obeying_modes(list).output().unwrap();
    assert_eq!(list.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&list.stderr).contains("cannot be written, only read"));
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_folder_in_which_nothing_can_be_made() {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
    let mut client = greeted(obeying_modes(wrapping(&flags(folder.path()), &[])));
    goes_on_in_memory(&mut client, "Permission denied");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();

    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    goes_on_in_memory(&mut connect(&flags(&path.join("state")), &[]), "Not a directory");
}

/// `ulimit -f`, in units of 512 bytes: as near as a test gets to a full disk without being root. SQLite's own
/// word for one is tried in the tests of the store.
fn with_little_room(blocks: u32, command: &Command) -> Command {
    let mut outer = Command::new("sh");
    outer.args(["-c", &format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$@\""), "sh"]);
    running_in(outer, command)
}

fn make_room(client: &Peer) {
    let pid = client.pid().to_string();
    let status = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
    assert!(status.expect("prlimit runs").success());
}

#[test]
fn a_disk_without_room_for_a_file() {
    let folder = TempDir::new().unwrap();
    let mut client = greeted(with_little_room(8, &wrapping(&flags(folder.path()), &[])));
    goes_on_in_memory(&mut client, "store.db`: disk I/O error");
}

/// What was promised is kept: the end of a running task is shown from memory, and stored once there is room.
#[test]
fn a_disk_that_is_full_for_a_while() {
    let (folder, task) = with_one_task();
    let mut client = greeted(with_little_room(400, &wrapping(&flags(folder.path()), &[])));
    let large = json!({"large": "x".repeat(120_000)});
    let running = ticket(&ask(&mut client, "echo", &large));
    assert_eq!(about(&mut client, "tasks/result", &running)["result"]["structuredContent"], large);
    client.stderr_where(|log| log.contains("its disk does not work, or takes no more"));
    assert_eq!(ask(&mut client, "echo", &large)["result"]["structuredContent"], large);
    plain_calls_work(&mut client);
    assert_eq!(about(&mut client, "tasks/get", &task)["result"]["status"], "completed");
    assert_eq!(about(&mut client, "tasks/get", &running)["result"]["status"], "completed");
    assert!(lists_as_working(folder.path(), &running));

    make_room(&client);
    assert!(wait_until(LIMIT, || !lists_as_working(folder.path(), &running)), "{}", client.stderr());
    tasks_work(&mut client);
}

/// Between two tries everything ends: there is one more.
#[test]
fn a_disk_that_has_room_again_at_the_end() {
    let (folder, _) = with_one_task();
    let mut client = greeted(with_little_room(400, &wrapping(&flags(folder.path()), &[])));
    let large = json!({"large": "x".repeat(120_000)});
    let running = ticket(&ask(&mut client, "echo", &large));
    assert_eq!(about(&mut client, "tasks/result", &running)["result"]["structuredContent"], large);
    client.stderr_where(|log| log.contains("its disk does not work, or takes no more"));
    assert!(lists_as_working(folder.path(), &running));
    make_room(&client);
    client.hang_up();
    assert!(!lists_as_working(folder.path(), &running), "{}", client.stderr());
}

fn lists_as_working(folder: &Path, ticket: &str) -> bool {
    let list = list(folder);
    let list = String::from_utf8_lossy(&list.stdout);
    let line = list.lines().find(|line| line.starts_with(&ticket[..8]));
    line.unwrap_or_else(|| panic!("{ticket} is not there: {list}")).contains("working")
}

#[test]
fn a_file_that_another_process_does_not_let_go_of() {
    let (folder, task) = with_one_task();
    let mut client = client(folder.path());
    let running = ticket(&ask(&mut client, "silent", &json!({"ms": 500})));
    let holder = Connection::open(file(folder.path())).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let waits = client.request("tools/call", &json!({"name": "echo", "arguments": {"n": 3}, "task": {}}));
    plain_calls_work(&mut client);
    // Whoever reads does not wait for whoever writes.
    assert_eq!(about(&mut client, "tasks/get", &task)["result"]["status"], "completed");
    let answer = client.answer(&waits);
    assert_eq!(answer["result"], json!({"content": [], "structuredContent": {"n": 3}}));
    client.stderr_where(|log| log.contains("another process does not let go of it"));
    holder.execute_batch("ROLLBACK").unwrap();
    drop(holder);

    // What ended meanwhile is stored now.
    about(&mut client, "tasks/result", &running);
    tasks_work(&mut client);
    assert!(wait_until(LIMIT, || !lists_as_working(folder.path(), &running)), "{}", client.stderr());
}

/// A process that stands still while it opens the store does not stop the others for ever.
#[test]
fn a_turn_that_somebody_keeps() {
    let (folder, task) = with_one_task();
    let file = File::open(folder.path().join("store.lock")).unwrap();
    let turn = Flock::lock(file, FlockArg::LockExclusive).unwrap();
    let mut client = client(folder.path());
    plain_calls_work(&mut client);
    goes_on_in_memory(&mut client, "is held by another process");
    does_not_deny(&mut client, &task);
    drop(turn);
}

/// Somebody cleans up while outlast runs.
#[test]
fn a_folder_that_was_removed_is_begun_anew() {
    let (folder, task) = with_one_task();
    let mut client = client(folder.path());
    let running = ticket(&ask(&mut client, "silent", &json!({"ms": 1500})));
    fs::remove_dir_all(folder.path()).unwrap();
    let answer = ask(&mut client, "echo", &json!({"n": 2}));
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 2}));
    client.stderr_where(|log| log.contains("store.db` was removed or replaced, and with it what was kept"));
    plain_calls_work(&mut client);

    // The running one ends in memory; the earlier one is gone, and nobody pretends otherwise.
    tasks_work(&mut client);
    assert!(about(&mut client, "tasks/result", &running)["result"].is_object());
    assert!(about(&mut client, "tasks/result", &task)["error"]["code"].is_number());
    let list = list(folder.path());
    assert_eq!((list.status.code(), list.stdout.is_empty()), (Some(0), false));
}
