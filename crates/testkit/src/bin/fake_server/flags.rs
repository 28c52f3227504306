//! The command line: faults of the whole process. What stands behind `--` is nobody's business.

use std::path::PathBuf;
use std::process::exit;
use std::time::Duration;
use std::{env, io, thread};

use super::processes;

/// What this process is for.
pub enum Role {
    Server(Box<Flags>),
    /// Somebody's child that only holds on to what it was given.
    Sleeper {
        ignores_term: bool,
    },
    /// Starts a sleeper in a session of its own and ends.
    Daemon,
}

/// How the server misbehaves as a process.
#[derive(Default)]
pub struct Flags {
    /// `--ignore-term`
    ignores_term: bool,
    /// `--ignore-eof`
    pub ignores_eof: bool,
    /// `--slow-start MS`: reads nothing before.
    slow_start: Duration,
    /// `--start-when FILE`: reads nothing before there is such a file.
    start_when: Option<PathBuf>,
    /// `--stderr TEXT`: says so first.
    first_stderr: Option<String>,
    /// `--exit STATUS`: ends before it reads anything.
    exit: Option<i32>,
    /// `--exit-if FILE`: ends with status 9 if there is such a file.
    exit_if: Option<PathBuf>,
    /// `--exit-at METHOD STATUS`: ends when it is asked for this.
    pub exit_at: Option<(String, i32)>,
    /// `--mute METHOD`: never answers it.
    mute: Vec<String>,
    /// `--mute-if FILE METHOD`: does not answer it while there is such a file.
    mute_if: Option<(PathBuf, String)>,
    /// `--capabilities JSON`: declared instead of `{"tools":{}}`.
    pub capabilities: Option<String>,
    /// `--tasks DIR`: has tasks of its own, and keeps them there.
    pub tasks: Option<PathBuf>,
}

impl Flags {
    pub fn read() -> Role {
        let mut flags = Flags::default();
        let words = env::args_os().skip(1).take_while(|word| word != "--");
        let mut words = words.map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default();
            match word.as_str() {
                "--sleep" => return Role::Sleeper { ignores_term: value() == "--ignore-term" },
                "--daemon" => return Role::Daemon,
                "--ignore-term" => flags.ignores_term = true,
                "--ignore-eof" => flags.ignores_eof = true,
                "--slow-start" => flags.slow_start = Duration::from_millis(number(&value()) as u64),
                "--start-when" => flags.start_when = Some(value().into()),
                "--stderr" => flags.first_stderr = Some(value()),
                "--exit" => flags.exit = Some(number(&value())),
                "--exit-if" => flags.exit_if = Some(value().into()),
                "--exit-at" => flags.exit_at = Some((value(), number(&value()))),
                "--mute" => flags.mute.push(value()),
                "--mute-if" => flags.mute_if = Some((value().into(), value())),
                "--tasks" => flags.tasks = Some(value().into()),
                "--capabilities" => flags.capabilities = Some(value()),
                other => wrong(other),
            }
        }
        Role::Server(Box::new(flags))
    }

    /// Whether a request is left unanswered.
    pub fn is_mute_on(&self, method: &str) -> bool {
        let now = self.mute_if.as_ref().is_some_and(|(path, mute)| mute == method && path.exists());
        now || self.mute.iter().any(|mute| mute == method)
    }

    /// What happens before the first message is read.
    pub fn misbehave_at_the_start(&self) -> io::Result<()> {
        if self.ignores_term {
            processes::ignore_term();
        }
        if let Some(text) = &self.first_stderr {
            processes::complain(text.as_bytes())?;
        }
        thread::sleep(self.slow_start);
        self.start_when.iter().for_each(|gate| processes::wait_for(gate));
        if let Some(status) = self.exit {
            exit(status);
        }
        if self.exit_if.as_ref().is_some_and(|path| path.exists()) {
            exit(9);
        }
        Ok(())
    }
}

fn number(word: &str) -> i32 {
    word.parse().unwrap_or_else(|_| wrong(word))
}

/// A typing error in a test must not look like a fault of the program under test.
fn wrong(word: &str) -> ! {
    let _ = processes::complain(format!("fake-server: what is `{word}`?\n").as_bytes());
    exit(98)
}
